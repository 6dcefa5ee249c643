package rl

// Demonstrations weigh completions of a group that no policy of the run sampled: LUFFY's off-policy guidance
// (arXiv:2504.14945 §3).
type Demonstrations struct {
	Weight  float64 // of their term; 0: there are none
	Shaping float64 // gamma, above 0
}

// DemonstrationTerm adds the term of demonstrations to an objective,
//
//	-Weight·Σ coef·A·f(p)   over their tokens, f(p) = p/(p + Shaping)
//
// with p the probability of a token under the current parameters: its gradient to dLogProb [N]. The demonstrator's
// probabilities count as 1, so p is the importance ratio, and nothing clips it. f keeps the gradient of improbable
// tokens large: with respect to log p it is f·(1 - f), whereas p alone would have p. shown [N] marks the tokens.
func DemonstrationTerm[T Float](dLogProb []T, b *Batch[T], shown []bool, d Demonstrations, s *DemonstrationStats) {
	sameLen(len(shown), len(dLogProb), len(b.LogProb))
	for t, on := range shown {
		if !on {
			continue
		}
		p := exp(float64(b.LogProb[t]))
		f := p / (p + d.Shaping)
		scale := float64(float64(d.Weight*b.Coef[t]) * float64(b.Adv[t]))
		s.loss -= float64(scale * f)
		s.prob += p
		s.tokens++
		dLogProb[t] -= T(float64(scale*f) * (1 - f))
	}
}

// DemonstrationStats sums over the demonstrations of a mini-batch.
type DemonstrationStats struct {
	loss, prob float64
	tokens     int
}

// Metrics returns the term, and the mean probability of a demonstration's tokens; nothing without a token.
//
//	actor/demonstration_loss   the term of the demonstrations in the policy loss
//	actor/demonstration_prob   mean over their tokens of the policy's probability
func (s *DemonstrationStats) Metrics() []Metric {
	if s.tokens == 0 {
		return nil
	}
	return []Metric{{Name: "actor/demonstration_loss", Value: s.loss},
		{Name: "actor/demonstration_prob", Value: s.prob / float64(s.tokens)}}
}
