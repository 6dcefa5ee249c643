package rl

import (
	"math"
	"testing"
)

// Two rows, of tokens (on, off, on) and (on); the mini-batch has 4 rows.
func flowRLExample() (b *Batch[float64], logZ []float64) {
	return &Batch[float64]{
		Rows: Rows{0, 3, 4}, Mask: []bool{on, off, on, on},
		LogProb: []float64{-1, nan, -3, -0.5}, OldLogProb: []float64{-1.5, nan, -3.5, -3.5},
		RefLogProb: []float64{-2, nan, -5, -1}, Adv: []float64{0.1, nan, 0.1, -0.2},
	}, []float64{0.25, 2}
}

func TestFlowRL(t *testing.T) {
	e := math.E
	with := func(change func(*FlowRLConfig)) FlowRLConfig {
		c := recipe
		change(&c)
		return c
	}
	// Row 0: mean lp -2, ref -3.5, old -2.5, Σ(lp-old) = 1, so w = e.
	//        delta = 0.25 - 2 - 15·0.1 + 3.5 = 0.25
	// Row 1: mean lp -0.5, ref -1, old -3.5, Σ = 3, w = min(e³, 10) = 10.
	//        delta = 2 - 0.5 + 15·0.2 + 1 = 5.5
	tests := []struct {
		name   string
		c      FlowRLConfig
		delta  [2]float64
		weight [2]float64
		counts [2]float64 // kept tokens
	}{
		{"recipe", recipe, [2]float64{0.25, 5.5}, [2]float64{e, 10}, [2]float64{2, 1}},
		{"unclipped", with(func(c *FlowRLConfig) { c.WeightHigh = math.Inf(1) }),
			[2]float64{0.25, 5.5}, [2]float64{e, e * e * e}, [2]float64{2, 1}},
		{"clipped", with(func(c *FlowRLConfig) { c.WeightLow, c.WeightHigh = 0.8, 1.2 }),
			[2]float64{0.25, 5.5}, [2]float64{1.2, 1.2}, [2]float64{2, 1}},
		{"weight of the mean", with(func(c *FlowRLConfig) { c.WeightLevel = WeightMean }),
			[2]float64{0.25, 5.5}, [2]float64{math.Sqrt(e), 10}, [2]float64{2, 1}},
		{"no log z", with(func(c *FlowRLConfig) { c.UseLogZ = false }),
			[2]float64{0, 3.5}, [2]float64{e, 10}, [2]float64{2, 1}},
		// 0.25 - 2 - 1.5 + 2.5 = -0.75 and 2 - 0.5 + 3 + 3.5 = 8
		{"old policy", with(func(c *FlowRLConfig) { c.Reference = OldPolicy }),
			[2]float64{-0.75, 8}, [2]float64{e, 10}, [2]float64{2, 1}},
		{"another beta", with(func(c *FlowRLConfig) { c.Beta = 1 }),
			[2]float64{1.65, 2.7}, [2]float64{e, 10}, [2]float64{2, 1}},
		// Row 0: A > 0 and e^½ = 1.65 > 1.28: both dropped. All its means are 0: delta = log Z,
		// w = 1. Row 1: A < 0, e³ is not below 0.8: kept.
		{"cispo", with(func(c *FlowRLConfig) { c.TokenMask = DropCISPO }),
			[2]float64{0.25, 5.5}, [2]float64{1, 10}, [2]float64{0, 1}},
	}
	for _, tt := range tests {
		b, logZ := flowRLExample()
		var s FlowRLStats
		d, dz := make([]float64, 4), make([]float64, 2)
		FlowRL(d, dz, b, logZ, 4, tt.c, &s)
		var loss float64
		for i := range 2 {
			loss += tt.weight[i] * tt.delta[i] * tt.delta[i] / 4
			ddelta := 2 * tt.weight[i] * tt.delta[i] / 4
			if want := ddelta; tt.c.UseLogZ && !near(dz[i], want, 1e-7) {
				t.Errorf("%s: dlogZ[%d] = %g, want %g", tt.name, i, dz[i], want)
			}
			for tok := b.Rows[i]; tok < b.Rows[i+1]; tok++ {
				want := 0.0
				if b.Mask[tok] && tt.counts[i] > 0 {
					want = ddelta / tt.counts[i]
				}
				if !near(d[tok], want, 1e-7) {
					t.Errorf("%s: dlogProb[%d] = %g, want %g", tt.name, tok, d[tok], want)
				}
				if d[tok] != 0 && tt.c.UseLogZ && !near(d[tok]*(tt.counts[i]+1e-8)/dz[i], 1, 1e-14) {
					t.Errorf("%s: dlogProb[%d]·(n+1e-8) = %.17g, want dlogZ = %.17g", tt.name, tok, d[tok]*(tt.counts[i]+1e-8), dz[i])
				}
			}
		}
		if !near(s.Loss, loss, 1e-7) {
			t.Errorf("%s: loss %g, want %g", tt.name, s.Loss, loss)
		}
	}
}

