package rl

import (
	"encoding/json"
	"math"
	"os"
	"testing"
)

// By hand. Chosen: D = 3 over 4 tokens; rejected: D = 1 over 2, without a reference -6 and -2.
func TestPair(t *testing.T) {
	σ := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	odds := math.Log(math.Exp(-1.5)/(1-math.Exp(-1.5))) - math.Log(math.Exp(-1)/(1-math.Exp(-1)))
	chosen, rejected := Side{LogProb: -6, Ref: -9, Tokens: 4}, Side{LogProb: -2, Ref: -3, Tokens: 2}
	for _, tt := range []struct {
		name                            string
		c                               PairConfig
		free                            bool // without a reference
		chosen, rejected, loss, up, low float64
	}{
		{"sigmoid", PairConfig{Beta: 0.1, Loss: Sigmoid}, false, 0.3, 0.1, -math.Log(σ(0.2)), -0.1 * σ(-0.2), 0.1 * σ(-0.2)},
		{"smoothed", PairConfig{Beta: 0.1, Loss: Sigmoid, Smoothing: 0.2}, false, 0.3, 0.1, -0.8*math.Log(σ(0.2)) - 0.2*math.Log(σ(-0.2)),
			0.1 * (0.2*σ(0.2) - 0.8*σ(-0.2)), -0.1 * (0.2*σ(0.2) - 0.8*σ(-0.2))},
		{"per token", PairConfig{Beta: 2, Loss: Sigmoid, PerToken: true}, false, 1.5, 1, -math.Log(σ(0.5)), -0.5 * σ(-0.5), σ(-0.5)},
		{"IPO", PairConfig{Beta: 0.5, Loss: IPO}, false, 1.5, 0.5, 1, 2, -2},                                          // (2 - 1)²
		{"IPO per token", PairConfig{Beta: 0.5, Loss: IPO, PerToken: true}, false, 0.375, 0.25, 0.5625, -0.375, 0.75}, // (1/4 - 1)²
		{"hinge", PairConfig{Beta: 0.25, Loss: Hinge}, false, 0.75, 0.25, 0.5, -0.25, 0.25},
		{"hinge is flat", PairConfig{Beta: 0.5, Loss: Hinge}, false, 1.5, 0.5, 0, 0, 0},
		// Mean log-probs -3/2 and -1.
		{"ORPO", PairConfig{Beta: 0.25, Loss: OddsRatio, PerToken: true}, true, -0.375, -0.25, -0.25 * math.Log(σ(odds)),
			-0.25 * σ(-odds) / (1 - math.Exp(-1.5)) / 4, 0.25 * σ(-odds) / (1 - math.Exp(-1)) / 2},
		{"SimPO", PairConfig{Beta: 2, Loss: Sigmoid, PerToken: true, Target: 0.5}, true, -3, -2, -math.Log(σ(-1.5)), -0.5 * σ(1.5), σ(1.5)},
		// Rewards 1.5 and 0.5, or 0.3 and 0.1.
		{"robust", PairConfig{Beta: 0.1, Loss: Robust, Smoothing: 0.2}, false, 0.3, 0.1, (-0.8*math.Log(σ(0.2)) + 0.2*math.Log(σ(-0.2))) / 0.6,
			-0.1 * (0.8*σ(-0.2) + 0.2*σ(0.2)) / 0.6, 0.1 * (0.8*σ(-0.2) + 0.2*σ(0.2)) / 0.6},
		{"EXO", PairConfig{Beta: 0.5, Loss: EXO, Smoothing: 0.25}, false, 1.5, 0.5, σ(1)*math.Log(σ(1)/0.75) + σ(-1)*math.Log(σ(-1)/0.25),
			0.5 * σ(1) * σ(-1) * (1 - math.Log(3)), -0.5 * σ(1) * σ(-1) * (1 - math.Log(3))},
		{"NCA", PairConfig{Beta: 0.5, Loss: NCA}, false, 1.5, 0.5, -math.Log(σ(1.5)) - 0.5*math.Log(σ(-1.5)) - 0.5*math.Log(σ(-0.5)),
			0.5 * (0.5*σ(1.5) - σ(-1.5)), 0.25 * σ(0.5)},
		{"BCO", PairConfig{Beta: 0.5, Loss: BCO}, false, 1.5, 0.5, -math.Log(σ(1.5)) - math.Log(σ(-0.5)), -0.5 * σ(-1.5), 0.5 * σ(0.5)},
		{"SPPO", PairConfig{Beta: 0.5, Loss: SPPOHard}, false, 1.5, 0.5, 8, 4, 4}, // (3 - 1)² + (1 + 1)²
		{"APO zero", PairConfig{Beta: 0.5, Loss: APOZeroPair}, false, 1.5, 0.5, 1 - σ(1.5) + σ(0.5), -0.5 * σ(1.5) * σ(-1.5), 0.5 * σ(0.5) * σ(-0.5)},
		{"APO down", PairConfig{Beta: 0.5, Loss: APODown}, false, 1.5, 0.5, σ(1.5) + 1 - σ(1), 0.5 * (σ(1.5)*σ(-1.5) - σ(1)*σ(-1)), 0.5 * σ(1) * σ(-1)},
		{"APO zero per token", PairConfig{Beta: 2, Loss: APOZeroPair, PerToken: true}, false, 1.5, 1, 1 - σ(1.5) + σ(1), -0.5 * σ(1.5) * σ(-1.5), σ(1) * σ(-1)},
	} {
		a, b := chosen, rejected
		if tt.free {
			a.Ref, b.Ref = 0, 0
		}
		got := tt.c.Pair(a, b)
		for i, x := range [][2]float64{{got.Chosen, tt.chosen}, {got.Rejected, tt.rejected}, {got.Loss, tt.loss}, {got.Slopes[0], tt.up},
			{got.Slopes[1], tt.low}, {got.Margin(), tt.chosen - tt.rejected}} {
			if !near(x[0], x[1], 1e-12) {
				t.Errorf("%s: value %d is %g, want %g", tt.name, i, x[0], x[1])
			}
		}
	}
}

