package rl

import "math"

// Distillation lets the reference policy teach: every token of the policy's own completions gets an
// advantage from how much likelier the reference finds it. Its policy gradient is that of the reverse KL
// of each next token, estimated from the token sampled (arXiv:2306.08543; Lu et al., On-Policy
// Distillation, Thinking Machines Lab 2025; the loss k1 of verl's distillation with a policy gradient).
type Distillation struct {
	Coef float64 // of the teacher's part; 0: none
	Max  float64 // bound of |log-ratio|, nats; +Inf: none. verl's loss_max_clamp
}

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
