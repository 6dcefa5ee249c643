package rl

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
)

// primeExample has three rows, of tokens (on, off, on, on), (on, on) and (off): two of one problem, and one of another
// that has nothing unmasked.
func primeExample() (logProb, ref []float64, mask []bool, rows Rows, group []int) {
	return []float64{-1, nan, -3, -0.5, -2, -1, nan}, []float64{-2, nan, -5, -1, -1, -3, nan},
		[]bool{on, off, on, on, on, on, off}, Rows{0, 4, 6, 7}, []int{4, 4, 7}
}

func TestImplicitRewards(t *testing.T) {
	logProb, ref, mask, rows, _ := primeExample()
	// Log-ratios (1, -, 2, 0.5) and (-1, 2); Beta 0.1. Sums that are left: 0.3, 0.2, 0.2, 0 and -0.1, 0; of whole rows
	// 0.35 and 0.1.
	for _, tt := range []struct {
		c    PrimeConfig
		want []float64
	}{
		{PrimeConfig{Beta: 0.1}, []float64{0.1, 0, 0.2, 0, -0.1, 0, 0}},
		{PrimeConfig{Beta: 0.1, Normalize: true}, []float64{0.1 / 0.300001, 0, 0.2 / 0.300001, 0, -0.1 / 0.300001, 0, 0}},
		{PrimeConfig{Beta: 0.1, Whole: true}, []float64{0, 0, 0, 0.35, 0, 0.1, 0}},
		{PrimeConfig{Beta: 0.1, Whole: true, Normalize: true}, []float64{0, 0, 0, 0.35 / 0.350001, 0, 0.1 / 0.350001, 0}},
	} {
		got := make([]float64, 7)
		got[1] = nan // is overwritten
		ImplicitRewards(got, logProb, ref, mask, rows, tt.c)
		for i := range got {
			if !near(got[i], tt.want[i], 1e-15) {
				t.Errorf("%+v: %v, want %v", tt.c, got, tt.want)
				break
			}
		}
	}
}

func TestPrimeAdvantage(t *testing.T) {
	_, _, mask, rows, group := primeExample()
	process := []float64{0.1, nan, 0.2, 0, -0.1, 0, nan}
	// Means 0.1 and -0.05, n = 2: factor 2, base 0.05. Row 0: tokens 0.15, 0.35, -0.05; from them on 0.45, 0.3, -0.05.
	// Row 1: -0.25, -0.05; -0.3, -0.05. Outcomes 1 - 0 and 0 - 1.
	for _, tt := range []struct {
		c   PrimeConfig
		ret []float64
	}{
		{PrimeConfig{Outcome: 2, Process: 10}, []float64{6.5, 0, 5, 1.5, -5, -2.5, 0}},
		{PrimeConfig{Process: 1}, []float64{0.45, 0, 0.3, -0.05, -0.3, -0.05, 0}},
		{PrimeConfig{Outcome: 1}, []float64{1, 0, 1, 1, -1, -1, 0}},
		// Sums 0.3 and -0.1: 0.6 - 0.2 and -0.2 - 0.2.
		{PrimeConfig{Outcome: 1, Process: 10, Whole: true}, []float64{5, 0, 5, 5, -5, -5, 0}},
	} {
		adv, ret := make([]float64, 7), slices.Repeat([]float64{nan}, 7)
		if err := PrimeAdvantage(adv, ret, []float64{1, 0, 5}, process, group, mask, rows, tt.c); err != nil {
			t.Fatal(err)
		}
		want := slices.Clone(tt.ret)
		if err := whitenMasked(want, mask); err != nil {
			t.Fatal(err)
		}
		for i := range ret {
			if !near(ret[i], tt.ret[i], 1e-14) || !near(adv[i], want[i], 1e-14) {
				t.Errorf("%+v: returns %v, want %v; advantages %v, want %v", tt.c, ret, tt.ret, adv, want)
				break
			}
		}
	}
	// A row alone has no baseline: 5 + (0.2 + 0.1), 5 + 0.1.
	ret := make([]float64, 2)
	err := PrimeAdvantage(make([]float64, 2), ret, []float64{5}, []float64{0.2, 0.1}, []int{0}, []bool{on, on}, Rows{0, 2},
		PrimeConfig{Outcome: 1, Process: 1})
	if err != nil || !near(ret[0], 5.3, 1e-15) || !near(ret[1], 5.1, 1e-15) {
		t.Errorf("alone: %v, %v", ret, err)
	}
	if err := PrimeAdvantage(ret, ret, []float64{5}, ret, []int{0}, []bool{on, off}, Rows{0, 2}, PrimeConfig{}); err != ErrTooFew {
		t.Errorf("one token: %v", err)
	}
}

