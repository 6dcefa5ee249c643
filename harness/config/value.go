package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// Value is a setting made by the program, such as the value of a flag.
type Value struct {
	Path string // of the key
	// Value is an int, a string, a list of strings, or a map of plain JSON values. A string is parsed
	// as the key's kind: "0.5" is a number for a key of numbers, "[a, b]" a list for a key of lists.
	// nil gives the key its default, whatever the files say.
	Value any
	From  string // where it came from, for errors and origins: "--temperature"
}

// value sets a key to a value made by the program. It panics on an unknown path or an
// unsupported type.
func (l *loader) value(v Value) {
	k := lookup(v.Path)
	if k == nil {
		panic("config: no key " + v.Path)
	}
	if v.Value == nil {
		delete(l.set, k.Path)
		delete(l.bad, k.Path)
		return
	}
	src := &source{name: v.From, order: l.rank, set: true}
	at := pos{src: src}
	n := valueNode(k, v.Value, at)
	if text, ok := v.Value.(string); ok && (k.List || k.Kind == Values) {
		var errs Errors
		src.lines = []string{text}
		if n, errs = parseYAML(src, text, 0); len(errs) > 0 || n == nil {
			l.errs = append(l.errs, errs...)
			l.partial = true
			return
		}
	}
	l.setKey(k, n, at, false)
}

// valueNode returns the node of a value.
func valueNode(k *Key, v any, at pos) *node {
	switch v := v.(type) {
	case int:
		return &node{kind: scalarNode, text: fmt.Sprint(v), pos: at}
	case string:
		return &node{kind: scalarNode, text: v, quoted: k.Kind == String, pos: at}
	case []string:
		n := &node{kind: listNode, pos: at}
		for _, s := range v {
			n.items = append(n.items, valueNode(k, s, at))
		}
		return n
	case map[string]any:
		n := &node{kind: mapNode, pos: at}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			n.fields = append(n.fields, field{name: name, pos: at, value: plainNode(v[name], at)})
		}
		return n
	}
	panic(fmt.Sprintf("config: a value of type %T for %s", v, k.Path))
}

// plainNode returns the node of a JSON value that is neither a list nor an object.
func plainNode(v any, at pos) *node {
	switch v := v.(type) {
	case nil:
		return &node{kind: nullNode, pos: at}
	case string:
		return &node{kind: scalarNode, text: v, quoted: true, pos: at}
	case float64:
		return &node{kind: scalarNode, text: strconv.FormatFloat(v, 'f', -1, 64), pos: at}
	}
	return &node{kind: scalarNode, text: fmt.Sprint(v), pos: at}
}