// Rollout weights multiply a row's weight by their mean over its tokens.
func TestFlowRLRolloutWeights(t *testing.T) {
	b, logZ := flowRLExample()
	b.Weight = []float64{0.5, nan, 1.5, 0.25}
	var s FlowRLStats
	dz := make([]float64, 2)
	FlowRL(make([]float64, 4), dz, b, logZ, 2, recipe, &s)
	// (e·1·0.25² + 10·¼·5.5²)/2
	if want := (math.E/16 + 2.5*5.5*5.5) / 2; !near(s.Loss, want, 1e-7) || !near(dz[1], 2.5*5.5, 1e-7) {
		t.Errorf("loss %g, dlogZ %g, want %g, %g", s.Loss, dz[1], want, 2.5*5.5)
	}
	for _, m := range s.Metrics() {
		want, ok := map[string]float64{"actor/tis_weight": 0.625, "actor/importance_weight": (math.E + 2.5) / 2}[m.Name]
		if ok && !near(m.Value, want, 1e-12) {
			t.Errorf("%s = %g, want %g", m.Name, m.Value, want)
		}
	}
}

// A token is its own term, weighed by the batch's coefficients.
func TestFlowRLTokens(t *testing.T) {
	b, _ := flowRLExample()
	b.Coef, b.Weight = []float64{0.5, nan, 0.5, 2}, []float64{1, nan, 2, 1}
	c := FlowRLVariants()["flowrl_token_level"].Loss
	var s FlowRLStats
	d := make([]float64, 4)
	FlowRL(d, nil, b, nil, 2, c, &s)
	// lp - 15·A - old: -1-1.5+1.5 = -1, -3-1.5+3.5 = -1, -0.5+3+3.5 = 6;
	// ratios e^½, e^½, e³: weights 1.28; coefficients ½, 1, 2.
	if want := 1.28 * (0.5 + 1 + 2*36); !near(s.Loss, want, 1e-12) {
		t.Errorf("loss %g, want %g", s.Loss, want)
	}
	for i, want := range []float64{-1.28, 0, -2.56, 2 * 1.28 * 2 * 6} {
		if !near(d[i], want, 1e-12) {
			t.Errorf("dlogProb[%d] = %g, want %g", i, d[i], want)
		}
	}
}

