package rl

import (
	"math"
	"testing"
)

// By hand: log-probs of 1/2, 1/4 and 1/8.
func TestLikelihood(t *testing.T) {
	ln2 := float32(math.Ln2)
	lp := []float32{-ln2, -2 * ln2, -3 * ln2}
	for name, want := range map[string]float64{"mean": 7. / 24, "product": 1. / 64, "log": -6 * math.Ln2} {
		l, err := ParseLikelihood(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := l.Of(lp); math.Abs(got-want) > 1e-6 {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	if _, err := ParseLikelihood("sum"); err == nil {
		t.Error("no error for an unknown likelihood")
	}
	defer func() {
		if recover() == nil {
			t.Error("no panic without tokens")
		}
	}()
	LikelihoodLog.Of(nil)
}

// By hand: two rows, the first with a token before its answer of 1/2 and 1/4, the second without an answer. The term
// is 3 times the likelihood over 4 rows.
func TestAnswerTerm(t *testing.T) {
	lp := []float64{-1, -math.Ln2, -2 * math.Ln2, -5}
	answer, rows := []bool{false, true, true, false}, Rows{0, 3, 4}
	for name, want := range map[string]struct {
		f      float64
		dl, dr float64 // of both tokens
	}{
		"mean":    {3. / 8, 1. / 4, 1. / 8},
		"product": {1. / 8, 1. / 8, 1. / 8},
		"log":     {-3 * math.Ln2, 1, 1},
	} {
		l, _ := ParseLikelihood(name)
		d, sum := []float64{1, 1, 1, 1}, 0.5
		AnswerTerm(d, lp, answer, rows, l, 3, 4, &sum)
		for i, want := range []float64{1, 1 - 3*want.dl/4, 1 - 3*want.dr/4, 1} {
			if math.Abs(d[i]-want) > 1e-15 {
				t.Errorf("%s: derivative %d is %v, want %v", name, i, d[i], want)
			}
		}
		if math.Abs(sum-0.5-want.f/4) > 1e-15 {
			t.Errorf("%s: sum %v, want %v", name, sum, 0.5+want.f/4)
		}
	}
}

// addLikelihoods lists the terms of answers; a sample's unmasked tokens are its answers.
func addLikelihoods[T Float](list map[string]objective[T]) {
	for l := LikelihoodMean; l <= LikelihoodLog; l++ {
		list["answer "+likelihoodNames[l]] = objective[T]{by: func(s *sample[T]) []T { return s.LogProb },
			start: func(rows int) accumulator[T] {
				return plainSum(-0.7, func(d []T, s *sample[T], sum *float64) {
					AnswerTerm(d, s.LogProb, s.Mask, s.Rows, l, 0.7, rows, sum)
				})
			}}
	}
}
