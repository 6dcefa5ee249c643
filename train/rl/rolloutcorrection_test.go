package rl

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// ratioExample has three rows, of log-ratios (ln 2, masked out, -ln 4), (ln 3) and
// nothing.
func ratioExample() (old, roll []float64, mask []bool, rows Rows) {
	ln := math.Log
	return []float64{-1, nan, -1 - ln(4), -2, nan}, []float64{-1 - ln(2), nan, -1, -2 - ln(3), nan},
		[]bool{on, off, on, on, off}, Rows{0, 3, 4, 5}
}

func TestCorrectWeights(t *testing.T) {
	half := math.Sqrt(0.5) // the geometric mean of 2 and 1/4
	tests := []struct {
		name string
		c    Correction
		want [3]float64 // of the unmasked tokens
	}{
		{"token", Correction{Weights: TokenWeights, High: 10}, [3]float64{2, 0.25, 3}},
		{"truncated", Correction{Weights: TokenWeights, High: 2.5}, [3]float64{2, 0.25, 2.5}},
		{"band", Correction{Weights: TokenWeights, Low: 0.5, High: 2.5}, [3]float64{2, 0, 0}},
		{"sequence", Correction{Weights: SequenceWeights, High: 2.5}, [3]float64{0.5, 0.5, 2.5}},
		{"sequence in a band", Correction{Weights: SequenceWeights, Low: 0.4, High: 2.5}, [3]float64{0.5, 0.5, 0}},
		{"geometric", Correction{Weights: GeometricWeights, High: 10}, [3]float64{half, half, 3}},
		// mean (2+¼+2½)/3 = 19/12 over tokens; (½+2½)/2 = 3/2 over rows
		{"normalized", Correction{Weights: TokenWeights, High: 2.5, Normalize: true}, [3]float64{24. / 19, 3. / 19, 30. / 19}},
		{"normalized rows", Correction{Weights: SequenceWeights, High: 2.5, Normalize: true}, [3]float64{1. / 3, 1. / 3, 5. / 3}},
		{"nothing to normalize", Correction{Weights: TokenWeights, Low: 5, High: 6, Normalize: true}, [3]float64{}},
	}
	for _, tt := range tests {
		old, roll, mask, rows := ratioExample()
		weight, keep := []float64{nan, nan, nan, nan, nan}, make([]bool, 5)
		Correct(weight, keep, old, roll, mask, rows, tt.c, &CorrectionStats{})
		want := []float64{tt.want[0], 0, tt.want[1], tt.want[2], 0}
		for i, w := range want {
			if !near(weight[i], w, 2e-8) {
				t.Errorf("%s: weight %d is %.12g, want %.12g", tt.name, i, weight[i], w)
			}
		}
		if !slices.Equal(keep, mask) {
			t.Errorf("%s: keeps %v, want %v", tt.name, keep, mask)
		}
	}
}

