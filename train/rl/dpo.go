package rl

// Preference is what DPO finds out about a row, under the parameters before a mini-batch's first
// micro-batch.
type Preference struct {
	Side   int     // 1 for the preferred row of a pair, -1 for the other, 0 for a row in no pair
	Margin float64 // of its pair
	Slope  float64 // derivative of the loss by the sum of the row's log-probs
	Loss   float64 // of the pair, with the preferred row; else 0
}

// PairLoss is the loss of a pair in DPO. All but Sigmoid and IPO are of pairs in files only.
type PairLoss uint8

const (
	Sigmoid   PairLoss = 1 + iota // -log σ(margin): DPO
	IPO                           // (margin/beta - 1/(2·beta))²
	Hinge                         // max(0, 1 - margin)
	OddsRatio                     // ORPO; PairConfig.Pair has its formula, and the ones below
	Robust
	EXO
	NCA
	BCO
	SPPOHard
	APOZeroPair
	APODown
)

// DPOConfig holds the settings of DPO; those of verl's recipe spin are in brackets.
type DPOConfig struct {
	Beta      float64   // scale of a row's log-ratio [0.1]
	Reference Reference // of the ratio [the policy before the step, or the last k steps]
	Loss      PairLoss  // [Sigmoid]
	// Smoothing is how probable it is that the wrong row is preferred, for Sigmoid [0].
	Smoothing float64
}

func (c DPOConfig) check() {
	if !(c.Beta > 0) || c.Reference < ReferencePolicy || c.Reference > NoReference ||
		c.Loss != Sigmoid && c.Loss != IPO || !(c.Smoothing >= 0 && c.Smoothing < 0.5) {
		panic("rl: DPO needs a positive beta, a reference, a loss and a smoothing in [0, 0.5)")
	}
}

// pair returns the loss of a pair and its derivative, by the margin.
func (c DPOConfig) pair(margin float64) (loss, slope float64) {
	switch {
	case c.Loss == IPO:
		x := margin/c.Beta - 1/float64(2*c.Beta)
		return square(x), float64(2*x) / c.Beta
	case c.Loss == Hinge && margin >= 1:
		return 0, 0
	case c.Loss == Hinge:
		return 1 - margin, -1
	}
	right, wrong := 1-c.Smoothing, c.Smoothing
	return float64(right*softplus(-margin)) + float64(wrong*softplus(margin)),
		float64(wrong*sigmoid(margin)) - float64(right*sigmoid(-margin))
}

// sigmoid returns 1/(1 + e⁻ˣ).
func sigmoid(x float64) float64 { return 1 / (1 + exp(-x)) }

// softplus returns log(1 + eˣ).
func softplus(x float64) float64 {
	if x > 0 {
		return x + log(1+exp(-x))
	}
	return log(1 + exp(x))
}

// DPOPairs makes the pairs of a whole mini-batch for DPO. group [B] numbers the groups; of each the row with the
// greatest advantage is preferred to the one with the least, the first of equal ones. A group whose rows with
// unmasked tokens are all alike has no pair.
//
// With D = logProb - reference log-prob, summed over a row's unmasked tokens, the margin of a pair is
// Beta·(D of the preferred row - D of the other), and the loss over the pairs
//
//	Σ -log σ(margin) / pairs                     Sigmoid: arXiv:2305.18290 eq. 7
//	Σ (margin/Beta - 1/(2·Beta))² / pairs        IPO: arXiv:2310.12036 eq. 17
//
// A pair is weighted by the mean of its rows' mean Weight.
func DPOPairs[T Float](b *Batch[T], group []int, c DPOConfig) []Preference {
	c.check()
	sameLen(b.Rows.Len(), len(group))
	type row struct{ d, score, weight float64 }
	rows := make([]row, len(group))
	list := make([]Preference, len(group))
	var pairs [][2]int
	for _, members := range groupMembers(group) {
		best, worst := -1, -1
		for _, i := range members {
			d, n, adv, weight := rowSums(b, b.Rows[i], b.Rows[i+1], c.Reference)
			if n == 0 {
				continue
			}
			rows[i] = row{d, adv / n, weight / n}
			if best < 0 || rows[i].score > rows[best].score {
				best = i
			}
			if worst < 0 || rows[i].score < rows[worst].score {
				worst = i
			}
		}
		if best >= 0 && rows[best].score > rows[worst].score {
			pairs = append(pairs, [2]int{best, worst})
		}
	}
	for _, p := range pairs {
		best, worst := rows[p[0]], rows[p[1]]
		margin := float64(c.Beta * (best.d - worst.d))
		loss, slope := c.pair(margin)
		share := (best.weight + worst.weight) / 2 / float64(len(pairs))
		slope = float64(float64(share*slope) * c.Beta)
		list[p[0]] = Preference{Side: 1, Margin: margin, Slope: slope, Loss: float64(share * loss)}
		list[p[1]] = Preference{Side: -1, Margin: margin, Slope: -slope}
	}
	return list
}

