package rl

import (
	"math"
	"testing"
)

// addPolicyObjectives adds the policy losses other than PPO's to the objectives.
func addPolicyObjectives[T Float](list map[string]objective[T]) {
	add := func(name string, constantRatio bool, loss func(d []T, s *sample[T], rows int, st *PolicyStats)) {
		o := objective[T]{by: func(s *sample[T]) []T { return s.LogProb }, start: func(rows int) accumulator[T] {
			var st PolicyStats
			return accumulator[T]{
				add:  func(d, _ []T, s *sample[T]) { loss(d, s, rows, &st) },
				loss: func() float64 { return st.Loss }, metrics: st.Metrics,
			}
		}}
		if constantRatio {
			o.along = func(s *sample[T]) []T { return s.OldLogProb }
		}
		list[name] = o
	}
	add("reinforce", false, func(d []T, s *sample[T], _ int, st *PolicyStats) { Reinforce(d, &s.Batch, st) })
	add("sapo", false, func(d []T, s *sample[T], _ int, st *PolicyStats) { SAPO(d, &s.Batch, 1, 1.05, st) })
	add("dro", false, func(d []T, s *sample[T], _ int, st *PolicyStats) { DRO(d, &s.Batch, 0.1, st) })
	add("cispo", true, func(d []T, s *sample[T], _ int, st *PolicyStats) { CISPO(d, &s.Batch, 0.2, 0.28, st) })
	add("gmpo", false, func(d []T, s *sample[T], rows int, st *PolicyStats) { GMPO(d, mild(s), 0.4, 0.4, rows, st) })
	add("gspo", false, func(d []T, s *sample[T], _ int, st *PolicyStats) { GSPO(d, constantRows(mild(s)), 0.2, 0.28, st) })
	for name, by := range map[string]Divergence{"dppo tv": BinaryTV, "dppo kl": BinaryKL} {
		add(name, true, func(d []T, s *sample[T], _ int, st *PolicyStats) {
			DPPO(d, &s.Batch, DPPOConfig{Divergence: by, Low: 0.1, High: 0.05, MaxRatio: 3}, st)
		})
	}
	for name, loss := range map[string]BypassLoss{"bypass ppo": BypassPPO, "bypass reinforce": BypassReinforce} {
		add(name, false, func(d []T, s *sample[T], _ int, st *PolicyStats) {
			kept := make([]bool, len(s.Mask))
			for t, on := range s.Mask {
				kept[t] = on && s.Entropy[t] < 1.5
			}
			Bypass(d, &s.Batch, s.Weight, kept, loss, Clip{Low: 0.2, High: 0.28, Dual: 3}, st)
		})
	}
	list["clip cov"] = picking(
		func(picked []bool, b *Batch[T], key []uint64) {
			ClipCovTokens(picked, b, 0.2, 0.28, ClipCovConfig{Ratio: 0.1, Low: 0.05, High: 5}, key)
		},
		func(d []T, b *Batch[T], picked []bool, st *PolicyStats) { ClipCov(d, b, picked, 0.2, 0.28, st) })
	list["kl cov"] = picking(
		func(picked []bool, b *Batch[T], _ []uint64) { KLCovTokens(picked, b, 0.2) },
		func(d []T, b *Batch[T], picked []bool, st *PolicyStats) { KLCov(d, b, picked, 0.1, st) })
	list["megatron"] = objective[T]{by: func(s *sample[T]) []T { return s.LogProb }, start: func(int) accumulator[T] {
		var st MegatronStats
		c := MegatronConfig{Low: 0.2, High: 0.28, KLCoef: 0.01, EntropyCoef: 0.1}
		return accumulator[T]{
			add:  func(d, _ []T, s *sample[T]) { MegatronGRPO(d, mild(s), c, &st) },
			loss: func() float64 { return st.Loss }, metrics: st.Metrics,
		}
	}}
}

// mild returns a batch without the tokens whose probability moved by e^±20: their
// loss would be so great that no other gradient shows in a difference of losses.
func mild[T Float](s *sample[T]) *Batch[T] {
	b := s.Batch
	b.Mask = make([]bool, len(s.Mask))
	near := func(x, y T) bool { return x-y < 20 && y-x < 20 }
	for t, on := range s.Mask {
		b.Mask[t] = on && near(s.LogProb[t], s.OldLogProb[t]) && near(s.LogProb[t], s.RefLogProb[t])
	}
	return &b
}

// constantRows returns a batch without weights where every row has the advantage of its
// first unmasked token: only there is GSPO's gradient the gradient of its loss.
func constantRows[T Float](from *Batch[T]) *Batch[T] {
	b := *from
	b.Weight, b.Adv = nil, make([]T, len(b.Mask))
	for i := range b.Rows.Len() {
		var adv T
		for t := b.Rows[i+1] - 1; t >= b.Rows[i]; t-- {
			if b.Mask[t] {
				adv = from.Adv[t]
			}
		}
		for t := b.Rows[i]; t < b.Rows[i+1]; t++ {
			b.Adv[t] = adv
		}
	}
	return &b
}

