package rollout

import "context"

// Agent is a program that works on a problem and asks the policy as often as it likes. What it asked and what the
// policy answered, one conversation, is a completion. It is safe for concurrent use.
//
// A run can be repeated only if what the agent asks depends on the problem and on the answers alone.
type Agent interface {
	// Play plays an episode. An episode that fails, which is not the policy's doing, is a completion with a verdict
	// that is NotGraded; the error says that no episode can be played.
	Play(ctx context.Context, e Episode) (Completion, error)
	// Episodes is how many are played at once, at most.
	Episodes() int
}

// Episode is an agent's work on a problem.
type Episode struct {
	Problem *Problem
	Seed    uint64 // of the whole episode
	Params  Params // MaxNewTokens covers all that follows the first prompt
	// Ask draws the policy's next turn after a prompt: all tokens before it. Each turn has a seed of its own.
	Ask func(ctx context.Context, prompt []int32, seed uint64, p Params) (Completion, error)
}

// Asked is the prompt of a completion that an agent wrote, in place of its problem's.
type Asked struct {
	Tokens []int32 `json:"tokens"`
	Text   string  `json:"text"` // special tokens written out
}

// PromptOf returns the prompt of a completion of a problem with this prompt.
func (c *Completion) PromptOf(problem []int32) []int32 {
	if c.Asked != nil {
		return c.Asked.Tokens
	}
	return problem
}

// Continue appends what was inserted, and the policy's next turn, to a completion that goes on. insertedText is the
// text of the tokens in inserted. The turn says why the completion ends.
func (c *Completion) Continue(inserted []int32, insertedText string, turn *Completion) {
	if len(inserted) > 0 {
		s := Span{Start: len(c.Tokens), End: len(c.Tokens) + len(inserted), TextStart: len(c.Text)}
		c.Text += insertedText
		s.TextEnd = len(c.Text)
		c.Inserted = append(c.Inserted, s)
		c.Tokens = append(c.Tokens, inserted...)
		c.LogProbs = append(c.LogProbs, make([]float32, len(inserted))...)
		c.Entropies = append(c.Entropies, make([]float32, len(inserted))...)
	}
	c.Tokens = append(c.Tokens, turn.Tokens...)
	c.LogProbs = append(c.LogProbs, turn.LogProbs...)
	c.Entropies = append(c.Entropies, turn.Entropies...)
	c.Text += turn.Text
	c.Finish = turn.Finish
}