// Row 0 moved up by 0.5 with R > 0, row 1 up by 3 with R < 0. Its log-prob no
// longer counts where it is bounded, its log Z does.
func TestFlowRLMeanClip(t *testing.T) {
	ln := math.Log(1.28)
	for _, tt := range []struct {
		clip  MeanClip
		delta [2]float64
	}{
		// 0.25 + (-2.5+ln 1.28) - 1.5 + 3.5 and 2 + (-3.5+ln 1.28) + 3 + 1
		{ClipMean, [2]float64{-0.25 + ln, 2.5 + ln}},
		{ClipMeanGSPO, [2]float64{-0.25 + ln, 5.5}},
	} {
		b, logZ := flowRLExample()
		c := recipe
		c.MeanClip, c.Clip, c.WeightLow, c.WeightHigh = tt.clip, Clip{Low: 0.2, High: 0.28}, 1, 1
		d, dz := make([]float64, 4), make([]float64, 2)
		FlowRL(d, dz, b, logZ, 2, c, &FlowRLStats{})
		if !near(dz[0], tt.delta[0], 1e-7) || !near(dz[1], tt.delta[1], 1e-7) {
			t.Errorf("clip %d: dlogZ %v, want %v", tt.clip, dz, tt.delta)
		}
		if d[0] != 0 || d[2] != 0 || (d[3] == 0) != (tt.clip == ClipMean) {
			t.Errorf("clip %d: dlogProb %v", tt.clip, d)
		}
	}
}

func TestFlowRLSurrogate(t *testing.T) {
	b, logZ := flowRLExample()
	b.Coef = []float64{0.1, nan, 0.1, 0.1}
	v := FlowRLVariants()["ppo_style_tb"]
	var s FlowRLStats
	d := make([]float64, 4)
	FlowRL(d, make([]float64, 2), b, logZ, 2, v.Loss, &s)
	// delta ¼ and 5½, both positive; ratios e^½, e^½, e³ are clipped at 1.2.
	if want := (0.25*0.25+5.5*5.5)/2 - 0.1*1.2*(0.25+0.25+5.5); !near(s.Loss, want, 1e-7) {
		t.Errorf("loss %g, want %g", s.Loss, want)
	}
	// With delta -¼ and below the ratio counts in full.
	logZ[0] = -0.25
	b.OldLogProb[3], b.LogProb[3] = -0.5, -0.5 // ratio 1: inside
	s = FlowRLStats{}
	clear(d)
	FlowRL(d, make([]float64, 2), b, logZ, 2, v.Loss, &s)
	if want := -0.25/2 + 0.1*0.25*math.Exp(0.5); !near(d[0], want, 1e-7) {
		t.Errorf("dlogProb[0] = %g, want %g", d[0], want)
	}
	if want := 5.5 - 0.1*5.5; !near(d[3], want, 1e-7) {
		t.Errorf("dlogProb[3] = %g, want %g", d[3], want)
	}
}

// Ratios to the reference are e, e² and e^½; with A > 0, A > 0 and A < 0.
func TestFlowRLRatioFractions(t *testing.T) {
	for _, padded := range []bool{false, true} {
		b, logZ := flowRLExample()
		b.LogProb[1], b.RefLogProb[1], b.OldLogProb[1], b.Adv[1] = -5, -1, -1, -1 // masked out: ratio e^-4
		c := recipe
		c.RatioFractions, c.CountPadding, c.Clip = true, padded, Clip{Low: 0.2, High: 0.2}
		var s FlowRLStats
		FlowRL(make([]float64, 4), make([]float64, 2), b, logZ, 2, c, &s)
		want := map[string]float64{"actor/pos_high_ratio_frac": 2. / 3, "actor/pos_low_ratio_frac": 0, "actor/neg_high_ratio_frac": 1. / 3, "actor/neg_low_ratio_frac": 0}
		if padded {
			want = map[string]float64{"actor/pos_high_ratio_frac": 0.5, "actor/pos_low_ratio_frac": 0, "actor/neg_high_ratio_frac": 0.25, "actor/neg_low_ratio_frac": 0.25}
		}
		for _, m := range s.Metrics() {
			if w, ok := want[m.Name]; ok && m.Value != w {
				t.Errorf("padding %t: %s = %g, want %g", padded, m.Name, m.Value, w)
			}
		}
	}
}

