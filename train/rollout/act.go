package rollout

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Act is a turn of the policy in an agent's episode: what it earned, and in which state.
type Act struct {
	// Start and End are its tokens, Completion.Tokens[Start:End]; both 0 where the turn is not learned from.
	Start  int     `json:"start"`
	End    int     `json:"end"`
	Reward float64 `json:"reward"`
	State  string  `json:"state"` // a digest: equal where the states are equal
	// Conversation is the name that the agent gave the turn's conversation; empty: none.
	Conversation string `json:"conversation,omitempty"`
}

// Learned reports whether the completion has the turn's tokens.
func (a *Act) Learned() bool { return a.End > a.Start }

// Earned returns the sum of what the policy's turns earned, and the part of it that those earned which are not learned
// from.
func (c *Completion) Earned() (all, elsewhere float64) {
	for i := range c.Acts {
		all += c.Acts[i].Reward
		if !c.Acts[i].Learned() {
			elsewhere += c.Acts[i].Reward
		}
	}
	return all, elsewhere
}

// checkActs returns an error unless the acts, if there are any, have each sampled token once and finite rewards.
func (c *Completion) checkActs() error {
	if len(c.Acts) == 0 {
		return nil
	}
	sampled := make([]bool, len(c.Tokens))
	c.Sampled(sampled)
	learned := slices.DeleteFunc(slices.Clone(c.Acts), func(a Act) bool { return a.Start == 0 && a.End == 0 })
	slices.SortFunc(learned, func(a, b Act) int { return cmp.Compare(a.Start, b.Start) })
	at := 0
	for _, a := range learned {
		if a.Start < at || a.End <= a.Start || a.End > len(c.Tokens) || slices.Contains(sampled[at:a.Start], true) ||
			slices.Contains(sampled[a.Start:a.End], false) {
			return fmt.Errorf("the policy's turn of tokens %d to %d is not a part of the %d tokens that the policy "+
				"sampled, or not the next one after token %d", a.Start, a.End, len(c.Tokens), at)
		}
		at = a.End
	}
	if slices.Contains(sampled[at:], true) {
		return fmt.Errorf("tokens after %d, of %d, belong to none of the policy's turns", at, len(c.Tokens))
	}
	for i, a := range c.Acts {
		if math.IsNaN(a.Reward) || math.IsInf(a.Reward, 0) {
			return fmt.Errorf("turn %d of the policy has the reward %v", i+1, a.Reward)
		}
	}
	return nil
}
