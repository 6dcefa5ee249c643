package translate

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"mvdan.cc/sh/v3/syntax"
)

// ofMegatron matches the arguments that only Megatron's RL trainer has.
var ofMegatron = regexp.MustCompile(`^--(perform-rl-step|grpo-[a-z-]+|rl-[a-z-]+|langrl-env-config)(=|$)`)

func isArgument(text string) bool { return len(text) > 2 && strings.HasPrefix(text, "--") }

// arguments returns the words of a variable's text if it holds arguments.
func arguments(text string) (words []word) {
	fields := strings.Fields(strings.ReplaceAll(text, "\\\n", " "))
	if len(fields) == 0 || !isArgument(fields[0]) {
		return nil
	}
	for _, f := range fields {
		words = append(words, word{text: strings.Trim(f, `"'`)})
	}
	return words
}

// trainer matches Megatron's RL trainer.
var trainer = regexp.MustCompile(`(^|/)train_rl\.py$`)

// startsMegatron reports whether a script starts Megatron's RL trainer, or holds arguments of it.
func (s *script) startsMegatron() bool {
	if slices.ContainsFunc(s.words, func(w word) bool { return trainer.MatchString(w.text) }) {
		return true
	}
	return slices.ContainsFunc(s.megatronWords(), func(w word) bool { return ofMegatron.MatchString(w.text) })
}

// megatronWords returns the arguments of the command, without the launcher's, or those that stand elsewhere.
func (s *script) megatronWords() []word {
	if !s.found {
		return s.loose
	}
	if i := slices.IndexFunc(s.words, func(w word) bool { return trainer.MatchString(w.text) }); i >= 0 {
		return s.words[i+1:]
	}
	i := slices.IndexFunc(s.words, func(w word) bool { return isArgument(w.text) })
	return s.words[max(i, 0):]
}

// megatronYAML returns the arguments in a test's configuration of Megatron-LM's (MODEL_ARGS), or in a mapping
// of them; nil for other files.
func megatronYAML(text []byte, set map[string]string) (words []word) {
	var tree map[string]any
	if yaml.UnmarshalWithOptions(text, &tree, yaml.AllowDuplicateMapKey()) != nil {
		return nil
	}
	if args, ok := tree["MODEL_ARGS"].(map[string]any); ok {
		tree = args
	}
	ours := false
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		if !isArgument(name) {
			continue
		}
		ours = ours || ofMegatron.MatchString(name)
		words = append(words, word{text: name})
		for _, x := range yamlList(tree[name]) {
			text := inYAML.ReplaceAllStringFunc(fmt.Sprint(x), func(v string) string {
				name := strings.Trim(v, "${}")
				if value, ok := set[name]; ok {
					return value
				}
				return marked(name)
			})
			words = append(words, word{text: text})
		}
	}
	if !ours {
		return nil
	}
	return words
}

// inYAML matches variables of a test's configuration.
var inYAML = regexp.MustCompile(`\$\{[A-Za-z_]\w*\}`)

func yamlList(x any) []any {
	if list, ok := x.([]any); ok {
		return list
	}
	return []any{x}
}

// marked is what stands for a variable that nobody sets.
func marked(name string) string { return "\x01" + name + "\x01" }

var marks = regexp.MustCompile("\x01(\\w+)\x01")

// unset returns a word without its marks, and the variables that they name.
func unset(text string) (rest string, names []string) {
	for _, m := range marks.FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	return marks.ReplaceAllString(text, ""), names
}

// mark puts marks in the place of plain variables that nobody sets.
func (v variables) mark(parts []syntax.WordPart) {
	for i, part := range parts {
		switch p := part.(type) {
		case *syntax.DblQuoted:
			v.mark(p.Parts)
		case *syntax.ParamExp:
			simple := p.Exp == nil && p.Index == nil && p.Slice == nil && p.Repl == nil && !p.Length && !p.Excl
			if !v.marks || !simple || p.Param == nil || !syntax.ValidName(p.Param.Value) {
				continue
			}
			if !v.Get(p.Param.Value).IsSet() {
				parts[i] = &syntax.Lit{Value: marked(p.Param.Value)}
			}
		}
	}
}
