package reports

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"exp/experiments/quantity"
	"exp/experiments/store"
	"exp/harness/metric"
	"exp/reports/figure"
)

// curveKind is a metric that a report draws against the training step. The catalogue
// defines the metric.
type curveKind struct {
	Name   string // of the figure
	Metric string
	Group  string // gallery
	Note   string // added to the caption; may be empty
	Rare   bool   // not recorded per batch: never smoothed
	Start  string // metric of the evaluation before training, drawn as a reference line
}

// Galleries of curves; the section on curves has all but the last.
const (
	groupStages    = "Before training"
	groupLearning  = "Learning"
	groupKinds     = "Kinds of problems"
	groupPolicy    = "The policy"
	groupOptimizer = "Optimization"
	groupMethod    = "Method-specific"
	groupCost      = "Cost"
)

var curveGroups = []string{groupStages, groupLearning, groupKinds, groupPolicy, groupOptimizer, groupMethod}

// curveKinds lists all curves in report order.
var curveKinds = slices.Concat(stageKinds(), []curveKind{
	{Name: "reward", Metric: "critic/score/mean", Group: groupLearning},
	{Name: "accuracy", Metric: "val/pass@1", Group: groupLearning, Rare: true, Start: "pass@1"},
	{Name: "train-accuracy", Metric: "train/accuracy", Group: groupLearning},
	{Name: "train-solved", Metric: "train/solved", Group: groupLearning},
	{Name: "val-diversity", Metric: "val/distinct_correct", Group: groupLearning, Rare: true},
	{Name: "val-clusters", Metric: "val/solution_clusters", Group: groupLearning, Rare: true},
}, kindCurves(), []curveKind{
	{Name: "entropy", Metric: "actor/entropy", Group: groupPolicy},
	{Name: "kl", Metric: "kl/ref_k3", Group: groupPolicy},
	{Name: "length", Metric: "response_length/mean", Group: groupPolicy},
	{Name: "truncation", Metric: "response_length/clip_ratio", Group: groupPolicy},
	{Name: "mismatch", Metric: "training/rollout_probs_diff_mean", Group: groupPolicy,
		Note: "0 if both compute the same"},
	{Name: "flowrl-loss", Metric: "actor/final_loss", Group: groupOptimizer},
	{Name: "policy-loss", Metric: "actor/pg_loss", Group: groupOptimizer},
	{Name: "megatron-loss", Metric: "lm loss", Group: groupOptimizer},
	{Name: "balance-loss", Metric: "actor/tb_loss", Group: groupOptimizer},
	{Name: "surrogate-loss", Metric: "actor/ppo_loss", Group: groupOptimizer},
	{Name: "grad-norm", Metric: "actor/grad_norm", Group: groupOptimizer},
	{Name: "ppo-kl", Metric: "actor/ppo_kl", Group: groupOptimizer},
	{Name: "clip-fraction", Metric: "actor/pg_clipfrac", Group: groupOptimizer},
	{Name: "truncated-above", Metric: "rl/truncated_from_above", Group: groupOptimizer},
	{Name: "truncated-below", Metric: "rl/truncated_from_below", Group: groupOptimizer},
	{Name: "bounded", Metric: "actor/clip_rate", Group: groupOptimizer},
	{Name: "dropped", Metric: "actor/cispo_mask_ratio", Group: groupOptimizer},
	{Name: "weight", Metric: "actor/importance_weight", Group: groupMethod},
	{Name: "weight-raw", Metric: "actor/importance_weight_raw", Group: groupMethod},
	{Name: "rollout-weight", Metric: "actor/tis_weight", Group: groupMethod},
	{Name: "ratio", Metric: "rl/pi_over_pi_old", Group: groupMethod},
	{Name: "kl-term", Metric: "rl/kl_term", Group: groupMethod},
	{Name: "entropy-term", Metric: "rl/entropy_term", Group: groupMethod},
	{Name: "log-z", Metric: "actor/log_z", Group: groupMethod},
	{Name: "residual", Metric: "actor/residual_abs", Group: groupMethod},
	{Name: "residual-spread", Metric: "actor/residual_std", Group: groupMethod},
	{Name: "value-loss", Metric: "critic/vf_loss", Group: groupMethod},
	{Name: "value-clip", Metric: "critic/vf_clipfrac", Group: groupMethod},
	{Name: "explained-variance", Metric: "critic/vf_explained_var", Group: groupMethod},
	{Name: "process-loss", Metric: "reward_model/dpo_loss", Group: groupMethod},
	{Name: "process-order", Metric: "reward_model/dpo_acc", Group: groupMethod},
	{Name: "throughput", Metric: "perf/throughput", Group: groupCost,
		Note: "it depends on the machine and its load"},
})

