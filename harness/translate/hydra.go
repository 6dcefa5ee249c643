package translate

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// hydra composes settings as Hydra does: a file's own settings override its defaults list's, and the command
// line's override both. It leaves out structured configurations, relative packages (_group_) and multirun.
type hydra struct {
	places   places
	module   string // the Python file that starts, as a path; "" if it is not known
	folder   string // of the main file
	search   []string
	megatron bool // the base is ppo_megatron_trainer
	read     int  // files
	notes    []string
}

// file returns the settings of a YAML file: those with a list of defaults start from other files.
func (h *hydra) file(text []byte, name string) (overrides, error) {
	if !listsDefaults.Match(text) {
		return readTree(text, name)
	}
	in := overrides{}
	err := h.layer(in, name, "", 0)
	h.engine(in)
	return in, err
}

// listsDefaults matches the key of a list of defaults.
var listsDefaults = regexp.MustCompile(`(?m)^defaults:`)

// engine puts what verl's base for Megatron has in place of the other one's.
func (h *hydra) engine(in overrides) {
	if _, ok := in[actor+"strategy"]; h.megatron && !ok {
		in[actor+"strategy"] = "megatron"
	}
}

// megatronBase is verl's main file for models computed by Megatron.
const megatronBase = "ppo_megatron_trainer"

// verlsOwn are the names of verl's own files, whose values are the defaults of this translation. A list of
// defaults names them with the folder of verl they lie in, or alone.
const verlsOwn = ` ppo_trainer ppo_megatron_trainer dp megatron veomni legacy_data legacy_reward_impl rollout hf_model
	reward reward_manager reward_model rollout_correction distillation transfer_queue profiler ref actor critic
	dp_reward_loop dp_reward_model megatron_reward_loop megatron_reward_model `

var engineFile = regexp.MustCompile(`^(\$\{model_engine\}|dp|megatron|fsdp|veomni|torchtitan)_(actor|ref|critic)$`)

// own reports whether a default is verl's.
func own(name string) bool {
	name = path.Base(name)
	return engineFile.MatchString(name) || slices.Contains(strings.Fields(verlsOwn), name)
}

// flags are Hydra's flags for its files, by their short names.
var flags = map[string]string{"-cp": "--config-path", "-cn": "--config-name", "-cd": "--config-dir"}

// group matches a word that chooses a file of a group: model_engine=megatron, +config@a.b=mine.
var group = regexp.MustCompile(`^\+{0,2}([A-Za-z_][\w/]*)(?:@([\w.]*))?=([\w./-]+)$`)

// command returns the settings of the files that a command names.
func (h *hydra) command(words []word) (overrides, error) {
	given := map[string]string{}
	var choices [][]string
	for i, w := range words {
		flag, value, ok := strings.Cut(w.text, "=")
		flag = cmp.Or(flags[flag], flag)
		if !ok && i+1 < len(words) {
			value = words[i+1].text
		}
		switch {
		case slices.Contains(slices.Collect(maps.Values(flags)), flag):
			given[flag] = unquoted(value)
		case flag == "-m":
			h.module = strings.ReplaceAll(value, ".", "/") + ".py"
		case h.module == "" && strings.HasSuffix(w.text, ".py"):
			h.module = w.text
		case h.module != "": // before it are the launcher's own words
			if m := group.FindStringSubmatch(w.text); m != nil {
				choices = append(choices, m)
			}
		}
	}
	in := overrides{}
	folder, name := h.main(in, given)
	if err := h.readMain(in, folder, name, given["--config-dir"]); err != nil {
		return nil, err
	}
	for _, m := range choices {
		if m[1] == "model_engine" {
			h.megatron = m[3] == "megatron"
			continue
		}
		pkg := cmp.Or(m[2], strings.ReplaceAll(m[1], "/", "."))
		file, ok := h.lookup(m[1] + "/" + m[3])
		if ok {
			if err := h.layer(in, file, pkg, 0); err != nil {
				return nil, err
			}
			h.note("read %s, which %s names", file, m[0])
		} else if strings.ContainsAny(m[0], "@/+") {
			h.note("the file that %s names is not here: --config-path FOLDER says where it is", m[0])
		}
	}
	h.engine(in)
	return in, nil
}

