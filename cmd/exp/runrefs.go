package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"exp/cmd/exp/cli"
	"exp/experiments/quantity"
	"exp/experiments/query"
	"exp/experiments/spelling"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/metric"
)

// finder finds runs; ages count back from now.
func (a *app) finder(db *store.DB) query.Finder {
	return query.Finder{DB: db, Now: a.Clock.Now(), Lower: metric.Lower, Schema: config.Fields()}
}

// oneRun returns the run that a reference names, with its current status; a deleted run
// only if no other matches.
func (a *app) oneRun(ctx context.Context, db *store.DB, ref string) (store.Run, error) {
	f := a.finder(db)
	r, err := f.One(ctx, ref)
	if errors.Is(err, store.ErrNotFound) && !strings.HasPrefix(ref, "@") {
		f.Deleted = true
		if gone, e := f.One(ctx, ref); e == nil {
			return gone, nil
		}
	}
	if err != nil {
		return r, suggestRun(ctx, db, err)
	}
	return r, nil
}

// selectRuns returns the runs of selections (query.Finder.Select).
func (a *app) selectRuns(ctx context.Context, db *store.DB, f query.Finder, selections []string) ([]store.Run, error) {
	runs, err := f.Select(ctx, selections, a.Stdin)
	if err != nil {
		return nil, suggestRun(ctx, db, err)
	}
	return runs, nil
}

// suggestRun adds the probable name to the error about an unknown reference.
func suggestRun(ctx context.Context, db *store.DB, err error) error {
	var none *query.NotFoundError
	if !errors.As(err, &none) || strings.HasPrefix(none.Ref, "@") {
		return err
	}
	runs, e := db.Runs(ctx, store.RunQuery{Limit: recentRuns})
	if e != nil {
		return err // the first error says more
	}
	var known []string
	for _, r := range runs {
		known = append(known, r.Name)
	}
	name, seed, seeded := strings.Cut(none.Ref, "#")
	switch {
	case len(known) == 0:
		none.Hint = noRuns(ctx, db)
	case seeded && slices.Contains(known, name):
		none.Hint = name + " has no run with seed " + seed
	default:
		if s := spelling.Nearest(name, known); s != "" {
			none.Hint = "did you mean " + s + "?"
		}
	}
	return err
}

// recentRuns is how many runs suggestions and completion read: all of a small store, the
// latest of a large one, within a few milliseconds.
const recentRuns = 300

// completesRuns makes the BashComplete of a command that takes at most most runs (0: any
// number). With single, each argument must be one run, not all seeds of a name. other
// proposes values of flags and may be nil.
func (a *app) completesRuns(
	most int, single bool, other func(ctx context.Context, db *store.DB, w cli.Word) []cli.Candidate,
) cli.BashCompleteFunc {
	return a.Completes(func(c *cli.Context, w cli.Word) (list []cli.Candidate) {
		db, err := a.OpenStore()
		if err != nil {
			return nil
		}
		defer db.Close()
		switch {
		case w.Flag != "" && other != nil:
			return other(c.Context, db, w)
		case w.Flag == "" && (most == 0 || len(w.Args) < most):
			return runCandidates(c.Context, db, w.Text, single, a.Clock.Now())
		}
		return nil
	})
}

// runCandidates proposes references to runs: @last, names, name#seed, tags, and ids once
// a digit is typed.
func runCandidates(ctx context.Context, db *store.DB, text string, single bool, now time.Time) []cli.Candidate {
	runs, tags, err := db.RunFields(ctx, store.RunQuery{Limit: recentRuns}, []store.Field{{Kind: store.FieldTag}})
	if err != nil || len(runs) == 0 {
		return nil
	}
	about := func(r *store.Run) string {
		return fmt.Sprintf("%s, seed %d, %s, %s ago", r.Algo, r.Seed, db.StatusNow(r), quantity.Ago(now, r.Created))
	}
	newest := &runs[0]
	list := []cli.Candidate{{Text: "@last", Note: newest.Name + ", " + about(newest)}}
	seeds := map[string]int{}
	for i := range runs {
		seeds[runs[i].Name]++
	}
	named := map[string]bool{}
	for i := range runs {
		r := &runs[i]
		withSeed := r.Name + "#" + cli.MachineText(r.Seed)
		switch {
		case seeds[r.Name] == 1:
			list = append(list, cli.Candidate{Text: r.Name, Note: about(r)})
			continue
		case !single && !named[r.Name]:
			list = append(list, cli.Candidate{Text: r.Name,
				Note: r.Algo + ", " + cli.MachineText(int64(seeds[r.Name])) + " runs"})
			named[r.Name] = true
		}
		if !named[withSeed] && (single || strings.HasPrefix(text, r.Name)) {
			list = append(list, cli.Candidate{Text: withSeed, Note: about(r)})
			named[withSeed] = true
		}
	}
	list = append(list, tagCandidates(tags)...)
	return append(list, idCandidates(ctx, db, text, about)...)
}

func tagCandidates(values [][]any) []cli.Candidate {
	count := map[string]int{}
	var names []string
	for _, row := range values {
		tags, _ := row[0].([]any)
		for _, t := range tags {
			name, _ := t.(string)
			if count[name]++; count[name] == 1 {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	var list []cli.Candidate
	for _, n := range names {
		list = append(list, cli.Candidate{Text: "tag:" + n, Note: cli.MachineText(int64(count[n])) + " runs"})
	}
	return list
}

// idCandidates proposes the short ids that begin with text.
func idCandidates(ctx context.Context, db *store.DB, text string, about func(*store.Run) string) []cli.Candidate {
	if text == "" || len(text) > 8 || strings.Trim(text, "0123456789abcdef") != "" {
		return nil
	}
	runs, err := db.Runs(ctx, store.RunQuery{IDPrefix: text, Limit: 50})
	if err != nil {
		return nil
	}
	var list []cli.Candidate
	for i := range runs {
		list = append(list, cli.Candidate{Text: runs[i].RID.Short(), Note: runs[i].Name + ", " + about(&runs[i])})
	}
	return list
}
