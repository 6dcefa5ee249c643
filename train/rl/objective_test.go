package rl

import (
	"math"
	"strings"
)

// objective is a loss under test.
type objective[T Float] struct {
	// start returns an accumulator for a mini-batch of that many rows.
	start func(rows int) accumulator[T]
	// by is the array [N] that the gradient is by.
	by func(s *sample[T]) []T
	// along moves with by while the gradient is checked numerically, so that what
	// is a constant to the gradient stays one; nil without such an array.
	along func(s *sample[T]) []T
	// as names the objective that has this gradient for its slope, if another.
	as string
}

// accumulator adds one micro-batch, whose coefficients are set, to gradients and
// to statistics that it keeps between calls.
type accumulator[T Float] struct {
	add     func(dtokens, drows []T, s *sample[T])
	loss    func() float64
	metrics func() []Metric
	// prepare sees all micro-batches before the first is added; nil if nothing
	// is wanted of them.
	prepare func(parts []*sample[T])
}

// objectives lists every loss of the package.
func objectives[T Float]() map[string]objective[T] {
	logProb := func(s *sample[T]) []T { return s.LogProb }
	oldLogProb := func(s *sample[T]) []T { return s.OldLogProb }
	list := map[string]objective[T]{
		"ppo": {by: logProb, start: func(int) accumulator[T] {
			var st PolicyStats
			return accumulator[T]{
				add:  func(d, _ []T, s *sample[T]) { PPO(d, &s.Batch, Clip{Low: 0.2, High: 0.28, Dual: 3}, &st) },
				loss: func() float64 { return st.Loss }, metrics: st.Metrics,
			}
		}},
		"value": {by: func(s *sample[T]) []T { return s.Value }, start: func(int) accumulator[T] {
			var st ValueStats
			return accumulator[T]{
				add:  func(d, _ []T, s *sample[T]) { ValueLoss(d, s.Value, s.OldValue, s.Ret, s.Mask, s.Coef, 0.5, &st) },
				loss: func() float64 { return st.Loss }, metrics: st.Metrics,
			}
		}},
		"entropy": {by: func(s *sample[T]) []T { return s.Entropy }, start: func(int) accumulator[T] {
			return plainSum(-0.01, func(d []T, s *sample[T], sum *float64) {
				EntropyBonus(d, s.Entropy, s.Mask, s.Coef, 0.01, sum)
			})
		}},
	}
	for _, name := range []string{"k1", "k2", "k3", "abs", "k1+", "k2+", "k3+", "abs+"} {
		e, err := ParseKL(name)
		if err != nil {
			panic(err)
		}
		o := objective[T]{by: logProb, start: func(int) accumulator[T] {
			return plainSum(0.05, func(d []T, s *sample[T], sum *float64) { KLLoss(d, &s.Batch, e, 0.05, sum) })
		}}
		if strings.HasSuffix(name, "+") {
			o.as = "kl k2"
		} else {
			weighted := e
			weighted.Weighted = true
			list["weighted kl "+name] = objective[T]{by: logProb, start: func(int) accumulator[T] {
				return plainSum(0.05, func(d []T, s *sample[T], sum *float64) { KLLoss(d, &s.Batch, weighted, 0.05, sum) })
			}}
		}
		list["kl "+name] = o
	}
	addPolicyObjectives(list)
	addLikelihoods(list)
	addRight(list)
	addDemonstrations(list)
	for name, c := range flowRLConfigs() {
		o := objective[T]{by: logProb, along: oldLogProb, start: func(rows int) accumulator[T] {
			var st FlowRLStats
			return accumulator[T]{
				add:  func(d, dz []T, s *sample[T]) { FlowRL(d, dz, &s.Batch, s.LogZ, rows, c, &st) },
				loss: func() float64 { return st.Loss }, metrics: st.Metrics,
			}
		}}
		if c.Reference == OldPolicy || c.MeanClip != NoMeanClip || c.Surrogate {
			o.along = nil // its weight is constant, but not what else the old policy is in
		}
		if c.Surrogate {
			o.as = "flowrl frozen " + name
			list[o.as] = frozenSurrogate[T](c)
		}
		list["flowrl "+name] = o
	}
	return list
}

// plainSum accumulates a loss that reports its unscaled sum.
func plainSum[T Float](scale float64, add func(d []T, s *sample[T], sum *float64)) accumulator[T] {
	var sum float64
	return accumulator[T]{
		add:     func(d, _ []T, s *sample[T]) { add(d, s, &sum) },
		loss:    func() float64 { return scale * sum },
		metrics: func() []Metric { return []Metric{{"sum", sum}} },
	}
}

// recipe is verl's setting of FlowRL.
var recipe = FlowRLConfig{Beta: 15, UseLogZ: true, WeightLevel: WeightSum, WeightHigh: 10, Reference: ReferencePolicy, TokenMask: KeepAll}

