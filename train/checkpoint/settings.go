package checkpoint

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// settings reads keys of a config.json and collects problems. An absent key leaves the
// default; the meaning of null differs from key to key.
type settings struct {
	values   map[string]json.RawMessage
	problems []string
}

// problem notes why the file is refused, once.
func (r *settings) problem(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(r.problems, text) {
		r.problems = append(r.problems, text)
	}
}

// has reports whether a key is present and not null.
func (r *settings) has(key string) bool {
	v, ok := r.values[key]
	return ok && string(v) != "null"
}

// holds is has for a nested object that may be absent.
func (r *settings) holds(key string) bool { return r != nil && r.has(key) }

// null reports whether a key is present and null.
func (r *settings) null(key string) bool {
	v, ok := r.values[key]
	return ok && string(v) == "null"
}

// text reports whether the value of a key is a string.
func (r *settings) text(key string) bool {
	return len(r.values[key]) > 0 && r.values[key][0] == '"'
}

// get sets *v to the value of a key and reports whether it is present. An absent key leaves
// *v alone; so does null, which is a problem: it has no meaning in transformers.
func (r *settings) get(key string, v any) bool {
	if r.null(key) {
		r.problem("%s is null", key)
		return false
	}
	return r.maybe(key, v)
}

// maybe is get for a key that may be null, which counts as absent.
func (r *settings) maybe(key string, v any) bool {
	if !r.has(key) {
		return false
	}
	if err := json.Unmarshal(r.values[key], v); err != nil {
		r.problem("%s is %s: %s", key, shortened(r.values[key]), jsonWords(err))
		return false
	}
	return true
}

// either is get for a key, or maybe for the other name that transformers has for it.
func (r *settings) either(key, other string, v any) {
	r.agree(key, other)
	r.get(key, v)
	if !r.has(key) {
		r.maybe(other, v)
	}
}

// agree refuses two names of one setting with different values, of which transformers takes the last that it meets.
func (r *settings) agree(key, other string) {
	var one, two any
	if r.maybe(key, &one) && r.maybe(other, &two) && !reflect.DeepEqual(one, two) {
		r.problem("%s is %s, but %s, another name of it, is %s: remove one of them", key, shortened(r.values[key]),
			other, shortened(r.values[other]))
	}
}

// flag returns a key that is true or false; null is false, as in Python.
func (r *settings) flag(key string, absent bool) bool {
	v := absent && !r.null(key)
	r.maybe(key, &v)
	return v
}

// need is get for a required key, unless the class has a default.
func (r *settings) need(key string, v *int, absent int) {
	if *v = absent; absent == 0 && !r.has(key) {
		r.problem("%s is missing", key)
		*v = 1
		return
	}
	r.maybe(key, v)
}

// inner returns the settings of a nested object, or nil.
func (r *settings) inner(key string) *settings {
	in := &settings{}
	if !r.maybe(key, &in.values) || len(in.values) == 0 {
		return nil
	}
	return in
}

// take adds the problems of a nested object.
func (r *settings) take(key string, in *settings) {
	for _, p := range in.problems {
		r.problem("%s: %s", key, p)
	}
	in.problems = nil
}

// shortened returns a value shortened for errors.
func shortened(raw json.RawMessage) string {
	const most = 80
	if len(raw) <= most {
		return string(raw)
	}
	return string(raw[:most]) + "…"
}

// sortedKeys returns the keys of a map in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
