package keep

import (
	"slices"
	"time"
)

// Group sums up items with the same Kind and What.
type Group struct {
	Kind   Kind
	What   string
	N      int64
	Bytes  int64
	Oldest time.Time
}

// Groups sums up items by Kind and What, in order of first appearance.
func Groups(items []Item) []Group {
	var groups []Group
	for _, it := range items {
		i := slices.IndexFunc(groups, func(g Group) bool { return g.Kind == it.Kind && g.What == it.What })
		if i < 0 {
			i = len(groups)
			groups = append(groups, Group{Kind: it.Kind, What: it.What, Oldest: it.Time})
		}
		g := &groups[i]
		g.N++
		g.Bytes += it.Bytes
		if it.Time.Before(g.Oldest) {
			g.Oldest = it.Time
		}
	}
	return groups
}

// Bytes returns the total size of items.
func Bytes(items []Item) (n int64) {
	for _, it := range items {
		n += it.Bytes
	}
	return n
}
