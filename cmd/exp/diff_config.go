package main

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"exp/harness/config"
)

// configChange is a key in which two runs differ; null where it has no effect in
// one.
type configChange struct {
	Key   string `json:"key"`
	A     any    `json:"a"`
	B     any    `json:"b"`
	Class string `json:"class"` // as config.Class: treatment, controlled, …
}

// config compares the resolved configurations key by key, in the order of the
// table of keys; keys that this program does not know come last.
func (r *runDiffer) config() error {
	r.d.Config = []configChange{}
	var values [2]map[string]any
	for i, run := range r.runs {
		c, err := r.db.Config(r.ctx, run.Config)
		if err != nil {
			return err
		}
		var nested map[string]any
		if err := json.Unmarshal([]byte(c.JSON), &nested); err != nil {
			return err
		}
		values[i] = map[string]any{}
		flatten(values[i], "", nested)
	}
	vary := bothVary(values[0]["compare.vary"], values[1]["compare.vary"])
	for _, path := range keyPaths(values[0], values[1]) {
		a, inA := values[0][path]
		b, inB := values[1][path]
		if inA == inB && reflect.DeepEqual(a, b) {
			continue
		}
		change := configChange{Key: path, A: a, B: b, Class: string(config.Free)}
		if k, ok := config.Lookup(path); ok {
			change.Class = string(config.ClassOf(k, vary))
		}
		r.d.Config = append(r.d.Config, change)
	}
	// The seed is of the run: the configuration has only its default.
	if r.d.seeds {
		r.d.Config = slices.DeleteFunc(r.d.Config, func(c configChange) bool { return c.Key == "seed" })
		seed := configChange{Key: "seed", A: r.d.A.Seed, B: r.d.B.Seed, Class: string(config.Replication)}
		r.d.Config = slices.Insert(r.d.Config, 0, seed)
	}
	return nil
}

// flatten sets the values of nested objects by their dotted paths. Lists are values.
func flatten(dst map[string]any, prefix string, m map[string]any) {
	for name, v := range m {
		if block, ok := v.(map[string]any); ok {
			flatten(dst, prefix+name+".", block)
			continue
		}
		dst[prefix+name] = v
	}
}

// bothVary are the globs that both configurations name as their treatment.
func bothVary(a, b any) []string {
	listA, _ := a.([]any)
	listB, _ := b.([]any)
	var both []string
	for _, v := range listA {
		if text, ok := v.(string); ok && slices.Contains(listB, v) {
			both = append(both, text)
		}
	}
	return both
}

// keyPaths lists the paths of both maps: those of the table of keys in its order,
// then others by the alphabet.
func keyPaths(a, b map[string]any) []string {
	var known, others []string
	for _, k := range config.Keys() {
		known = append(known, k.Path)
	}
	for _, m := range []map[string]any{a, b} {
		for path := range m {
			if !slices.Contains(known, path) && !slices.Contains(others, path) {
				others = append(others, path)
			}
		}
	}
	slices.SortFunc(others, strings.Compare)
	return append(known, others...)
}
