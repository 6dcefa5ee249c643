package rl

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// turnsOf returns turns of one token each, in order.
func turnsOf(state []int, reward []float64, last ...bool) *Turns {
	t := new(Turns)
	for k := range state {
		t.Add(k, k+1, state[k], reward[k], last[k])
	}
	return t
}

// By hand: two episodes of a problem earn 0.5, 0, 1 and 0, 0.5 in their turns, discounted by a half.
func TestTurnReturns(t *testing.T) {
	x := turnsOf([]int{0, 1, 2, 0, 2}, []float64{0.5, 0, 1, 0, 0.5}, off, off, on, off, on)
	ret := make([]float64, 5)
	x.Returns(ret, 0.5)
	if want := []float64{0.75, 0.5, 1, 0.25, 0.5}; !slices.Equal(ret, want) {
		t.Errorf("returns %v, want %v", ret, want)
	}
	x.Returns(ret, 0)
	if !slices.Equal(ret, x.Reward) {
		t.Errorf("without a future %v", ret)
	}
	StepAdvantage(ret, []float64{0.75, 0.5, 1, 0.25, 0.5}, x.State, false)
	if want := []float64{0.25, 0, 0.25, -0.25, -0.25}; !slices.Equal(ret, want) { // state 1 is alone
		t.Errorf("advantages %v, want %v", ret, want)
	}
	StepAdvantage(ret, []float64{0.75, 0.5, 1, 0.25, 0.5}, x.State, true)
	a := 0.25 / (0.5/math.Sqrt2 + 1e-6) // the std of x and x + ½ is √(2·¼²)
	if want := []float64{a, 0, a, -a, -a}; !near(ret[0], a, 1e-15) || !slices.Equal(ret, []float64{ret[0], 0, ret[0], -ret[0], -ret[0]}) {
		t.Errorf("scaled advantages %v, want %v", ret, want)
	}
	StepAdvantage(ret[:2], []float64{0.3, 0.1 + 0.2}, []int{7, 7}, true) // a rounding apart
	if ret[0] != 0 || ret[1] != 0 {
		t.Errorf("of equal returns %v", ret[:2])
	}
	if m := x.Metrics(); len(m) != 2 || m[0].Value != 5./3 || m[1].Value != 0.8 {
		t.Errorf("%v", m)
	}
	if m := new(Turns).Metrics(); m != nil {
		t.Errorf("of no turns: %v", m)
	}
}

// The estimator by hand, with a turn of two tokens around which some are masked out.
func TestGiGPO(t *testing.T) {
	x := new(Turns)
	x.Add(0, 2, 0, 0, false) // masked out from 2 to 4
	x.Add(4, 5, 1, 1, true)
	x.Add(5, 6, 0, 0.25, true) // a second episode of the problem
	x.Add(6, 7, 2, 3, true)    // another problem
	e, _ := EstimatorNamed("gigpo")
	s := &Graded{Batch: &Batch[float32]{Rows: Rows{0, 5, 6, 8}, Mask: []bool{on, on, off, off, on, on, on, on}, Adv: make([]float32, 8)},
		Group: []int{0, 0, 1}, Score: []float32{1, 0.25, 3}, Turns: x, Ret: make([]float32, 8)}
	c := Settings{scaleStd.Key: false, gigpoWeight.Key: 2.0, gigpoGamma.Key: 0.5}
	if err := e.Estimate(s, c); err != nil {
		t.Fatal(err)
	}
	// Of episodes ±0.375 and, alone, 3; of returns 0.5 and 0.25 in state 0, ±0.125. Token 7 is of no turn.
	if want := []float32{0.625, 0.625, 0, 0, 0.375, -0.625, 3, 3}; !slices.Equal(s.Adv, want) || !slices.Equal(s.Ret, want) {
		t.Errorf("advantages %v, returns %v, want %v", s.Adv, s.Ret, want)
	}
}

// Against the paper's formulas as plain loops over all pairs, on random episodes; with weight 0 it is grpo.
func TestGiGPOFormula(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 0))
	for range 50 {
		x, rows, group := new(Turns), Rows{0}, []int{}
		var row []int // of each turn
		var score []float64
		for i := range 2 + r.IntN(8) {
			group = append(group, r.IntN(2))
			n := 1 + r.IntN(4)
			score = append(score, float64(r.IntN(3)))
			for k := range n {
				tokens := 1 + r.IntN(3)
				at := rows[len(rows)-1]
				if k > 0 {
					at = x.End[len(x.End)-1]
				}
				x.Add(at, at+tokens, 10*group[i]+r.IntN(3), float64(r.IntN(4))/4, k == n-1)
				row = append(row, i)
			}
			rows = append(rows, x.End[len(x.End)-1])
		}
		mask := slices.Repeat([]bool{on}, rows[len(rows)-1])
		for _, scale := range []bool{false, true} {
			c := GiGPOConfig{Weight: 0.5, Gamma: 0.9, Scale: scale}
			adv, episodes := make([]float64, len(mask)), make([]float64, len(score))
			GiGPO(adv, score, group, x, mask, rows, c)
			GroupAdvantage(episodes, score, group, scale)
			ret := func(k int) (sum float64) {
				for j := k; j < len(row) && row[j] == row[k]; j++ {
					sum += math.Pow(c.Gamma, float64(j-k)) * x.Reward[j]
				}
				return sum
			}
			for k := range row {
				var sum, squares, n float64
				for j := range row {
					if x.State[j] == x.State[k] {
						sum, n = sum+ret(j), n+1
					}
				}
				for j := range row {
					if x.State[j] == x.State[k] {
						squares += (ret(j) - sum/n) * (ret(j) - sum/n)
					}
				}
				want := ret(k) - sum/n
				if std := math.Sqrt(squares / max(1, n-1)); scale && n > 1 {
					want /= std + 1e-6
				}
				want = episodes[row[k]] + 0.5*want
				for tok := x.Start[k]; tok < x.End[k]; tok++ {
					if !near(adv[tok], want, 1e-9) {
						t.Fatalf("scale %t: token %d of turn %d has %v, want %v", scale, tok, k, adv[tok], want)
					}
				}
			}
			c.Weight = 0
			GiGPO(adv, score, group, x, mask, rows, c)
			grpo := make([]float64, len(mask))
			Spread(grpo, episodes, mask, rows)
			if !slices.Equal(adv, grpo) {
				t.Errorf("with weight 0 %v, grpo %v", adv, grpo)
			}
		}
	}
}
