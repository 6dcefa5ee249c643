// Package translate writes recipes of other trainers' configurations: verl's scripts, with the files of
// Hydra's that they name, lists of overrides and resolved configurations; and arguments of Megatron-LM's RL
// trainer. It executes nothing of theirs.
package translate

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// overrides are settings of Hydra by path; values are as written, without quotes.
type overrides map[string]string

// override matches a word KEY=VALUE of Hydra's command line, with its +, and ~KEY or ~KEY=VALUE.
var override = regexp.MustCompile(`^([+]*[A-Za-z_]\w*(\.\w+)+=|~[A-Za-z_]\w*(\.\w+)+(=|$))`)

// take takes over a word that sets or, with ~, removes something, and returns its key; "" for other words.
func (o overrides) take(text string) (key string) {
	if !override.MatchString(text) {
		return ""
	}
	key, value, _ := strings.Cut(text, "=")
	key = strings.TrimLeft(key, "+")
	if gone, ok := strings.CutPrefix(key, "~"); ok {
		maps.DeleteFunc(o, func(k, _ string) bool { return k == gone || strings.HasPrefix(k, gone+".") })
	}
	o[key] = unquoted(strings.TrimSpace(value))
	return key
}

// readTree returns the settings of a YAML file: a resolved configuration, or a list of overrides as Hydra
// leaves it next to its logs.
func readTree(text []byte, name string) (overrides, error) {
	var root any
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, fmt.Errorf("%s is not YAML: %w", name, err)
	}
	if err := moderate(root, name); err != nil {
		return nil, err
	}
	switch root := root.(type) {
	case []any:
		o := overrides{}
		for _, w := range root {
			o.take(fmt.Sprint(w))
		}
		return o, nil
	case map[string]any:
		o := overrides{}
		o.add("", root)
		return o, nil
	}
	return nil, fmt.Errorf("%s holds no settings", name)
}

// moderate returns an error for a tree of over mostSettings values.
func moderate(tree any, name string) error {
	left := mostSettings
	if take(tree, &left); left <= 0 {
		return fmt.Errorf("%s holds over %d settings", name, mostSettings)
	}
	return nil
}

// take subtracts the values in a tree from left, until it is 0.
func take(tree any, left *int) {
	if *left--; *left <= 0 {
		return
	}
	switch x := tree.(type) {
	case map[string]any:
		for _, v := range x {
			if take(v, left); *left <= 0 {
				return
			}
		}
	case []any:
		for _, v := range x {
			if take(v, left); *left <= 0 {
				return
			}
		}
	}
}

// mostSettings limits what a few aliases of YAML can make; verl has some 600 settings.
const mostSettings = 1 << 16

// asBool returns true or false for the words that YAML 1.1 has for them: Hydra reads files by it. Quotes, with which
// they would be texts, are gone.
func asBool(text string) string {
	switch text {
	case "yes", "Yes", "YES", "on", "On", "ON":
		return "true"
	case "no", "No", "NO", "off", "Off", "OFF":
		return "false"
	}
	return text
}

// add flattens a moderate tree.
func (o overrides) add(path string, tree map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		key := strings.TrimPrefix(path+"."+name, ".")
		switch v := tree[name].(type) {
		case map[string]any:
			o.add(key, v)
		case []any:
			var list []string
			for _, x := range v {
				list = append(list, quoted(fmt.Sprint(x)))
			}
			o[key] = "[" + strings.Join(list, ",") + "]"
		case nil:
			o[key] = "null"
		case string:
			o[key] = asBool(v)
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

// quoted writes an element of a list.
func quoted(s string) string {
	if !strings.ContainsAny(s, `,'"[] `) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `\'`) + "'"
}

// listOf returns the elements of a list, or the value alone.
func listOf(value string) (list []string) {
	inner, isList := strings.CutPrefix(value, "[")
	if !isList {
		return []string{value}
	}
	inner = strings.TrimSuffix(inner, "]")
	var quote, begin = byte(0), 0
	for i := 0; i <= len(inner); i++ {
		switch {
		case i == len(inner) || inner[i] == ',' && quote == 0:
			if part := element(strings.TrimSpace(inner[begin:i])); part != "" {
				list = append(list, part)
			}
			begin = i + 1
		case inner[i] == '\\' && quote != 0 && i+1 < len(inner) && inner[i+1] == quote:
			i++
		case inner[i] == quote:
			quote = 0
		case quote == 0 && (inner[i] == '\'' || inner[i] == '"'):
			quote = inner[i]
		}
	}
	return list
}

// element returns an element of a list without its quotes and their escapes.
func element(s string) string {
	inner := unquoted(s)
	if inner == s {
		return s
	}
	return strings.ReplaceAll(inner, `\`+s[:1], s[:1])
}

// split returns the elements of a list, with or without brackets.
func split(value string) []string { return listOf("[" + strings.Trim(value, "[]") + "]") }
