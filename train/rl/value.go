package rl

import "math"

// Settings of the critic.
var (
	CriticWarmup = Setting{Key: "critic.warmup_steps", Default: 0, Range: "[0, inf)", Unit: "steps",
		Help: "steps in which only the critic learns, before the policy and its learning rate's schedule begin; " +
			"verl's critic_warmup is one more"}
	ValueClip = Setting{Key: "critic.clip_value", Default: 0.5, Range: "(0, inf)", Verl: []string{"cliprange_value"},
		Help: "how far a value may move from the old one before its loss is clipped"}
)

// ValueLoss adds the clipped loss of a critic (arXiv:2005.12729 eq. 4) to s, and its
// gradient to dvalue [N]. Per unmasked token, with vc the value clipped to oldValue ± clip:
//
//	l = ½·max((value-ret)², (vc-ret)²)
//
// and the loss is Σ coef·l. The gradient is coef·(value-ret), and 0 where the
// clipped term is the greater. value, oldValue, ret, mask and coef are [N];
// oldValue is the critic before the first update. verl's clip is 0.5.
func ValueLoss[T Float](dvalue, value, oldValue, ret []T, mask []bool, coef []float64, clip float64, s *ValueStats) {
	sameLen(len(mask), len(dvalue), len(value), len(oldValue), len(ret), len(coef))
	for t, on := range mask {
		if !on {
			continue
		}
		v, old, target := float64(value[t]), float64(oldValue[t]), float64(ret[t])
		grad := v - target
		loss := square(grad)
		if bound := square(clamp(v, old-clip, old+clip) - target); bound > loss {
			loss, grad = bound, 0
			s.clipped++
		}
		dvalue[t] += T(coef[t] * grad)
		s.Loss += float64(coef[t] * 0.5 * loss)
		s.values += v
		s.tokens++
	}
}

// ValueStats accumulates a value loss over the micro-batches of a mini-batch.
// The zero value is empty.
type ValueStats struct {
	Loss    float64 // Σ coef·l
	tokens  float64
	clipped float64
	values  float64
}

// Metrics returns the loss, the fraction of tokens whose clipped term is the greater, and
// the mean value, under verl's names.
func (s *ValueStats) Metrics() []Metric {
	n := s.tokens + meanEps
	return []Metric{
		{"critic/vf_loss", s.Loss},
		{"critic/vf_clipfrac", s.clipped / n},
		{"critic/vpred_mean", s.values / n},
	}
}

// ExplainedVariance returns 1 - var(ret-value)/(var(ret)+1e-5) over unmasked tokens, with
// sample variances, as in verl: 1 for a perfect critic, 0 for a critic that predicts only the
// mean, negative for worse. It is NaN for fewer than two tokens.
func ExplainedVariance[T Float](value, ret []T, mask []bool) float64 {
	sameLen(len(mask), len(value), len(ret))
	var all, rest moments
	for t, on := range mask {
		if on {
			all.add(float64(ret[t]))
			rest.add(float64(ret[t]) - float64(value[t]))
		}
	}
	return 1 - rest.sampleVar()/(all.sampleVar()+1e-5)
}

// moments accumulates a mean and a variance by Welford's recurrence, in one pass and
// without cancellation.
type moments struct{ n, mean, ss float64 }

func (m *moments) add(x float64) {
	m.n++
	d := x - m.mean
	m.mean += d / m.n
	m.ss += float64(d * (x - m.mean))
}

// sampleVar divides by n-1; NaN for n < 2.
func (m *moments) sampleVar() float64 {
	if m.n < 2 {
		return math.NaN()
	}
	return m.ss / (m.n - 1)
}