// decorator matches what a trainer starts from unless its command says otherwise.
var decorator = regexp.MustCompile(`@hydra\.main\(([^)]*)\)`)
var named = regexp.MustCompile(`config_(path|name)\s*=\s*["']([^"']+)["']`)

// known are the trainers whose own files hold nothing but what this translation knows; ofPrime the one that starts
// from primeDefaults, ofDAPO those that start from the reward manager dapo.
var (
	known   = regexp.MustCompile(`(^|/)((gvpo_|spo_)?main_ppo|main_(dapo|flowrl|sppo|spin|prime)|fully_async_main)\.py$`)
	ofPrime = regexp.MustCompile(`(^|/)main_prime\.py$`)
	ofDAPO  = regexp.MustCompile(`(^|/)(main_dapo|main_flowrl)\.py$`)
)

// main returns folder and name of the main file; the trainer's Python file tells what a command does not.
func (h *hydra) main(in overrides, given map[string]string) (folder, name string) {
	folder, name = "config", "ppo_trainer"
	file, ok := h.places.find(h.module)
	if text, err := os.ReadFile(file); ok && h.module != "" && err == nil {
		if m := decorator.FindSubmatch(text); m != nil {
			for _, m := range named.FindAllSubmatch(m[1], -1) {
				switch string(m[1]) {
				case "path":
					folder = string(m[2])
				case "name":
					name = string(m[2])
				}
			}
		}
	} else if _, says := given["--config-name"]; !says && ofDAPO.MatchString(h.module) {
		in["reward_model.reward_manager"] = "dapo"
	} else if !says && ofPrime.MatchString(h.module) {
		maps.Copy(in, primeDefaults())
	} else if !says && h.module != "" && !known.MatchString(h.module) {
		h.note("the settings from which %s starts are not known here: --config-path FOLDER says where its file is",
			path.Base(h.module))
	}
	return cmp.Or(given["--config-path"], folder), cmp.Or(given["--config-name"], name)
}

// readMain reads the main file. One with the name of verl's own is verl's.
func (h *hydra) readMain(in overrides, folder, name, more string) error {
	name = strings.TrimSuffix(strings.TrimSuffix(name, ".yaml"), ".yml")
	if base := path.Base(name); base == "ppo_trainer" || base == megatronBase {
		h.megatron = base == megatronBase
		return nil
	}
	h.folder = folder
	if more != "" {
		h.search = append(h.search, more)
	}
	file, ok := h.lookup(name)
	if !ok {
		h.note("%s.yaml, from which it starts, is not here, so its settings are not known: --config-path FOLDER "+
			"says where it is, or translate the config.yaml that Hydra leaves", name)
		return nil
	}
	h.note("read %s, from which it starts", file)
	return h.layer(in, file, "", 0)
}

// lookup finds a file of settings by its name without extension: next to the trainer, or from the folders
// that the script and the user give.
func (h *hydra) lookup(name string) (file string, ok bool) {
	for _, dir := range slices.Concat([]string{h.folder}, h.search) {
		for i, at := range []string{path.Join(path.Dir(h.module), dir), dir, ""} {
			if i == 0 && filepath.IsAbs(dir) {
				continue
			}
			if file, ok = h.places.find(path.Join(at, name) + ".yaml"); ok {
				return file, true
			}
		}
	}
	return "", false
}

// deepest limits how far lists of defaults nest, and mostFiles what they name: they can name each other in a circle.
const (
	deepest   = 16
	mostFiles = 1024
)

// packageLine matches the comment with which a file says where its settings belong.
var packageLine = regexp.MustCompile(`(?m)^# *@package +(\S+)`)

