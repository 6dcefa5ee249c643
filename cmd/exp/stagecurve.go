package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"exp/cmd/exp/cli"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/metric"
)

// curveStages lists the stages before training that keep metrics of their own steps.
func curveStages() []string {
	var list []string
	for _, s := range config.StagesOf() {
		if slices.Contains(s.Facts().Makes, config.RoleCurve) {
			list = append(list, string(s))
		}
	}
	return list
}

// checkStage refuses a --stage that keeps no metrics, and --list beside it.
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
func (a *app) curvesOf(c *cli.Context, db *store.DB, run, from, to int64) ([]store.Curve, error) {
	globs := a.metricGlobs(c)
	if !c.IsSet("stage") {
		return db.MetricsOf(c.Context, run, globs, from, to)
	}
	b, err := curveOf(c.Context, db, run, c.String("stage"))
	if err != nil {
		return nil, err
	}
	return readCurves(b, globs, from, to)
}

// curveOf returns what a stage of a run kept of its steps; nil if it has no such stage, or the stage has not ended.
func curveOf(ctx context.Context, db *store.DB, run int64, kind string) ([]byte, error) {
	stages, err := db.Stages(ctx, run)
	if err != nil {
		return nil, err
	}
	for _, s := range stages {
		for _, o := range s.Outputs {
			if s.Kind == kind && o.Role == config.RoleCurve {
				return db.Blobs.Bytes(o.Digest)
			}
		}
	}
	return nil, nil
}

// readCurves reads a stage's curve, a JSON object of metrics for each step: the metrics that match one of globs, in
// the order of the catalogue, from step from to step to.
func readCurves(lines []byte, globs []string, from, to int64) ([]store.Curve, error) {
	curves := map[string]*store.Curve{}
	for line := range bytes.Lines(lines) {
		var values map[string]float64
		if err := json.Unmarshal(line, &values); err != nil {
			return nil, fmt.Errorf("the stage's curve: %w", err)
		}
		step := int64(values["step"])
		if delete(values, "step"); step < from || step > to {
			continue
		}
		for name, v := range values {
			if curves[name] == nil {
				curves[name] = &store.Curve{Series: store.Series{Name: name}}
			}
			curves[name].Steps = append(curves[name].Steps, step)
			curves[name].Values = append(curves[name].Values, v)
		}
	}
	place := map[string]int{}
	for i, m := range metric.All() {
		place[m.Name] = i + 1
	}
	var list []store.Curve
	for name, x := range curves {
		if slices.ContainsFunc(globs, func(glob string) bool { return matchesGlob(glob, name) }) {
			list = append(list, *x)
		}
	}
	slices.SortFunc(list, func(a, b store.Curve) int {
		return cmp.Or(cmp.Compare(place[a.Name], place[b.Name]), strings.Compare(a.Name, b.Name))
	})
	return list, nil
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
		b, err := curveOf(c.Context, db, r.ID, kind)
		if err != nil {
			return err
		}
		if len(b) > 0 {
			f := cli.Failf(cli.ExitNotFound, "run %s has no matching point of its stage %s", r.RID.Short(), kind)
			f.Help = "exp metrics " + r.RID.Short() + " --stage " + kind + " shows its metrics"
			return f
		}
	}
	return cli.Failf(cli.ExitNotFound, "these runs have no finished stage %s", kind)
}

// stageWithCurve returns the name of a stage of a run that kept metrics; empty if none did.
func stageWithCurve(ctx context.Context, db *store.DB, run int64) (string, error) {
	for _, kind := range curveStages() {
		b, err := curveOf(ctx, db, run, kind)
		if err != nil || len(b) > 0 {
			return kind, err
		}
	}
	return "", nil
}