// TRL 0.19.1's DPOTrainer.dpo_loss and CPOTrainer.cpo_loss (simpo), in float64, with gradients by torch's autograd.
func TestPairIsTRLs(t *testing.T) {
	text, err := os.ReadFile("testdata/pair.json")
	if err != nil {
		t.Fatal(err)
	}
	var list []struct {
		Name             string
		Chosen, Rejected [3]float64 // log-prob, of the reference, tokens
		Loss             float64
		RewardChosen     float64 `json:"reward_chosen"`
		RewardRejected   float64 `json:"reward_rejected"`
		Slopes           [2]float64
	}
	if err := json.Unmarshal(text, &list); err != nil || len(list) != 18 {
		t.Fatalf("%d cases, %v", len(list), err)
	}
	configs := map[string]PairConfig{
		"sigmoid":             {Beta: 0.1, Loss: Sigmoid},
		"sigmoid, large beta": {Beta: 5, Loss: Sigmoid},
		"smoothed":            {Beta: 0.3, Loss: Sigmoid, Smoothing: 0.2},
		"hinge":               {Beta: 0.5, Loss: Hinge},
		"ipo":                 {Beta: 0.1, Loss: IPO, PerToken: true},
		"simpo":               {Beta: 2, Loss: Sigmoid, PerToken: true, Target: 1},
	}
	for _, tt := range list {
		sides := [2]Side{}
		for i, x := range [][3]float64{tt.Chosen, tt.Rejected} {
			if sides[i] = (Side{x[0], x[1], int(x[2])}); tt.Name == "simpo" {
				sides[i].Ref = 0
			}
		}
		got := configs[tt.Name].Pair(sides[0], sides[1])
		for i, x := range [][2]float64{{got.Loss, tt.Loss}, {got.Chosen, tt.RewardChosen}, {got.Rejected, tt.RewardRejected},
			{got.Slopes[0], tt.Slopes[0]}, {got.Slopes[1], tt.Slopes[1]}} {
			if !near(x[0], x[1], 1e-12) {
				t.Errorf("%s %v %v: value %d is %g, want %g", tt.Name, tt.Chosen, tt.Rejected, i, x[0], x[1])
			}
		}
	}
}

