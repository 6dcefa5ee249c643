package train

import (
	"math"
	"slices"
	"testing"

	"exp/train/rollout"
)

// By hand: standard deviations of 0, √0.5, √2 and √0.02; one completion without a verdict; a threshold of 1.
func TestSpreads(t *testing.T) {
	c := Config{Samples: 3, Filter: Filter{By: FilterScore, Spread: 0.5}}
	var all []Trajectory
	for _, r := range []float64{1, 1, math.NaN(), 0, 1, math.NaN(), 0, 2, math.NaN(), 0, 0.2, math.NaN()} {
		v := rollout.Verdict{Status: rollout.Graded, Reward: r}
		if math.IsNaN(r) {
			v = rollout.Verdict{}
		}
		all = append(all, Trajectory{Verdict: v})
	}
	tr := &Trainer{cfg: c}
	s := spreads{least: 1}
	if got := tr.informative(all, &s); !slices.Equal(got, []bool{false, false, true, false}) {
		t.Errorf("with a threshold: %v pass", got)
	}
	var free spreads
	if got := tr.informative(all, &free); !slices.Equal(got, []bool{false, true, true, true}) {
		t.Errorf("without one: %v pass", got)
	}
	mean := (math.Sqrt(0.5) + math.Sqrt(2) + math.Sqrt(0.02)) / 4
	for before, want := range map[float64]float64{0: mean, 2: 0.99*2 + 0.01*mean} {
		if got := free.after(before); math.Abs(got-want) > 1e-15 {
			t.Errorf("the average is %v after %v, want %v", got, before, want)
		}
	}
	if got := new(spreads).after(3); got != 3 {
		t.Errorf("a step without groups changes the average to %v", got)
	}
}

// spreading filters by a spread near the average, and samples ahead.
func spreading(r *toyRun) {
	r.cfg.PromptsPerStep, r.cfg.PromptsPerUpdate, r.cfg.Staleness, r.cfg.Steps = 4, 2, 1, 5
	r.cfg.Filter = Filter{By: FilterScore, MaxBatches: 2, Spread: 0.95}
}

// The threshold moves with the steps before, across a stop too.
func TestSpreadContinues(t *testing.T) {
	whole := newToyRun(t, GRPO, 2)
	spreading(whole)
	whole.run()
	var least []float64
	for _, s := range whole.steps {
		least = append(least, metric(t, s, "train/filter_spread"))
	}
	if least[0] != 0 || !(least[1] > 0) || least[1] == least[2] || least[3] == least[4] {
		t.Errorf("thresholds %v", least)
	}
	continues(t, whole)
}
