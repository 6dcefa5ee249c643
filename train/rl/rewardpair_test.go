package rl

import (
	"encoding/json"
	"math"
	"os"
	"testing"
)

// By hand, with σ(0) = 1/2, σ(ln 3) = 3/4 and σ(-ln 3) = 1/4.
func TestRewardPair(t *testing.T) {
	ln3 := math.Log(3)
	for _, tt := range []struct {
		name                                            string
		center, chosen, rejected, margin, loss, up, low float64
	}{
		{"equal rewards", 0, 2, 2, 0, math.Ln2, -0.5, 0.5},
		{"right", 0, ln3 + 1, 1, 0, math.Log(4.0 / 3), -0.25, 0.25},
		{"wrong", 0, 1, ln3 + 1, 0, math.Log(4), -0.75, 0.75},
		{"margin", 0, ln3 + 1, 1, ln3, math.Ln2, -0.5, 0.5},
		{"margin below 0", 0, 1, 1, -ln3, math.Log(4.0 / 3), -0.25, 0.25},
		{"centered", 0.01, 2, 2, 0, math.Ln2 + 0.16, -0.5 + 0.08, 0.5 + 0.08},
		{"centered below 0", 0.5, -3, 1, -4, math.Ln2 + 2, -0.5 - 2, 0.5 - 2},
		{"sure", 0, 800, 0, 0, 0, 0, 0},
		{"surely wrong", 0, 0, 800, 0, 800, -1, 1},
	} {
		got := RewardPairConfig{Center: tt.center}.Pair(tt.chosen, tt.rejected, tt.margin)
		for i, x := range [][2]float64{{got.Loss, tt.loss}, {got.Slopes[0], tt.up}, {got.Slopes[1], tt.low}} {
			if !near(x[0], x[1], 1e-12) {
				t.Errorf("%s: value %d is %g, want %g", tt.name, i, x[0], x[1])
			}
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a negative weight: no panic")
		}
	}()
	RewardPairConfig{Center: -1}.Pair(0, 0, 0)
}

// TRL 0.19.1's RewardTrainer.compute_loss in float64, with gradients by torch's autograd; and OpenRLHF's logexp loss,
// which is the same function where there is no margin.
func TestRewardPairIsTRLs(t *testing.T) {
	text, err := os.ReadFile("testdata/rewardpair.json")
	if err != nil {
		t.Fatal(err)
	}
	var list []struct {
		Center, Chosen, Rejected, Margin, Loss float64
		Slopes                                 [2]float64
		LogExp                                 *float64
	}
	if err := json.Unmarshal(text, &list); err != nil || len(list) != 24 {
		t.Fatalf("%d cases, %v", len(list), err)
	}
	for _, x := range list {
		got := RewardPairConfig{Center: x.Center}.Pair(x.Chosen, x.Rejected, x.Margin)
		for i, v := range [][2]float64{{got.Loss, x.Loss}, {got.Slopes[0], x.Slopes[0]}, {got.Slopes[1], x.Slopes[1]}} {
			if !near(v[0], v[1], 1e-12) {
				t.Errorf("%+v: value %d is %g, want %g", x, i, v[0], v[1])
			}
		}
		if x.LogExp != nil && !near(got.Loss, *x.LogExp, 1e-12) {
			t.Errorf("%+v: the logexp loss is %g, not %g", x, *x.LogExp, got.Loss)
		}
	}
}

// Slopes are the derivatives of the loss, by central differences.
func TestRewardPairSlopes(t *testing.T) {
	const h = 6e-6
	for _, c := range []RewardPairConfig{{}, {Center: 0.01}, {Center: 2}} {
		for _, r := range [][3]float64{{1, -2, 0}, {-3, 4, 1}, {0.1, 0.2, -2}, {9, 1, 0.5}} {
			got := c.Pair(r[0], r[1], r[2])
			up := (c.Pair(r[0]+h, r[1], r[2]).Loss - c.Pair(r[0]-h, r[1], r[2]).Loss) / (2 * h)
			low := (c.Pair(r[0], r[1]+h, r[2]).Loss - c.Pair(r[0], r[1]-h, r[2]).Loss) / (2 * h)
			if math.Abs(got.Slopes[0]-up) > 1e-8 || math.Abs(got.Slopes[1]-low) > 1e-8 {
				t.Errorf("%+v %v: slopes %v, differences say %g and %g", c, r, got.Slopes, up, low)
			}
		}
	}
}