// TRL 1.16.0's DPOTrainer._compute_loss, with the log-probs below as its models' answers, and ORPOTrainer's
// odds_ratio_loss, whose cast to float32 is taken out; in float64, with gradients by torch's autograd.
func TestPairIsTRL116s(t *testing.T) {
	text, err := os.ReadFile("testdata/pair_1.16.json")
	if err != nil {
		t.Fatal(err)
	}
	var list []struct {
		Name             string
		Chosen, Rejected [3]float64 // log-prob, of the reference, tokens
		Loss             float64
		RewardChosen     float64 `json:"reward_chosen"`
		RewardRejected   float64 `json:"reward_rejected"`
		Slopes           [2]float64
		LogOddsChosen    float64 `json:"log_odds_chosen"`
		LogOddsRatio     float64 `json:"log_odds_ratio"`
	}
	configs := map[string]PairConfig{
		"orpo":      {Beta: 0.1, Loss: OddsRatio, PerToken: true},
		"robust":    {Beta: 0.2, Loss: Robust, Smoothing: 0.1},
		"exo_pair":  {Beta: 0.3, Loss: EXO, Smoothing: 0.001},
		"nca_pair":  {Beta: 0.1, Loss: NCA},
		"bco_pair":  {Beta: 0.1, Loss: BCO},
		"sppo_hard": {Beta: 0.1, Loss: SPPOHard},
		"apo_zero":  {Beta: 0.1, Loss: APOZeroPair},
		"apo_down":  {Beta: 0.2, Loss: APODown},
	}
	if err := json.Unmarshal(text, &list); err != nil || len(list) != 5*len(configs) {
		t.Fatalf("%d cases, %v", len(list), err)
	}
	for _, tt := range list {
		c, sides := configs[tt.Name], [2]Side{}
		if known, err := ParsePairLoss(tt.Name); err != nil || known != c.Loss {
			t.Errorf("%s is loss %d, %v", tt.Name, known, err)
		}
		for i, x := range [][3]float64{tt.Chosen, tt.Rejected} {
			if sides[i] = (Side{x[0], x[1], int(x[2])}); c.Loss == OddsRatio {
				sides[i].Ref = 0
			}
		}
		got := c.Pair(sides[0], sides[1])
		for i, x := range [][2]float64{{got.Loss, tt.Loss}, {got.Chosen, tt.RewardChosen}, {got.Rejected, tt.RewardRejected},
			{got.Slopes[0], tt.Slopes[0]}, {got.Slopes[1], tt.Slopes[1]}, {got.LogOdds, tt.LogOddsChosen}} {
			if !near(x[0], x[1], 1e-12) {
				t.Errorf("%s %v %v: value %d is %g, want %g", tt.Name, tt.Chosen, tt.Rejected, i, x[0], x[1])
			}
		}
		if c.Loss == OddsRatio && !near(-got.Loss/c.Beta, tt.LogOddsRatio, 1e-12) {
			t.Errorf("log σ of the odds is %g, want %g", -got.Loss/c.Beta, tt.LogOddsRatio)
		}
	}
}

