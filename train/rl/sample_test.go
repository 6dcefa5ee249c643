package rl

import (
	"math"
	"math/rand/v2"
)

// sample is a batch with all that any loss here reads.
type sample[T Float] struct {
	Batch[T]
	Value, OldValue, Ret, Entropy []T // [N]
	LogZ                          []T // [B]
}

// newSample draws rows of 0 to 9 tokens, a quarter of them masked out. Log-ratios and
// values are multiples of a step plus an offset that keeps them 3e-3 away from every
// clip in these tests. Its bits are the same on every machine.
func newSample[T Float](r *rand.Rand, rows int) *sample[T] {
	s := &sample[T]{Batch: Batch[T]{Rows: Rows{0}}}
	moves := []float64{-25, -1, -0.3, -0.1, 0.05, 0.12, 0.3, 0.9, 1.4, 25}
	for range rows {
		n := r.IntN(10)
		s.Rows = append(s.Rows, s.Rows[s.Rows.Len()]+n)
		s.LogZ = append(s.LogZ, T(4*r.Float64()-2))
		adv := 2*r.Float64() - 1
		for range n {
			jitter := func() float64 { return float64(0.01 * r.Float64()) }
			s.Mask = append(s.Mask, r.IntN(4) > 0)
			lp := float64(-3 * r.Float64())
			s.LogProb = append(s.LogProb, T(lp))
			s.OldLogProb = append(s.OldLogProb, T(lp-moves[r.IntN(len(moves))]-jitter()))
			s.RefLogProb = append(s.RefLogProb, T(lp-moves[r.IntN(len(moves))]-jitter()))
			s.Adv = append(s.Adv, T(adv+r.Float64()-0.5))
			s.Weight = append(s.Weight, T(0.5+r.Float64()))
			v := 2*r.Float64() - 1
			s.Value = append(s.Value, T(v))
			s.OldValue = append(s.OldValue, T(v+moves[1+r.IntN(len(moves)-2)]+jitter()))
			s.Ret = append(s.Ret, T(v+moves[1+r.IntN(len(moves)-2)]+float64(3*jitter())))
			s.Entropy = append(s.Entropy, T(2*r.Float64()))
		}
	}
	s.Coef = make([]float64, len(s.Mask))
	return s
}

// arrays returns all arrays [N] that hold numbers.
func (s *sample[T]) arrays() []*[]T {
	return []*[]T{&s.LogProb, &s.OldLogProb, &s.RefLogProb, &s.Adv, &s.Weight, &s.Value, &s.OldValue, &s.Ret, &s.Entropy}
}

// build assembles a sample from tokens of s: row i gets the tokens rows[i] of s,
// where -1 stands for a masked-out token of NaN, and log Z of row logZ[i].
func (s *sample[T]) build(rows [][]int, logZ []int) *sample[T] {
	out := &sample[T]{Batch: Batch[T]{Rows: Rows{0}}}
	for i, tokens := range rows {
		for _, t := range tokens {
			out.Mask = append(out.Mask, t >= 0 && s.Mask[t])
			for k, a := range out.arrays() {
				v := T(math.NaN())
				if t >= 0 {
					v = (*s.arrays()[k])[t]
				}
				*a = append(*a, v)
			}
		}
		out.Rows = append(out.Rows, len(out.Mask))
		out.LogZ = append(out.LogZ, s.LogZ[logZ[i]])
	}
	out.Coef = make([]float64, len(out.Mask))
	return out
}

// rowTokens returns the tokens of rows lo to hi-1 and the numbers of the rows.
func (s *sample[T]) rowTokens(lo, hi int) (tokens [][]int, numbers []int) {
	for i := lo; i < hi; i++ {
		var row []int
		for t := s.Rows[i]; t < s.Rows[i+1]; t++ {
			row = append(row, t)
		}
		tokens, numbers = append(tokens, row), append(numbers, i)
	}
	return tokens, numbers
}

// convert returns s with elements of type To.
func convert[To, From Float](s *sample[From]) *sample[To] {
	out := &sample[To]{Batch: Batch[To]{Rows: s.Rows, Mask: s.Mask, Coef: s.Coef}}
	for k, a := range out.arrays() {
		for _, v := range *s.arrays()[k] {
			*a = append(*a, To(v))
		}
	}
	for _, z := range s.LogZ {
		out.LogZ = append(out.LogZ, To(z))
	}
	return out
}