// picking is a loss with tokens picked in the whole mini-batch. It picks by the
// reference log-probs, so that the choice does not move with the log-probs while
// the gradient is checked; the entropies serve as random keys.
func picking[T Float](pick func(picked []bool, b *Batch[T], key []uint64), loss func(d []T, b *Batch[T], picked []bool, st *PolicyStats)) objective[T] {
	return objective[T]{by: func(s *sample[T]) []T { return s.LogProb }, start: func(int) accumulator[T] {
		var st PolicyStats
		picked := make(map[*sample[T]][]bool)
		return accumulator[T]{
			prepare: func(parts []*sample[T]) {
				whole, key := &Batch[T]{}, []uint64(nil)
				for _, p := range parts {
					whole.Mask, whole.Adv = append(whole.Mask, p.Mask...), append(whole.Adv, p.Adv...)
					whole.LogProb, whole.OldLogProb = append(whole.LogProb, p.RefLogProb...), append(whole.OldLogProb, p.OldLogProb...)
					for _, e := range p.Entropy {
						key = append(key, math.Float64bits(float64(e))<<12) // the fraction
					}
				}
				all := make([]bool, len(whole.Mask))
				pick(all, whole, key)
				for _, p := range parts {
					picked[p], all = all[:len(p.Mask)], all[len(p.Mask):]
				}
			},
			add:  func(d, _ []T, s *sample[T]) { loss(d, mild(s), picked[s], &st) },
			loss: func() float64 { return st.Loss }, metrics: st.Metrics,
		}
	}}
}

// oneToken is a batch of a single token with a ratio and an advantage, with
// coefficient ½ and weight 3.
func oneToken(ratio, adv float64) *Batch[float64] {
	return &Batch[float64]{Rows: Rows{0, 1}, Mask: []bool{on}, Coef: []float64{0.5}, Adv: []float64{adv}, Weight: []float64{3},
		LogProb: []float64{-1}, OldLogProb: []float64{-1 - math.Log(ratio)}}
}

// tokenCase holds what a loss makes of one token of log-prob -1, before coefficient
// and weight.
type tokenCase struct {
	name           string
	ratio, adv     float64
	loss, grad     float64
	clipped, lower float64
}

// checkTokens runs a loss on each case alone.
func checkTokens(t *testing.T, tests []tokenCase, loss func(d []float64, b *Batch[float64], s *PolicyStats)) {
	t.Helper()
	for _, tt := range tests {
		var s PolicyStats
		d := []float64{10}
		loss(d, oneToken(tt.ratio, tt.adv), &s)
		// coef·weight = 1.5, added to the 10 that was there.
		if want := 10 + 1.5*tt.grad; !near(d[0], want, 1e-14) {
			t.Errorf("%s: gradient %.15g, want %.15g", tt.name, d[0], want)
		}
		want := []float64{1.5 * tt.loss, tt.clipped, tt.lower}
		for i, w := range want {
			if m := s.Metrics()[i]; !near(m.Value, w, 2e-8) {
				t.Errorf("%s: %s = %.15g, want %.15g", tt.name, m.Name, m.Value, w)
			}
		}
	}
}

// A fully masked mini-batch adds nothing to a loss or a gradient.
func TestPolicyLossesOfNothing(t *testing.T) {
	for name, o := range objectives[float64]() {
		s := &sample[float64]{Batch: Batch[float64]{Rows: Rows{0, 0, 2}}}
		s.Mask, s.Coef = make([]bool, 2), make([]float64, 2)
		for _, a := range s.arrays() {
			*a = []float64{nan, nan}
		}
		s.LogZ = []float64{0, 0}
		got := evaluate(o, []*sample[float64]{s}, TokenMean, Counts{Tokens: 4, Rows: 2})
		if got.loss != 0 || got.tokens[0] != 0 || got.tokens[1] != 0 {
			t.Errorf("%s: loss %g, gradient %v", name, got.loss, got.tokens)
		}
	}
}

func TestPolicyLossPanics(t *testing.T) {
	var s PolicyStats
	d, b := []float64{0}, oneToken(1, 1)
	for name, f := range map[string]func(){
		"temperature":      func() { SAPO(d, b, 0, 1, &s) },
		"beta":             func() { DRO(d, b, 0, &s) },
		"NaN beta":         func() { DRO(d, b, nan, &s) },
		"divergence":       func() { DPPO(d, b, DPPOConfig{MaxRatio: 3}, &s) },
		"bound of a ratio": func() { DPPO(d, b, DPPOConfig{Divergence: BinaryTV}, &s) },
		"bypass loss":      func() { Bypass(d, b, nil, b.Mask, 0, Clip{Dual: 3}, &s) },
		"rows":             func() { GMPO(d, b, 0.4, 0.4, 0, &s) },
		"no picks":         func() { ClipCov(d, b, nil, 0.2, 0.2, &s) },
		"no picks of KL":   func() { KLCov(d, b, nil, 1, &s) },
		"short gradient":   func() { Reinforce(nil, b, &s) },
		"no reference":     func() { MegatronGRPO(d, b, MegatronConfig{}, &MegatronStats{}) },
		"kept, but masked": func() {
			masked := *b
			masked.Mask = []bool{off}
			Bypass(d, &masked, nil, []bool{on}, BypassPPO, Clip{Dual: 3}, &s)
		},
	} {
		if !panics(f) {
			t.Errorf("%s: no panic", name)
		}
	}
}
