package rl

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// stepsOf returns steps of rows that end at these tokens.
func stepsOf(row, last []int, reward []float64) *Steps {
	s := new(Steps)
	for k := range row {
		s.Add(row[k], last[k], reward[k])
	}
	return s
}

// By hand: a problem's answers of three steps and of one, with rewards 1, 0, 1 and 0, and an answer alone.
func TestGRPOProcess(t *testing.T) {
	e, _ := EstimatorNamed("grpo_process")
	s := &Graded{Batch: &Batch[float32]{Rows: Rows{0, 6, 8, 9}, Mask: []bool{on, on, on, on, off, on, on, on, on}, Adv: make([]float32, 9)},
		Group: []int{4, 4, 5}, Outcome: []float32{1, 0, 0}, Ret: make([]float32, 9),
		Steps: stepsOf([]int{0, 0, 0, 1, 2}, []int{1, 2, 5, 7, 8}, []float64{1, 0, 1, 0, 7})}
	c := Settings{scaleStd.Key: false, processWeight.Key: 2.0}
	if err := e.Estimate(s, c); err != nil {
		t.Fatal(err)
	}
	// Steps have ½, -½, ½ and -½ over their mean; what ends at a token or later is ½, ½, 0, ½, ½, ½ and -½. Outcomes
	// have ±½. The step alone has nothing to compare with.
	if want := []float32{1.5, 1.5, 0.5, 1.5, 0, 1.5, -1.5, -1.5, 0}; !slices.Equal(s.Adv, want) || !slices.Equal(s.Ret, want) {
		t.Errorf("advantages %v, returns %v, want %v", s.Adv, s.Ret, want)
	}
	c = Settings{scaleStd.Key: true, processWeight.Key: 1.0}
	s.Outcome = make([]float32, 3)
	if err := e.Estimate(s, c); err != nil {
		t.Fatal(err)
	}
	a := 0.5 / (math.Sqrt(1./3) + 1e-6) // the std of 1, 0, 1, 0
	for i, want := range []float64{a, a, 0, a, 0, a, -a, -a, 0} {
		if !near(float64(s.Adv[i]), want, 1e-6) {
			t.Errorf("scaled advantage of token %d: %v, want %v", i, s.Adv[i], want)
		}
	}
	s.Steps = stepsOf([]int{0, 1}, []int{5, 7}, []float64{0.1 + 0.2, 0.3}) // a rounding apart
	if err := e.Estimate(s, c); err != nil || slices.ContainsFunc(s.Adv, func(x float32) bool { return x != 0 }) {
		t.Errorf("of equal rewards %v, %v", s.Adv, err)
	}
}

// Against the paper's formula as plain loops over all tokens and steps, on random answers; one step in each is GRPO.
func TestGRPOProcessFormula(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 0))
	for range 50 {
		steps, rows, group := new(Steps), Rows{0}, []int{}
		var outcome []float64
		single := r.IntN(3) == 0
		for i := range 2 + r.IntN(8) {
			group, outcome = append(group, r.IntN(2)), append(outcome, float64(r.IntN(2)))
			at := rows[i]
			for range 1 + r.IntN(4)*map[bool]int{false: 1}[single] {
				at += r.IntN(3) // two steps may end in one token
				steps.Add(i, at, float64(r.IntN(5))/4)
			}
			rows = append(rows, at+1)
		}
		mask := make([]bool, rows[rows.Len()])
		for k := range mask {
			mask[k] = r.IntN(6) > 0
		}
		for _, scale := range []bool{false, true} {
			adv, perRow := make([]float64, len(mask)), make([]float64, len(outcome))
			GRPOProcess(adv, outcome, steps, group, mask, rows, 0.5, scale)
			GroupAdvantage(perRow, outcome, group, scale)
			for i := range outcome {
				var all []float64
				for k, row := range steps.Row {
					if group[row] == group[i] {
						all = append(all, steps.Reward[k])
					}
				}
				var mean float64
				for _, x := range all {
					mean += x / float64(len(all))
				}
				for tok := rows[i]; tok < rows[i+1]; tok++ {
					want := 0.0
					for k, row := range steps.Row {
						if row == i && steps.Last[k] >= tok && len(all) > 1 && StdDev(all) > 1e-8 {
							x := steps.Reward[k] - mean
							if scale {
								x /= StdDev(all) + 1e-6
							}
							want += x
						}
					}
					if want = perRow[i] + 0.5*want; !mask[tok] {
						want = 0
					}
					if !near(adv[tok], want, 1e-9) {
						t.Fatalf("scale %t: token %d of answer %d has %v, want %v", scale, tok, i, adv[tok], want)
					}
				}
			}
			if !single {
				continue
			}
			GRPOProcess(adv, make([]float64, len(outcome)), steps, group, mask, rows, 1, scale)
			GroupAdvantage(perRow, steps.Reward, group, scale)
			for i := range outcome {
				for tok := rows[i]; tok < rows[i+1]; tok++ {
					alone := !slices.Contains(group[:i], group[i]) && !slices.Contains(group[i+1:], group[i])
					if mask[tok] && !alone && !near(adv[tok], perRow[i], 1e-9) {
						t.Fatalf("one step in each: token %d has %v, grpo %v", tok, adv[tok], perRow[i])
					}
				}
			}
		}
	}
}

