package rl

import (
	"encoding/json"
	"math"
	"os"
	"testing"
)

// By hand: D = 3, z = 1 where there is a KL divergence.
func TestUnpaired(t *testing.T) {
	σ := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	s := Side{LogProb: -6, Ref: -9, Tokens: 4}
	kto, apo := UnpairedConfig{Beta: 0.5, Loss: KTO, Chosen: 2, Rejected: 3}, UnpairedConfig{Beta: 0.5, Loss: APOZero, Chosen: 2, Rejected: 3}
	for _, tt := range []struct {
		name        string
		c           UnpairedConfig
		good        bool
		loss, slope float64
	}{
		{"KTO, good", kto, true, 2 * (1 - σ(1)), -2 * 0.5 * σ(1) * σ(-1)},
		{"KTO, bad", kto, false, 3 * (1 - σ(-1)), 3 * 0.5 * σ(1) * σ(-1)},
		{"APO, good", apo, true, 2 * (1 - σ(1.5)), -2 * 0.5 * σ(1.5) * σ(-1.5)},
		{"APO, bad", apo, false, 3 * σ(1.5), 3 * 0.5 * σ(1.5) * σ(-1.5)},
	} {
		got := tt.c.One(tt.good, s, 1)
		if !near(got.Loss, tt.loss, 1e-12) || !near(got.Slope, tt.slope, 1e-12) || !near(got.Reward, 1.5, 1e-12) {
			t.Errorf("%s: %+v, want loss %g, slope %g and reward 1.5", tt.name, got, tt.loss, tt.slope)
		}
	}
}

// By hand: log-ratios 3, -1 and 4 have the mean 2; below 0 it is 0.
func TestMismatchedKL(t *testing.T) {
	list := []Side{{LogProb: -6, Ref: -9, Tokens: 4}, {LogProb: -3, Ref: -2, Tokens: 1}, {LogProb: -1, Ref: -5, Tokens: 2}}
	if got := MismatchedKL(list); got != 2 {
		t.Errorf("%g, want 2", got)
	}
	if got := MismatchedKL(list[1:2]); got != 0 {
		t.Errorf("a negative estimate is %g, want 0", got)
	}
	if got := MismatchedKL(append(list[:2:2], Side{})); !near(got, 2.0/3, 1e-15) {
		t.Errorf("with an empty side %g, want 2/3", got)
	}
}

// TRL 1.16.0's KTOTrainer._compute_loss in float64, with the log-probs below as its models' answers, and gradients by
// torch's autograd. The slopes there are of the mean over the batch.
func TestUnpairedIsTRLs(t *testing.T) {
	text, err := os.ReadFile("testdata/unpaired_1.16.json")
	if err != nil {
		t.Fatal(err)
	}
	var list []struct {
		Name           string
		Beta           float64
		Chosen         float64      `json:"chosen_weight"`
		Rejected       float64      `json:"rejected_weight"`
		Rows           [][4]float64 // log-prob, of the reference, tokens, label
		Mismatched     [][2]float64
		Loss, KL       float64
		Slopes         []float64
		RewardChosen   *float64 `json:"reward_chosen"`
		RewardRejected *float64 `json:"reward_rejected"`
	}
	if err := json.Unmarshal(text, &list); err != nil || len(list) != 5 {
		t.Fatalf("%d cases, %v", len(list), err)
	}
	for _, tt := range list {
		kind, err := ParseUnpairedLoss(tt.Name)
		if err != nil {
			t.Fatal(err)
		}
		var mismatched []Side
		for _, x := range tt.Mismatched {
			mismatched = append(mismatched, Side{LogProb: x[0], Ref: x[1], Tokens: 1})
		}
		kl := MismatchedKL(mismatched)
		if kind == KTO && !near(kl, tt.KL, 1e-12) {
			t.Errorf("%s: KL %g, want %g", tt.Name, kl, tt.KL)
		}
		c := UnpairedConfig{Beta: tt.Beta, Loss: kind, Chosen: tt.Chosen, Rejected: tt.Rejected}
		n, loss, rewards, counts := float64(len(tt.Rows)), 0.0, [2]float64{}, [2]float64{}
		for i, x := range tt.Rows {
			got := c.One(x[3] == 1, Side{x[0], x[1], int(x[2])}, kl)
			loss += got.Loss / n
			rewards[int(x[3])] += got.Reward
			counts[int(x[3])]++
			if !near(got.Slope/n, tt.Slopes[i], 1e-12) {
				t.Errorf("%s: slope %d is %g, want %g", tt.Name, i, got.Slope/n, tt.Slopes[i])
			}
		}
		if !near(loss, tt.Loss, 1e-12) {
			t.Errorf("%s: loss %g, want %g", tt.Name, loss, tt.Loss)
		}
		for i, want := range []*float64{tt.RewardRejected, tt.RewardChosen} {
			if want != nil && !near(rewards[i]/counts[i], *want, 1e-12) || (want == nil) != (counts[i] == 0) {
				t.Errorf("%s: rewards %v over %v, label %d", tt.Name, rewards, counts, i)
			}
		}
	}
}

// Slopes are the derivatives of the loss by a token's log-prob, by central differences; kl has none.
func TestUnpairedSlopes(t *testing.T) {
	const h = 6e-6
	for _, c := range []UnpairedConfig{{Beta: 0.1, Loss: KTO, Chosen: 1, Rejected: 1.3}, {Beta: 2, Loss: KTO, Chosen: 0.7, Rejected: 1},
		{Beta: 0.5, Loss: APOZero, Chosen: 1, Rejected: 1}} {
		for _, s := range []Side{{-3, -4, 3}, {-9, -2, 7}, {-1, -30, 4}} {
			for _, good := range []bool{true, false} {
				up, down := s, s
				up.LogProb += h
				down.LogProb -= h
				got := c.One(good, s, 0.8).Slope
				want := (c.One(good, up, 0.8).Loss - c.One(good, down, 0.8).Loss) / (2 * h)
				if math.Abs(got-want) > 1e-8*math.Max(1, math.Abs(want)) {
					t.Errorf("%+v %v %v: slope %g, differences say %g", c, s, good, got, want)
				}
			}
		}
	}
}

func TestUnpairedPanics(t *testing.T) {
	ok := UnpairedConfig{Beta: 1, Loss: KTO, Chosen: 1, Rejected: 1}
	for name, f := range map[string]func(){
		"beta":     func() { c := ok; c.Beta = 0; c.One(true, Side{Tokens: 1}, 0) },
		"loss":     func() { c := ok; c.Loss = 0; c.One(true, Side{Tokens: 1}, 0) },
		"chosen":   func() { c := ok; c.Chosen = 0; c.One(true, Side{Tokens: 1}, 0) },
		"rejected": func() { c := ok; c.Rejected = -1; c.One(true, Side{Tokens: 1}, 0) },
		"tokens":   func() { ok.One(true, Side{}, 0) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
	if _, err := ParseUnpairedLoss("bco"); err == nil {
		t.Error("bco is a loss")
	}
}
