package checkpoint

import (
	"encoding/json"
	"reflect"

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
	if is["partial_rotary_factor"] == 1.0 {
		delete(is, "partial_rotary_factor")
	}
	if !reflect.DeepEqual(was, is) {
		r.problem("rope_scaling and rope_parameters differ; transformers uses rope_scaling: remove " +
			"one of them")
	}
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
