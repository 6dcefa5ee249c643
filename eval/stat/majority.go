package stat

import (
	"fmt"
	"math/rand/v2"
)

// Ties says what a vote is worth that several answers win.
type Ties string

const (
	TiesFirst Ties = "first" // the answer seen first wins, as in verl's calc_maj_val
	TiesShare Ties = "share" // the mean over the winners: what drawing one of them would give
	TiesWrong Ties = "wrong" // such a vote is worth 0
)

// Vote is what the majority of a problem's samples comes to.
type Vote struct {
	Value float64 `json:"value"` // 1 if the most frequent answer is correct, 0 if not, or as Ties says
	Tied  float64 `json:"tied"`  // 1 if several answers are the most frequent; the share of draws in MajAtK
}

// MajorityVote takes the vote of all samples (Wang et al., arXiv:2203.11171 §2).
// answers [n] are canonical: equal ones are one class, and the empty string is no
// answer and no class. correct [n] is of the samples; of a class, the one seen first
// counts. Without any answer it is worth 0. It panics if the lengths differ.
func MajorityVote(answers []string, correct []bool, ties Ties) Vote {
	return newBallot(answers, correct).vote(nil, ties)
}

// MajAtK is the mean of MajorityVote over the subsets of k samples, in the order of
// the samples: maj@k without replacement. Up to subsetLimit subsets it visits all of
// them, exact; beyond that it draws as many, seeded by seed. k larger than the number
// of samples is an error.
func MajAtK(answers []string, correct []bool, k int, ties Ties, seed uint64) (v Vote, exact bool, err error) {
	n := len(answers)
	if k < 1 || k > n {
		return Vote{}, false, fmt.Errorf("maj@%d of %d samples a problem", k, n)
	}
	b := newBallot(answers, correct)
	times := 0
	add := func(subset []int) {
		w := b.vote(subset, ties)
		v.Value += w.Value
		v.Tied += w.Tied
		times++
	}
	if exact = choose(n, k) <= subsetLimit; exact {
		eachSubset(n, k, add)
	} else {
		rng := rand.New(rand.NewPCG(seed, 0))
		for range subsetLimit {
			add(drawSubset(rng, n, k))
		}
	}
	v.Value /= float64(times)
	v.Tied /= float64(times)
	return v, exact, nil
}

// subsetLimit is how many subsets MajAtK visits: a mean over as many draws is known to
// ± 0.004 (one standard error of a share, at most).
const subsetLimit = 20_000

// ballot is the samples of a problem by class of answers.
type ballot struct {
	class   []int  // of each sample; -1: no answer
	correct []bool // of each class
	votes   []int  // scratch
}

func newBallot(answers []string, correct []bool) *ballot {
	if len(answers) != len(correct) {
		panic("stat: length mismatch")
	}
	b := &ballot{class: make([]int, len(answers))}
	seen := make(map[string]int)
	for i, a := range answers {
		c, ok := seen[a]
		switch {
		case a == "":
			c = -1
		case !ok:
			c = len(b.correct)
			seen[a] = c
			b.correct = append(b.correct, correct[i])
		}
		b.class[i] = c
	}
	b.votes = make([]int, len(b.correct))
	return b
}

// vote is that of the samples of subset, in ascending order; nil: of all. Classes are
// numbered by first appearance, but a subset may begin with another one.
func (b *ballot) vote(subset []int, ties Ties) Vote {
	clear(b.votes)
	most, n := 0, len(b.class)
	if subset != nil {
		n = len(subset)
	}
	at := func(i int) int {
		if subset != nil {
			i = subset[i]
		}
		return b.class[i]
	}
	for i := range n {
		if c := at(i); c >= 0 {
			b.votes[c]++
			most = max(most, b.votes[c])
		}
	}
	if most == 0 {
		return Vote{}
	}
	winners, right, first := 0, 0, -1
	for i := range n {
		c := at(i)
		if c < 0 || b.votes[c] != most {
			continue
		}
		if first < 0 {
			first = c
		}
		winners++
		if b.correct[c] {
			right++
		}
		b.votes[c] = -1 // counted
	}
	v := Vote{Tied: indicator(winners > 1)}
	switch {
	case winners == 1 || ties == TiesFirst:
		v.Value = indicator(b.correct[first])
	case ties == TiesShare:
		v.Value = float64(right) / float64(winners)
	}
	return v
}

func indicator(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// choose is C(n, k), or something above subsetLimit.
func choose(n, k int) int {
	c := 1
	for i := range min(k, n-k) {
		c = c * (n - i) / (i + 1)
		if c > subsetLimit {
			return c
		}
	}
	return c
}

// eachSubset calls f with all subsets of k of n in lexical order; f must not keep its
// argument.
func eachSubset(n, k int, f func([]int)) {
	at := make([]int, k)
	for i := range at {
		at[i] = i
	}
	for {
		f(at)
		i := k - 1
		for i >= 0 && at[i] == n-k+i {
			i--
		}
		if i < 0 {
			return
		}
		at[i]++
		for j := i + 1; j < k; j++ {
			at[j] = at[j-1] + 1
		}
	}
}

// drawSubset draws k of n, each subset as likely as any other, in ascending order
// (Knuth, The Art of Computer Programming 2, algorithm 3.4.2 S).
func drawSubset(rng *rand.Rand, n, k int) []int {
	subset := make([]int, 0, k)
	for i := 0; len(subset) < k; i++ {
		if rng.IntN(n-i) < k-len(subset) {
			subset = append(subset, i)
		}
	}
	return subset
}
