package differ

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"exp/harness/config"
)

// ConfigChange is a configuration key that differs.
type ConfigChange struct {
	Key   string       `json:"key"`
	A     any          `json:"a"` // as in JSON; nil if the key has no effect, or is null
	B     any          `json:"b"`
	Class config.Class `json:"class"`
	// Set: a configuration, an overlay or a flag sets the key in A or B. Else its defaults differ.
	Set  bool   `json:"set"`
	Only string `json:"only,omitempty"` // the one run, "a" or "b", in which the key has an effect
}

// config compares the resolved configurations key by key, in table order; keys that
// this program does not know come last.
func (r *differ) config() error {
	r.d.Config = []ConfigChange{}
	var values [2]map[string]any
	var origins [2]map[string]string
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
		if err := json.Unmarshal([]byte(cmp.Or(c.Origins, "{}")), &origins[i]); err != nil {
			return err
		}
	}
	set := func(run int, path string) bool {
		_, has := values[run][path]
		return has && !strings.HasPrefix(origins[run][path], "default")
	}
	seeds := r.d.A.Seed != r.d.B.Seed
	if seeds {
		r.d.Config = append(r.d.Config, ConfigChange{Key: "seed", A: r.d.A.Seed, B: r.d.B.Seed,
			Class: config.Replication, Set: true})
	}
	vary := bothVary(values[0]["compare.vary"], values[1]["compare.vary"])
	for _, path := range config.InOrder(values[0], values[1]) {
		a, inA := values[0][path]
		b, inB := values[1][path]
		if inA == inB && reflect.DeepEqual(a, b) {
			continue
		}
		if seeds && path == "seed" { // the configuration holds only the default
			continue
		}
		change := ConfigChange{Key: path, A: a, B: b, Class: config.Free, Set: set(0, path) || set(1, path)}
		switch {
		case !inB:
			change.Only = "a"
		case !inA:
			change.Only = "b"
		}
		if k, ok := config.Lookup(path); ok {
			change.Class = config.ClassOf(k, vary)
		}
		r.d.Config = append(r.d.Config, change)
	}
	return nil
}

// flatten stores nested objects in dst by dotted path. Lists are values.
func flatten(dst map[string]any, prefix string, m map[string]any) {
	for name, v := range m {
		if block, ok := v.(map[string]any); ok {
			flatten(dst, prefix+name+".", block)
			continue
		}
		dst[prefix+name] = v
	}
}

// bothVary returns the globs that both configurations list as treatment.
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
