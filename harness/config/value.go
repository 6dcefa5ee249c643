package config

import "fmt"

// Value is a setting made by the program, such as the value of a flag.
type Value struct {
	Path string // of the key
	// Value is an int, a string, or a list of strings. A string is parsed as the key's
	// kind: "0.5" is a number for a key of numbers.
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
	src := &source{name: v.From, order: l.rank, set: true}
	at := pos{src: src}
	l.setKey(k, valueNode(k, v.Value, at), at, false)
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
	}
	panic(fmt.Sprintf("config: a value of type %T for %s", v, k.Path))
}