// DPO adds the loss of direct preference optimization to s, and its gradient to dlogProb [N]. pairs [B] is from
// DPOPairs. The rows of a pair may lie in different micro-batches. Completions of the policy itself make it
// online DPO (arXiv:2402.04792), as in verl's recipe spin.
func DPO[T Float](dlogProb []T, b *Batch[T], pairs []Preference, s *DPOStats) {
	b.check(dlogProb)
	sameLen(b.Rows.Len(), len(pairs))
	for i, p := range pairs {
		if p.Side == 0 {
			continue
		}
		s.add(p)
		for t := b.Rows[i]; t < b.Rows[i+1]; t++ {
			if b.Mask[t] {
				d, _ := b.move(t)
				s.count(tokenTerm{kl: -d})
				dlogProb[t] += T(p.Slope)
			}
		}
	}
}

// DPOStats accumulates DPO over the micro-batches of a mini-batch. The zero value is empty.
type DPOStats struct {
	PolicyStats
	pairs, right, margin float64
}

func (s *DPOStats) add(p Preference) {
	s.Loss += p.Loss
	if p.Side < 0 {
		return
	}
	s.pairs++
	s.margin += p.Margin
	if p.Margin > 0 {
		s.right++
	}
}

// Metrics returns those of PolicyStats, whose tokens are those of pairs, the number of pairs and, if there are any,
// their mean margin and the share of margins above 0: a mini-batch without pairs has no part in a step's means.
func (s *DPOStats) Metrics() []Metric {
	m := append(s.PolicyStats.Metrics(), Metric{"actor/dpo_pairs", s.pairs})
	if s.pairs == 0 {
		return m
	}
	return append(m, Metric{"actor/dpo_margin", s.margin / s.pairs}, Metric{"actor/dpo_accuracy", s.right / s.pairs})
}

// The settings of DPO.
var (
	dpoBeta = Setting{Key: "dpo.beta", Default: 0.1, Range: "(0, inf)", Verl: []string{"dpo_beta"},
		Help: "scale of a completion's log-ratio; smaller ones let the policy move further"}
	dpoReference = Setting{Key: "dpo.reference", Default: "ref", Words: referenceWords[ReferencePolicy:],
		Help: "policy below the ratio: the frozen start, the one before the step, or none"}
	dpoLossOf = Setting{Key: "dpo.loss", Default: "sigmoid", Words: []string{"sigmoid", "ipo"},
		Verl: []string{"dpo_loss_type"},
		Help: "loss of a pair: -log sigmoid of the margin, or IPO's square, which ends at a margin of 1/2"}
	dpoSmoothing = Setting{Key: "dpo.smoothing", Default: 0.0, Range: "[0, 0.5)",
		Verl:  []string{"dpo_label_smoothing"},
		While: []Condition{{Key: dpoLossOf.Key, Words: []string{"sigmoid"}}},
		Help:  "how probable it is that the worse completion is called the better one (conservative DPO)"}
)

// dpoLoss is the loss "dpo".
func dpoLoss() PolicyLoss {
	read := func(c Settings) DPOConfig {
		d := DPOConfig{Beta: c.Float(dpoBeta), Loss: IPO,
			Reference: Reference(c.place(dpoReference, referenceWords))}
		if c.Word(dpoLossOf) == "sigmoid" {
			d.Loss, d.Smoothing = Sigmoid, c.Float(dpoSmoothing)
		}
		return d
	}
	return PolicyLoss{Name: "dpo", OwnMean: true, Settings: []Setting{dpoBeta, dpoReference, dpoLossOf, dpoSmoothing},
		Reads: func(c Settings) (reference, logZ bool) { return read(c).Reference == ReferencePolicy, false },
		Start: func(c Settings, _ Others) LossRun {
			d, s := read(c), new(DPOStats)
			return LossRun{
				Constants: func(mini *Batch[float32], group []int) RowConstants {
					return RowConstants{Pairs: DPOPairs(mini, group, d)}
				},
				Add:     func(m *Micro) { DPO(m.DLogProb, m.Batch, m.Pairs, s) },
				Metrics: s.Metrics,
			}
		}}
}
