package reports

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"exp/experiments/ident"
	"exp/experiments/recorded"
	"exp/experiments/store"
	"exp/harness/metric"
	"exp/reports/figure"
)

// stageKinds lists the curves of the stages before training.
func stageKinds() (list []curveKind) {
	for _, s := range metric.Stages() {
		for _, name := range s.Curves {
			list = append(list, curveKind{Name: slug(name), Metric: name, Group: groupStages})
		}
	}
	return list
}

// stageRecords reads the curves of runs' stages, each once: most runs share them.
type stageRecords struct {
	db   *store.DB
	read map[ident.Digest][]store.Curve // by recorded.StageCurve.Key
}

// fill reads the curves of a run's stages.
func (x *stageRecords) fill(r *run) error {
	var kinds []string
	for _, s := range metric.Stages() {
		kinds = append(kinds, s.Name)
	}
	for _, f := range recorded.StageCurves(x.db, r.Run, r.stages, kinds, false) {
		curves, known := x.read[f.Key]
		if !known {
			var err error
			curves, err = f.Read(x.db)
			if errors.Is(err, fs.ErrNotExist) { // exp fsck names it; the rest can be reported
				r.lost = append(r.lost, f.Kind)
				continue
			}
			if err != nil {
				return fmt.Errorf("run %s: %w", r.RID.Short(), err)
			}
			x.read[f.Key] = curves
		}
		for _, c := range curves {
			r.staged[c.Name] = recorded.KeyedCurve{Key: f.Key, Curve: c}
		}
	}
	return nil
}

// curve returns a metric of training or of a stage before it.
func (r *run) curve(name string) (store.Curve, bool) {
	if c, ok := r.curves[name]; ok {
		return c, true
	}
	c, ok := r.staged[name]
	return c.Curve, ok
}

// curveLine is a line of a curve's figure: an arm's curves, or the ones that several arms share.
type curveLine struct {
	name   string
	arms   []*arm
	curves []store.Curve
}

// linesOf returns the lines of a metric, the names that order their colours, and the names of the lines in focus.
func linesOf(arms []*arm, name string) (lines []curveLine, order, focus []string) {
	if _, before := metric.StageOf(name); before {
		lines, order = stagedLines(arms, name)
		for _, l := range lines {
			if slices.ContainsFunc(l.arms, func(a *arm) bool { return a.focus }) {
				focus = append(focus, l.name)
			}
		}
		return lines, order, focus
	}
	for _, a := range arms {
		l := curveLine{name: a.label, arms: []*arm{a}}
		for _, r := range a.Runs {
			if c, ok := r.curves[name]; ok && c.N > 0 {
				l.curves = append(l.curves, c)
			}
		}
		if len(l.curves) > 0 {
			lines = append(lines, l)
		}
	}
	return lines, labels(arms), focused(arms)
}

// undrawn returns the labels of the arms without a line.
func undrawn(arms []*arm, lines []curveLine) (without []string) {
	for _, a := range arms {
		if !slices.ContainsFunc(lines, func(l curveLine) bool { return slices.Contains(l.arms, a) }) {
			without = append(without, a.label)
		}
	}
	return without
}

// stagedLines returns the lines of a metric of a stage before training: the curve that runs share is drawn once, and
// arms that share all their curves have one line. order is the arms' labels with the lines' in the places of their
// first arms, so that a line has the colour of its first arm.
func stagedLines(arms []*arm, name string) (lines []curveLine, order []string) {
	all := make([][]recorded.KeyedCurve, len(arms))
	for i, a := range arms {
		for _, r := range a.Runs {
			if c, ok := r.staged[name]; ok {
				all[i] = append(all[i], c)
			}
		}
	}
	order = labels(arms)
	for _, shared := range recorded.ShareCurves(all) {
		var of []*arm
		for _, i := range shared.Arms {
			of = append(of, arms[i])
		}
		l := curveLine{name: sharedLabel(of, len(arms)), arms: of}
		for _, c := range shared.Curves {
			l.curves = append(l.curves, c.Curve)
		}
		lines, order[shared.Arms[0]] = append(lines, l), l.name
	}
	return lines, order
}

// sharedLabel names the line of arms, of so many in all.
func sharedLabel(of []*arm, all int) string {
	names := labels(of)
	joined := strings.Join(names, ", ")
	switch {
	case len(of) == 1:
		return names[0]
	case len(of) == all:
		return "all arms"
	case len([]rune(joined)) > longestLabel:
		return fmt.Sprintf("%s and %d more", names[0], len(names)-1)
	}
	return joined
}

// sharing says whose curves are drawn once; empty if each run has its own, as in training.
func sharing(lines []curveLine, name string) string {
	drawn, had := 0, 0
	var parts []string
	for _, l := range lines {
		drawn += len(l.curves)
		for _, a := range l.arms {
			for _, r := range a.Runs {
				if _, ok := r.staged[name]; ok {
					had++
				}
			}
		}
		if names := labels(l.arms); len(names) > 1 && l.name != strings.Join(names, ", ") {
			parts = append(parts, l.name+": "+listed(names))
		}
	}
	if had == 0 || drawn == had {
		return ""
	}
	return strings.Join(slices.Insert(parts, 0, "Runs that share the stage have one curve"), "; ")
}

// stepAxis is the axis of the steps of training, or of the stage that a metric belongs to.
func stepAxis(name string) figure.Axis {
	if s, ok := metric.StageOf(name); ok {
		return figure.Axis{Label: s.Step}
	}
	return figure.Axis{Label: "training step"}
}
