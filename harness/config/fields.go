package config

import (
	"exp/experiments/query"
	"exp/harness/metric"
)

// Fields describes the keys of configurations and the results of runs to filters.
func Fields() query.Schema {
	return query.Schema{Config: fieldValues, Result: func(name string) bool {
		m, known := metric.Find(name)
		return known && m.Shown&metric.InLists != 0
	}}
}

// fieldValues describes the values of a key in a resolved configuration. It allows any value for
// kinds that people write in several ways, such as durations.
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