func TestCorrectRejects(t *testing.T) {
	// k1 = -x: -0.69, 1.39; -1.10. Rows: sums 0.69, -1.10; means 0.35, -1.10.
	// k2 = ½x²: 0.240, 0.961; 0.603. Rows: sums 1.20, 0.60; means 0.60, 0.60.
	// k3 = e^x-1-x: 0.307, 0.636; 0.901. Rows: sums 0.943, 0.901; means 0.472, 0.901.
	tests := []struct {
		options, thresholds string
		want                [3]bool
	}{
		{"token_k1", "0.4_2", [3]bool{on, off, off}}, // ratios of the sampler: ½, 4, ⅓
		{"token_k1", "3", [3]bool{on, off, off}},     // in [⅓,3], but for rounding
		{"token_k1", "3.1", [3]bool{on, off, on}},
		{"token_k2", "0.7", [3]bool{on, off, on}},
		{"token_k3", "0.7", [3]bool{on, on, off}},
		{"seq_sum_k1", "0.3_1.9", [3]bool{off, off, on}}, // ratios 2 and ⅓
		{"seq_sum_k2", "1", [3]bool{off, off, on}},
		{"seq_sum_k3", "0.92", [3]bool{off, off, on}},
		{"seq_mean_k1", "0.5_1.5", [3]bool{on, on, off}}, // ratios 1.41 and ⅓
		{"seq_mean_k2", "0.602", [3]bool{on, on, off}},   // 0.6006 and 0.6035
		{"seq_mean_k3", "0.5", [3]bool{on, on, off}},
		{"seq_max_k2", "0.7", [3]bool{off, off, on}},
		{"seq_max_k3", "0.7", [3]bool{on, on, off}},
		{"token_k2, seq_mean_k3", "0.7, 0.5", [3]bool{on, off, off}},
		{"token_k2,token_k2", "0.7", [3]bool{on, off, on}},
		// Older names bound the trainer's ratio: 2, ¼, 3; ½, 3; 0.71, 3.
		{"token", "0.3_2.5", [3]bool{on, off, off}},
		{"sequence", "0.4_2", [3]bool{on, on, off}},
		{"geometric", "0.8_4", [3]bool{off, off, on}},
		{"token_veto", "0.3", [3]bool{off, off, on}},
	}
	for _, tt := range tests {
		r, err := ParseRejections(tt.options, tt.thresholds)
		if err != nil {
			t.Fatal(err)
		}
		old, roll, mask, rows := ratioExample()
		if tt.thresholds == "3" {
			old[3] += 1e-9 // a ratio just beyond 3
		}
		keep := mask // they may be one slice
		Correct(nil, keep, old, roll, mask, rows, Correction{Reject: r}, &CorrectionStats{})
		if want := []bool{tt.want[0], off, tt.want[1], tt.want[2], off}; !slices.Equal(keep, want) {
			t.Errorf("%s %s: keeps %v, want %v", tt.options, tt.thresholds, keep, want)
		}
	}
}