func flowRLConfigs() map[string]FlowRLConfig {
	with := func(change func(*FlowRLConfig)) FlowRLConfig {
		c := recipe
		change(&c)
		return c
	}
	return map[string]FlowRLConfig{
		"recipe":    recipe,
		"unclipped": with(func(c *FlowRLConfig) { c.WeightHigh = math.Inf(1) }),
		"clipped":   with(func(c *FlowRLConfig) { c.WeightLow, c.WeightHigh = 0.8, 1.28 }),
		"mean":      with(func(c *FlowRLConfig) { c.WeightLevel = WeightMean }),
		"old":       with(func(c *FlowRLConfig) { c.Reference, c.WeightLow, c.WeightHigh = OldPolicy, 1, 1 }),
		"no log z":  with(func(c *FlowRLConfig) { c.UseLogZ = false }),
		"cispo":     with(func(c *FlowRLConfig) { c.WeightLow, c.WeightHigh, c.TokenMask = 0.8, 1.28, DropCISPO }),
		"tokens": with(func(c *FlowRLConfig) {
			c.Terms, c.Reference, c.UseLogZ, c.WeightLow, c.WeightHigh = TokenTerms, NoReference, false, 0.8, 1.28
		}),
		"tokens and log z": with(func(c *FlowRLConfig) { c.Terms, c.TokenMask = TokenTerms, DropCISPO }),
		"tokens and old":   with(func(c *FlowRLConfig) { c.Terms, c.Reference, c.WeightLow, c.WeightHigh = TokenTerms, OldPolicy, 1, 1 }),
		"mean clip": with(func(c *FlowRLConfig) {
			c.MeanClip, c.Clip, c.WeightLow, c.WeightHigh = ClipMean, Clip{Low: 0.2, High: 0.28}, 1, 1
		}),
		"gspo": with(func(c *FlowRLConfig) {
			c.MeanClip, c.Clip, c.WeightLow, c.WeightHigh = ClipMeanGSPO, Clip{Low: 0.2, High: 0.28}, 1, 1
		}),
		"surrogate": with(func(c *FlowRLConfig) {
			c.Surrogate, c.Clip, c.WeightLow, c.WeightHigh = true, Clip{Low: 0.2, High: 0.2}, 1, 1
		}),
		"ratio fractions": with(func(c *FlowRLConfig) { c.RatioFractions, c.Clip = true, Clip{Low: 0.2, High: 0.2} }),
	}
}

// frozenSurrogate is FlowRL with the surrogate of a residual that stays what it
// was when a batch was first seen: a constant, as FlowRL's gradient
// takes it for.
func frozenSurrogate[T Float](c FlowRLConfig) objective[T] {
	balance := c
	balance.Surrogate = false
	clip := Clip{Low: c.Clip.Low, High: c.Clip.High, Dual: math.Inf(1)}
	frozen := make(map[*sample[T]][]float64)
	residuals := func(s *sample[T]) []float64 {
		for i := len(frozen[s]); i < s.Rows.Len(); i++ {
			row := convert[float64](s.build(s.rowTokens(i, i+1)))
			var st FlowRLStats
			FlowRL(make([]float64, len(row.Mask)), []float64{0}, &row.Batch, row.LogZ, 1, balance, &st)
			frozen[s] = append(frozen[s], st.delta.mean)
		}
		return frozen[s]
	}
	return objective[T]{by: func(s *sample[T]) []T { return s.LogProb }, start: func(rows int) accumulator[T] {
		var st FlowRLStats
		var surrogate float64
		return accumulator[T]{
			add: func(d, dz []T, s *sample[T]) {
				s64, d64, dz64 := convert[float64](s), make([]float64, len(d)), make([]float64, len(dz))
				FlowRL(d64, dz64, &s64.Batch, s64.LogZ, rows, balance, &st)
				for i, delta := range residuals(s) {
					for t := s.Rows[i]; t < s.Rows[i+1]; t++ {
						if s.Mask[t] {
							move, _ := s.move(t)
							loss, grad, _, _ := clip.token(move, delta)
							coef := float64(s.Coef[t] * s.weight(t))
							d64[t] += float64(coef * grad)
							surrogate += float64(coef * loss)
						}
						d[t] += T(d64[t])
					}
					dz[i] += T(dz64[i])
				}
			},
			loss: func() float64 { return st.Loss + surrogate }, metrics: st.Metrics,
		}
	}}
}

// outcome holds what an objective makes of a mini-batch.
type outcome struct {
	loss    float64
	metrics []Metric
	tokens  []float64 // gradient per token
	rows    []float64 // gradient per row, of log Z
}

// evaluate runs an objective over a mini-batch that is cut into parts.
func evaluate[T Float](o objective[T], parts []*sample[T], mode Aggregation, n Counts) outcome {
	rows := 0
	for _, p := range parts {
		rows += p.Rows.Len()
	}
	acc := o.start(rows)
	if acc.prepare != nil {
		acc.prepare(parts)
	}
	var out outcome
	for _, p := range parts {
		mode.Coefficients(p.Coef, p.Mask, p.Rows, n)
		dtokens, drows := make([]T, len(p.Mask)), make([]T, p.Rows.Len())
		acc.add(dtokens, drows, p)
		out.tokens = append(out.tokens, widen(dtokens)...)
		out.rows = append(out.rows, widen(drows)...)
	}
	out.loss, out.metrics = acc.loss(), acc.metrics()
	return out
}

func widen[T Float](x []T) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v)
	}
	return out
}
