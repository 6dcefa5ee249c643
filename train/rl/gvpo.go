package rl

import "math"

// GroupMean is the mean of a value of rows over a row's group, under the parameters before a mini-batch's first
// micro-batch.
type GroupMean struct {
	Mean float64 // over the group's rows that have unmasked tokens
	Rows int     // their number
}

// GVPOConfig holds the settings of GVPO; verl's recipe is in brackets.
type GVPOConfig struct {
	Beta      float64   // scale of a row's log-ratio [0.1]
	Reference Reference // of the ratio: OldPolicy or ReferencePolicy [OldPolicy]
	Centered  bool      // subtract the group's mean [true]
}

func (c GVPOConfig) check() {
	if !(c.Beta > 0) || c.Reference != OldPolicy && c.Reference != ReferencePolicy {
		panic("rl: GVPO needs a positive beta, and the old or the reference policy")
	}
}

// reach returns Beta·Σ D over the unmasked tokens of the row [lo,hi), their number n, and Σ
// A and Σ Weight over them. D is logProb less the log-prob of c.Reference.
func reach[T Float](b *Batch[T], lo, hi int, c GVPOConfig) (move, n, adv, weight float64) {
	move, n, adv, weight = rowSums(b, lo, hi, c.Reference)
	return float64(c.Beta * move), n, adv, weight
}

// rowSums returns Σ D over the unmasked tokens of the row [lo,hi), their number n, and Σ A and Σ
// Weight over them. D is logProb less the log-prob of a reference.
func rowSums[T Float](b *Batch[T], lo, hi int, from Reference) (d, n, adv, weight float64) {
	var base []T // nil stands for 0
	switch from {
	case OldPolicy:
		base = b.OldLogProb
	case ReferencePolicy:
		base = b.RefLogProb
	}
	for t := lo; t < hi; t++ {
		if !b.Mask[t] {
			continue
		}
		x := float64(b.LogProb[t])
		if base != nil {
			x -= float64(base[t])
		}
		d += x
		n++
		adv += float64(b.Adv[t])
		weight += b.weight(t)
	}
	return d, n, adv, weight
}

// GVPOMeans returns, for each row of a whole mini-batch, the mean of Beta·Σ D over the
// rows of its group; see GVPO. group [B] numbers the groups.
func GVPOMeans[T Float](b *Batch[T], group []int, c GVPOConfig) []GroupMean {
	c.check()
	sameLen(b.Rows.Len(), len(group))
	return groupMeans(group, func(i int) (float64, bool) {
		move, n, _, _ := reach(b, b.Rows[i], b.Rows[i+1], c)
		return move, n > 0
	})
}

// groupMeans returns the mean of x over each row's group. Rows that x refuses do not enter
// the means.
func groupMeans(group []int, x func(row int) (value float64, counts bool)) []GroupMean {
	means := make([]GroupMean, len(group))
	for _, members := range groupMembers(group) {
		var m GroupMean
		for _, i := range members {
			if v, counts := x(i); counts {
				m.Mean += v
				m.Rows++
			}
		}
		if m.Rows > 0 {
			m.Mean /= float64(m.Rows)
		}
		for _, i := range members {
			means[i] = m
		}
	}
	return means
}