func TestCorrectMetrics(t *testing.T) {
	ln := math.Log
	old, roll, mask, rows := ratioExample()
	r, err := ParseRejections("token_k1", "0.4_2")
	if err != nil {
		t.Fatal(err)
	}
	c := Correction{Weights: TokenWeights, Low: 0.5, High: 2.5, Reject: r}
	want := map[string]float64{
		"rollout_is_mean": 2. / 3, "rollout_is_max": 2, "rollout_is_min": 0, // of 2, 0, 0
		"rollout_is_std": math.Sqrt(4./3 - 4./9), "rollout_is_eff_sample_size": 1. / 3,
		"rollout_is_ratio_fraction_high": 1. / 3, "rollout_is_ratio_fraction_low": 1. / 3, "rollout_is_oob_ratio": 2. / 3,
		"rollout_is_seq_mean": 0.5, "rollout_is_seq_std": math.Sqrt(0.5), "rollout_is_seq_max": 1, "rollout_is_seq_min": 0, // of 1, 0
		"rollout_is_seq_max_deviation": 1, "rollout_is_seq_fraction_high": 0.5, "rollout_is_seq_fraction_low": 0, // of 9/8, 3
		// of -ln 2, ln 4, -ln 3, bounded to ln 0.4 and ln 2
		"rollout_rs_token_k1_mean": (ln(2) - ln(3)) / 3, "rollout_rs_token_k1_max": ln(4), "rollout_rs_token_k1_min": -ln(3),
		"rollout_rs_token_k1_fraction_high": 1. / 3, "rollout_rs_token_k1_fraction_low": 1. / 3,
		"rollout_rs_token_k1_std": math.Sqrt((2*ln(2)*ln(2)+ln(0.4)*ln(0.4))/3 - ln(0.4)*ln(0.4)/9),
		// of ½ln 2, -ln 3
		"rollout_rs_token_k1_seq_mean": (ln(2)/2 - ln(3)) / 2, "rollout_rs_token_k1_seq_std": (ln(2)/2 + ln(3)) / math.Sqrt2,
		"rollout_rs_token_k1_seq_max": ln(2) / 2, "rollout_rs_token_k1_seq_min": -ln(3), "rollout_rs_token_k1_seq_max_deviation": ln(3),
		"rollout_rs_token_k1_seq_fraction_high": 0, "rollout_rs_token_k1_seq_fraction_low": 0.5,
		"rollout_rs_token_k1_masked_fraction": 2. / 3, "rollout_rs_token_k1_seq_masked_fraction": 1,
		"rollout_rs_masked_fraction": 2. / 3, "rollout_rs_seq_masked_fraction": 1,
		// a = (-2-ln 4)/2 = -1-ln 2, -2;  b = (-2-ln 2)/2, -2-ln 3
		"training_ppl": (2*math.E + math.E*math.E) / 2, "training_log_ppl": (3 + ln(2)) / 2,
		"rollout_ppl": (math.E*math.Sqrt2 + 3*math.E*math.E) / 2, "rollout_log_ppl": (3 + ln(2)/2 + ln(3)) / 2,
		"log_ppl_diff": (ln(2)/2 - ln(3)) / 2, "log_ppl_abs_diff": (ln(2)/2 + ln(3)) / 2,
		"log_ppl_diff_max": ln(2) / 2, "log_ppl_diff_min": -ln(3), "ppl_ratio": (math.Sqrt2 + 1./3) / 2,
		"kl": (ln(2) - ln(3)) / 3, "k3_kl": (2 + 0.25 + 3 - 3 + ln(2) - ln(3)) / 3,
		"chi2_token": (4+1./16+9)/3 - 1, "chi2_seq": (0.25+9)/2 - 1,
	}
	var s CorrectionStats
	Correct(make([]float64, 5), make([]bool, 5), old, roll, mask, rows, c, &s)
	checkMetrics(t, s.Metrics(), want)

	// verl counts the empty row: weight 0, perplexity 1, log-ratio 0.
	c.CountEmptyRows = true
	s = CorrectionStats{}
	Correct(make([]float64, 5), make([]bool, 5), old, roll, mask, rows, c, &s)
	maps.Copy(want, map[string]float64{
		"rollout_is_seq_mean": 1. / 3, "rollout_is_seq_std": math.Sqrt(1. / 3), "rollout_is_seq_fraction_high": 1. / 3, "rollout_is_seq_fraction_low": 1. / 3,
		"rollout_rs_seq_masked_fraction": 2. / 3,
		"training_ppl":                   (1 + 2*math.E + math.E*math.E) / 3, "training_log_ppl": (3 + ln(2)) / 3,
		"rollout_ppl": (1 + math.E*math.Sqrt2 + 3*math.E*math.E) / 3, "rollout_log_ppl": (3 + ln(2)/2 + ln(3)) / 3,
		"log_ppl_diff": (ln(2)/2 - ln(3)) / 3, "log_ppl_abs_diff": (ln(2)/2 + ln(3)) / 3,
		"ppl_ratio": (1 + math.Sqrt2 + 1./3) / 3, "chi2_seq": (1+0.25+9)/3 - 1,
	})
	checkMetrics(t, s.Metrics(), want)
}

// checkMetrics compares metrics under rollout_corr/ with want.
func checkMetrics(t *testing.T, got []Metric, want map[string]float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%d metrics, want %d", len(got), len(want))
	}
	for _, m := range got {
		w, ok := want[m.Name[len("rollout_corr/"):]]
		if !ok || !near(m.Value, w, 1e-7) {
			t.Errorf("%s = %.12g, want %.12g", m.Name, m.Value, w)
		}
	}
}

