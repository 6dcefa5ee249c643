package checkpoint

import (
	"encoding/json"
	"reflect"
	"slices"

	"exp/train/model"
)

// A rotary setting can appear in several places, and transformers 4 and 5 read different
// ones. These checks refuse files that the two would read as different models.

// kind returns a scaling's type: rope_type, or type in old files.
func (r *settings) kind() string {
	old, kind := "", "default"
	if r.maybe("type", &old) {
		kind = old
	}
	if r.maybe("rope_type", &kind); old != "" && kind != old {
		r.problem("type is %q, but rope_type is %q: transformers 4 and 5 would read different models", old, kind)
	}
	return kind
}

// spellings checks rope_scaling against the rope_parameters of the same layers: both
// versions of transformers use only the first.
func (r *settings) spellings(scaling, params *settings) {
	if scaling != nil && scaling.has("rope_theta") && !r.has("rope_theta") {
		r.problem("rope_theta is in rope_scaling only, where transformers 4 does not look; write it at the top of " +
			"the file too")
	}
	if scaling == nil || params == nil {
		return
	}
	was, is := scaling.plain(), params.plain()
	if was["rope_theta"] == nil && !r.has("rope_theta") && is["rope_theta"] != nil {
		r.problem("rope_theta is in rope_parameters only, but there is a rope_scaling: transformers would not read " +
			"it there; write it at the top of the file too")
	}
	delete(was, "rope_theta") // theta is compared on reading
	delete(is, "rope_theta")
	part := 1.0 // transformers 5 takes the top of the file's, as transformers 4 does
	r.maybe("partial_rotary_factor", &part)
	if is["partial_rotary_factor"] == part {
		delete(is, "partial_rotary_factor")
	}
	if n := 0; was[originalKey] == nil && r.maybe(originalKey, &n) && is[originalKey] == float64(n) {
		delete(is, originalKey) // where both look without one in rope_scaling
	}
	if !reflect.DeepEqual(was, is) {
		r.problem("rope_scaling and rope_parameters differ; transformers uses rope_scaling: remove " +
			"one of them")
	}
}

// respell adds the missing one of rope_scaling and rope_parameters to set, with the values of
// the other one as the file has them. want holds both for the file's class.
func (r *settings) respell(set, want map[string]any) {
	scaling, params := r.inner("rope_scaling"), r.inner("rope_parameters")
	full, _ := want["rope_parameters"].(map[string]any)
	scopes := full
	if inner, ok := full[fullScope].(map[string]any); ok {
		full = inner
		if params != nil {
			params = params.inner(fullScope)
		}
	}
	const part = "partial_rotary_factor" // transformers 4 reads it at the top of the file alone
	if params != nil && params.has(part) && !r.has(part) {
		set[part] = params.values[part]
	}
	switch {
	case scaling != nil && params == nil:
		spelled := scaling.respelled("type")
		spelled["rope_type"], spelled["rope_theta"] = scaling.kind(), full["rope_theta"]
		if r.has(part) {
			spelled[part] = r.values[part]
		}
		set["rope_parameters"] = spelled
		if local, ok := scopes[windowScope]; ok {
			set["rope_parameters"] = map[string]any{fullScope: spelled, windowScope: local}
		}
	case params != nil && scaling == nil && params.kind() != "default":
		spelled := params.respelled("rope_theta", part)
		spelled["type"] = params.kind()
		if now, _ := want["rope_scaling"].(map[string]any); now["rope_type"] == nil {
			delete(spelled, "rope_type") // Phi-3 allows only three keys
			if r.has(originalKey) {
				delete(spelled, originalKey)
			}
		}
		set["rope_scaling"] = spelled
	}
}

// respelled returns the values without some.
func (r *settings) respelled(without ...string) map[string]any {
	list := map[string]any{}
	for key, v := range r.values {
		if !slices.Contains(without, key) {
			list[key] = v
		}
	}
	return list
}

// plain returns the non-null values under their current names.
func (r *settings) plain() map[string]any {
	list := map[string]any{}
	for key, raw := range r.values {
		var v any
		if json.Unmarshal(raw, &v) != nil || v == nil {
			continue
		}
		if key == "type" {
			key = "rope_type"
		}
		list[key] = v
	}
	return list
}

const originalKey = "original_max_position_embeddings"

// original reads n, the positions before scaling, and reports whether the file has it.
func (r *settings) original(c *model.Config, s *model.RopeScaling, top *settings) bool {
	s.Original = c.MaxPositions
	outer, inner := s.Original, 0
	there, here := top.maybe(originalKey, &outer), r.maybe(originalKey, &inner)
	if s.Original = outer; here {
		s.Original = inner
	}
	if there && s.Kind != "llama3" && !here {
		inner = c.MaxPositions // transformers 4's value for yarn
	}
	if there && outer != inner && (here || s.Kind == "yarn") {
		r.problem("%s would be %d to transformers 4 and %d to 5: write it in one place", originalKey, inner, outer)
	}
	r.originalFits(s.Original)
	return there || here
}

// originalLong is original for longrope: at the top of the file, then inside.
func (r *settings) originalLong(a architecture, c *model.Config, s *model.RopeScaling, top *settings) {
	s.Original = c.MaxPositions
	if a.kind == "phi3" {
		s.Original = 4096
	}
	inner := s.Original
	here := r.maybe(originalKey, &inner)
	switch there := top.maybe(originalKey, &s.Original); {
	case a.ownRope && there && inner != s.Original:
		r.problem("%s is %d at the top of the file, where transformers 4 looks; transformers 5 takes %d: write it in "+
			"both places", originalKey, s.Original, inner)
	case here && a.inside:
		s.Original = inner
	case there || !here:
	case top.has("rope_scaling") && inner != s.Original:
		r.problem("%s is %d: transformers 4 looks for it at the top of the file and takes %d; write it there too",
			originalKey, inner, s.Original)
	default:
		s.Original = inner
	}
	r.originalFits(s.Original)
}

func (r *settings) originalFits(n int) {
	if n < 1 || n > maxPositions {
		r.problem("%s is %d, must be from 1 to %d", originalKey, n, maxPositions)
	}
}
