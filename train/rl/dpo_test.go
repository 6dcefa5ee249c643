package rl

import (
	"math"
	"slices"
	"testing"
)

// dpoExample has the groups 4: a row of two tokens and a masked one, and rows of one; 7: two equal rows; 9: a row with
// nothing unmasked and one alone.
func dpoExample() (b *Batch[float64], group []int) {
	return &Batch[float64]{
		Rows: Rows{0, 3, 4, 5, 6, 7, 8, 9}, Mask: []bool{on, off, on, on, on, on, on, off, on},
		LogProb:    []float64{-1, nan, -3, -0.5, -2, -1, -1, nan, -1},
		OldLogProb: []float64{-1.5, nan, -3.5, -3.5, -2, -1, -1, nan, -1},
		RefLogProb: []float64{-2, nan, -5, -1, -2.25, -1, -1, nan, -1},
		Adv:        []float64{0.5, nan, 0.5, -0.5, 0, 0.25, 0.25, nan, 1},
	}, []int{4, 4, 4, 7, 7, 9, 9}
}

// By hand, of the only pair, the first row against the second. To the reference ΣD = 3 and 0.5, the margin 0.25 at
// beta 0.1; to the old policy 1 and 3, margin -0.2; without one -4 and -0.5, margin -0.35.
func TestDPO(t *testing.T) {
	σ := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	for _, tt := range []struct {
		name         string
		c            DPOConfig
		weight       []float64
		margin       float64
		loss, slopes float64 // by the log-probs of the preferred row
	}{
		{"reference", DPOConfig{0.1, ReferencePolicy, Sigmoid, 0}, nil, 0.25, -math.Log(σ(0.25)), -0.1 * σ(-0.25)},
		{"old", DPOConfig{0.1, OldPolicy, Sigmoid, 0}, nil, -0.2, -math.Log(σ(-0.2)), -0.1 * σ(0.2)},
		{"none", DPOConfig{0.1, NoReference, Sigmoid, 0}, nil, -0.35, -math.Log(σ(-0.35)), -0.1 * σ(0.35)},
		{"smoothed", DPOConfig{0.1, ReferencePolicy, Sigmoid, 0.2}, nil, 0.25, -0.8*math.Log(σ(0.25)) - 0.2*math.Log(σ(-0.25)),
			0.1 * (0.2*σ(0.25) - 0.8*σ(-0.25))},
		{"IPO", DPOConfig{0.1, ReferencePolicy, IPO, 0}, nil, 0.25, 6.25, -5}, // (2.5 - 5)², 2·(2.5 - 5)
		{"weights", DPOConfig{0.1, ReferencePolicy, IPO, 0}, []float64{0.5, nan, 1.5, 2, nan, nan, nan, nan, nan}, 0.25, 9.375, -7.5},
	} {
		b, group := dpoExample()
		if tt.weight != nil {
			b.Weight = tt.weight
		}
		var s DPOStats
		d := make([]float64, 9)
		DPO(d, b, DPOPairs(b, group, tt.c), &s)
		for i, want := range []float64{tt.slopes, 0, tt.slopes, -tt.slopes, 0, 0, 0, 0, 0} {
			if !near(d[i], want, 1e-15) {
				t.Errorf("%s: gradient[%d] = %g, want %g", tt.name, i, d[i], want)
			}
		}
		right := 0.0
		if tt.margin > 0 {
			right = 1
		}
		want := []Metric{{"actor/pg_loss", tt.loss}, {"actor/pg_clipfrac", 0}, {"actor/pg_clipfrac_lower", 0},
			{"actor/ppo_kl", -4.0 / 3}, {"actor/dpo_pairs", 1}, {"actor/dpo_margin", tt.margin}, {"actor/dpo_accuracy", right}}
		for i, m := range s.Metrics() {
			if m.Name != want[i].Name || !near(m.Value, want[i].Value, 1e-7) {
				t.Errorf("%s: %v, want %v", tt.name, m, want[i])
			}
		}
	}
}

// The best row meets the worst one, the first of equals; the mean is over pairs.
func TestDPOPairs(t *testing.T) {
	b, _ := groupedSample()
	score := []float64{1, 3, 3, 0, 5, 5, 5, 5, 2, 0, 0, 4}
	for i, a := range score {
		for at := b.Rows[i]; at < b.Rows[i+1]; at++ {
			b.Adv[at] = a
		}
	}
	var side []int
	var slopes float64
	for _, p := range DPOPairs(b, []int{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2}, DPOConfig{0.1, ReferencePolicy, IPO, 0}) {
		side = append(side, p.Side)
		slopes += p.Slope
	}
	if want := []int{0, 1, 0, -1, 0, 0, 0, 0, 0, -1, 0, 1}; !slices.Equal(side, want) || slopes != 0 {
		t.Errorf("sides %v, want %v; slopes add up to %g", side, want, slopes)
	}
	// Without pairs there is no margin to count in the mean of a step's mini-batches.
	// Two pairs: each has half of its own loss, (margin/beta - 1/(2 beta))².
	for i, p := range DPOPairs(b, []int{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2}, DPOConfig{0.1, ReferencePolicy, IPO, 0}) {
		if x := p.Margin/0.1 - 5; p.Side == 1 && (!near(p.Loss, x*x/2, 1e-12) || !near(p.Slope, x, 1e-12)) {
			t.Errorf("row %d: loss %g, slope %g, want %g, %g", i, p.Loss, p.Slope, x*x/2, x)
		}
	}
	if got := new(DPOStats).Metrics(); len(got) != 5 || got[4] != (Metric{"actor/dpo_pairs", 0}) {
		t.Errorf("without pairs: %v", got)
	}
}

// Margins of any size give finite losses and slopes.
func TestDPOExtremes(t *testing.T) {
	c := DPOConfig{1, ReferencePolicy, Sigmoid, 0}
	for _, tt := range []struct{ margin, loss, slope float64 }{{1e4, 0, 0}, {-1e4, 1e4, -1}, {0, math.Ln2, -0.5}} {
		if loss, slope := c.pair(tt.margin); !near(loss, tt.loss, 1e-15) || !near(slope, tt.slope, 1e-15) {
			t.Errorf("margin %g: loss %g, slope %g, want %g, %g", tt.margin, loss, slope, tt.loss, tt.slope)
		}
	}
}
