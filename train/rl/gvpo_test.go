package rl

import (
	"math"
	"slices"
	"testing"
)

// gvpoExample has three rows, of tokens (on, off, on), (on) and (off): two of one problem, and
// one of another that has nothing unmasked.
func gvpoExample() (b *Batch[float64], group []int) {
	return &Batch[float64]{
		Rows: Rows{0, 3, 4, 5}, Mask: []bool{on, off, on, on, off},
		LogProb: []float64{-1, nan, -3, -0.5, nan}, OldLogProb: []float64{-1.5, nan, -3.5, -3.5, nan},
		RefLogProb: []float64{-2, nan, -5, -1, nan}, Adv: []float64{0.5, nan, 0.5, -0.5, nan},
	}, []int{4, 4, 7}
}

func TestGVPO(t *testing.T) {
	const rows = 6
	// Beta 0.1. To the old policy Σ D = 1 and 3: centers 0.2; x = 0.1 - 0.2 - 0.5 = -0.6 and
	// 0.3 - 0.2 + 0.5 = 0.6. k/(k-1) = 2.
	// To the reference Σ D = 3 and 0.5: center 0.175; x = -0.375 and 0.375.
	// Without centers x = 0.1 - 0.5 = -0.4 and 0.3 + 0.5 = 0.8.
	for _, tt := range []struct {
		name   string
		c      GVPOConfig
		weight []float64
		x, v   [2]float64
	}{
		{"old", GVPOConfig{0.1, OldPolicy, true}, nil, [2]float64{-0.6, 0.6}, [2]float64{2, 2}},
		{"reference", GVPOConfig{0.1, ReferencePolicy, true}, nil, [2]float64{-0.375, 0.375}, [2]float64{2, 2}},
		{"not centered", GVPOConfig{0.1, OldPolicy, false}, nil, [2]float64{-0.4, 0.8}, [2]float64{1, 1}},
		{"weights", GVPOConfig{0.1, OldPolicy, true}, []float64{0.5, nan, 1.5, 0.25, nan}, [2]float64{-0.6, 0.6},
			[2]float64{2, 0.5}},
	} {
		b, group := gvpoExample()
		b.Weight = tt.weight
		var s GVPOStats
		d := make([]float64, 5)
		GVPO(d, b, GVPOMeans(b, group, tt.c), rows, tt.c, &s)
		var loss float64
		for i, x := range tt.x {
			loss += tt.v[i] * x * x / 2 / rows
			for at := b.Rows[i]; at < b.Rows[i+1]; at++ {
				want := 0.0
				if b.Mask[at] {
					want = tt.v[i] * x * tt.c.Beta / rows
				}
				if !near(d[at], want, 1e-15) {
					t.Errorf("%s: gradient[%d] = %g, want %g", tt.name, at, d[at], want)
				}
			}
		}
		residual := (math.Abs(tt.x[0]) + math.Abs(tt.x[1])) / 2
		want := []Metric{{"actor/pg_loss", loss}, {"actor/pg_clipfrac", 0}, {"actor/pg_clipfrac_lower", 0},
			{"actor/ppo_kl", -4.0 / 3}, {"actor/gvpo_residual", residual}}
		for i, m := range s.Metrics() {
			if m.Name != want[i].Name || !near(m.Value, want[i].Value, 1e-7) {
				t.Errorf("%s: %v, want %v", tt.name, m, want[i])
			}
		}
		if d[4] != 0 {
			t.Errorf("%s: a row of nothing has gradient %g", tt.name, d[4])
		}
	}
}

// A completion whose group has no other teaches nothing: its log Z would be its own.
func TestGVPOAlone(t *testing.T) {
	b, _ := gvpoExample()
	c := GVPOConfig{0.1, OldPolicy, true}
	d := make([]float64, 5)
	GVPO(d, b, GVPOMeans(b, []int{0, 1, 2}, c), 3, c, new(GVPOStats))
	if !slices.Equal(d, make([]float64, 5)) {
		t.Errorf("gradient %v", d)
	}
}

// groupedSample is a batch of 3 groups of 4 rows whose advantages add up to 0 in each group.
func groupedSample() (b *Batch[float64], group []int) {
	b = &Batch[float64]{Rows: Rows{0}}
	for i := range 12 {
		for k := range 2 + i%3 {
			x := float64(i*3 + k)
			b.Mask = append(b.Mask, k != 1)
			b.LogProb = append(b.LogProb, -1-math.Sin(x))
			b.OldLogProb = append(b.OldLogProb, -1-math.Sin(x+0.3))
			b.RefLogProb = append(b.RefLogProb, -1-math.Sin(x+1))
			b.Adv = append(b.Adv, []float64{1, -0.5, 0.25, -0.75}[i%4])
		}
		b.Rows = append(b.Rows, len(b.Mask))
		group = append(group, i/4)
	}
	return b, group
}