// axisOf returns the catalogue's axis for a metric.
func axisOf(name string) figure.Axis {
	m, _ := metric.Find(name)
	a := figure.Axis{Label: m.Axis.Label, Unit: m.AxisUnit(), Log: m.Axis.Log, Zero: m.Axis.Zero,
		Share: m.Unit == metric.Share}
	if m.Axis.Least != nil {
		a.Cut, a.Least = true, *m.Axis.Least
	}
	return a
}

// smoothFrom is the fewest points that make a noisy curve worth smoothing. With fewer,
// every batch is visible.
const smoothFrom = 80

// drawing returns the figure, or the reason why it is omitted.
func (k curveKind) drawing(arms []*arm) drawing {
	a := try(k.Group, k.curve(arms))
	stage, _ := metric.StageOf(k.Metric)
	lost := func(a *arm) bool {
		return slices.ContainsFunc(a.Runs, func(r *run) bool { return slices.Contains(r.lost, stage.Name) })
	}
	switch {
	case slices.ContainsFunc(arms, lost):
		a.reason = fmt.Errorf("the store lacks what stage %s kept of its steps; exp fsck names the file", stage.Name)
	case !anyRecorded(arms, k.Metric):
		a.reason = errors.New("no run recorded " + k.Metric)
		if m, _ := metric.Find(k.Metric); m.Absent != "" {
			a.reason = errors.New("no run recorded " + k.Metric + ": " + m.Absent)
			switch k.Group {
			case groupOptimizer, groupMethod, groupStages, groupKinds:
				a.reason = notTheirs{a.reason.Error()} // another method's, or of a stage or kind that they do not have
			}
		}
	default:
		if v, ok := constant(arms, k.Metric); ok {
			a.reason = fmt.Errorf("%s is %s at every step of every run", k.Metric, quantity.TypesetShort(v))
		}
	}
	return a
}

func anyRecorded(arms []*arm, metric string) bool {
	return slices.ContainsFunc(arms, func(a *arm) bool {
		return slices.ContainsFunc(a.Runs, func(r *run) bool { c, _ := r.curve(metric); return c.N > 0 })
	})
}

// constant returns the only value of a series, which a sentence says better than a
// figure; ok is false if there are two values, or if a series has one point.
func constant(arms []*arm, metric string) (v float64, ok bool) {
	first := true
	for _, r := range eachRun(arms) {
		c, _ := r.curve(metric)
		values := c.Values
		for _, x := range values {
			if first {
				v, first = x, false
			}
			if x != v || len(values) == 1 && x != 0 {
				return 0, false
			}
		}
	}
	return v, !first
}

// curve builds the figure of a kind. It leaves out arms without the metric, and the
// caption says so.
func (k curveKind) curve(arms []*arm) figure.Curve {
	m, _ := metric.Find(k.Metric)
	about := sentenceCase(m.Definition) + " (" + m.Name + ")"
	lines, order, focus := linesOf(arms, k.Metric)
	f := figure.Curve{
		Head: figure.Head{Name: k.Name, Title: m.Title, About: about, Order: order, Focus: focus},
		X:    stepAxis(m.Name), Y: axisOf(m.Name),
	}
	f.Y.Untitled = m.InSentence()
	if k.Note != "" {
		f.About += "; " + k.Note
	}
	longest := 0
	f.Y.Log = f.Y.Log || m.Unit != metric.Share && figure.ManyTens(valuesOf(arms, k.Metric))
	for _, l := range lines {
		drawn := figure.Arm{Name: l.name}
		for _, c := range l.curves {
			drawn.Seeds = append(drawn.Seeds, series(c))
			longest = max(longest, len(c.Steps))
		}
		f.Arms = append(f.Arms, drawn)
	}
	if !k.Rare && longest >= smoothFrom {
		f.Smooth = longest/20 | 1 // odd, about a twentieth of the run
	}
	if said := sharing(lines, k.Metric); said != "" {
		f.About += ". " + said
	}
	if without := undrawn(arms, lines); len(without) > 0 && len(f.Arms) > 0 {
		f.About += ". Not recorded for " + listed(without)
		if m.Absent != "" {
			f.About += ": " + m.Absent
		}
	}
	if taught := taughtArms(arms); len(taught) > 0 && strings.HasPrefix(k.Metric, "kl/ref") {
		f.About += ". The reference of " + listed(taught) + " is a teacher (algo.reference or algo.teachers)"
		if len(taught) < len(arms) {
			f.About += ", otherwise it is the start"
		}
	}
	if k.Start != "" {
		var said string
		if f.Reference, said = startOf(arms, k.Start); said != "" {
			f.About += ". " + said
		}
	}
	return f
}

