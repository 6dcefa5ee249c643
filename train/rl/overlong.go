package rl

// Overlong is DAPO's soft punishment of responses near the length limit (arXiv:2503.14476
// eq. 13). The zero value punishes nothing.
type Overlong struct {
	MaxResponse int     // tokens
	Buffer      int     // tokens below MaxResponse over which the punishment grows; 0 means off
	Penalty     float64 // subtracted from the score at MaxResponse
}

// Reward returns the addition to the score of a response of that many tokens, verl's
// overlong_reward: 0 up to MaxResponse - Buffer, then down to -Penalty in equal steps. A
// response is overlong if it is negative.
func (o Overlong) Reward(tokens int) float64 {
	excess := tokens - (o.MaxResponse - o.Buffer)
	if o.Buffer == 0 || excess <= 0 {
		return 0
	}
	return float64(-float64(excess) / float64(o.Buffer) * o.Penalty)
}
