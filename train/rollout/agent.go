package rollout

import "context"

// Agent is a program that works on a problem and asks the policy as often as it likes. What it asked and what the
// policy answered, in one conversation or several, is a completion. It is safe for concurrent use.
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
	Params  Params // MaxNewTokens covers all that follows a conversation's first prompt
	// Ask draws the policy's next turn after a prompt: all tokens before it. Each turn has a seed of its own.
	Ask func(ctx context.Context, prompt []int32, seed uint64, p Params) (Completion, error)
}

// Asked holds the prompts of a completion that an agent wrote.
type Asked struct {
	Tokens []int32 `json:"tokens"` // in place of the problem's prompt
	Text   string  `json:"text"`   // special tokens written out
	// Later are the conversations after the first, in the order in which they began. The policy's tokens in one depend
	// on its own prompt and on what came before in it, and not on other conversations.
	Later []Later `json:"later,omitempty"`
	Final int     `json:"final,omitempty"` // number of the conversation with the last turn, from 0
	// Images are those that the agent brought, in the order in which the conversations first show them.
	Images []ShownImage `json:"images,omitempty"`
}

// Later is a conversation after the first. It has the completion's tokens from Start up to where the next one starts.
type Later struct {
	Start     int     `json:"start"`
	TextStart int     `json:"text_start"` // in bytes of Completion.Text
	Tokens    []int32 `json:"tokens"`     // of its prompt
	Text      string  `json:"text"`       // of its prompt
}

// PromptOf returns the first prompt of a completion of a problem with this prompt.
func (c *Completion) PromptOf(problem []int32) []int32 {
	if c.Asked != nil {
		return c.Asked.Tokens
	}
	return problem
}

// Later returns the conversations after the first.
func (c *Completion) Later() []Later {
	if c.Asked == nil {
		return nil
	}
	return c.Asked.Later
}

// Conversation is a part of a completion that the policy wrote after a prompt: Tokens[Start:End].
type Conversation struct {
	Prompt     []int32
	Start, End int
}

// Conversations returns the conversations of a completion whose first prompt is given: one, unless an agent held
// several.
func (c *Completion) Conversations(prompt []int32) []Conversation {
	list := []Conversation{{Prompt: prompt, End: len(c.Tokens)}}
	for _, x := range c.Later() {
		list[len(list)-1].End = x.Start
		list = append(list, Conversation{Prompt: x.Tokens, Start: x.Start, End: len(c.Tokens)})
	}
	return list
}

// Longest returns the tokens of the longest conversation without its prompt: all tokens, if there is one only.
func (c *Completion) Longest() (n int) {
	for _, x := range c.Conversations(nil) {
		n = max(n, x.End-x.Start)
	}
	return n
}

// Join returns the conversations of an episode, in the order in which they began, as one completion. Each has its
// prompt in Asked. The policy's last turn is in number final, from 0.
func Join(list []Completion, final int) (c Completion) {
	for i := range list {
		x := &list[i]
		at, text := len(c.Tokens), len(c.Text)
		if i == 0 {
			c.Asked = &Asked{Tokens: x.Asked.Tokens, Text: x.Asked.Text, Final: final}
		} else {
			c.Asked.Later = append(c.Asked.Later, Later{at, text, x.Asked.Tokens, x.Asked.Text})
		}
		for _, s := range x.Inserted {
			c.Inserted = append(c.Inserted, Span{s.Start + at, s.End + at, s.TextStart + text, s.TextEnd + text})
		}
		c.Tokens, c.Text = append(c.Tokens, x.Tokens...), c.Text+x.Text
		c.LogProbs, c.Entropies = append(c.LogProbs, x.LogProbs...), append(c.Entropies, x.Entropies...)
	}
	if len(list) > 0 {
		c.Finish = list[final].Finish
	}
	return c
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