// taughtArms returns the labels of the arms whose reference policy is another model than their start.
func taughtArms(arms []*arm) (taught []string) {
	for _, a := range arms {
		if slices.ContainsFunc(a.Runs, (*run).taught) {
			taught = append(taught, a.label)
		}
	}
	return taught
}

// taught reports whether a teacher was an input of training.
func (r *run) taught() bool {
	teacher := func(in store.IO) bool { return in.Role == "teacher" || in.Role == "teachers" }
	return slices.ContainsFunc(r.stages, func(s store.Stage) bool {
		return s.Kind == "train" && slices.ContainsFunc(s.Inputs, teacher)
	})
}

// valuesOf returns the values of a metric for each arm.
func valuesOf(arms []*arm, name string) [][]float64 {
	lists := make([][]float64, len(arms))
	for i, a := range arms {
		for _, r := range a.Runs {
			c, _ := r.curve(name)
			lists[i] = append(lists[i], c.Values...)
		}
	}
	return lists
}

// sameCurves reports whether two metrics have the same values at the same steps in all runs.
func sameCurves(arms []*arm, a, b string) bool {
	for _, r := range eachRun(arms) {
		x, _ := r.curve(a)
		y, _ := r.curve(b)
		if !slices.Equal(x.Steps, y.Steps) || !slices.Equal(x.Values, y.Values) {
			return false
		}
	}
	return true
}

// curveDrawings lists the curves. One that equals an earlier one is left out.
func curveDrawings(arms []*arm) (list []drawing) {
	for i, k := range curveKinds {
		d := k.drawing(arms)
		for _, earlier := range curveKinds[:i] {
			if d.reason == nil && sameCurves(arms, earlier.Metric, k.Metric) {
				m, _ := metric.Find(earlier.Metric)
				d.reason = &sameAs{m.Title}
			}
		}
		list = append(list, d)
	}
	return list
}

// series returns a curve's points.
func series(c store.Curve) figure.Series {
	s := figure.Series{Y: c.Values}
	for _, step := range c.Steps {
		s.Step = append(s.Step, float64(step))
	}
	return s
}

// startOf returns the score before training as a line, and a sentence about it for the
// caption. It returns a line only if all runs and suites have the same score; the sentence
// lists different ones, and is "" if no run was evaluated before training.
func startOf(arms []*arm, metric string) (*figure.Reference, string) {
	values := map[string][]float64{} // by suite
	for _, r := range eachRun(arms) {
		for _, e := range r.evals {
			if suite, ok := strings.CutSuffix(e.SuiteName, startSuffix); ok && e.Metric == metric {
				values[suite] = append(values[suite], e.Value)
			}
		}
	}
	var names, parts []string
	var all []float64
	for _, suite := range slices.Sorted(maps.Keys(values)) {
		least, most := slices.Min(values[suite]), slices.Max(values[suite])
		part := fixed(least, 3) + " on " + suite
		if least != most {
			part = fixed(least, 3) + " to " + fixed(most, 3) + " on " + suite
		}
		names, parts, all = append(names, suite), append(parts, part), append(all, least, most)
	}
	switch {
	case all == nil:
		return nil, ""
	case slices.Min(all) != slices.Max(all):
		return nil, metric + " before training: " + listed(parts)
	}
	return &figure.Reference{Name: "start on " + listed(names), Value: all[0], First: true},
		"Grey: " + metric + " on " + listed(names) + " before training"
}

func armNames(arms []*arm) []string {
	names := make([]string, len(arms))
	for i, a := range arms {
		names[i] = a.Name
	}
	return names
}