// layer puts a file's settings over those that are there: first its defaults', then its own.
func (h *hydra) layer(in overrides, file, pkg string, depth int) error {
	if depth > deepest {
		return fmt.Errorf("%s: lists of defaults nest over %d deep", file, deepest)
	}
	if h.read++; h.read > mostFiles {
		return fmt.Errorf("%s: lists of defaults name over %d files", file, mostFiles)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var tree map[string]any
	if err := yaml.Unmarshal(text, &tree); err != nil {
		return fmt.Errorf("%s is not YAML: %w", file, err)
	}
	if err := moderate(tree, file); err != nil {
		return err
	}
	switch m := packageLine.FindSubmatch(text); {
	case m != nil && string(m[1]) == "_global_":
		pkg = ""
	case m != nil:
		pkg = string(m[1])
	}
	if block, ok := tree["hydra"].(map[string]any); ok {
		list, _ := block["searchpath"].([]any)
		for _, x := range list {
			h.search = append(h.search, strings.TrimPrefix(fmt.Sprint(x), "file://"))
		}
	}
	entries, _ := tree["defaults"].([]any)
	delete(tree, "hydra")
	delete(tree, "defaults")
	if !slices.Contains(entries, any("_self_")) {
		entries = append(entries, "_self_")
	}
	for _, x := range entries {
		if x == "_self_" {
			in.over(tree, pkg)
		} else {
			err = h.entry(in, x, file, pkg, depth)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// entry puts the files of an entry of a defaults list: a name, or a choice of a group.
func (h *hydra) entry(in overrides, x any, from, pkg string, depth int) error {
	choices := map[string]any{"": x}
	if m, ok := x.(map[string]any); ok {
		choices = m
	}
	for _, key := range slices.Sorted(maps.Keys(choices)) {
		list, ok := choices[key].([]any)
		if !ok {
			list = []any{choices[key]}
		}
		group := key[strings.LastIndexByte(key, ' ')+1:] // after optional, override
		for _, choice := range list {
			if choice == nil {
				continue
			}
			if err := h.choice(in, group, fmt.Sprint(choice), from, pkg, depth); err != nil {
				return err
			}
		}
	}
	return nil
}

// choice puts one file that a defaults list names, "" for group if it is not in one.
func (h *hydra) choice(in overrides, group, name, from, pkg string, depth int) error {
	group, at, has := strings.Cut(group, "@")
	if group == "" {
		name, at, has = strings.Cut(name, "@")
	}
	if !has {
		at = strings.ReplaceAll(strings.Trim(group, "/"), "/", ".")
	}
	if at == "_global_" {
		at, pkg = "", ""
	}
	at = strings.Trim(pkg+"."+at, ".")
	if group == "model_engine" || own(name) {
		h.megatron = h.megatron || path.Base(name) == megatronBase || group == "model_engine" && name == "megatron"
		return nil
	}
	rest := path.Join(group, name)
	file := filepath.Join(filepath.Dir(from), filepath.FromSlash(rest)) + ".yaml"
	if !isFile(file) {
		var ok bool
		if file, ok = h.lookup(strings.TrimLeft(rest, "/")); !ok {
			h.note("%s, which %s starts from, is not here: --config-path FOLDER says where it is", rest, from)
			return nil
		}
	}
	if err := h.layer(in, file, at, depth+1); err != nil {
		return err
	}
	h.note("read %s, which %s starts from", file, filepath.Base(from))
	return nil
}

func (h *hydra) note(format string, args ...any) {
	h.notes = append(h.notes, fmt.Sprintf(format, args...))
}

// over puts a tree of settings over those that are there.
func (o overrides) over(tree map[string]any, pkg string) {
	more := overrides{}
	more.add(pkg, tree)
	blocks := map[string]bool{}
	for key := range o {
		for at := key; at != ""; {
			i := max(0, strings.LastIndexByte(at, '.'))
			at = at[:i]
			blocks[at] = true
		}
	}
	for key, value := range more {
		if blocks[key] { // a value in the place of a block
			maps.DeleteFunc(o, func(k, _ string) bool { return strings.HasPrefix(k, key+".") })
		}
		o[key] = value
	}
}