// Every variant runs, and the ones that are only the caller's choice are the
// recipe.
func TestFlowRLVariants(t *testing.T) {
	variants := FlowRLVariants()
	if got := variants["recipe"].Loss; got != recipe {
		t.Errorf("recipe %+v, want %+v", got, recipe)
	}
	for _, name := range []string{"flowrl_clip_tis", "no_std_norm"} {
		if v := variants[name]; v.Loss != recipe || v.Scale == (name == "no_std_norm") {
			t.Errorf("%s: %+v", name, v)
		}
	}
	for name, v := range variants {
		b, logZ := flowRLExample()
		b.Coef = make([]float64, 4)
		TokenMean.Coefficients(b.Coef, b.Mask, b.Rows, Count(b.Mask, b.Rows))
		if v.Rollout.Weights != NoWeights {
			b.Weight = make([]float64, 4)
			Correct(b.Weight, make([]bool, 4), b.OldLogProb, b.LogProb, b.Mask, b.Rows, v.Rollout, &CorrectionStats{})
		}
		var s FlowRLStats
		d := make([]float64, 4)
		FlowRL(d, make([]float64, 2), b, logZ, 2, v.Loss, &s)
		if s.Loss != s.Loss || d[1] != 0 {
			t.Errorf("%s: loss %g, dlogProb %v", name, s.Loss, d)
		}
	}
}

func TestFlowRLMetrics(t *testing.T) {
	b, logZ := flowRLExample()
	var s FlowRLStats
	FlowRL(make([]float64, 4), make([]float64, 2), b, logZ, 2, recipe, &s)
	want := map[string]float64{
		"actor/log_prob":              -4.5 / 3, // -1-3-0.5
		"actor/old_log_prob":          -8.5 / 3, // -1.5-3.5-3.5
		"actor/ref_log_prob":          -8. / 3,  // -2-5-1
		"actor/log_reward":            0,        // 0.1+0.1-0.2
		"actor/log_z":                 1.125,    // (0.25+2)/2
		"actor/final_loss":            (math.E/16 + 10*5.5*5.5) / 2,
		"actor/importance_weight":     (math.E + 10) / 2,
		"actor/importance_weight_raw": (math.E + math.Exp(3)) / 2,
		"actor/ppo_kl":                -4. / 3,            // -8.5+4.5
		"actor/ref_kl":                -3.5 / 3,           // -8+4.5
		"actor/residual_mean":         2.875,              // (0.25+5.5)/2
		"actor/residual_std":          2.625 * math.Sqrt2, // ±2.625 about it, over n-1 = 1
		"actor/residual_abs":          2.875,
	}
	got := s.Metrics()
	if len(got) != len(want) {
		t.Errorf("%d metrics, want %d", len(got), len(want))
	}
	for _, m := range got {
		if w, ok := want[m.Name]; !ok || !near(m.Value, w, 1e-7) {
			t.Errorf("%s = %.12g, want %.12g", m.Name, m.Value, w)
		}
	}
}

// One term has no spread.
func TestFlowRLMetricsOfOneTerm(t *testing.T) {
	b := &Batch[float32]{Rows: Rows{0, 1}, Mask: []bool{on}, LogProb: []float32{-1}, OldLogProb: []float32{-1},
		RefLogProb: []float32{-1}, Adv: []float32{1}, Coef: []float64{1}}
	var s FlowRLStats
	FlowRL(make([]float32, 1), make([]float32, 1), b, []float32{1}, 1, recipe, &s)
	for _, m := range s.Metrics() {
		if math.IsNaN(m.Value) || m.Name == "actor/residual_std" {
			t.Errorf("%s = %g", m.Name, m.Value)
		}
	}
}

