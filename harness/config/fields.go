package config

import "exp/experiments/query"

// Fields describes the keys of configurations to filters of runs.
func Fields() query.Schema { return query.Schema{Config: fieldValues} }

// fieldValues describes the values of a key in a resolved configuration. Those of a kind
// that people write in several ways, such as durations, may be any.
func fieldValues(path string) (query.Values, bool) {
	k := lookup(path)
	if k == nil {
		return query.Values{}, false
	}
	switch k.Kind {
	case Int, Float:
		return query.Values{Number: true}, true
	case Bool:
		return query.Values{Words: []string{"true", "false"}}, true
	case Enum:
		return query.Values{Words: k.Words}, true
	}
	return query.Values{}, true
}
