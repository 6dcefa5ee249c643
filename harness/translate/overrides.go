// Package translate writes recipes of other trainers' configurations: verl's scripts, lists of overrides
// and resolved configurations. It executes nothing of theirs.
package translate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// overrides are settings of Hydra by path; values are as written, without quotes.
type overrides map[string]string

// setting returns the key and the value of a word KEY=VALUE; ok is false for other words.
func setting(text string) (key, value string, ok bool) {
	if !override.MatchString(text) {
		return "", "", false
	}
	key, value, _ = strings.Cut(text, "=")
	return strings.TrimLeft(key, "+~"), unquoted(strings.TrimSpace(value)), true
}

// readTree returns the settings of a YAML file: a resolved configuration, or a list of overrides as Hydra
// leaves it next to its logs.
func readTree(text []byte, name string) (overrides, error) {
	var root any
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, fmt.Errorf("%s is not YAML: %w", name, err)
	}
	switch root := root.(type) {
	case []any:
		o := overrides{}
		for _, w := range root {
			if key, value, ok := setting(fmt.Sprint(w)); ok {
				o[key] = value
			}
		}
		return o, nil
	case map[string]any:
		o := overrides{}
		o.add("", root)
		return o, nil
	}
	return nil, fmt.Errorf("%s holds no settings", name)
}

// add flattens a tree.
func (o overrides) add(path string, tree map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		key := strings.TrimPrefix(path+"."+name, ".")
		switch v := tree[name].(type) {
		case map[string]any:
			o.add(key, v)
		case []any:
			var list []string
			for _, x := range v {
				list = append(list, fmt.Sprint(x))
			}
			o[key] = "[" + strings.Join(list, ",") + "]"
		case nil:
			o[key] = "null"
		default:
			o[key] = fmt.Sprint(v)
		}
	}
}

// unquoted removes one pair of quotes.
func unquoted(s string) string {
	if n := len(s); n > 1 && (s[0] == '\'' || s[0] == '"') && s[n-1] == s[0] {
		return s[1 : n-1]
	}
	return s
}

// listOf returns the elements of a list, or the value alone.
func listOf(value string) (list []string) {
	inner, isList := strings.CutPrefix(value, "[")
	if !isList {
		return []string{value}
	}
	for _, part := range strings.Split(strings.TrimSuffix(inner, "]"), ",") {
		if part = unquoted(strings.TrimSpace(part)); part != "" {
			list = append(list, part)
		}
	}
	return list
}

// split returns the elements of a list, with or without brackets.
func split(value string) []string { return listOf("[" + strings.Trim(value, "[]") + "]") }
