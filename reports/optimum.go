package reports

import (
	"fmt"
	"math"
	"strings"

	"exp/reports/figure"
)

// optimumFigures compares the exact policies of an enumerable task with the distribution
// that maximises β·E[r] − KL(π‖π_ref), one figure per suite. Arms with different
// references have different targets and cannot share a figure.
func optimumFigures(arms []*arm) []drawing {
	var out []drawing
	for _, suite := range suites(arms) {
		if !enumerable(arms, suite) {
			continue
		}
		f, err := optimum(arms, suite)
		out = append(out, drawing{name: f.Name, title: f.Title, group: groupOptimum, reason: err, draw: f.Draw})
	}
	return out
}

func enumerable(arms []*arm, suite string) bool {
	for _, r := range eachRun(arms) {
		if len(r.policies[suite]) > 0 {
			return true
		}
	}
	return false
}

func optimum(arms []*arm, suite string) (figure.Distribution, error) {
	f := figure.Distribution{
		Head: figure.Head{Name: "optimum-" + slug(suite), Title: "Policies and the optimum", Order: labels(arms),
			About: "Exact probability of each outcome under the trained policies, and the optimum of β·E[r] − " +
				"KL(π‖π_ref), which is proportional to π_ref·exp(β·r)"},
		Outcome: figure.Axis{Label: "outcome"},
	}
	for _, a := range arms {
		drawn := figure.DistributionArm{Name: a.label}
		for _, r := range a.Runs {
			p := r.policies[suite]
			if len(p) == 0 {
				continue
			}
			beta, err := r.float("task.outcomes.beta")
			if err != nil {
				return f, err
			}
			t := target(p, beta)
			if f.Target == nil {
				f.Target = t
			}
			if !nearly(f.Target, t) {
				return f, fmt.Errorf("the arms have different optima (their reference or β differs)")
			}
			var probs []float64
			for _, o := range p {
				probs = append(probs, math.Exp(o.LogProb))
			}
			drawn.Policies = append(drawn.Policies, probs)
			drawn.KL = append(drawn.KL, r.evalValue(r.suiteName(suite), "kl_target"))
		}
		if len(drawn.Policies) > 0 {
			f.Arms = append(f.Arms, drawn)
		}
	}
	if n := arms[0].Runs[0].setting("task.outcomes.count"); n != "" {
		f.About += fmt.Sprintf(". Outcomes from %s on are completions outside the task's own set", n)
	}
	return f, nil
}

// target returns the optimum, reference·exp(beta·reward) normalised over all outcomes.
// The evaluation's kl_target measures the distance to it.
func target(p []outcome, beta float64) []float64 {
	most := math.Inf(-1)
	for _, o := range p {
		most = max(most, o.RefLogProb+beta*o.Reward)
	}
	out := make([]float64, len(p))
	var z float64
	for i, o := range p {
		out[i] = math.Exp(o.RefLogProb + beta*o.Reward - most)
		z += out[i]
	}
	for i := range out {
		out[i] /= z
	}
	return out
}

func nearly(a, b []float64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if math.Abs(a[i]-b[i]) > 1e-9 {
			return false
		}
	}
	return true
}

// float returns a numeric configuration value.
func (r *run) float(path string) (float64, error) {
	var v float64
	if _, err := fmt.Sscan(r.setting(path), &v); err != nil {
		return 0, fmt.Errorf("run %s: %s is %q, not a number", r.RID.Short(), path, r.setting(path))
	}
	return v, nil
}

// suiteName returns the name that evaluations give the suite of a label: TASK/LABEL.
func (r *run) suiteName(label string) string { return r.setting("task.kind") + "/" + label }

// slug makes a suite's name fit for a file name.
func slug(name string) string {
	var b strings.Builder
	dash := false
	for _, c := range strings.ToLower(name) {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			if dash && b.Len() > 0 {
				b.WriteByte('-')
			}
			b.WriteRune(c)
			dash = false
			continue
		}
		dash = true
	}
	if b.Len() == 0 {
		return "suite"
	}
	return b.String()
}
