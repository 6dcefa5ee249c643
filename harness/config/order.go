package config

import (
	"maps"
	"slices"
)

// InOrder returns the paths of all keys in table order, followed by keys that this
// program does not know in alphabetical order. Blocks are flat: values by path.
func InOrder(blocks ...map[string]any) []string {
	var known, others []string
	for _, k := range schema().keys {
		known = append(known, k.Path)
	}
	for _, b := range blocks {
		for path := range maps.Keys(b) {
			if lookup(path) == nil {
				others = append(others, path)
			}
		}
	}
	slices.Sort(others)
	return append(known, slices.Compact(others)...)
}
