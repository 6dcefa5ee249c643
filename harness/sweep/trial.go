package sweep

import (
	"cmp"
	"context"
	"math"
	"slices"

	"exp/eval/stat"
	"exp/experiments/ident"
	"exp/experiments/store"
)

// Trial is the runs of one experiment of a search.
type Trial struct {
	Runs         []store.Run
	Drawn        []any     // values of the searched keys
	Seeds        []float64 // the objective's values
	Value        float64   // their mean; NaN if no run has one
	Lo, Hi       float64   // 95 % interval; NaN if unknown
	BetweenSeeds bool      // the interval is over seeds, not over problems
}

// Rank makes trials of runs, the best first.
func (o *Objective) Rank(ctx context.Context, db *store.DB, runs []store.Run) ([]*Trial, error) {
	var trials []*Trial
	of, counted := map[ident.Digest]*Trial{}, map[ident.Digest]bool{}
	for _, r := range runs {
		if counted[r.RID] {
			continue // two arms that are one experiment
		}
		counted[r.RID] = true
		t := of[r.XID]
		if t == nil {
			t = &Trial{Lo: math.NaN(), Hi: math.NaN()}
			of[r.XID] = t
			trials = append(trials, t)
		}
		t.Runs = append(t.Runs, r)
		if err := o.measure(ctx, db, t, r); err != nil {
			return nil, err
		}
	}
	for _, t := range trials {
		t.sum()
	}
	slices.SortStableFunc(trials, func(x, y *Trial) int {
		switch {
		case x.rank() != y.rank():
			return cmp.Compare(x.rank(), y.rank())
		case o.Lower:
			return cmp.Compare(x.Value, y.Value)
		}
		return cmp.Compare(y.Value, x.Value)
	})
	return trials, nil
}

// Ranks returns the ranks of ordered trials from 1; equally good ones share the first of theirs.
func Ranks(trials []*Trial) []int {
	ranks := make([]int, len(trials))
	for i, t := range trials {
		ranks[i] = i + 1
		if i > 0 && t.rank() == trials[i-1].rank() && cmp.Compare(t.Value, trials[i-1].Value) == 0 {
			ranks[i] = ranks[i-1]
		}
	}
	return ranks
}

// rank returns 0 for a trial with all its scores, 1 for one that stopped or lacks a score, 2 for one
// without any.
func (t *Trial) rank() int {
	switch {
	case math.IsNaN(t.Value):
		return 2
	case t.Status() != store.Done || len(t.Seeds) < len(t.Runs):
		return 1
	}
	return 0
}

// Complete reports whether all runs are done and have a score.
func (t *Trial) Complete() bool { return t.rank() == 0 }

// Status is done if all runs are.
func (t *Trial) Status() store.Status {
	for _, r := range t.Runs {
		if r.Status != store.Done {
			return r.Status
		}
	}
	return store.Done
}

// measure adds the objective of a run to its trial.
func (o *Objective) measure(ctx context.Context, db *store.DB, t *Trial, r store.Run) error {
	fields := []store.Field{o.Field}
	for _, key := range o.Keys {
		fields = append(fields, store.Field{Kind: store.FieldConfig, Name: key})
	}
	_, values, err := db.RunFields(ctx, store.RunQuery{IDPrefix: r.RID.String()}, fields)
	if err != nil || len(values) == 0 {
		return err
	}
	t.Drawn = values[0][1:]
	v, ok := values[0][0].(float64)
	if !ok {
		return nil
	}
	t.Seeds = append(t.Seeds, v)
	if o.Field.Kind != store.FieldEval {
		return nil
	}
	evals, err := db.Evals(ctx, r.ID)
	for _, e := range evals {
		of := e.SuiteName == o.Field.Suite || e.SuiteName == r.Task+"/"+o.Field.Suite
		if of && e.Metric == o.Field.Name && e.Value == v {
			t.Lo, t.Hi = e.Lo, e.Hi
		}
	}
	return err
}

// sum sets the mean of the seeds; of several, also the interval of their mean. Equal values say
// nothing about their spread, so they have none.
func (t *Trial) sum() {
	t.Value = math.NaN()
	if len(t.Seeds) == 0 {
		return
	}
	m := stat.ClusterMean(t.Seeds, nil)
	t.Value = m.Value
	if len(t.Seeds) == 1 {
		return
	}
	t.Lo, t.Hi = math.NaN(), math.NaN()
	if iv, ok := stat.TInterval(m, 0.95); ok && iv.Hi > iv.Lo {
		t.Lo, t.Hi, t.BetweenSeeds = iv.Lo, iv.Hi, true
	}
}

// Overlaps counts the trials after the first that have an interval, and those whose interval overlaps
// the first one's.
func Overlaps(trials []*Trial) (overlap, have int) {
	best := trials[0]
	for _, t := range trials[1:] {
		if math.IsNaN(t.Lo) {
			continue
		}
		have++
		if t.Lo <= best.Hi && best.Lo <= t.Hi {
			overlap++
		}
	}
	return overlap, have
}

// LastSeed returns the highest seed of the runs.
func LastSeed(trials []*Trial) int64 {
	last := trials[0].Runs[0].Seed
	for _, t := range trials {
		for _, r := range t.Runs {
			last = max(last, r.Seed)
		}
	}
	return last
}
