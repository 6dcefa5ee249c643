package config

import (
	"reflect"
	"slices"
)

// Difference is a key that differs between configurations.
type Difference struct {
	Key    *Key
	Values []string // one for each configuration, as Format writes it; empty where the key has no effect
	Class  Class
}

// Diff compares two resolved configurations key by key, in table order. Keys that both
// allow to vary are the treatment.
func Diff(a, b *Resolved) []Difference {
	var vary []string
	for _, glob := range a.Run.Compare.Vary {
		if slices.Contains(b.Run.Compare.Vary, glob) {
			vary = append(vary, glob)
		}
	}
	return DiffAll(vary, a, b)
}

// DiffAll compares any number of configurations; keys that match vary are the
// treatment.
func DiffAll(vary []string, all ...*Resolved) []Difference {
	var diffs []Difference
	for _, k := range schema().keys {
		differ := false
		texts := make([]string, len(all))
		first, had := all[0].Value(k.Path)
		for i, r := range all {
			v, ok := r.Value(k.Path)
			if ok {
				texts[i] = Format(k, v)
			}
			differ = differ || ok != had || !reflect.DeepEqual(v, first)
		}
		if differ {
			diffs = append(diffs, Difference{Key: k, Values: texts, Class: ClassOf(k, vary)})
		}
	}
	return diffs
}
