package config

import (
	"fmt"
	"strings"
	"time"
)

// Default is the value of a key that no layer sets. The zero value means that the key
// is required.
type Default struct {
	fixed     any // a plain value; nil together with null means null
	null      bool
	hasFixed  bool
	same      string // the value of this key
	powers    string // 1, 2, 4, … up to the value of this key
	by        string // by the value of this key:
	cases     []Case
	otherwise *Default
}

// Case is one row of a default that depends on another key.
type Case struct {
	Word string
	Default
}

// Required reports whether the key has no default at all.
func (d Default) Required() bool {
	return !d.hasFixed && d.same == "" && d.powers == "" && d.by == ""
}

// is returns a fixed default. Go ints stand for int64.
func is(v any) Default { return Default{fixed: plain(v), hasFixed: true} }

// null returns the default null.
func null() Default { return Default{null: true, hasFixed: true} }

// sameAs returns the value of another key as default; an integer becomes a float where
// needed.
func sameAs(path string) Default { return Default{same: path} }

// powersUpTo lists the powers of two up to another key's value.
func powersUpTo(path string) Default { return Default{powers: path} }

// by chooses a default by another key's value.
func by(path string, otherwise Default, cases ...Case) Default {
	return Default{by: path, cases: cases, otherwise: &otherwise}
}

// when returns a case of by.
func when(word string, d Default) Case { return Case{word, d} }

// of returns the default for the value word of the key d.by.
func (d Default) of(word string) Default {
	for _, c := range d.cases {
		if c.Word == word {
			return c.Default
		}
	}
	return *d.otherwise
}

// reads lists the keys that the default depends on.
func (d Default) reads() []string {
	var paths []string
	for _, p := range []string{d.same, d.powers, d.by} {
		if p != "" {
			paths = append(paths, p)
		}
	}
	for _, c := range d.cases {
		paths = append(paths, c.reads()...)
	}
	if d.otherwise != nil {
		paths = append(paths, d.otherwise.reads()...)
	}
	return paths
}

// text describes the default for people.
func (d Default) text(k *Key) string {
	switch {
	case d.null:
		return "null"
	case d.hasFixed:
		return Format(k, d.fixed)
	case d.same != "":
		return "the value of " + d.same
	case d.powers != "":
		return "1, 2, 4, ... up to " + d.powers
	case d.by != "":
		parts := make([]string, 0, len(d.cases)+1)
		for _, c := range d.cases {
			parts = append(parts, c.Word+": "+c.text(k))
		}
		return fmt.Sprintf("%s; otherwise %s (by %s)", strings.Join(parts, ", "), d.otherwise.text(k), d.by)
	}
	return "required"
}

// plain turns the Go literals of the table into plain values.
func plain(v any) any {
	switch x := v.(type) {
	case int:
		return int64(x)
	case time.Duration:
		return int64(x)
	case []int:
		list := make([]any, len(x))
		for i, n := range x {
			list[i] = int64(n)
		}
		return list
	case []float64:
		list := make([]any, len(x))
		for i, f := range x {
			list[i] = f
		}
		return list
	case []string:
		list := make([]any, len(x))
		for i, s := range x {
			list[i] = s
		}
		return list
	}
	return v
}