// By hand: answers of 4 and 2 tokens earn 0.5 and 1, and 0.25; no answer has more than 10 tokens.
func TestPURE(t *testing.T) {
	e, _ := EstimatorNamed("pure")
	s := &Graded{Batch: &Batch[float32]{Rows: Rows{0, 4, 6, 8}, Mask: []bool{on, on, off, on, on, on, on, on}, Adv: make([]float32, 8)},
		Group: []int{1, 1, 2}, Outcome: []float32{3, 1, 5}, Ret: make([]float32, 8), Longest: 10,
		Steps: stepsOf([]int{0, 0, 1, 2}, []int{1, 3, 4, 7}, []float64{0.5, 1, 0.25, 2})}
	if err := e.Estimate(s, nil); err != nil {
		t.Fatal(err)
	}
	// Returns 1.5, 1.5, 1 sum up to 4, and 0.25, 0 to 0.25: baselines 0.025 and 0.4. Outcomes have 2 and -2 over each
	// other, and 5 alone.
	if want := []float32{1.5, 1.5, 0, 1, 0.25, 0, 2, 2}; !slices.Equal(s.Ret, want) {
		t.Errorf("returns %v, want %v", s.Ret, want)
	}
	for i, want := range []float64{3.475, 3.475, 0, 2.975, -2.15, -2.4, 7, 7} {
		if !near(float64(s.Adv[i]), want, 1e-6) {
			t.Errorf("advantage of token %d: %v, want %v", i, s.Adv[i], want)
		}
	}
}

// By hand, and the limits of PURE's weights: with a low temperature a return is the least reward to come, or 0 after it;
// with a high one the mean of the rewards, weighed alike.
func TestStepRewards(t *testing.T) {
	right := []float64{1, 0.25, 0.75}
	got := make([]float64, 3)
	StepCredit{Wrong: -1, Right: 1, Weight: 2}.Rewards(got, right)
	if want := []float64{2, -1, 1}; !slices.Equal(got, want) {
		t.Errorf("sum form %v, want %v", got, want)
	}
	StepCredit{Wrong: -1, Right: 1, Weight: 2, Temperature: 0.5}.Rewards(got, right)
	a, b, c := math.Exp(-2), math.Exp(1), math.Exp(-1) // of -r/T
	for k, want := range []float64{2 * a / (a + b + c), -1 * b / (a + b + c), 1 * c / (a + b + c)} {
		if !near(got[k], want, 1e-12) {
			t.Errorf("min form %v: %v, want %v", k, got[k], want)
		}
	}
	StepCredit{Wrong: -1, Right: 1, Weight: 1, Temperature: 1e-3}.Rewards(got, right)
	if want := []float64{0, -0.5, 0}; !slices.Equal(got, want) || math.Signbit(got[0]) {
		t.Errorf("cold min form %v, want %v", got, want)
	}
	StepCredit{Wrong: -1, Right: 1, Weight: 1, Temperature: 1e9}.Rewards(got, right)
	if sum := got[0] + got[1] + got[2]; !near(sum, (1-0.5+0.5)/3, 1e-8) {
		t.Errorf("hot min form adds up to %v, want the mean", sum)
	}
	StepCredit{Wrong: -1, Right: 0, Weight: 1, Temperature: 1e-300}.Rewards(got, []float64{0, 0, 1})
	if want := []float64{-0.5, -0.5, 0}; !slices.Equal(got, want) || math.Signbit(got[2]) {
		t.Errorf("two least steps %v, want %v", got, want)
	}
}

// Estimators of tokens take rewards of steps where they stand: a return is what its step and later ones earn.
func TestTokenEstimatorsReadSteps(t *testing.T) {
	reward := []float32{0, 1, 0, -2, 4}
	mask := slices.Repeat([]bool{on}, 5)
	for _, e := range Estimators() {
		if !e.Tokens {
			continue
		}
		n := len(reward)
		s := &Graded{Batch: &Batch[float32]{Rows: Rows{0, n}, Mask: mask, Adv: make([]float32, n), OldLogProb: make([]float32, n)},
			Group: []int{0}, Reward: reward, Score: []float32{3}, Baseline: []float32{0}, Value: make([]float32, n),
			SumPiSquared: make([]float32, n), Ret: make([]float32, n)}
		if err := e.Estimate(s, Defaults(e.Name, "")); err != nil {
			t.Fatal(err)
		}
		if want := []float32{3, 3, 2, 2, 4}; !slices.Equal(s.Ret, want) {
			t.Errorf("%s: returns %v, want %v", e.Name, s.Ret, want)
		}
	}
}
