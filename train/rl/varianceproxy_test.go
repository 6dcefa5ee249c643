package rl

import (
	"math"
	"testing"
)

// Row 0 has two tokens of probability ½ and Σπ² = ½, w = ½ each, and A = 2; row 1 one
// token of probability 1, w = 0, and A = 4; row 2 is empty.
func TestVarianceProxies(t *testing.T) {
	half := math.Log(0.5)
	b := &Batch[float64]{
		Rows: Rows{0, 3, 4, 4}, Mask: []bool{on, off, on, on},
		OldLogProb: []float64{half, nan, half, 0}, Adv: []float64{1, nan, 3, 4},
	}
	sum := []float64{0.5, nan, 0.5, 1}
	want := func(signal, power, noise, a2, w float64) []Metric {
		return []Metric{
			{"variance_proxy/proxy1_signal_strength", signal}, {"variance_proxy/proxy2_total_power", power},
			{"variance_proxy/proxy3_pure_noise", noise}, {"variance_proxy/expected_a_squared", a2}, {"variance_proxy/expected_w", w},
		}
	}
	// power = 2²·1/3, noise = (4/3 - ¼)/2, a² = (4+16)/3, W = 1/3
	compare(t, outcome{metrics: VarianceProxies(b, sum, 0.5)}, outcome{metrics: want(0.25, 4./3, 13./24, 20./3, 1./3)}, 1e-7)
	compare(t, outcome{metrics: VarianceProxies(b, sum, nan)}, outcome{metrics: want(0, 4./3, 0, 20./3, 1./3)}, 1e-7)
	compare(t, outcome{metrics: VarianceProxies(b, sum, 9)}, outcome{metrics: want(81, 4./3, 0, 20./3, 1./3)}, 1e-7)
	// Weights 1 and 3: mean 2, so power = 2²·2²·1/3; W = (½·1 + ½·9)/3.
	b.Weight = []float64{1, nan, 3, 1}
	compare(t, outcome{metrics: VarianceProxies(b, sum, nan)}, outcome{metrics: want(0, 16./3, 0, 20./3, 5./3)}, 1e-7)
}

// Probabilities ½, ¼ and 1 against ¼, ¼ and ½: differences ¼, 0, ½.
func TestProbDiff(t *testing.T) {
	mask := []bool{on, off, on, on}
	roll := []float64{math.Log(0.5), nan, math.Log(0.25), 0}
	old := []float64{math.Log(0.25), nan, math.Log(0.25), math.Log(0.5)}
	// Deviations of roll from 7/12: -1, -4, 5 twelfths; of old from 1/3: -1, -1, 2
	// twelfths. The correlation is (1+4+10)/sqrt(42·6).
	want := []Metric{
		{"training/rollout_probs_diff_valid", 1}, {"training/rollout_probs_diff_max", 0.5},
		{"training/rollout_probs_diff_mean", 0.25}, {"training/rollout_probs_diff_std", 0.25},
		{"training/rollout_actor_probs_pearson_corr", 15 / math.Sqrt(252)},
	}
	compare(t, outcome{metrics: ProbDiff(roll, old, mask)}, outcome{metrics: want}, 1e-14)

	for i := range want {
		want[i].Value = nan
	}
	want[0].Value = 0
	compare(t, outcome{metrics: ProbDiff(roll, old, make([]bool, 4))}, outcome{metrics: want}, 0)
}
