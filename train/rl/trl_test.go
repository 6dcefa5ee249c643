package rl

import (
	"encoding/json"
	"math"
	"os"
	"testing"
)

// trlCase is a call of TRL 1.16.0's GRPOTrainer._compute_loss in float64, with the log-probs below as its model's
// answers and gradients by torch's autograd: five rows, some with masked tokens, as by tool output.
type trlCase struct {
	Name, Level         string
	LossType            string `json:"loss_type"`
	Low, High           float64
	Delta               float64 // 0: none
	Beta                float64 // of the KL term, with Ref; 0: none
	Tau                 [2]float64
	Lens                []int
	Mask, Keep          []int
	LogProb             []float64 `json:"log_prob"`
	Old, Ref, Adv, Grad []float64
	Loss                float64
}

// loss runs the case by the settings that docs/recipes.md names for TRL's.
func (c trlCase) loss() (float64, []float64) {
	b := &Batch[float64]{Rows: Rows{0}, LogProb: c.LogProb, OldLogProb: c.Old, RefLogProb: c.Ref}
	for i, n := range c.Lens {
		b.Rows = append(b.Rows, b.Rows[i]+n)
		for range n {
			b.Adv = append(b.Adv, c.Adv[i])
		}
	}
	for i := range c.Mask {
		b.Mask = append(b.Mask, c.Mask[i] == 1)
	}
	for _, k := range c.Keep {
		b.Weight = append(b.Weight, float64(k))
	}
	count := Count(b.Mask, b.Rows)
	count.Rows, count.Scale = len(c.Lens), 8
	b.Coef = make([]float64, len(b.Mask))
	map[string]Aggregation{"grpo": SeqMeanTokenMean, "sapo": SeqMeanTokenMean, "dapo": TokenMean, "bnpo": TokenMean,
		"cispo": TokenMean, "luspo": SeqMeanTokenSum, "dr_grpo": SeqMeanTokenSumNorm,
	}[c.LossType].Coefficients(b.Coef, b.Mask, b.Rows, count)

	clip := Clip{Low: c.Low, High: c.High, Dual: math.Inf(1)}
	if c.Delta > 0 {
		clip.Dual = c.Delta
	}
	grad, s := make([]float64, len(b.Mask)), new(PolicyStats)
	switch {
	case c.LossType == "cispo":
		CISPO(grad, b, 1, c.High-1, s) // TRL's epsilon_high is the bound itself
	case c.LossType == "sapo":
		SAPO(grad, b, c.Tau[0], c.Tau[1], s)
	case c.Level == "sequence":
		GSPO(grad, b, c.Low, c.High, s)
	default:
		PPO(grad, b, clip, s)
	}
	if c.Beta > 0 {
		var sum float64
		KLLoss(grad, b, KL{Kind: KLK3}, c.Beta, &sum)
		s.Loss += c.Beta * sum
	}
	return s.Loss, grad
}

func TestGRPOIsTRLs(t *testing.T) {
	text, err := os.ReadFile("testdata/grpo_1.16.json")
	if err != nil {
		t.Fatal(err)
	}
	var list []trlCase
	if err := json.Unmarshal(text, &list); err != nil || len(list) != 37 {
		t.Fatalf("%d cases, %v", len(list), err)
	}
	for _, c := range list {
		loss, grad := c.loss()
		if !near(loss, c.Loss, 2e-8) { // a row's mean divides by its tokens + 1e-8
			t.Errorf("%s: loss %g, want %g", c.Name, loss, c.Loss)
		}
		for i, want := range c.Grad {
			if !near(grad[i], want, 2e-8) {
				t.Errorf("%s: gradient %d is %g, want %g", c.Name, i, grad[i], want)
			}
		}
	}
}
