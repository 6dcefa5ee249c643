package rl

import "math"

// Distillation lets the reference policy teach on the policy's own completions. Without TopK every token gets an
// advantage from how much likelier the reference finds it. Its policy gradient is that of the reverse KL
// of each next token, estimated from the token sampled (arXiv:2306.08543; Lu et al., On-Policy
// Distillation, Thinking Machines Lab 2025; the loss k1 of verl's distillation with a policy gradient).
// With TopK the loss gains the forward KL over the teacher's likeliest next tokens (ForwardKL).
type Distillation struct {
	Coef  float64 // of the teacher's part; 0: none
	Max   float64 // bound of |log-ratio|, or of a token's forward KL, nats; +Inf: none. verl's loss_max_clamp
	TopK  int     // the teacher's likeliest tokens that the policy learns at each place; 0: the sampled one
	Floor float64 // with TopK: smaller log-probs count as this; -Inf: none. verl's log_prob_min_clamp
}

// MaxTopK is the largest TopK, as kernels.MaxTopTokens.
const MaxTopK = 1024

// Teaches reports whether distillation gives tokens advantages.
func (d Distillation) Teaches() bool { return d.Coef != 0 && d.TopK == 0 }

// Teach adds the teacher's part to advantages at unmasked tokens:
//
//	adv[t] += Coef·clamp(refLogProb[t] - oldLogProb[t], -Max, Max)
//
// All arrays are [N]. A token's advantage counts nothing that comes after it: that is a discount of 0.
func (d Distillation) Teach(adv, oldLogProb, refLogProb []float32, mask []bool) {
	sameLen(len(mask), len(adv), len(oldLogProb), len(refLogProb))
	for t, on := range mask {
		if !on {
			continue
		}
		ratio := float64(refLogProb[t]) - float64(oldLogProb[t])
		adv[t] = float32(float64(adv[t]) + float64(d.Coef*math.Max(-d.Max, math.Min(ratio, d.Max))))
	}
}

// Taught holds log-probs [N,K] of the teacher's likeliest tokens, under the teacher and under the policy.
type Taught struct {
	K                int
	Teacher, Student []float32
}

// DistillStats sums over the tokens of a mini-batch.
type DistillStats struct {
	loss, teacher, student float64
	tokens                 int
}

// ForwardKL adds Coef·Σ coef[t]·L[t] over unmasked tokens to an objective: its gradient to dStudent [N,K]. With p and
// q the probabilities of the teacher and of the policy, logarithms of at least Floor,
//
//	L[t] = clamp(Σ_k p_k·(log p_k - log q_k), 0, Max)
//
// and no gradient where a bound holds (Agarwal et al., arXiv:2306.13649, equation 2 with the forward KL; verl's
// forward_kl_topk). The sum is not a KL of whole distributions, and may be negative. A teacher's log-prob of -Inf
// stands for no token.
func (d Distillation) ForwardKL(dStudent []float32, x Taught, mask []bool, coef []float64, stats *DistillStats) {
	sameLen(int(len(mask)*x.K), len(dStudent), len(x.Teacher), len(x.Student))
	sameLen(len(mask), len(coef))
	for t, on := range mask {
		if !on {
			continue
		}
		lo := int(t * x.K)
		p, q, grad := x.Teacher[lo:lo+x.K], x.Student[lo:lo+x.K], dStudent[lo:lo+x.K]
		var kl float64
		for k := range p {
			lp, lq := float64(p[k]), float64(q[k])
			if math.IsInf(lp, -1) {
				continue
			}
			stats.teacher, stats.student = stats.teacher+exp(lp), stats.student+exp(lq)
			lp, lq = math.Max(lp, d.Floor), math.Max(lq, d.Floor)
			kl += float64(exp(lp) * (lp - lq))
		}
		stats.tokens++
		stats.loss += float64(coef[t] * math.Max(0, math.Min(kl, d.Max)))
		if kl <= 0 || kl >= d.Max {
			continue
		}
		for k := range p {
			if lp := float64(p[k]); !math.IsInf(lp, -1) && !(float64(q[k]) <= d.Floor) {
				grad[k] -= float32(d.Coef * coef[t] * exp(math.Max(lp, d.Floor)))
			}
		}
	}
}

// Metrics returns the loss, not multiplied by Coef, and the mean probability of the teacher's likeliest tokens.
func (s *DistillStats) Metrics() []Metric {
	n := float64(max(1, s.tokens))
	return []Metric{{Name: "actor/distill_loss", Value: s.loss}, {Name: "distill/teacher_mass", Value: s.teacher / n},
		{Name: "distill/student_mass", Value: s.student / n}}
}

// NoAdvantage is the name of the estimator that learns nothing from rewards.
const NoAdvantage = "none"

// noEstimator gives no token an advantage: rewards are only watched. What the policy learns comes from
// Distillation or from the KL in the loss.
func noEstimator() Estimator {
	return Estimator{Name: NoAdvantage, Estimate: func(s *Graded, _ Settings) error {
		clear(s.Adv)
		clear(s.Ret)
		return nil
	}}
}
