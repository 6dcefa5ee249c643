package rl

// Turns are the policy's turns in a batch of an agent's episodes, M in all. Turns that follow each other in an
// episode are neighbours.
type Turns struct {
	Start, End []int     // [M] the tokens of a turn, of the batch's N
	State      []int     // [M] equal where the same problem is in the same state
	Reward     []float64 // [M] that the turn earned
	Last       []bool    // [M] no turn follows it
}

// len returns the number of turns, M.
func (t *Turns) len() int { return len(t.Start) }

// Add adds a turn.
func (t *Turns) Add(start, end, state int, reward float64, last bool) {
	t.Start, t.End = append(t.Start, start), append(t.End, end)
	t.State, t.Reward, t.Last = append(t.State, state), append(t.Reward, reward), append(t.Last, last)
}

// Returns sets ret[k] to what turn k and those that follow it earn, discounted by gamma for each turn
// (arXiv:2505.10978 eq. 5):
//
//	ret[k] = Reward[k] + gamma·ret[k+1]   ret[k] = Reward[k] of a last turn
//
// ret is [M].
func (t *Turns) Returns(ret []float64, gamma float64) {
	sameLen(t.len(), len(ret), len(t.End), len(t.State), len(t.Reward), len(t.Last))
	for k := len(ret) - 1; k >= 0; k-- {
		ret[k] = t.Reward[k]
		if !t.Last[k] {
			ret[k] += float64(gamma * ret[k+1])
		}
	}
}

// StepAdvantage sets dst[k] to the advantage of turn k among the turns in the same state, its step group
// (arXiv:2505.10978 eq. 7), as GroupAdvantage does for rows. A turn alone in its state has the advantage 0, as in
// verl-agent; GroupAdvantage gives a row alone its score. dst, ret and state are [M]; dst and ret may be the same
// slice.
func StepAdvantage(dst, ret []float64, state []int, scale bool) {
	sameLen(len(state), len(dst), len(ret))
	for _, members := range groupMembers(state) {
		mean, factor := groupScale(ret, members, scale)
		if len(members) == 1 {
			factor = 0
		}
		for _, k := range members {
			dst[k] = float64((ret[k] - mean) * factor)
		}
	}
}

// GiGPOConfig holds the settings of GiGPO.
type GiGPOConfig struct {
	Weight float64 // omega, of the step advantage
	Gamma  float64 // discount per turn
	Scale  bool    // divide both advantages by the standard deviations of their groups
}

// GiGPO sets adv [N] to the advantages of group-in-group policy optimization (arXiv:2505.10978 eq. 8):
//
//	A[t] = GroupAdvantage of the token's row + Weight·StepAdvantage of its turn
//
// and to 0 at masked-out tokens. score and group are [B]. A token of no turn has the advantage of its row alone.
func GiGPO[T Float](adv, score []T, group []int, turns *Turns, mask []bool, rows Rows, c GiGPOConfig) {
	perRow, step := make([]T, len(score)), make([]float64, turns.len())
	GroupAdvantage(perRow, score, group, c.Scale)
	Spread(adv, perRow, mask, rows)
	turns.Returns(step, c.Gamma)
	StepAdvantage(step, step, turns.State, c.Scale)
	for k, a := range step {
		for t := turns.Start[k]; t < turns.End[k]; t++ {
			if mask[t] {
				adv[t] = T(float64(adv[t]) + float64(c.Weight*a))
			}
		}
	}
}

// Metrics returns how much the turns have to compare; nothing without turns.
//
//	gigpo/step_group_size   mean number of turns in the same state of a problem
//	gigpo/shared_states     share of turns whose state another turn was in
func (t *Turns) Metrics() []Metric {
	n := float64(t.len())
	if n == 0 {
		return nil
	}
	var shared float64
	groups := groupMembers(t.State)
	for _, members := range groups {
		if len(members) > 1 {
			shared += float64(len(members))
		}
	}
	return []Metric{{Name: "gigpo/step_group_size", Value: n / float64(len(groups))},
		{Name: "gigpo/shared_states", Value: shared / n}}
}

// Settings of GiGPO.
var (
	gigpoWeight = Setting{Key: "gigpo.weight", Default: 1.0, Range: "[0, inf)", Late: true,
		Verl: []string{"step_advantage_w"},
		Help: "omega, the weight of a turn's advantage among the turns in the same state; 0 is grpo"}
	gigpoGamma = Setting{Key: "gigpo.gamma", Default: 0.95, Range: "[0, 1]", Late: true,
		Help: "discount per turn: with 0.95 a reward counts 0.9025 two turns earlier"}
)

// gigpoEstimator is the estimator "gigpo".
func gigpoEstimator() Estimator {
	return Estimator{Name: "gigpo", Groups: true, Turns: true, Settings: []Setting{scaleStd, gigpoWeight, gigpoGamma},
		Estimate: func(s *Graded, c Settings) error {
			GiGPO(s.Adv, s.Score, s.Group, s.Turns, s.Mask, s.Rows, GiGPOConfig{Weight: c.Float(gigpoWeight),
				Gamma: c.Float(gigpoGamma), Scale: c.Bool(scaleStd)})
			copy(s.Ret, s.Adv)
			return nil
		}}
}