// GVPO adds the loss of group variance policy optimization (arXiv:2504.19599) to s,
// and its gradient to dlogProb [N]. With D = logProb - reference log-prob, the sum over the
// row's unmasked tokens, the mean over the group's k rows and A the mean of the row's
// advantages (score less the group's mean), per row:
//
//	x    = Beta·Σ D - mean(Beta·Σ D) - A
//	loss = Σ_i v·x²/2 · k/(k-1) / rows
//
// v is the mean Weight of the row's tokens. The optimum is proportional to reference·exp(R/Beta): the
// group's mean stands for log Z, which cancels. means [B] is from
// GVPOMeans; they are constant to the gradient, which changes nothing without weights and rejected
// rows, since the x of a group then add up to 0. A group of one row teaches nothing. verl's recipe divides by the rows
// of a micro-batch instead of a group; ours depends on no cut.
//
// With ReferencePolicy the loss is Beta² times half the variance of trajectory balance, VarGrad,
// by which TBA trains (arXiv:2503.18929). If not Centered the mean and k/(k-1) are left out: the loss of
// Kimi k1.5 (arXiv:2501.12599 §2.3), times Beta.
func GVPO[T Float](dlogProb []T, b *Batch[T], means []GroupMean, rows int, c GVPOConfig, s *GVPOStats) {
	c.check()
	b.check(dlogProb)
	if c.Reference == ReferencePolicy {
		sameLen(len(b.Mask), len(b.RefLogProb))
	}
	if c.Centered {
		sameLen(b.Rows.Len(), len(means))
	}
	if b.Rows.Len() > rows {
		panic("rl: a micro-batch larger than its mini-batch")
	}
	for i := range b.Rows.Len() {
		lo, hi := b.Rows[i], b.Rows[i+1]
		x, n, adv, weight := reach(b, lo, hi, c)
		if n == 0 {
			continue
		}
		coef := weight / n / float64(rows)
		if c.Centered {
			k := float64(means[i].Rows)
			if x -= means[i].Mean; k > 1 {
				coef = float64(coef * (k / (k - 1)))
			} else {
				coef = 0
			}
		}
		x -= adv / n
		s.add(float64(coef*square(x))/2, x)
		for t := lo; t < hi; t++ {
			if b.Mask[t] {
				d, _ := b.move(t)
				s.count(tokenTerm{kl: -d})
				dlogProb[t] += T(float64(coef*x) * c.Beta)
			}
		}
	}
}

// GVPOStats accumulates GVPO over the micro-batches of a mini-batch. The zero value is empty.
type GVPOStats struct {
	PolicyStats
	rows, absX float64
}

func (s *GVPOStats) add(loss, x float64) {
	s.Loss += loss
	s.rows++
	s.absX += math.Abs(x)
}

// Metrics returns those of PolicyStats and the mean of |x|.
func (s *GVPOStats) Metrics() []Metric {
	return append(s.PolicyStats.Metrics(), Metric{"actor/gvpo_residual", s.absX / max(s.rows, 1)})
}

// The settings of GVPO.
var (
	gvpoBeta = Setting{Key: "gvpo.beta", Default: 0.1, Range: "(0, inf)", Verl: []string{"gvpo_beta"},
		Help: "scale of a completion's log-ratio: the optimum is reference * exp(reward / beta)"}
	gvpoReference = Setting{Key: "gvpo.reference", Default: "old", Words: referenceWords[ReferencePolicy:NoReference],
		Help: "policy below the ratio: the one before the step, or the frozen start"}
	gvpoCentered = Setting{Key: "gvpo.centered", Default: true,
		Help: "subtract the group's mean log-ratio; false is Kimi k1.5's loss"}
)

// gvpoLoss is the loss "gvpo".
func gvpoLoss() PolicyLoss {
	read := func(c Settings) GVPOConfig {
		reference := OldPolicy
		if c.Word(gvpoReference) == referenceWords[ReferencePolicy] {
			reference = ReferencePolicy
		}
		return GVPOConfig{Beta: c.Float(gvpoBeta), Reference: reference, Centered: c.Bool(gvpoCentered)}
	}
	return PolicyLoss{Name: "gvpo", OwnMean: true, Settings: []Setting{gvpoBeta, gvpoReference, gvpoCentered},
		Reads: func(c Settings) (reference, logZ bool) { return read(c).Reference == ReferencePolicy, false },
		Start: func(c Settings, _ Others) LossRun {
			g, s := read(c), new(GVPOStats)
			run := LossRun{Add: func(m *Micro) { GVPO(m.DLogProb, m.Batch, m.Means, m.Of, g, s) }, Metrics: s.Metrics}
			if g.Centered {
				run.Constants = func(mini *Batch[float32], group []int) RowConstants {
					return RowConstants{Means: GVPOMeans(mini, group, g)}
				}
			}
			return run
		}}
}
