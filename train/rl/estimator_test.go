package rl

import (
	"encoding/binary"
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// estimator sets adv and ret [N] from what a sample holds: Ret for token rewards,
// LogProb for the old policy, LogZ for what a row is compared with, and groups.
type estimator[T Float] func(adv, ret []T, s *sample[T], group []int) error

// estimators lists every advantage estimator of the package.
func estimators[T Float]() map[string]estimator[T] {
	perRow := func(f func(score []T, s *sample[T], group []int) error) estimator[T] {
		return func(adv, ret []T, s *sample[T], group []int) error {
			score := rowScores(s)
			if err := f(score, s, group); err != nil {
				return err
			}
			Spread(adv, score, s.Mask, s.Rows)
			copy(ret, adv)
			return nil
		}
	}
	tokenBaseline := func(c TokenBaseline, weighted bool) estimator[T] {
		return func(adv, ret []T, s *sample[T], group []int) error {
			b := &Batch[T]{Rows: s.Rows, Mask: s.Mask, OldLogProb: s.LogProb}
			if weighted {
				b.Weight = s.Weight
			}
			OptimalTokenBaseline(adv, ret, b, s.Ret, squaredProbs(s), group, c)
			return nil
		}
	}
	return map[string]estimator[T]{
		"gae": func(adv, ret []T, s *sample[T], _ []int) error {
			GAE(adv, ret, s.Ret, s.Value, s.Mask, s.Rows, 0.99, 0.95)
			return Whiten(adv, s.Mask, true)
		},
		"grpo":     perRow(func(x []T, _ *sample[T], g []int) error { GroupAdvantage(x, x, g, true); return nil }),
		"dr grpo":  perRow(func(x []T, _ *sample[T], g []int) error { GroupAdvantage(x, x, g, false); return nil }),
		"floored":  perRow(func(x []T, _ *sample[T], g []int) error { FlooredGroupAdvantage(x, x, g); return nil }),
		"pass@k":   perRow(func(x []T, _ *sample[T], g []int) error { return PassKAdvantage(x, x, g, true) }),
		"rloo":     perRow(func(x []T, _ *sample[T], g []int) error { RLOO(x, x, g, false); return nil }),
		"opo":      perRow(func(x []T, s *sample[T], g []int) error { OPO(x, x, g, s.Mask, s.Rows); return nil }),
		"softmean": perRow(func(x []T, _ *sample[T], _ []int) error { SoftMeanAdvantage(x, x, 2); return nil }),
		"gpg":      perRow(func(x []T, _ *sample[T], g []int) error { GPGAdvantage(x, x, g, 2); return nil }),
		"gdpo": func(adv, ret []T, s *sample[T], group []int) error {
			err := GDPO(adv, [][]T{rowScores(s), s.LogZ}, []float64{1, 0.5}, group, s.Mask, s.Rows, true)
			copy(ret, adv)
			return err
		},
		"reinforce++": func(adv, ret []T, s *sample[T], _ []int) error {
			return ReinforcePlusPlus(adv, ret, s.Ret, s.Mask, s.Rows, 0.9)
		},
		"reinforce++ baseline": func(adv, ret []T, s *sample[T], group []int) error {
			err := ReinforcePlusPlusBaseline(adv, rowScores(s), group, s.Mask, s.Rows)
			copy(ret, adv)
			return err
		},
		"remax": func(adv, ret []T, s *sample[T], _ []int) error {
			ReMax(adv, ret, s.Ret, s.LogZ, s.Mask, s.Rows)
			return nil
		},
		"otb":           tokenBaseline(TokenBaseline{}, false),
		"otb weighted":  tokenBaseline(TokenBaseline{}, true),
		"otb with tail": tokenBaseline(TokenBaseline{KeepTail: true}, true),
	}
}

// rowScores returns the sums of the unmasked rewards.
func rowScores[T Float](s *sample[T]) []T {
	score := make([]T, s.Rows.Len())
	for i := range score {
		score[i] = T(MaskedSum(s.Ret[s.Rows[i]:s.Rows[i+1]], s.Mask[s.Rows[i]:s.Rows[i+1]]))
	}
	return score
}

// squaredProbs returns Σ π² of a policy whose other tokens are many and rare.
func squaredProbs[T Float](s *sample[T]) []T {
	out := make([]T, len(s.LogProb))
	for t, lp := range s.LogProb {
		out[t] = T(exp(2 * float64(lp)))
	}
	return out
}

// threeGroups are groups of 10 rows, none of them of one row.
var threeGroups = []int{4, 7, 4, 7, 4, 7, 4, -1, 4, -1}

// estimate runs an estimator and returns its results at unmasked tokens, after one
// another.
func estimate[T Float](t *testing.T, e estimator[T], s *sample[T], group []int) (adv, ret []float64) {
	t.Helper()
	a, r := make([]T, len(s.Mask)), make([]T, len(s.Mask))
	for i := range a {
		a[i], r[i] = T(math.NaN()), T(math.NaN()) // whatever was there
	}
	if err := e(a, r, s, group); err != nil {
		t.Fatal(err)
	}
	kept := unmasked(s.Mask, 0, len(s.Mask))
	return pick(widen(a), kept), pick(widen(r), kept)
}

// eachEstimator calls f for every estimator on random samples.
func eachEstimator(t *testing.T, seed uint64, f func(t *testing.T, name string, r *rand.Rand, e estimator[float64], s *sample[float64])) {
	all := estimators[float64]()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			for range 20 {
				f(t, name, r, all[name], newSample[float64](r, len(threeGroups)))
			}
		})
	}
}