func TestPrimeTargets(t *testing.T) {
	// A group of four: rewards 0.4, -0.2 right, 0.3, 0.1 wrong; a wrong row alone.
	reward, right, group := []float64{0.4, 0.3, -0.2, 0.1, 9}, []bool{true, false, true, false, false}, []int{1, 1, 1, 1, 2}
	for _, tt := range []struct {
		loss          PrimeLossKind
		other, weight []float64
	}{
		{PrimeCE, []float64{0, 0, 0, 0, 0}, []float64{1, 1, 1, 1, 1}},
		// Mean of the wrong 0.2, of the right 0.1.
		{PrimeDPO, []float64{0.2, 0.1, 0.2, 0.1, 0}, []float64{1, 1, 1, 1, 1}},
		// Not above by verdict: all four, 4·1; half, 4·(1/2)³. Alone 1·1⁰.
		{PrimeBoNAcc, []float64{0.2, 0.1, 0.2, 0.1, 0}, []float64{4, 0.5, 4, 0.5, 1}},
		// By reward: 4·1, 4·(3/4)³, 4·(1/4)³, 4·(1/2)³.
		{PrimeBoNRM, []float64{0.2, 0.1, 0.2, 0.1, 0}, []float64{4, 1.6875, 0.0625, 0.5, 1}},
	} {
		for i, x := range PrimeTargets(reward, right, group, tt.loss) {
			side := -1.0
			if right[i] {
				side = 1
			}
			if x.Side != side || !near(x.Other, tt.other[i], 1e-15) || !near(x.Weight, tt.weight[i], 1e-15) {
				t.Errorf("loss %d, row %d: %+v, want %g, %g, %g", tt.loss, i, x, side, tt.other[i], tt.weight[i])
			}
		}
	}
}

func TestPrimeLoss(t *testing.T) {
	logProb, ref, mask, rows, _ := primeExample()
	target := []PrimeTarget{{1, 0, 1}, {-1, 0.3, 2}, {1, 0, 1}}
	if n := PrimeRows(mask, rows); n != 2 {
		t.Errorf("%d rows have a loss, want 2", n)
	}
	// Rewards 0.35 and 0.1; margins 0.35 and 0.2.
	var s PrimeStats
	d := make([]float64, 7)
	PrimeLoss(d, logProb, ref, mask, rows, target, 0.1, 2, &s)
	σ := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	want := (-math.Log(σ(0.35)) - 2*math.Log(σ(0.2))) / 2
	a, b := -0.1*σ(-0.35)/2, 0.1*σ(-0.2)
	if m := s.Metrics(); !near(m[0].Value, want, 1e-15) || m[0].Name != "reward_model/dpo_loss" {
		t.Errorf("%v, want %g", m, want)
	}
	for i, w := range []float64{a, 0, a, a, b, b, 0} {
		if !near(d[i], w, 1e-15) {
			t.Errorf("gradient %v: [%d] want %g", d, i, w)
		}
	}
}

// The loss has the slope that it returns, and its parts sum to the whole.
func TestPrimeLossGradient(t *testing.T) {
	const seed, beta = 3, 0.3
	r := rand.New(rand.NewPCG(seed, 0))
	for kind := PrimeCE; kind <= PrimeBoNRM; kind++ {
		s := newSample[float64](r, 9)
		right, group := make([]bool, s.Rows.Len()), make([]int, s.Rows.Len())
		for i := range right {
			right[i], group[i] = r.IntN(2) == 0, i/3
		}
		target := PrimeTargets(RowRewards(s.LogProb, s.RefLogProb, s.Mask, s.Rows, beta), right, group, kind)
		n := PrimeRows(s.Mask, s.Rows)
		loss := func() (d []float64, value float64) {
			var st PrimeStats
			d = make([]float64, len(s.Mask))
			PrimeLoss(d, s.LogProb, s.RefLogProb, s.Mask, s.Rows, target, beta, n, &st)
			return d, st.Loss
		}
		d, whole := loss()
		slopes{t, func() float64 { _, v := loss(); return v }}.check(fmt.Sprintf("loss %d: token", kind), d, s.LogProb, nil)
		var parts PrimeStats
		for i := range target {
			lo, hi := s.Rows[i], s.Rows[i+1]
			PrimeLoss(make([]float64, hi-lo), s.LogProb[lo:hi], s.RefLogProb[lo:hi], s.Mask[lo:hi], Rows{0, hi - lo},
				target[i:i+1], beta, n, &parts)
		}
		if parts.Loss != whole {
			t.Errorf("loss %d: %.17g in parts, %.17g whole", kind, parts.Loss, whole)
		}
	}
}

