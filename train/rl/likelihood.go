package rl

import "fmt"

// Likelihood says how the log-probs of a reference answer's tokens, given the reasoning before it, make one number.
// With l the log-probs and n of them:
//
//	mean     Σ exp(l)/n   RLPR (arXiv:2506.18254): no token can spoil the others
//	product  exp(Σ l)     the answer's probability: VeriFree (arXiv:2505.21493)
//	log      Σ l          its logarithm: JEPO's bound for one sample (arXiv:2503.19618)
type Likelihood uint8

const (
	LikelihoodMean Likelihood = 1 + iota
	LikelihoodProduct
	LikelihoodLog
)

var likelihoodNames = [...]string{LikelihoodMean: "mean", LikelihoodProduct: "product", LikelihoodLog: "log"}

// ParseLikelihood returns the one with that name.
func ParseLikelihood(name string) (Likelihood, error) {
	for l := LikelihoodMean; l <= LikelihoodLog; l++ {
		if likelihoodNames[l] == name {
			return l, nil
		}
	}
	return 0, fmt.Errorf("unknown likelihood %q", name)
}

// Of returns the likelihood of an answer with these log-probs. It panics without any.
func (l Likelihood) Of(logProb []float32) float64 {
	answer := make([]bool, len(logProb))
	for t := range answer {
		answer[t] = true
	}
	v, _ := likelihood(l, logProb, answer)
	return v
}

// likelihood is Of for the tokens of an answer, and returns the number of them.
func likelihood[T Float](l Likelihood, logProb []T, answer []bool) (v float64, n int) {
	for t, on := range answer {
		switch {
		case !on:
			continue
		case l == LikelihoodMean:
			v += exp(float64(logProb[t]))
		default:
			v += float64(logProb[t])
		}
		n++
	}
	switch {
	case n == 0:
		panic("rl: an answer without tokens")
	case l == LikelihoodMean:
		v /= float64(n)
	case l == LikelihoodProduct:
		v = exp(v)
	}
	return v, n
}

// AnswerTerm adds the term of reference answers to an objective,
//
//	-scale·Σ_i f_i/of
//
// where f_i is the likelihood of the answer in row i under the current parameters: its gradient to dLogProb [N], and
// Σ f_i/of to sum. answer [N] marks the answers' tokens; rows without one take no part. It is the second half of the
// gradient of E[f], whose first half is the policy gradient of the reasoning with f for its reward: with the product,
// f·∇log π(answer|reasoning) (arXiv:2505.21493).
func AnswerTerm[T Float](dLogProb, logProb []T, answer []bool, rows Rows, l Likelihood, scale float64, of int,
	sum *float64) {
	sameLen(len(answer), len(dLogProb), len(logProb))
	rows.check(len(answer))
	for i := range rows.Len() {
		lo, hi := rows[i], rows[i+1]
		if countTrue(answer[lo:hi]) == 0 {
			continue
		}
		f, n := likelihood(l, logProb[lo:hi], answer[lo:hi])
		*sum += f / float64(of)
		for t := lo; t < hi; t++ {
			if !answer[t] {
				continue
			}
			slope := 1.0
			switch l {
			case LikelihoodMean:
				slope = exp(float64(logProb[t])) / float64(n)
			case LikelihoodProduct:
				slope = f
			}
			dLogProb[t] -= T(scale * slope / float64(of))
		}
	}
}
