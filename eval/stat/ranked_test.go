package stat

import (
	"math"
	"math/rand/v2"
	"testing"
)

// subsets calls f with the members of each choice of k of n.
func subsets(n, k int, f func(members []int)) {
	for mask := range 1 << n {
		if ones(mask) != k {
			continue
		}
		var members []int
		for i := range n {
			if mask>>i&1 == 1 {
				members = append(members, i)
			}
		}
		f(members)
	}
}

// rankedSamples draws samples with few different scores and answers, so that many tie; some have no answer.
func rankedSamples(rng *rand.Rand, n int) (scores []float64, answers []int, right []bool) {
	for range n {
		scores = append(scores, float64(rng.IntN(4))-1.5)
		answers = append(answers, rng.IntN(4)-1)
		right = append(right, rng.IntN(2) == 1)
	}
	return scores, answers, right
}

// BestOf is the mean over all choices of k samples of the right share of their best score, counted here one by one.
func TestBestOfCountsSubsets(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := 1; n <= 8; n++ {
		for range 6 {
			scores, _, right := rankedSamples(rng, n)
			for k := 1; k <= n; k++ {
				var sum, count float64
				subsets(n, k, func(members []int) {
					best, hits, tied := math.Inf(-1), 0.0, 0.0
					for _, i := range members {
						if scores[i] > best {
							best, hits, tied = scores[i], 0, 0
						}
						if scores[i] == best {
							hits, tied = hits+Indicator(right[i]), tied+1
						}
					}
					sum, count = sum+hits/tied, count+1
				})
				if got, want := BestOf(scores, right, k), sum/count; !near(got, want, 1e-12) {
					t.Fatalf("best of %d of %v, right %v: %.15f, want %.15f", k, scores, right, got, want)
				}
			}
		}
	}
}

// A scorer that gives right samples 1 and wrong ones 0 finds one wherever pass@k does; one that gives all the same
// finds what chance does.
func TestBestOfBounds(t *testing.T) {
	right := make([]bool, 64)
	scores, flat := make([]float64, 64), make([]float64, 64)
	for _, i := range []int{3, 17, 18, 40, 63} {
		right[i], scores[i] = true, 1
	}
	for _, k := range []int{1, 2, 16, 59, 60, 64} {
		want, err := PassAtK(64, 5, k)
		if got := BestOf(scores, right, k); err != nil || !near(got, want, 1e-12) {
			t.Errorf("the perfect scorer's best of %d: %.15f, want pass@k %.15f", k, got, want)
		}
		if got := BestOf(flat, right, k); !near(got, 5.0/64, 1e-12) {
			t.Errorf("the best of %d equal scores: %g", k, got)
		}
	}
}

// majorityWon is the expected value of the vote of some samples in a random order: each of the most frequent answers
// wins equally often, with the right share of all samples of the class.
func majorityWon(answers []int, right []bool, members []int) float64 {
	votes := map[int]int{}
	most := 0
	for _, i := range members {
		if a := answers[i]; a >= 0 {
			votes[a]++
			most = max(most, votes[a])
		}
	}
	var won, winners float64
	for a, n := range votes {
		if n != most {
			continue
		}
		var hits, size float64
		for i := range answers {
			if answers[i] == a {
				hits, size = hits+Indicator(right[i]), size+1
			}
		}
		won, winners = won+hits/size, winners+1
	}
	return won / max(1, winners)
}

// MajorityOf is the mean of the vote over all choices of k samples, counted here one by one.
func TestMajorityOfCountsSubsets(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for n := 1; n <= 8; n++ {
		for range 6 {
			_, answers, right := rankedSamples(rng, n)
			for k := 1; k <= n; k++ {
				var sum, count float64
				subsets(n, k, func(members []int) {
					sum, count = sum+majorityWon(answers, right, members), count+1
				})
				if got, want := MajorityOf(answers, right, k), sum/count; !near(got, want, 1e-12) {
					t.Fatalf("majority of %d of %v, right %v: %.15f, want %.15f", k, answers, right, got, want)
				}
			}
		}
	}
}

// With many samples nothing overflows, and a vote of all of them is the plain one.
func TestMajorityOfMany(t *testing.T) {
	var answers []int
	var right []bool
	for i := range 400 {
		answers, right = append(answers, i%3), append(right, i%3 == 0) // 134 right, 133 of each other answer
	}
	if got := MajorityOf(answers, right, 400); !near(got, 1, 1e-9) {
		t.Errorf("of all 400: %g", got)
	}
	if got := MajorityOf(answers, right, 1); !near(got, 134.0/400, 1e-12) {
		t.Errorf("of one: %g", got)
	}
	if got := MajorityOf(answers, right, 2); !near(got, 134.0/400, 1e-12) { // two votes tie or agree
		t.Errorf("of two: %g", got)
	}
	if got := MajorityOf([]int{-1, -1}, []bool{false, false}, 2); got != 0 {
		t.Errorf("without answers: %g", got)
	}
}

func TestWeightedVote(t *testing.T) {
	for _, tt := range []struct {
		answers []int
		weights []float64
		right   []bool
		want    float64
	}{
		{[]int{0, 1, 1}, []float64{0.9, 0.3, 0.4}, []bool{true, false, false}, 1},
		{[]int{0, 1, 1}, []float64{0.5, 0.3, 0.4}, []bool{true, false, false}, 0},
		{[]int{1, 0, 1}, []float64{0.25, 0.5, 0.25}, []bool{false, true, false}, 0}, // equal sums: 1 came first
		{[]int{-1, 0}, []float64{5, 0.1}, []bool{false, true}, 1},                   // no answer, no vote
		{[]int{-1}, []float64{5}, []bool{true}, 0},
		{[]int{0, 1}, []float64{0, 0}, []bool{true, false}, 1},
	} {
		if got := WeightedVote(tt.answers, tt.weights, tt.right); got != tt.want {
			t.Errorf("%v with %v: %g, want %g", tt.answers, tt.weights, got, tt.want)
		}
	}
}

func TestRankAccuracy(t *testing.T) {
	// Of right 2, 1 and wrong 1, 0: 2>1, 2>0, 1=1, 1>0.
	got, ok := RankAccuracy([]float64{2, 1, 1, 0}, []bool{true, true, false, false})
	if !ok || got != 3.5/4 {
		t.Errorf("%g, %t", got, ok)
	}
	if _, ok := RankAccuracy([]float64{1, 2}, []bool{true, true}); ok {
		t.Error("a value without a wrong sample")
	}
}
