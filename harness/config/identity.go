package config

import (
	"path"
	"reflect"
	"strings"
)

// Semantic returns the values that some of the stage kinds read and that can change
// their results, by path. They are hashed into the identity of an experiment or a
// stage. It omits keys without effect, nonsemantic keys, the seed, and presets, which
// only set other keys. A key that names a file holds just the word "external"; the
// caller adds the digest of the contents. Values are nil, bool, int64, float64, string,
// []any and map[string]any.
func (r *Resolved) Semantic(stages ...Stage) map[string]any {
	return r.view(func(k *Key) bool { return k.Reads(stages...) && !protocol(k.Path) })
}

// Protocol returns the settings of the final evaluation by path, without the list of
// suites: it does not affect how each suite is measured. Where the reward judges alone, its settings belong to it.
func (r *Resolved) Protocol() map[string]any {
	return r.view(func(k *Key) bool {
		return protocol(k.Path) && k.Path != SuitesKey || k.Judges && r.Run.JudgesAlone()
	})
}

// SamplesKey is the number of completions per problem in the final evaluation.
const SamplesKey = "eval.final.n"

// SuitesKey lists the suites of the final evaluation.
const SuitesKey = "eval.final.suites"

// Params returns everything that a stage of the kind reads, protocol included. It is
// hashed into the stage's key.
func (r *Resolved) Params(stage Stage) map[string]any {
	judged := (stage == EvalScore || stage == PassRate) && r.Run.JudgesAlone()
	return r.view(func(k *Key) bool { return k.Reads(stage) || judged && k.Judges })
}

// JudgesAlone reports whether the reward alone decides which answers are right, in training and in evaluations. In a
// mixed task it does so for the prompts.
func (r *Run) JudgesAlone() bool { return r.Task.Has(PromptsTask) }

func (r *Resolved) view(wanted func(k *Key) bool) map[string]any {
	values := map[string]any{}
	for _, k := range r.Keys() {
		if !wanted(k) || k.Late && r.isDefault(k) {
			continue
		}
		switch k.Role {
		case Semantic:
			values[k.Path] = clone(r.cells[k.Path].value)
		case External:
			values[k.Path] = located(r.cells[k.Path].value)
		}
	}
	return values
}

// isDefault reports whether an active key has its fixed default.
func (r *Resolved) isDefault(k *Key) bool {
	return k.Default.hasFixed && reflect.DeepEqual(r.cells[k.Path].value, k.Default.fixed)
}

// located keeps the words that are not paths.
func located(v any) any {
	if v == Generated || v == None || v == Auto {
		return v
	}
	return "external"
}

// clone copies lists and maps, so that a view can be kept and changed.
func clone(v any) any {
	switch v := v.(type) {
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = clone(v[i])
		}
		return list
	case map[string]any:
		m := make(map[string]any, len(v))
		for name := range v {
			m[name] = clone(v[name])
		}
		return m
	}
	return v
}

// protocol reports whether a key belongs to the final evaluation.
func protocol(path string) bool { return strings.HasPrefix(path, "eval.final.") }

// Class says how a key counts in a comparison of runs.
type Class string

const (
	Treatment   Class = "treatment"  // matches compare.vary: what the comparison is about
	Controlled  Class = "controlled" // must be equal
	ProtocolKey Class = "protocol"   // must be equal: how results are measured
	Replication Class = "replicate"  // the seed: distinguishes runs of an arm
	Free        Class = "free"       // changes no result, or is represented by other keys
)

// ClassOf classifies a key for a comparison whose treatment is the keys that match
// vary.
func ClassOf(k *Key, vary []string) Class {
	switch {
	case k.Role == Replicate:
		return Replication
	case k.Role == Nonsemantic || k.Role == Expanded:
		return Free
	}
	for _, glob := range vary {
		if matches(glob, k.Path) {
			return Treatment
		}
	}
	if protocol(k.Path) {
		return ProtocolKey
	}
	return Controlled
}

// matches reports whether a glob names a key, by its path or a block around it. *
// stands for any part of one component.
func matches(glob, key string) bool {
	want, have := strings.Split(glob, "."), strings.Split(key, ".")
	if len(want) > len(have) {
		return false
	}
	for i := range want {
		if ok, err := path.Match(want[i], have[i]); err != nil || !ok {
			return false
		}
	}
	return true
}

// matchesAny reports whether a glob names any key of the table.
func matchesAny(glob string) bool {
	for _, k := range schema().keys {
		if matches(glob, k.Path) {
			return true
		}
	}
	return false
}

// blocks lists the paths of all blocks.
func blocks() []string {
	var list []string
	var walk func(g *group)
	walk = func(g *group) {
		for _, name := range g.names {
			if child := g.groups[name]; child != nil {
				list = append(list, child.path)
				walk(child)
			}
		}
	}
	walk(schema().root)
	return list
}