// In sequence mode extremes are of the weights before their bounds, to e^20 above.
func TestCorrectExtremes(t *testing.T) {
	old, roll := []float64{0, -25, -1}, []float64{-25, 0, -1}
	all, rows := []bool{on, on, on}, Rows{0, 1, 2, 3}
	var s CorrectionStats
	weight := make([]float64, 3)
	Correct(weight, make([]bool, 3), old, roll, all, rows, Correction{Weights: SequenceWeights, High: 2}, &s)
	if want := []float64{2, math.Exp(-20), 1}; !near(weight[0], want[0], 0) || !near(weight[1]/want[1], 1, 1e-12) || weight[2] != 1 {
		t.Errorf("weights %g, want %g", weight, want)
	}
	for _, m := range s.Metrics() {
		want, ok := map[string]float64{"rollout_corr/rollout_is_max": math.Exp(20), "rollout_corr/rollout_is_min": math.Exp(-25)}[m.Name]
		if ok && !near(m.Value/want, 1, 1e-12) || math.IsNaN(m.Value) || math.IsInf(m.Value, 0) {
			t.Errorf("%s = %g, want %g", m.Name, m.Value, want)
		}
	}
}

// Without Normalize any cut into micro-batches has the same bits, whatever stands
// at masked-out tokens.
func TestCorrectCuts(t *testing.T) {
	const seed = 11
	r := rand.New(rand.NewPCG(seed, 0))
	for name, c := range CorrectionPresets() {
		s := newSample[float64](r, 20)
		weight, keep := make([]float64, len(s.Mask)), make([]bool, len(s.Mask))
		var whole, cut CorrectionStats
		Correct(weight, keep, s.OldLogProb, s.LogProb, s.Mask, s.Rows, c, &whole)
		for lo := 0; lo < s.Rows.Len(); {
			hi := min(lo+1+r.IntN(4), s.Rows.Len())
			p := s.build(s.rowTokens(lo, hi))
			for tok, on := range p.Mask {
				if !on {
					p.OldLogProb[tok], p.LogProb[tok] = math.NaN(), math.Inf(1)
				}
			}
			w, k := make([]float64, len(p.Mask)), make([]bool, len(p.Mask))
			Correct(w, k, p.OldLogProb, p.LogProb, p.Mask, p.Rows, c, &cut)
			if at := s.Rows[lo]; !slices.Equal(w, weight[at:at+len(w)]) || !slices.Equal(k, keep[at:at+len(k)]) {
				t.Errorf("%s, seed %d: rows %d to %d differ", name, seed, lo, hi)
			}
			lo = hi
		}
		compare(t, outcome{metrics: cut.Metrics()}, outcome{metrics: whole.Metrics()}, 0)
	}
}

// Nothing to correct: no weights, nothing kept, statistics of nothing.
func TestCorrectNothing(t *testing.T) {
	for name, c := range CorrectionPresets() {
		weight, keep := []float64{1}, []bool{on}
		var s CorrectionStats
		Correct(weight, keep, []float64{nan}, []float64{nan}, []bool{off}, Rows{0, 0, 1}, c, &s)
		if keep[0] || c.Weights != NoWeights && weight[0] != 0 {
			t.Errorf("%s: weight %g, keeps %t", name, weight[0], keep[0])
		}
		for _, m := range s.Metrics() {
			if m.Name == "rollout_corr/training_ppl" && m.Value == m.Value {
				t.Errorf("%s: %s = %g, want NaN", name, m.Name, m.Value)
			}
		}
	}
	// A token that is not a number is not kept by any criterion.
	for _, options := range []string{"token_k1", "token_k3", "seq_max_k2", "seq_mean_k1"} {
		r, err := ParseRejections(options, "2")
		keep := []bool{on}
		Correct(nil, keep, []float64{nan}, []float64{-1}, []bool{on}, Rows{0, 1}, Correction{Reject: r}, &CorrectionStats{})
		if err != nil || keep[0] {
			t.Errorf("%s keeps NaN, or %v", options, err)
		}
	}
}

