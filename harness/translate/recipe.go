package translate

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"exp/harness/config"
)

// Recipe is a configuration of ours that stands for another trainer's.
type Recipe struct {
	Text  string   // YAML, with the notes as comments
	Notes []string // what has no place here, or needs a person's eye
	Errs  error    // what exp config check says about the text; nil if it is complete
}

// Options are what a user adds to a script.
type Options struct {
	Set     map[string]string // values of its variables
	Folders []string          // where to look for the files that it names, before its own folder
}

// From translates a script that starts verl, overrides that Hydra left (overrides.yaml), a resolved
// configuration of verl, or a script, a list of arguments or a test's configuration of Megatron-LM's RL trainer.
func From(file string, opt Options) (*Recipe, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	places := placesOf(file, opt.Folders)
	if ext := filepath.Ext(file); ext == ".yaml" || ext == ".yml" {
		if words := megatronYAML(text, opt.Set); words != nil {
			return fromMegatron(file, words, true, places)
		}
		h := &hydra{places: places}
		in, err := h.file(text, file)
		if err != nil {
			return nil, err
		}
		return fromVerl(file, "", &verl{in: in, env: opt.Set, places: places, draft: draft{notes: h.notes}})
	}
	s, err := readScript(string(text), file, opt.Set, places, false)
	if err != nil {
		return nil, err
	}
	if s.startsMegatron() {
		if s, err = readScript(string(text), file, opt.Set, places, true); err != nil {
			return nil, err
		}
		return fromMegatron(file, s.megatronWords(), s.found, places)
	}
	h := &hydra{places: places}
	in, err := h.command(s.words)
	if err != nil {
		return nil, err
	}
	other, unset := "", map[string][]string{} // variables that a setting needs and nobody sets
	for _, w := range s.words {
		if key := in.take(w.text); key != "" {
			unset[key] = w.unset
		} else if other == "" && trainers.MatchString(path.Clean(w.text)) {
			other = w.text
		}
	}
	return fromVerl(file, cmp.Or(h.module, other), &verl{in: in, env: s.env, places: places, unset: unset,
		draft: draft{notes: h.notes}})
}

// fromVerl writes the recipe of settings of verl. module is the path of the trainer's file, if it is known.
func fromVerl(file, module string, t *verl) (*Recipe, error) {
	if !trainsPolicy(t.in) {
		return nil, fmt.Errorf("%s has no settings of verl's RL trainers (python3 -m verl.trainer.main_ppo "+
			"algorithm.adv_estimator=grpo …)", file)
	}
	start := t.notes
	t.notes = nil
	t.translate(module)
	return newRecipe(file+" of verl", t.out, slices.Concat(start, t.lacking(), t.notes)), nil
}

// newRecipe writes keys as a recipe. what names the source.
func newRecipe(what string, keys map[string]string, notes []string) *Recipe {
	r := &Recipe{Notes: notes}
	keys = r.fitting(keys)
	header := "# " + filepath.Base(what) + ", translated: exp config translate\n"
	for _, n := range r.Notes {
		header += "# - " + strings.Join(strings.Fields(n), " ") + "\n"
	}
	r.Text = header + "\n" + written(keys)
	return r
}

// trainsPolicy reports whether settings are an RL trainer's.
func trainsPolicy(in overrides) bool {
	for key := range in {
		if strings.HasPrefix(key, "actor_rollout_ref.") || strings.HasPrefix(key, "algorithm.") {
			return true
		}
	}
	return false
}

// fitting leaves out keys that have no effect under the others, and those that repeat a default.
func (r *Recipe) fitting(keys map[string]string) (fit map[string]string) {
	keys = maps.Clone(keys)
	keys["version"] = "1"
	if _, ok := keys["train.steps"]; !ok { // known only with the data
		keys["train.steps"] = "1000"
		defer func() { delete(fit, "train.steps") }()
	}
	full, err := load(keys)
	for range 8 { // a key that goes may take others with it
		var list config.Errors
		if !errors.As(err, &list) {
			break
		}
		gone := false
		for _, e := range list {
			if key, _, ok := strings.Cut(e.Message, " has no effect"); ok && e.Code == config.CodeIneffective {
				delete(keys, key)
				gone = true
			}
		}
		if !gone {
			break
		}
		full, err = load(keys)
	}
	if r.Errs = err; err != nil {
		return keys
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if slices.Contains(stated(), key) {
			continue
		}
		without := maps.Clone(keys)
		delete(without, key)
		if short, err := load(without); err == nil && same(full, short) {
			keys = without
		}
	}
	return keys
}

// stated are the keys that a recipe states even if they repeat a default: a reader looks for them.
func stated() []string {
	return []string{"version", "name", "algo.kind", "data.max_prompt_tokens", "rollout.n", "rollout.max_new_tokens",
		"train.prompts_per_step", "train.prompts_per_update", "train.optim.lr"}
}

// same reports whether two configurations have the same values.
func same(a, b *config.Resolved) bool {
	for _, k := range config.Keys() {
		x, hasX := a.Value(k.Path)
		y, hasY := b.Value(k.Path)
		if hasX != hasY || !reflect.DeepEqual(x, y) {
			return false
		}
	}
	return true
}

func load(keys map[string]string) (*config.Resolved, error) {
	return config.Load(config.Input{File: "recipe", Data: []byte(written(keys))})
}

// written returns keys as YAML, in the order of the table.
func written(keys map[string]string) string {
	var b strings.Builder
	var at []string
	for _, k := range config.Keys() {
		value, ok := keys[k.Path]
		if !ok {
			continue
		}
		parts := strings.Split(k.Path, ".")
		common := 0
		for common < len(at) && common < len(parts)-1 && at[common] == parts[common] {
			common++
		}
		for i := common; i < len(parts)-1; i++ {
			fmt.Fprintf(&b, "%s%s:\n", strings.Repeat("  ", i), parts[i])
		}
		at = parts[:len(parts)-1]
		if !strings.HasPrefix(value, "\n") { // a block
			value = " " + value
		}
		fmt.Fprintf(&b, "%s%s:%s\n", strings.Repeat("  ", len(at)), parts[len(parts)-1], value)
	}
	return b.String()
}
