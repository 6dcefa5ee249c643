package rl

// A reward model learns from pairs of answers that one number tells apart: the reward r that it gives each.

// RewardPairConfig holds the settings of a reward model's loss.
type RewardPairConfig struct {
	// Center is the weight of (r of chosen + r of rejected)², which keeps rewards near 0 (arXiv:2312.09244):
	// the other term knows only their difference. TRL: center_rewards_coefficient.
	Center float64
}

// RewardPair is what the loss finds out about a pair.
type RewardPair struct {
	Loss   float64
	Slopes [2]float64 // derivatives of Loss by the rewards of chosen and of rejected
}

// Pair returns the loss of a pair of rewards, after Bradley and Terry:
//
//	-log σ(chosen - rejected - margin) + Center·(chosen + rejected)²
//
// margin says how much better the chosen answer is (arXiv:2307.09288 eq. 2); 0 if nobody knows. OpenRLHF's logexp,
// log(1 + e^(rejected - chosen)), is the same function without a margin.
func (c RewardPairConfig) Pair(chosen, rejected, margin float64) RewardPair {
	if !(c.Center >= 0) {
		panic("rl: a reward model's loss needs a weight of at least 0")
	}
	m, sum := chosen-rejected-margin, chosen+rejected
	slope, pull := sigmoid(-m), float64(float64(2*c.Center)*sum)
	return RewardPair{Loss: softplus(-m) + float64(c.Center*square(sum)),
		Slopes: [2]float64{pull - slope, pull + slope}}
}
