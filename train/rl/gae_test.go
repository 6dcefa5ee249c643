package rl

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestGAE(t *testing.T) {
	tests := []struct {
		name          string
		reward, value []float64
		mask          []bool
		gamma, lambda float64
		adv, ret      []float64
	}{
		{
			// t=2: d = 1-0.5 = 0.5                           A = 0.5
			// t=1: d = 0+0.9·0.5-0.2 = 0.25                  A = 0.25+0.72·0.5 = 0.61
			// t=0: d = 0+0.9·0.2-0.1 = 0.08                  A = 0.08+0.72·0.61 = 0.5192
			name: "three tokens", reward: []float64{0, 0, 1}, value: []float64{0.1, 0.2, 0.5},
			mask: []bool{on, on, on}, gamma: 0.9, lambda: 0.8,
			adv: []float64{0.5192, 0.61, 0.5}, ret: []float64{0.6192, 0.81, 1},
		},
		{
			// The masked token keeps A = 0.5 of the token after it and passes V' = 0.5 on;
			// its reward of 9 is dropped. t=0: d = 0+0.9·0.5-0.1 = 0.35, A = 0.35+0.72·0.5 = 0.71
			name: "a tool turn is transparent", reward: []float64{0, 9, 1}, value: []float64{0.1, 0.2, 0.5},
			mask: []bool{on, off, on}, gamma: 0.9, lambda: 0.8,
			adv: []float64{0.71, 0.5, 0.5}, ret: []float64{0.81, 0.7, 1},
		},
		{
			// gamma = lambda = 1: A = rewards to go - V = 1-0.1, 1-0.2
			name: "undiscounted", reward: []float64{0, 1}, value: []float64{0.1, 0.2},
			mask: []bool{on, on}, gamma: 1, lambda: 1,
			adv: []float64{0.9, 0.8}, ret: []float64{1, 1},
		},
		{
			// lambda = 0: one-step errors, 0+0.5·0.2-0.1 and 1-0.2
			name: "one step", reward: []float64{0, 1}, value: []float64{0.1, 0.2},
			mask: []bool{on, on}, gamma: 0.5, lambda: 0,
			adv: []float64{0, 0.8}, ret: []float64{0.1, 1},
		},
		{
			name: "NaN behind the mask", reward: []float64{1, nan}, value: []float64{0.25, nan},
			mask: []bool{on, off}, gamma: 1, lambda: 1,
			adv: []float64{0.75, 0}, ret: []float64{1, nan},
		},
	}
	for _, tt := range tests {
		n := len(tt.mask)
		adv, ret := make([]float64, n), make([]float64, n)
		GAE(adv, ret, tt.reward, tt.value, tt.mask, Rows{0, n}, tt.gamma, tt.lambda)
		for i := range adv {
			if !near(adv[i], tt.adv[i], 1e-15) || !near(ret[i], tt.ret[i], 1e-15) {
				t.Errorf("%s: token %d: adv, ret = %g, %g, want %g, %g", tt.name, i, adv[i], ret[i], tt.adv[i], tt.ret[i])
			}
		}
	}
}

// A[t] is the sum of later errors d, discounted by gamma·lambda once per
// unmasked token, within its row only.
func TestGAEIsDiscountedSum(t *testing.T) {
	const seed = 3
	r := rand.New(rand.NewPCG(seed, 0))
	for range 50 {
		s := newSample[float64](r, 5)
		n := len(s.Mask)
		gamma, lambda := r.Float64(), r.Float64()
		adv, ret := make([]float64, n), make([]float64, n)
		GAE(adv, ret, s.Ret, s.Value, s.Mask, s.Rows, gamma, lambda)
		for i := range s.Rows.Len() {
			kept := unmasked(s.Mask, s.Rows[i], s.Rows[i+1])
			for a := range kept {
				var want float64
				discount := 1.0
				for b := a; b < len(kept); b++ {
					next := 0.0
					if b+1 < len(kept) {
						next = s.Value[kept[b+1]]
					}
					want += discount * (s.Ret[kept[b]] + gamma*next - s.Value[kept[b]])
					discount *= gamma * lambda
				}
				if got := adv[kept[a]]; !near(got, want, 1e-13) {
					t.Fatalf("seed %d: row %d token %d: %g, want %g", seed, i, kept[a], got, want)
				}
			}
		}
	}
}