// Weights of e^±1000 neither overflow nor produce NaN.
func TestFlowRLExtremeWeights(t *testing.T) {
	for _, d := range []float64{1000, -1000} {
		for name, c := range flowRLConfigs() {
			b := &Batch[float32]{Rows: Rows{0, 1}, Mask: []bool{on}, LogProb: []float32{-1}, OldLogProb: []float32{float32(-1 - d)},
				RefLogProb: []float32{-1}, Adv: []float32{1}, Coef: []float64{1}}
			var s FlowRLStats
			grad := []float32{0}
			FlowRL(grad, []float32{0}, b, []float32{1}, 1, c, &s)
			if g := float64(grad[0]); g != g || math.IsInf(g, 0) || s.Loss != s.Loss || math.IsInf(s.Loss, 0) {
				t.Errorf("%s, log-ratio %g: loss %g, gradient %g", name, d, s.Loss, g)
			}
		}
	}
}

// A row with nothing to train on pulls log Z to 0 and counts as a row.
func TestFlowRLEmptyRow(t *testing.T) {
	b := &Batch[float64]{Rows: Rows{0, 0, 1}, Mask: []bool{off}, LogProb: []float64{nan}, OldLogProb: []float64{nan},
		RefLogProb: []float64{nan}, Adv: []float64{nan}}
	var s FlowRLStats
	d, dz := make([]float64, 1), make([]float64, 2)
	FlowRL(d, dz, b, []float64{3, -1}, 2, recipe, &s)
	// (3² + 1²)/2, gradients 2·3/2 and 2·(-1)/2
	if s.Loss != 5 || dz[0] != 3 || dz[1] != -1 || d[0] != 0 {
		t.Errorf("loss %g, dlogZ %v, dlogProb %v, want 5, [3 -1], [0]", s.Loss, dz, d)
	}
}

func TestFlowRLPanics(t *testing.T) {
	run := func(change func(b *Batch[float64], c *FlowRLConfig), rows int) func() {
		return func() {
			b, logZ := flowRLExample()
			c := recipe
			change(b, &c)
			FlowRL(make([]float64, 4), make([]float64, 2), b, logZ, rows, c, &FlowRLStats{})
		}
	}
	same := func(*Batch[float64], *FlowRLConfig) {}
	if panics(run(same, 2)) {
		t.Fatal("the example panics")
	}
	for name, f := range map[string]func(){
		"rows":         run(same, 1),
		"no reference": run(func(b *Batch[float64], _ *FlowRLConfig) { b.RefLogProb = nil }, 2),
		"level":        run(func(_ *Batch[float64], c *FlowRLConfig) { c.WeightLevel = 0 }, 2),
		"reference":    run(func(_ *Batch[float64], c *FlowRLConfig) { c.Reference = 0 }, 2),
		"token mask":   run(func(_ *Batch[float64], c *FlowRLConfig) { c.TokenMask = 0 }, 2),
		"bounds":       run(func(_ *Batch[float64], c *FlowRLConfig) { c.WeightLow = 11 }, 2),
		"no bound":     run(func(_ *Batch[float64], c *FlowRLConfig) { c.WeightHigh = 0 }, 2),
		"terms":        run(func(_ *Batch[float64], c *FlowRLConfig) { c.Terms = TokenTerms + 1 }, 2),
		"mean clip":    run(func(_ *Batch[float64], c *FlowRLConfig) { c.MeanClip = ClipMeanGSPO + 1 }, 2),
		"clip":         run(func(_ *Batch[float64], c *FlowRLConfig) { c.MeanClip, c.Clip.Low = ClipMean, 1 }, 2),
		"no Coef":      run(func(_ *Batch[float64], c *FlowRLConfig) { c.Terms = TokenTerms }, 2),
		"ratios to nothing": run(func(b *Batch[float64], c *FlowRLConfig) {
			b.RefLogProb, c.Reference, c.RatioFractions = nil, OldPolicy, true
		}, 2),
	} {
		if !panics(f) {
			t.Errorf("%s: no panic", name)
		}
	}
}
