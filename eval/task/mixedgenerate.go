package task

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"exp/train/rollout"
)

// checkGenerate returns an error for kinds that no task makes, and for numbers below 1.
func (m *Mixed) checkGenerate() error {
	for _, split := range []Split{Train, Val, Test} {
		key := "task.mixed.generate." + string(split)
		for _, kind := range slices.Sorted(maps.Keys(m.Generate[split])) {
			n := m.Generate[split][kind]
			switch {
			case !slices.Contains(GeneratedKinds(), kind):
				return &ConfigError{Key: key, Problem: fmt.Sprintf(
					"nothing makes problems of kind %q; the kinds are %s", kind, strings.Join(GeneratedKinds(), ", "))}
			case n < 1:
				return &ConfigError{Key: key, Problem: fmt.Sprintf("%d problems of kind %s", n, kind)}
			}
		}
	}
	return nil
}

// Alphabet holds the characters of all kinds of problems that are made, in order.
func (t *mixedTask) Alphabet() string {
	var all []rune
	for _, kind := range t.order {
		all = append(all, []rune(t.parts[kind].Alphabet())...)
	}
	slices.Sort(all)
	return string(slices.Compact(all))
}

// Generate returns ErrNotGenerated: the numbers of problems are the task's own, see WithGenerated.
func (t *mixedTask) Generate(Split, int, uint64) ([]rollout.Problem, error) {
	return nil, ErrNotGenerated
}

// WithGenerated adds the problems that a mixed task makes for a split (Mixed.Generate) to the problems read; for other
// tasks it returns these alone. The task of each kind makes its problems from the seed, as it does alone. All kinds,
// and the problems read, are spread evenly: every beginning of the result has each in its share. Problems read keep
// their ids.
func WithGenerated(t Task, split Split, read []rollout.Problem, seed uint64) ([]rollout.Problem, error) {
	mixed, ok := t.(*mixedTask)
	if !ok || len(mixed.cfg.Generate[split]) == 0 {
		return read, nil
	}
	seen := make(map[string]bool, len(read))
	for i := range read {
		seen[read[i].ID] = true
	}
	lists := [][]rollout.Problem{read}
	for _, kind := range mixed.order {
		n := mixed.cfg.Generate[split][kind]
		if n == 0 {
			continue
		}
		made, err := mixed.parts[kind].Generate(split, n, seed)
		if err != nil {
			return nil, fmt.Errorf("task.mixed.generate.%s: %w", split, err)
		}
		for i := range made {
			made[i].Kind = kind
			differ(&made[i], seen)
		}
		lists = append(lists, made)
	}
	return spread(lists), nil
}

// spread merges lists so that every beginning of the result has each list in its share: item i of n stands where
// (i+½)/n of the result is before it. Where two are due the earlier list comes first.
func spread(lists [][]rollout.Problem) []rollout.Problem {
	type place struct{ list, item int }
	var order []place
	for l, list := range lists {
		for i := range list {
			order = append(order, place{l, i})
		}
	}
	slices.SortStableFunc(order, func(a, b place) int {
		return (2*a.item+1)*len(lists[b.list]) - (2*b.item+1)*len(lists[a.list])
	})
	all := make([]rollout.Problem, len(order))
	for i, p := range order {
		all[i] = lists[p.list][p.item]
	}
	return all
}