// The odds of a certain completion are finite, and flat.
func TestOddsOfCertain(t *testing.T) {
	c := PairConfig{Beta: 0.1, Loss: OddsRatio, PerToken: true}
	got := c.Pair(Side{LogProb: 0, Tokens: 3}, Side{LogProb: -1e-9, Tokens: 2})
	if !near(got.Loss, 0.1*math.Ln2, 1e-12) || got.Slopes != [2]float64{} || got.LogOdds != 0 {
		t.Errorf("two certain sides: %+v", got)
	}
	// log((1-1e-6)/1e-6) = 13.8155, and log(e^-2/(1-e^-2)) = -1.854586542131141.
	got = c.Pair(Side{LogProb: 0, Tokens: 3}, Side{LogProb: -4, Tokens: 2})
	if !near(got.LogOdds, 13.815510057964274+1.854586542131141, 1e-6) || got.Slopes[0] != 0 || !(got.Slopes[1] > 0) {
		t.Errorf("a certain side: %+v", got)
	}
}

// Slopes are the derivatives of the loss by a token's log-prob, by central differences.
func TestPairSlopes(t *testing.T) {
	const h = 6e-6
	for _, c := range []PairConfig{
		{Beta: 0.1, Loss: Sigmoid}, {Beta: 3, Loss: Sigmoid, Smoothing: 0.1, PerToken: true, Target: 0.7}, {Beta: 0.2, Loss: IPO},
		{Beta: 0.2, Loss: IPO, PerToken: true}, {Beta: 0.3, Loss: Hinge}, {Beta: 1, Loss: Hinge, PerToken: true},
		{Beta: 0.1, Loss: OddsRatio, PerToken: true}, {Beta: 2, Loss: OddsRatio, PerToken: true},
		{Beta: 0.3, Loss: Robust, Smoothing: 0.2}, {Beta: 0.3, Loss: EXO, Smoothing: 0.01, PerToken: true}, {Beta: 0.3, Loss: NCA},
		{Beta: 0.5, Loss: BCO, PerToken: true}, {Beta: 0.4, Loss: SPPOHard}, {Beta: 0.2, Loss: APOZeroPair}, {Beta: 0.2, Loss: APODown, PerToken: true},
	} {
		for _, s := range [][2]Side{{{-3, -4, 3}, {-7, -6.5, 5}}, {{-9, -2, 7}, {-1, -1.5, 2}}, {{-1, -30, 4}, {-50, -1, 9}}} {
			got := c.Pair(s[0], s[1])
			for i := range s {
				up, down := s, s
				up[i].LogProb += h
				down[i].LogProb -= h
				want := (c.Pair(up[0], up[1]).Loss - c.Pair(down[0], down[1]).Loss) / (2 * h)
				if math.Abs(got.Slopes[i]-want) > 1e-8*math.Max(1, math.Abs(want)) {
					t.Errorf("%+v %v: slope %d is %g, differences say %g", c, s, i, got.Slopes[i], want)
				}
			}
		}
	}
}

func TestPairPanics(t *testing.T) {
	ok := Side{Tokens: 1}
	for name, f := range map[string]func(){
		"beta":      func() { PairConfig{Loss: Sigmoid}.Pair(ok, ok) },
		"loss":      func() { PairConfig{Beta: 1}.Pair(ok, ok) },
		"smoothing": func() { PairConfig{Beta: 1, Loss: Sigmoid, Smoothing: 0.5}.Pair(ok, ok) },
		"target":    func() { PairConfig{Beta: 1, Loss: Sigmoid, Target: -1}.Pair(ok, ok) },
		"weight":    func() { PairConfig{Beta: 1, Loss: Sigmoid, Imitate: -1}.Pair(ok, ok) },
		"EXO":       func() { PairConfig{Beta: 1, Loss: EXO}.Pair(ok, ok) },
		"odds":      func() { PairConfig{Beta: 1, Loss: OddsRatio}.Pair(ok, ok) },
		"tokens":    func() { PairConfig{Beta: 1, Loss: Sigmoid}.Pair(ok, Side{}) },
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
	if _, err := ParsePairLoss("dpo"); err == nil {
		t.Error("dpo is a loss")
	}
	for i, name := range PairLosses() {
		if l, err := ParsePairLoss(name); err != nil || l != Sigmoid+PairLoss(i) || i == len(PairLosses())-1 && l != APODown {
			t.Errorf("%s: %v, %v", name, l, err)
		}
	}
}