// The centers are constant to the gradient, and yet it is the slope of the loss in which they
// move along: a group's residuals add up to 0.
func TestGroupGradients(t *testing.T) {
	group := []int(nil)
	flow := recipe
	flow.GroupLogZ, flow.WeightLow, flow.WeightHigh = true, 1, 1
	flowOld := flow
	flowOld.Reference = OldPolicy
	for name, loss := range map[string]func(d []float64, b *Batch[float64]) float64{
		"old": func(d []float64, b *Batch[float64]) float64 {
			var s GVPOStats
			c := GVPOConfig{0.7, OldPolicy, true}
			GVPO(d, b, GVPOMeans(b, group, c), 12, c, &s)
			return s.Loss
		},
		"reference": func(d []float64, b *Batch[float64]) float64 {
			var s GVPOStats
			c := GVPOConfig{0.7, ReferencePolicy, true}
			GVPO(d, b, GVPOMeans(b, group, c), 12, c, &s)
			return s.Loss
		},
		"DPO": func(d []float64, b *Batch[float64]) float64 {
			return pairLoss(d, b, group, DPOConfig{0.7, ReferencePolicy, Sigmoid, 0.1})
		},
		"IPO, to old policy": func(d []float64, b *Batch[float64]) float64 {
			return pairLoss(d, b, group, DPOConfig{0.7, OldPolicy, IPO, 0})
		},
		"FlowRL":                func(d []float64, b *Batch[float64]) float64 { return groupFlow(d, b, group, flow) },
		"FlowRL, to old policy": func(d []float64, b *Batch[float64]) float64 { return groupFlow(d, b, group, flowOld) },
	} {
		t.Run(name, func(t *testing.T) {
			var b *Batch[float64]
			b, group = groupedSample()
			d := make([]float64, len(b.Mask))
			loss(d, b)
			for i := range d {
				at := b.LogProb[i]
				slope := derivative(func(x float64) float64 {
					b.LogProb[i] = x
					return loss(make([]float64, len(b.Mask)), b)
				}, at)
				b.LogProb[i] = at
				if math.Abs(d[i]-slope) > 1e-8*math.Abs(slope)+1e-9 {
					t.Errorf("token %d: gradient %g, slope %g", i, d[i], slope)
				}
			}
		})
	}
}

// pairLoss is DPO.
func pairLoss(d []float64, b *Batch[float64], group []int, c DPOConfig) float64 {
	var s DPOStats
	DPO(d, b, DPOPairs(b, group, c), &s)
	return s.Loss
}

// groupFlow is FlowRL with log Z from the group.
func groupFlow(d []float64, b *Batch[float64], group []int, c FlowRLConfig) float64 {
	var logZ []float64
	for _, center := range FlowRLMeans(b, group, c) {
		logZ = append(logZ, center.Mean)
	}
	var s FlowRLStats
	FlowRL(d, nil, b, logZ, 12, c, &s)
	return s.Loss
}

// TestFlowRLMeans: a group's log Z makes its residuals add up to 0, whatever the policy.
func TestFlowRLMeans(t *testing.T) {
	b, group := gvpoExample()
	c := recipe
	c.GroupLogZ = true
	// Means of logProb -2 and -0.5, of ref -3.5 and -1: 15·0.5 - 3.5 + 2 = 6 and
	// -15·0.5 - 1 + 0.5 = -8.
	got := FlowRLMeans(b, group, c)
	for i, want := range []GroupMean{{Mean: -1, Rows: 2}, {Mean: -1, Rows: 2}, {}} {
		if !near(got[i].Mean, want.Mean, 1e-6) || got[i].Rows != want.Rows {
			t.Errorf("row %d: %v, want %v", i, got[i], want)
		}
	}
}

// TestVarGrad: GVPO to the reference is Beta²/2 times the variance of trajectory balance's
// residuals, VarGrad.
func TestVarGrad(t *testing.T) {
	b, group := groupedSample()
	c := GVPOConfig{0.05, ReferencePolicy, true}
	var s GVPOStats
	GVPO(make([]float64, len(b.Mask)), b, GVPOMeans(b, group, c), 12, c, &s)
	var want float64
	for g := range 3 {
		var residuals []float64
		for i := 4 * g; i < 4*g+4; i++ {
			var r float64
			for at := b.Rows[i]; at < b.Rows[i+1]; at++ {
				if b.Mask[at] {
					r += b.LogProb[at] - b.RefLogProb[at]
				}
			}
			residuals = append(residuals, r-b.Adv[b.Rows[i]]/c.Beta)
		}
		mean := (residuals[0] + residuals[1] + residuals[2] + residuals[3]) / 4
		for _, r := range residuals {
			want += (r - mean) * (r - mean) / 3 / 3 // variance, mean over groups
		}
	}
	if want *= c.Beta * c.Beta / 2; !near(s.Loss, want, 1e-12) {
		t.Errorf("loss %g, want %g", s.Loss, want)
	}
}
