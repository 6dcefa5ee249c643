package stat

import (
	"math"
	"slices"
)

// BestOf returns the probability that the best-scored of k samples is right, where every choice of k of the n samples
// is equally likely, and among samples with the best score of a choice each is taken equally often. scores and right
// are [n]; scores are not NaN, k is 1 to n. It is exact: with m samples of a score and those above it,
//
//	Σ over scores  right share of the score · (P(none above is chosen) - P(none of the m is chosen))
//
// where P(none of m is chosen) = C(n-m, k) / C(n, k). With k = n it is the right share of the best score, with k = 1
// the share of right samples.
func BestOf(scores []float64, right []bool, k int) float64 {
	n := len(scores)
	if len(right) != n || k < 1 || k > n {
		panic("stat: the best of a number of samples that is not there")
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return compareDescending(scores[a], scores[b]) })
	value, none := 0.0, 1.0
	for i := 0; i < n && none > 0; {
		hits, above, j := 0, none, i
		for ; j < n && scores[order[j]] == scores[order[i]]; j++ {
			none *= float64(max(0, n-j-k)) / float64(n-j)
			if right[order[j]] {
				hits++
			}
		}
		value += float64((above - none) * float64(hits) / float64(j-i))
		i = j
	}
	return value
}

func compareDescending(a, b float64) int {
	switch {
	case a > b:
		return -1
	case a < b:
		return 1
	}
	return 0
}

// RankAccuracy returns the probability that a right sample has a higher score than a wrong one, an equal score
// counting half (the area under the ROC curve). ok is false unless there are both.
func RankAccuracy(scores []float64, right []bool) (value float64, ok bool) {
	var pairs, won float64
	for i, r := range right {
		for j, other := range right {
			if !r || other {
				continue
			}
			pairs++
			switch {
			case scores[i] > scores[j]:
				won++
			case scores[i] == scores[j]:
				won += 0.5
			}
		}
	}
	if pairs == 0 {
		return 0, false
	}
	return won / pairs, true
}

// WeightedVote returns 1 if the answer with the largest sum of weights is right, else 0. answers [n] hold a class of
// equal answers for each sample, -1 for none, which does not vote; weights [n] are at least 0. The first sample of a
// class says whether it is right, and of equal sums the answer seen first wins, as in MajorityVote.
func WeightedVote(answers []int, weights []float64, right []bool) float64 {
	sums := map[int]float64{}
	for i, a := range answers {
		if a >= 0 {
			sums[a] += weights[i]
		}
	}
	best, value := math.Inf(-1), 0.0
	for i, a := range answers {
		sum, new := sums[a]
		if !new {
			continue
		}
		if sum > best {
			best, value = sum, Indicator(right[i])
		}
		delete(sums, a)
	}
	return value
}

// answerClass is a class of equal answers.
type answerClass struct {
	size  int
	right float64 // share of its samples that are right
}

// classesOf groups samples by their answers, in order of first appearance, and counts those without.
func classesOf(answers []int, right []bool) (list []answerClass, silent int) {
	at := map[int]int{}
	for i, a := range answers {
		if a < 0 {
			silent++
			continue
		}
		k, known := at[a]
		if !known {
			k = len(list)
			at[a] = k
			list = append(list, answerClass{})
		}
		list[k].size++
		list[k].right += Indicator(right[i])
	}
	for i := range list {
		list[i].right /= float64(list[i].size)
	}
	return list, silent
}

// MajorityOf returns the probability that the most frequent answer among k samples is right, where every choice of k
// of the n samples is equally likely. answers and right are [n], answers as for WeightedVote; k is 1 to n. Of equally
// frequent answers each wins equally often, as the one seen first does if the samples come in a random order; a class
// whose samples differ in right counts with their share. Without a vote the value is 0.
//
// It is exact up to rounding. Samples are chosen independently with probability k/n; given that k are chosen, all
// choices are equally likely. So the probability that the largest class has v votes and t classes tie is a sum of
// products of binomial probabilities, over classes one after another.
func MajorityOf(answers []int, right []bool, k int) float64 {
	n := len(answers)
	if len(right) != n || k < 1 || k > n {
		panic("stat: the majority of a number of samples that is not there")
	}
	classes, silent := classesOf(answers, right)
	p := float64(k) / float64(n)
	most, chances := 0, make([][]float64, len(classes))
	for i, c := range classes {
		chances[i] = binomial(c.size, k, p)
		most = max(most, min(c.size, k))
	}
	quiet := binomial(silent, k, p)
	value := 0.0
	for votes := 1; votes <= most; votes++ {
		value += wonWith(votes, k, classes, chances, quiet)
	}
	return value / binomial(n, k, p)[k]
}

// wonWith returns the probability that k samples are chosen and that the largest classes among them, with so many
// votes each, are right: the mean of their right shares. chances[i][j] is the probability that j of class i are
// chosen, quiet[j] that j without an answer are.
func wonWith(votes, k int, classes []answerClass, chances [][]float64, quiet []float64) float64 {
	ties := 0
	for _, c := range classes {
		if c.size >= votes {
			ties++
		}
	}
	ties = min(ties, k/votes)
	width := ties + 1
	// By the number of chosen samples and of classes with so many votes: the probability, and with it the sum of
	// these classes' right shares.
	chance, sum := make([]float64, (k+1)*width), make([]float64, (k+1)*width)
	nextChance, nextSum := make([]float64, len(chance)), make([]float64, len(chance))
	chance[0] = 1
	for i, c := range classes {
		clear(nextChance)
		clear(nextSum)
		for used := range k + 1 {
			for tied := range width {
				at := used*width + tied
				if chance[at] == 0 {
					continue
				}
				for j := range min(c.size, votes, k-used) + 1 {
					q, to, right := chances[i][j], at+j*width, 0.0
					if j == votes {
						if tied == ties {
							continue // more classes than can tie
						}
						to, right = to+1, c.right
					}
					nextChance[to] += float64(q * chance[at])
					nextSum[to] += float64(q * (sum[at] + float64(right*chance[at])))
				}
			}
		}
		chance, nextChance, sum, nextSum = nextChance, chance, nextSum, sum
	}
	value := 0.0
	for used := range k + 1 {
		rest := k - used
		if rest >= len(quiet) {
			continue
		}
		for tied := 1; tied <= ties; tied++ {
			value += float64(quiet[rest] * sum[used*width+tied] / float64(tied))
		}
	}
	return value
}

// binomial returns the probabilities that 0, 1, … min(n, most) of n samples are chosen, each with probability p in
// (0, 1].
func binomial(n, most int, p float64) []float64 {
	list := make([]float64, min(n, most)+1)
	all, _ := math.Lgamma(float64(n + 1))
	for i := range list {
		in, _ := math.Lgamma(float64(i + 1))
		out, _ := math.Lgamma(float64(n - i + 1))
		x := all - in - out + float64(float64(i)*math.Log(p))
		if i < n { // or else 0 · -Inf for p = 1
			x += float64(float64(n-i) * math.Log1p(-p))
		}
		list[i] = math.Exp(x)
	}
	return list
}
