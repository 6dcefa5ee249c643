package compare

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"exp/experiments/query"
	"exp/experiments/store"
	"exp/harness/config"
)

// Arm is a set of runs to be compared as one.
type Arm struct {
	// Label names the arm in results. If empty, Compare uses the name of the arm's newest
	// run, and adds algo and short xid where labels would collide.
	Label string
	Runs  []store.Run // of any status and in any order
}

// Arms groups runs into arms by a field of runs (xid, the experiment's id; name, algo,
// model, task, seed) or by a configuration key, whose value becomes the label; "" is xid. Arms
// are sorted by label (CompareLabels), then xid, for any order of runs. An unknown field is an
// *OptionError.
func Arms(ctx context.Context, db *store.DB, runs []store.Run, by string) ([]Arm, error) {
	if by == "" {
		by = "xid"
	}
	value, err := groupKey(ctx, newReader(db), by)
	if err != nil {
		return nil, err
	}
	groups := map[string]*Arm{}
	var arms []*Arm
	for _, r := range runs {
		v, err := value(r)
		if err != nil {
			return nil, err
		}
		a := groups[v]
		if a == nil {
			a = &Arm{Label: v}
			if by == "xid" {
				a.Label = ""
			}
			groups[v] = a
			arms = append(arms, a)
		}
		a.Runs = append(a.Runs, r)
	}
	slices.SortFunc(arms, func(a, b *Arm) int {
		return cmp.Or(CompareLabels(a.shown(), b.shown()), strings.Compare(a.key(), b.key()))
	})
	list := make([]Arm, len(arms))
	for i, a := range arms {
		list[i] = *a
	}
	return list, nil
}

// groupKey returns the function that maps a run to its arm.
func groupKey(ctx context.Context, rd *reader, by string) (func(store.Run) (string, error), error) {
	field := map[string]func(r store.Run) string{
		"xid": func(r store.Run) string { return r.XID.String() }, "name": func(r store.Run) string { return r.Name },
		"algo": func(r store.Run) string { return r.Algo }, "model": func(r store.Run) string { return r.Model },
		"task": func(r store.Run) string { return r.Task },
		"seed": func(r store.Run) string { return fmt.Sprintf("seed=%d", r.Seed) },
	}[by]
	if field != nil {
		return func(r store.Run) (string, error) { return field(r), nil }, nil
	}
	path := strings.TrimPrefix(by, "config.")
	if _, ok := config.Lookup(path); !ok {
		return nil, &OptionError{Option: "by", Value: by, Problem: "is neither a field of runs nor a key",
			Advice: "xid, name, algo, model, task, seed, or a key such as algo.kind"}
	}
	last := path[strings.LastIndexByte(path, '.')+1:]
	return func(r store.Run) (string, error) {
		s, err := rd.settings(ctx, r)
		if err != nil {
			return "", err
		}
		v, ok := s.text[path]
		switch {
		case !ok:
			return "no " + path, nil
		case last == "kind":
			return v, nil // algo.kind: flowrl needs no path
		}
		return last + "=" + v, nil
	}, nil
}

// shown returns the label, or the name of the newest run.
func (a *Arm) shown() string {
	if a.Label != "" {
		return a.Label
	}
	return a.newest().Name
}

// newest returns the run created last.
func (a *Arm) newest() store.Run {
	return slices.MaxFunc(a.Runs, func(x, y store.Run) int {
		return cmp.Or(x.Created.Compare(y.Created), cmp.Compare(x.ID, y.ID))
	})
}

// key returns the smallest xid, which orders arms with equal labels.
func (a *Arm) key() string {
	return slices.MinFunc(a.Runs, func(x, y store.Run) int {
		return strings.Compare(x.XID.String(),
			y.XID.String())
	}).XID.String()
}

// Labels gives each arm a unique label.
func Labels(arms []Arm) []string {
	labels := make([]string, len(arms))
	for i := range arms {
		labels[i] = arms[i].shown()
	}
	extend := func(more func(a *Arm) string) {
		times := map[string]int{}
		for _, l := range labels {
			times[l]++
		}
		for i, l := range labels {
			if text := more(&arms[i]); times[l] > 1 && !strings.Contains(l, text) {
				labels[i] = l + " " + text
			}
		}
	}
	extend(func(a *Arm) string { return a.newest().Algo })
	extend(func(a *Arm) string { return a.newest().XID.Short() })
	extend(func(a *Arm) string { return seedsOf(a.Runs) })
	return labels
}

// seedsOf says "seed 3" or "seeds 0-2,7".
func seedsOf(runs []store.Run) string {
	seeds := query.Seeds(runs)
	if strings.ContainsAny(seeds, "-,") {
		return "seeds " + seeds
	}
	return "seed " + seeds
}