func TestCorrectPanics(t *testing.T) {
	run := func(weight []float64, c Correction) func() {
		return func() {
			old, roll, mask, rows := ratioExample()
			Correct(weight, make([]bool, 5), old, roll, mask, rows, c, &CorrectionStats{})
		}
	}
	five := make([]float64, 5)
	if panics(run(nil, Correction{})) || panics(run(five, Correction{Weights: TokenWeights, High: 2})) {
		t.Fatal("an example panics")
	}
	for name, f := range map[string]func(){
		"no weights":       run(nil, Correction{Weights: TokenWeights, High: 2}),
		"weights":          run(five, Correction{Weights: GeometricWeights + 1, High: 2}),
		"no bound":         run(five, Correction{Weights: TokenWeights}),
		"bounds":           run(five, Correction{Weights: TokenWeights, Low: 3, High: 2}),
		"normalize":        run(five, Correction{Normalize: true}),
		"span":             run(five, Correction{Reject: []Rejection{{Kind: KLK1, High: 2}}}),
		"estimator":        run(five, Correction{Reject: []Rejection{{SpanSum, KLAbs, 0, 2}}}),
		"k2 from below":    run(five, Correction{Reject: []Rejection{{SpanSum, KLK2, 1, 2}}}),
		"rejection bounds": run(five, Correction{Reject: []Rejection{{SpanSum, KLK1, 2, 1}}}),
		"other criteria": func() {
			var s CorrectionStats
			Correct(nil, nil, []float64{}, nil, nil, Rows{0}, Correction{}, &s)
			Correct(nil, nil, []float64{}, nil, nil, Rows{0}, Correction{Reject: []Rejection{{SpanSum, KLK2, 0, 1}}}, &s)
		},
	} {
		if !panics(f) {
			t.Errorf("%s: no panic", name)
		}
	}
}

func TestParseRollout(t *testing.T) {
	for _, spec := range []string{"", " ", "x", "0", "-1", "nan", "2_1", "_2", "1_", "1_2_3", "true"} {
		if low, high, err := ParseRolloutBounds(spec); err == nil {
			t.Errorf("bounds %q: [%g,%g], want an error", spec, low, high)
		}
	}
	for spec, want := range map[string][2]float64{"2": {0, 2}, " 0.5_5.0 ": {0.5, 5}, "inf": {0, math.Inf(1)}} {
		if low, high, err := ParseRolloutBounds(spec); err != nil || low != want[0] || high != want[1] {
			t.Errorf("bounds %q: [%g,%g], %v, want %g", spec, low, high, err, want)
		}
	}
	for name, want := range map[string]RolloutWeights{"none": NoWeights, "token": TokenWeights, "sequence": SequenceWeights, "sequence_mean": GeometricWeights} {
		if got, err := ParseRolloutWeights(name); err != nil || got != want {
			t.Errorf("weights %q: %d, %v, want %d", name, got, err, want)
		}
	}
	if _, err := ParseRolloutWeights("geometric"); err == nil {
		t.Error("weights \"geometric\": no error")
	}
	for _, bad := range [][2]string{{"", "1"}, {"token_k4", "1"}, {"seq_max_k1", "1"}, {"seq_max_k1", "1_2"}, {"token_veto", "1_2"}, {"token_k", "1"},
		{"token_k1,token_k2", "1,2,3"}, {"token_k1", ""}, {"token_k2", "1_2"}} {
		if r, err := ParseRejections(bad[0], bad[1]); err == nil {
			t.Errorf("rejection %q %q: %v, want an error", bad[0], bad[1], r)
		}
	}
	// Every criterion has its own name, and most are found by it.
	for span := SpanToken; span <= SpanMax; span++ {
		for kind := KLK1; kind <= KLK3; kind++ {
			want := Rejection{span, kind, 0, 2}
			if kind == KLK1 {
				want.Low = 0.5
			}
			if span == SpanMax && kind == KLK1 {
				continue // no name of verl's
			}
			got, err := ParseRejections(want.String(), "2")
			if err != nil || len(got) != 1 || got[0] != want {
				t.Errorf("%s: %v, %v, want %v", want, got, err, want)
			}
		}
	}
}