// Masked-out tokens, of NaN, change no bit wherever they are put.
func TestEstimatorsIgnoreMaskedTokens(t *testing.T) {
	eachEstimator(t, 11, func(t *testing.T, _ string, r *rand.Rand, e estimator[float64], s *sample[float64]) {
		wantAdv, wantRet := estimate(t, e, s, threeGroups)
		tokens, numbers := s.rowTokens(0, s.Rows.Len())
		for i, row := range tokens {
			var padded []int
			for _, tok := range append(row, -1, -1) {
				if tok >= 0 && s.Mask[tok] {
					padded = append(padded, tok)
				} else if r.IntN(2) == 0 {
					padded = append(padded, -1)
				}
			}
			tokens[i] = padded
		}
		adv, ret := estimate(t, e, s.build(tokens, numbers), threeGroups)
		compareSlice(t, "advantage", adv, wantAdv, 0)
		compareSlice(t, "return", ret, wantRet, 0)
	})
}

// Rows in another order, and groups of other names, have the same advantages to the
// rounding of sums.
func TestEstimatorsIgnoreRowOrder(t *testing.T) {
	eachEstimator(t, 12, func(t *testing.T, _ string, r *rand.Rand, e estimator[float64], s *sample[float64]) {
		wantAdv, wantRet := estimate(t, e, s, threeGroups)
		perm := r.Perm(s.Rows.Len())
		tokens, _ := s.rowTokens(0, s.Rows.Len())
		var moved [][]int
		var group []int
		place := make(map[int]int) // of an unmasked token in the results for s
		for k, tok := range unmasked(s.Mask, 0, len(s.Mask)) {
			place[tok] = k
		}
		var places []int
		for _, p := range perm {
			moved, group = append(moved, tokens[p]), append(group, 100-threeGroups[p])
			for _, tok := range tokens[p] {
				if s.Mask[tok] {
					places = append(places, place[tok])
				}
			}
		}
		adv, ret := estimate(t, e, s.build(moved, perm), group)
		compareSlice(t, "advantage", adv, pick(wantAdv, places), 1e-11)
		compareSlice(t, "return", ret, pick(wantRet, places), 1e-11)
	})
}

// A constant added to all rewards changes no advantage that is over a group.
func TestGroupEstimatorsIgnoreShift(t *testing.T) {
	eachEstimator(t, 13, func(t *testing.T, name string, r *rand.Rand, e estimator[float64], s *sample[float64]) {
		switch name {
		case "gae", "reinforce++", "remax":
			return // over nothing, or over unshifted values
		case "gpg", "otb", "otb weighted", "otb with tail":
			return // its factor, and the tail, know zero
		}
		want, _ := estimate(t, e, s, threeGroups)
		for i := range s.Rows.Len() {
			kept := unmasked(s.Mask, s.Rows[i], s.Rows[i+1])
			if len(kept) == 0 {
				return // a row that cannot be shifted by its tokens
			}
			s.Ret[kept[0]] += 3
		}
		got, _ := estimate(t, e, s, threeGroups)
		compareSlice(t, "advantage", got, want, 1e-10)
	})
}

// The float32 instance differs from float64 by rounding.
func TestEstimatorsFloat32(t *testing.T) {
	const seed = 14
	r := rand.New(rand.NewPCG(seed, 0))
	all64, all32 := estimators[float64](), estimators[float32]()
	for _, name := range slices.Sorted(maps.Keys(all64)) {
		s := newSample[float32](r, len(threeGroups))
		adv, ret := estimate(t, all32[name], s, threeGroups)
		wantAdv, wantRet := estimate(t, all64[name], convert[float64](s), threeGroups)
		compareSlice(t, name+": advantage", adv, wantAdv, 1e-5)
		compareSlice(t, name+": return", ret, wantRet, 1e-5)
	}
}

// TestEstimatorBits pins the bits of every estimator, and of functions of weights and
// probabilities, on one sample; see TestBits.
func TestEstimatorBits(t *testing.T) {
	const seed, want = 15, 0xab90649cbf90c69c
	h := fnv.New64a()
	write := func(xs ...float64) {
		for _, x := range xs {
			binary.Write(h, binary.LittleEndian, math.Float64bits(x))
		}
	}
	r := rand.New(rand.NewPCG(seed, 0))
	s := newSample[float64](r, len(threeGroups))
	all := estimators[float64]()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		adv, ret := estimate(t, all[name], s, threeGroups)
		write(adv...)
		write(ret...)
	}
	weight, uniform, drawn := make([]float64, len(s.LogZ)), make([]float64, 100), make([]int, 100)
	ResamplingWeights(weight, s.LogZ, WeighPower, 1.7)
	write(weight...)
	for i := range uniform {
		uniform[i] = r.Float64()
	}
	Resample(drawn, weight, uniform)
	for _, i := range drawn {
		write(float64(i))
	}
	s.OldLogProb = s.LogProb
	for _, m := range append(VarianceProxies(&s.Batch, squaredProbs(s), 0.3), ProbDiff(s.RefLogProb, s.LogProb, s.Mask)...) {
		write(m.Value)
	}
	if got := h.Sum64(); got != want {
		t.Errorf("seed %d: bits %#x, want %#x", seed, got, uint64(want))
	}
}