// By hand: with alpha 0.5, a row of four unmasked tokens has lambda 1 - 1/2, one of three 1 - 1/1.5, and one of a token
// lambda 0, since 1 - 1/0.5 is negative.
func TestAdaptiveGAE(t *testing.T) {
	mask := []bool{on, on, off, on, on, on, on, on, on}
	reward := []float64{0, 0, 0, 0, 1, 1, 0, 0, 1}
	value := []float64{0.1, 0.2, 9, 0.3, 0.4, 0.6, 0.5, 0.5, 0.25}
	rows := Rows{0, 5, 6, 9}
	adv, ret := make([]float64, 9), make([]float64, 9)
	AdaptiveGAE(adv, ret, reward, value, mask, rows, 1, 0.5)
	want := make([]float64, 9)
	for i, lambda := range []float64{0.5, 0, 1. / 3} {
		lo, hi := rows[i], rows[i+1]
		GAE(want[lo:hi], make([]float64, hi-lo), reward[lo:hi], value[lo:hi], mask[lo:hi], Rows{0, hi - lo}, 1, lambda)
	}
	want[0] = 0.1 + 0.5*(0.1+0.5*(0.1+0.5*0.6)) // the errors are 0.1, 0.1, 0.1 and 0.6
	for i := range want {
		if !near(adv[i], want[i], 1e-15) || mask[i] && !near(ret[i], want[i]+value[i], 1e-15) {
			t.Errorf("token %d: adv, ret = %g, %g, want %g, %g", i, adv[i], ret[i], want[i], want[i]+value[i])
		}
	}
}

// The critic may learn returns of another lambda than the advantages have.
func TestDecoupledGAE(t *testing.T) {
	s := &Graded{Batch: &Batch[float32]{Rows: Rows{0, 3}, Mask: []bool{on, on, on}, Adv: make([]float32, 3)},
		Reward: []float32{0, 0, 1}, Value: []float32{0.1, 0.2, 0.5}, Ret: make([]float32, 3)}
	c := Defaults("gae", "ppo")
	for _, tt := range []struct {
		lambda, alpha, critic float64
		ret                   [3]float32
		adv                   [3]float64 // before they are whitened
	}{
		{0.5, 0, math.Inf(1), [3]float32{0.475, 0.75, 1}, [3]float64{0.375, 0.55, 0.5}},
		{0.5, 0, 1, [3]float32{1, 1, 1}, [3]float64{0.375, 0.55, 0.5}},
		{0.5, 2. / 3, 1, [3]float32{1, 1, 1}, [3]float64{0.375, 0.55, 0.5}}, // lambda 1 - 1/(2/3 · 3)
		{0.9, 2. / 3, math.Inf(1), [3]float32{0.475, 0.75, 1}, [3]float64{0.375, 0.55, 0.5}},
	} {
		c["lambda"], c["lambda_alpha"], c["critic.lambda"] = tt.lambda, tt.alpha, tt.critic
		if err := gaeEstimator().Estimate(s, c); err != nil {
			t.Fatal(err)
		}
		mean := (tt.adv[0] + tt.adv[1] + tt.adv[2]) / 3
		var square float64
		for _, x := range tt.adv {
			square += (x - mean) * (x - mean)
		}
		for i, want := range tt.adv {
			want = (want - mean) / math.Sqrt(square/2)
			if math.Abs(float64(s.Adv[i])-want) > 1e-5 || math.Abs(float64(s.Ret[i]-tt.ret[i])) > 1e-6 {
				t.Errorf("%+v: token %d has advantage %v, want %v, return %v", tt, i, s.Adv[i], want, s.Ret[i])
			}
		}
	}
}

// unmasked returns the positions in [lo,hi) that mask keeps.
func unmasked(mask []bool, lo, hi int) []int {
	var kept []int
	for t := lo; t < hi; t++ {
		if mask[t] {
			kept = append(kept, t)
		}
	}
	return kept
}