// testdata/prime.json holds cases of random log-probs (seed 7, Beta 0.05) with what the functions of verl's recipe prime
// (verl-recipe 48ea0a7) make of them in float64: its losses before means over micro-batches, bon_* as a mean.
func TestPrimeAsInRecipe(t *testing.T) {
	text, err := os.ReadFile("testdata/prime.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		N                 int
		Lens              []int
		Norm              bool
		Outcome, Process  float64
		LogProb, Ref, Acc []float64
		Rewards, Ret, Adv []float64
		Losses            map[string]struct {
			Loss float64
			Grad []float64
		}
	}
	if err := json.Unmarshal(text, &cases); err != nil || len(cases) != 3 {
		t.Fatal(len(cases), err)
	}
	for k, x := range cases {
		rows, group, right := Rows{0}, make([]int, len(x.Lens)), make([]bool, len(x.Lens))
		for i, n := range x.Lens {
			rows, group[i], right[i] = append(rows, rows[i]+n), i/x.N, x.Acc[i] > 0
		}
		tokens := len(x.LogProb)
		mask := slices.Repeat([]bool{on}, tokens)
		c := PrimeConfig{Beta: 0.05, Normalize: x.Norm, Outcome: x.Outcome, Process: x.Process}
		rewards, ret, adv := make([]float64, tokens), make([]float64, tokens), make([]float64, tokens)
		ImplicitRewards(rewards, x.LogProb, x.Ref, mask, rows, c)
		if err := PrimeAdvantage(adv, ret, x.Acc, rewards, group, mask, rows, c); err != nil {
			t.Fatal(err)
		}
		same := func(what string, got, want []float64, tol float64) {
			t.Helper()
			for i := range want {
				if !near(got[i], want[i], tol) {
					t.Errorf("case %d: %s[%d] = %.12g, want %.12g", k, what, i, got[i], want[i])
				}
			}
		}
		same("rewards", rewards, x.Rewards, 1e-9)
		same("returns", ret, x.Ret, 1e-8)
		same("advantages", adv, x.Adv, 1e-8)
		q := RowRewards(x.LogProb, x.Ref, mask, rows, c.Beta)
		for kind, name := range primeLossWords {
			var s PrimeStats
			d := make([]float64, tokens)
			PrimeLoss(d, x.LogProb, x.Ref, mask, rows, PrimeTargets(q, right, group, PrimeLossKind(kind)), c.Beta, len(right), &s)
			same(name, []float64{s.Loss}, []float64{x.Losses[name].Loss}, 1e-7) // shares of a group are float32 there
			same("gradient of "+name, d, x.Losses[name].Grad, 1e-9)
		}
	}
}

func TestPrimeAccuracy(t *testing.T) {
	// Group 0: right 3 and 1, wrong 1 and 0: pairs 1, 1, 1/2, 1. Group 1: right -1, wrong 2: 0. Group 2 has no pair.
	score := []float64{3, 1, 1, 0, -1, 2, 0}
	right := []bool{true, false, true, false, true, false, true}
	group := []int{0, 0, 0, 0, 1, 1, 2}
	if got, want := RankAccuracy(score, right, group), (3.5/4+0)/2; got != want {
		t.Errorf("ranking %g, want %g", got, want)
	}
	// 3, 1 right; 1 and 2 are above 0 though wrong, -1 below though right; two zeros count half.
	if got, want := SignAccuracy(score, right), (2+0.5+0.5)/7; got != want {
		t.Errorf("signs %g, want %g", got, want)
	}
	m := PrimeMetrics(score[6:], right[6:], group[6:], "_before")
	if len(m) != 1 || m[0] != (Metric{"reward_model/dpo_acc_abs_before", 0.5}) {
		t.Errorf("metrics of a row alone: %v", m)
	}
	if m := PrimeMetrics(nil, nil, nil, ""); m != nil {
		t.Errorf("metrics of nothing: %v", m)
	}
}
