package main

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"

	"exp/cmd/exp/cli"
	"exp/experiments/recorded"
	"exp/experiments/store"
	"exp/harness/metric"
)

// curveStages lists the stages before training that keep metrics of their own steps.
func curveStages() []string {
	var list []string
	for _, s := range metric.Stages() {
		list = append(list, s.Name)
	}
	return list
}

// checkStage refuses a stage without metrics, and --stage together with --list.
func (a *app) checkStage(c *cli.Context) error {
	if !c.IsSet("stage") {
		return nil
	}
	if s := c.String("stage"); !slices.Contains(curveStages(), s) {
		return a.Usagef("--stage %s: want one of %s", s, strings.Join(curveStages(), ", "))
	}
	if c.Bool("list") {
		return a.Usagef("--list is about training; it does not go with --stage")
	}
	return nil
}

// curvesOf returns the selected metrics of a run's training, or of the stage that --stage names.
func (a *app) curvesOf(c *cli.Context, db *store.DB, run store.Run, from, to int64) ([]store.Curve, error) {
	globs := a.metricGlobs(c)
	if !c.IsSet("stage") {
		return db.MetricsOf(c.Context, run.ID, globs, from, to)
	}
	found, err := stageCurves(c.Context, db, run, c.String("stage"))
	if err != nil || len(found) == 0 {
		return nil, err
	}
	curves, err := found[0].Read(db)
	return selectCurves(curves, globs, from, to), err
}

// stageCurves finds what stages of a run kept of their steps; a stage that has not ended has kept nothing.
func stageCurves(ctx context.Context, db *store.DB, run store.Run, kinds ...string) ([]recorded.StageCurve, error) {
	stages, err := db.Stages(ctx, run.ID)
	return recorded.StageCurves(db, run, stages, kinds, false), err
}

// selectCurves returns the curves that match one of globs, in the order of the catalogue, from step from to step to.
func selectCurves(curves []store.Curve, globs []string, from, to int64) []store.Curve {
	place := map[string]int{}
	for i, m := range metric.All() {
		place[m.Name] = i + 1
	}
	var list []store.Curve
	for _, x := range curves {
		if !slices.ContainsFunc(globs, func(glob string) bool { return matchesGlob(glob, x.Name) }) {
			continue
		}
		first, _ := slices.BinarySearch(x.Steps, from)
		last, found := slices.BinarySearch(x.Steps, to)
		if found {
			last++
		}
		if x.Steps, x.Values = x.Steps[first:last], x.Values[first:last]; len(x.Steps) > 0 {
			list = append(list, x)
		}
	}
	slices.SortFunc(list, func(a, b store.Curve) int {
		return cmp.Or(cmp.Compare(place[a.Name], place[b.Name]), strings.Compare(a.Name, b.Name))
	})
	return list
}

// matchesGlob reports whether a name matches, as in SQLite: * takes any characters, slashes too.
func matchesGlob(glob, name string) bool {
	flat := strings.NewReplacer("/", "\x00")
	ok, err := path.Match(flat.Replace(glob), flat.Replace(name))
	return ok && err == nil
}

// noStageMetrics says why --stage has nothing to print.
func (a *app) noStageMetrics(c *cli.Context, db *store.DB, runs []store.Run) error {
	kind := c.String("stage")
	for _, r := range runs {
		found, err := stageCurves(c.Context, db, r, kind)
		if err != nil {
			return err
		}
		if len(found) > 0 {
			f := cli.Failf(cli.ExitNotFound, "run %s has no matching point of its stage %s", r.RID.Short(), kind)
			f.Help = "exp metrics " + r.RID.Short() + " --stage " + kind + " shows its metrics"
			return f
		}
	}
	return cli.Failf(cli.ExitNotFound, "these runs have no finished stage %s", kind)
}

// stageWithCurve returns the name of a stage of a run that kept metrics; empty if none did.
func stageWithCurve(ctx context.Context, db *store.DB, run store.Run) (string, error) {
	found, err := stageCurves(ctx, db, run, curveStages()...)
	if err != nil || len(found) == 0 {
		return "", err
	}
	return found[0].Kind, nil
}
