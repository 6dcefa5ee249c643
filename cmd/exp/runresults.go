package main

import (
	"context"
	"slices"
	"strings"

	"exp/cmd/exp/cli"
	"exp/experiments/quantity"
	"exp/experiments/query"
	"exp/experiments/recorded"
	"exp/experiments/store"
	"exp/harness/metric"
	harness "exp/harness/run"
	"exp/reports/compare"
)

// printResults prints one row of results per run. People see pass@1 before and after
// training in one cell.
func (a *app) printResults(ctx context.Context, db *store.DB, results []harness.Result) error {
	results = once(results)
	runs := make([]store.Run, len(results))
	for i, r := range results {
		runs[i] = r.Run
	}
	also, err := db.OtherNames(ctx)
	if err != nil {
		return err
	}
	t := cli.Table{Schema: "exp.run/1", Columns: []cli.Column{
		{Key: "run", ID: true}, {Key: "name", Rank: 1, Min: 12}, {Key: "algo", Drop: 2}, {Key: "seed", Drop: 1},
		{Key: "status", Style: statusStyle}, {Key: "steps", Drop: 3},
	}}
	names := query.ResultNames(runs)
	for i, n := range names {
		drop := 0 // the first one always has room, the last goes first
		if i > 0 {
			drop = 3 + i
		}
		t.Columns = append(t.Columns,
			cli.Column{Key: n, Title: metric.Heading(n), Digits: resultDigits(n), Drop: drop})
	}
	t.Columns = append(t.Columns, cli.Column{Key: "start_pass@1", Wide: true, Digits: 3},
		cli.Column{Key: "executed", Wide: true}, cli.Column{Key: "cached", Wide: true}, alsoNamed)
	for i, r := range results {
		var start any
		if r.Start != nil {
			start = *r.Start
		}
		row := []any{cli.HexID(r.Run.RID.String()), a.nameText(&r.Run, also), r.Run.Algo, r.Run.Seed,
			string(r.Run.Status), r.Run.Steps}
		for _, n := range names {
			v := query.Result(&runs[i], n)
			if n == "pass@1" && a.Out.ForPeople() {
				v = a.beforeAfter(start, v)
			}
			row = append(row, v)
		}
		t.Rows = append(t.Rows, append(row, start, r.Executed, r.Cached, otherNames(also[r.Run.ID])))
	}
	return a.Out.PrintTable(t)
}

// once returns one result of each run: several configurations may describe the same one.
func once(results []harness.Result) (list []harness.Result) {
	for _, r := range results {
		same := func(o harness.Result) bool { return o.Run.ID == r.Run.ID }
		if !slices.ContainsFunc(list, same) {
			list = append(list, r)
		}
	}
	return list
}

// beforeAfter formats "0.120 → 0.345", or only the score if the start was not evaluated.
func (a *app) beforeAfter(start, score any) any {
	before, ok := start.(float64)
	after, trained := score.(float64)
	if !ok || !trained {
		return score
	}
	arrow := " → "
	if !a.Out.Stream.Unicode {
		arrow = " -> "
	}
	return quantity.Fixed(before, 3) + arrow + quantity.Fixed(after, 3)
}

// suggestNext suggests commands for finished runs, or how runs that --until ended go on.
func (a *app) suggestNext(ctx context.Context, db *store.DB, results []harness.Result) error {
	if !a.Out.ForPeople() || len(results) == 0 {
		return nil
	}
	results = once(results)
	if i := slices.IndexFunc(results, func(r harness.Result) bool { return r.Run.Status != store.Done }); i >= 0 {
		id := results[i].Run.RID.Short()
		a.suggest([]string{"exp show " + id, "exp resume " + id}, "  # the other stages")
		return nil
	}
	var names []string
	for _, r := range results {
		if name := a.armName(ctx, db, r.Run); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	first := results[0].Run
	var next []string
	if len(results) == 1 {
		samples, err := samplesOf(ctx, db, first)
		if err != nil {
			return err
		}
		next = append(append(next, "exp show "+first.RID.Short()), samples...)
	} else {
		next = append(next, "exp ls --group xid")
	}
	names, err := a.armsToCompare(ctx, db, first, names)
	if err != nil {
		return err
	}
	arms := strings.Join(quoteAll(names), " ")
	if len(names) > 1 {
		next = append(next, "exp compare "+arms)
	}
	next = append(next, "exp report "+arms+" --out report")
	a.suggest(next, "")
	return nil
}

// suggest prints commands on the store of this one, with a comment after the last.
func (a *app) suggest(commands []string, comment string) {
	place := ""
	if words := a.Place(); len(words) > 0 {
		place = " " + strings.Join(quoteAll(words), " ")
	}
	a.Note("next:\n  %s%s", strings.Join(commands, place+"\n  "), place+comment)
}

// samplesOf returns the command that reads what a run sampled, if anything.
func samplesOf(ctx context.Context, db *store.DB, run store.Run) ([]string, error) {
	labels, err := recorded.Suites(ctx, db, run)
	switch {
	case err != nil:
		return nil, err
	case len(labels) > 0:
		return []string{"exp samples " + run.RID.Short() + " --wrong"}, nil
	case run.Steps > 0:
		return []string{"exp samples " + run.RID.Short() + " --suite train"}, nil
	}
	return nil, nil
}

// armsToCompare returns names that exp compare takes as arms: the given names, else the
// first with an earlier run's, else the first alone.
func (a *app) armsToCompare(ctx context.Context, db *store.DB, first store.Run, names []string) ([]string, error) {
	if len(names) > 1 && a.canCompare(ctx, db, names...) {
		return names, nil
	}
	const tried = 8
	others, err := harness.OtherArms(ctx, db, first, recentRuns)
	own := a.armName(ctx, db, first)
	for _, run := range others[:min(len(others), tried)] {
		other := a.armName(ctx, db, run)
		if a.canCompare(ctx, db, own, other) {
			return []string{own, other}, err
		}
	}
	return []string{own}, err
}

// armName selects the runs of a run's experiment: by its name, unless other experiments have it too.
func (a *app) armName(ctx context.Context, db *store.DB, run store.Run) string {
	same, err := a.finder(db).All(ctx, run.Name) // an error: the run was deleted meanwhile
	if err == nil && slices.ContainsFunc(same, func(r store.Run) bool { return r.XID != run.XID }) {
		return "xid:" + run.XID.Short()
	}
	return run.Name
}

// canCompare reports whether exp compare takes the runs of some names as arms.
func (a *app) canCompare(ctx context.Context, db *store.DB, names ...string) bool {
	var arms []compare.Arm
	for _, name := range names {
		runs, err := a.finder(db).All(ctx, name)
		if err != nil {
			return false
		}
		arms = append(arms, compare.Arm{Label: name, Runs: runs})
	}
	return compare.Check(ctx, db, arms, compare.Options{}) == nil
}
