package rl

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// eachObjective calls f for every loss of the package, under every aggregation,
// on random mini-batches.
func eachObjective(t *testing.T, seed uint64, f func(t *testing.T, r *rand.Rand, o objective[float64], mode Aggregation, s *sample[float64], n Counts)) {
	all := objectives[float64]()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for mode := TokenMean; mode <= SeqMeanTokenMean; mode++ {
			t.Run(fmt.Sprintf("%s/%v/seed=%d", name, mode, seed), func(t *testing.T) {
				r := rand.New(rand.NewPCG(seed, uint64(mode)))
				for range 5 {
					s := newSample[float64](r, 8)
					n := Count(s.Mask, s.Rows)
					n.Scale = 16
					f(t, r, all[name], mode, s, n)
				}
			})
		}
	}
}

// A mini-batch cut into micro-batches anywhere has the same bits: of the loss,
// of every statistic and of every gradient.
func TestMicroBatchesChangeNoBit(t *testing.T) {
	eachObjective(t, 1, func(t *testing.T, r *rand.Rand, o objective[float64], mode Aggregation, s *sample[float64], n Counts) {
		whole := evaluate(o, []*sample[float64]{s}, mode, n)
		var parts []*sample[float64]
		for lo := 0; lo < s.Rows.Len(); {
			hi := min(lo+1+r.IntN(4), s.Rows.Len())
			parts = append(parts, s.build(s.rowTokens(lo, hi)))
			lo = hi
		}
		compare(t, evaluate(o, parts, mode, n), whole, 0)
	})
}

// What stands at masked-out tokens, and how many of them pad a row, changes no
// bit; their gradients are zero.
func TestMaskedTokensTakeNoPart(t *testing.T) {
	eachObjective(t, 2, func(t *testing.T, r *rand.Rand, o objective[float64], mode Aggregation, s *sample[float64], n Counts) {
		want := evaluate(o, []*sample[float64]{s}, mode, n)
		tokens, numbers := s.rowTokens(0, s.Rows.Len())
		var kept []int // place in the padded batch of each token of s
		at := 0
		for i, row := range tokens {
			padded := []int{}
			for _, tok := range row {
				if r.IntN(3) == 0 {
					padded = append(padded, -1)
				}
				kept = append(kept, at+len(padded))
				padded = append(padded, tok)
			}
			tokens[i] = append(padded, make([]int, r.IntN(3))...)
			for k := len(padded); k < len(tokens[i]); k++ {
				tokens[i][k] = -1
			}
			at += len(tokens[i])
		}
		padded := s.build(tokens, numbers)
		for tok, on := range padded.Mask { // the masked-out tokens of s, too
			for _, a := range padded.arrays() {
				if !on {
					(*a)[tok] = math.NaN()
				}
			}
		}
		got := evaluate(o, []*sample[float64]{padded}, mode, n)
		for tok, g := range got.tokens {
			if !padded.Mask[tok] && g != 0 {
				t.Errorf("masked token %d has gradient %g", tok, g)
			}
		}
		got.tokens = pick(got.tokens, kept)
		compare(t, got, want, 0)
	})
}

// Rows in another order have the same gradients, and the same statistics to the
// rounding of sums.
func TestRowOrder(t *testing.T) {
	eachObjective(t, 3, func(t *testing.T, r *rand.Rand, o objective[float64], mode Aggregation, s *sample[float64], n Counts) {
		want := evaluate(o, []*sample[float64]{s}, mode, n)
		tokens, _ := s.rowTokens(0, s.Rows.Len())
		perm := r.Perm(s.Rows.Len())
		var moved [][]int
		for _, p := range perm {
			moved = append(moved, tokens[p])
		}
		got := evaluate(o, []*sample[float64]{s.build(moved, perm)}, mode, n)
		want.tokens = pick(want.tokens, slices.Concat(moved...))
		want.rows = pick(want.rows, perm)
		gotMetrics, wantMetrics := got.metrics, want.metrics
		got.metrics, want.metrics = nil, nil
		compare(t, got, want, 0)
		compare(t, outcome{metrics: gotMetrics}, outcome{metrics: wantMetrics}, 1e-12)
	})
}

// The float32 instance differs from float64 by the rounding of its results.
func TestFloat32(t *testing.T) {
	const seed = 4
	r := rand.New(rand.NewPCG(seed, 0))
	all64, all32 := objectives[float64](), objectives[float32]()
	for _, name := range slices.Sorted(maps.Keys(all64)) {
		s32 := newSample[float32](r, 8)
		s64 := convert[float64](s32)
		n := Count(s32.Mask, s32.Rows)
		want := evaluate(all64[name], []*sample[float64]{s64}, TokenMean, n)
		got := evaluate(all32[name], []*sample[float32]{s32}, TokenMean, n)
		compare(t, outcome{metrics: got.metrics}, outcome{metrics: want.metrics}, 0)
		got.metrics, want.metrics = nil, nil
		for i, w := range want.tokens {
			if !near(got.tokens[i]/float64(float32(w)), 1, 1e-6) && w != 0 {
				t.Errorf("%s, seed %d: token %d: %g in float32, %g in float64", name, seed, i, got.tokens[i], w)
			}
		}
	}
}

func pick(x []float64, index []int) []float64 {
	var out []float64
	for _, i := range index {
		out = append(out, x[i])
	}
	return out
}

// compare reports differences beyond tol relative to the greater of 1 and the
// number; with tol 0, any difference.
func compare(t *testing.T, got, want outcome, tol float64) {
	t.Helper()
	compareSlice(t, "token", got.tokens, want.tokens, tol)
	compareSlice(t, "row", got.rows, want.rows, tol)
	if len(got.metrics) != len(want.metrics) {
		t.Fatalf("%d metrics, want %d", len(got.metrics), len(want.metrics))
	}
	for i, w := range want.metrics {
		if g := got.metrics[i]; g.Name != w.Name || !near(g.Value, w.Value, tol) {
			t.Errorf("metric %d: %s = %.17g, want %s = %.17g", i, g.Name, g.Value, w.Name, w.Value)
		}
	}
}

func compareSlice(t *testing.T, what string, got, want []float64, tol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d gradients per %s, want %d", len(got), what, len(want))
	}
	for i := range want {
		if !near(got[i], want[i], tol) {
			t.Errorf("gradient of %s %d = %.17g, want %.17g", what, i, got[i], want[i])
		}
	}
}
