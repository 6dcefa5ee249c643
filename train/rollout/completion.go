package rollout

import (
	"fmt"
	"slices"
	"unicode/utf8"
)

// Finish says why a completion ended.
type Finish uint8

const (
	FinishStop   Finish = 1 + iota // an end token or a stop string was sampled
	FinishLength                   // the token limit was reached
	FinishTurns                    // it called a tool beyond the limit of turns
)

func (f Finish) String() string {
	switch f {
	case FinishStop:
		return "stop"
	case FinishLength:
		return "length"
	case FinishTurns:
		return "turns"
	}
	return "unknown"
}

// ParseFinish returns the reason with that name.
func ParseFinish(name string) (Finish, error) {
	for f := FinishStop; f <= FinishTurns; f++ {
		if f.String() == name {
			return f, nil
		}
	}
	return 0, fmt.Errorf("%q is none of stop, length and turns", name)
}

// Completion is one sample of the policy after a prompt. With an Environment it has several turns: the
// policy's, and between them what the environment wrote.
type Completion struct {
	// Tokens are the sampled ids, including the end token if one was sampled, and the
	// inserted ones; [T].
	Tokens []int32
	// LogProbs are the log-probs of Tokens under the policy that sampled them:
	// temperature-scaled full softmax, before top-k or top-p; 0 for inserted ones; [T].
	LogProbs []float32
	// Entropies are the entropies of that softmax in nats; 0 for inserted ones; [T].
	Entropies []float32
	// Text is Tokens decoded, without the end token and without a stop string.
	Text   string
	Finish Finish
	// Inserted are the parts that the environment wrote, in order; none if it never did.
	Inserted []Span
	// Asked is the prompt that an agent wrote; nil: the problem's.
	Asked *Asked
	// AgentVerdict is what an agent says of its own episode; nil: a grader judges.
	AgentVerdict *Verdict
}

// Span is a part of a completion: Tokens[Start:End], and TextStart to TextEnd in bytes of Text.
type Span struct {
	Start     int `json:"start"`
	End       int `json:"end"`
	TextStart int `json:"text_start"`
	TextEnd   int `json:"text_end"`
}

// Turns returns the number of the policy's turns.
func (c *Completion) Turns() int { return 1 + len(c.Inserted) }

// Messages returns the number of messages of the conversation, as verl's num_turns counts them: the prompt, the
// policy's turns and the environment's.
func (c *Completion) Messages() int { return 2 * c.Turns() }

// Sampled sets mask[t], [T], to whether the policy sampled token t.
func (c *Completion) Sampled(mask []bool) {
	for t := range mask {
		mask[t] = true
	}
	for _, s := range c.Inserted {
		clear(mask[s.Start:s.End])
	}
}

// SampledTokens returns the number of tokens that the policy sampled.
func (c *Completion) SampledTokens() int {
	n := len(c.Tokens)
	for _, s := range c.Inserted {
		n -= s.End - s.Start
	}
	return n
}

// Own returns what the policy wrote, without the inserted parts: c itself if it has none.
func (c *Completion) Own() *Completion {
	if len(c.Inserted) == 0 {
		return c
	}
	return c.joined(c.Inserted)
}

// LastTurn returns the policy's last turn: c itself if it has one only.
func (c *Completion) LastTurn() *Completion {
	if len(c.Inserted) == 0 {
		return c
	}
	last := c.Inserted[len(c.Inserted)-1]
	return c.joined([]Span{{End: last.End, TextEnd: last.TextEnd}})
}

// joined returns c without some parts.
func (c *Completion) joined(without []Span) *Completion {
	out := &Completion{Finish: c.Finish, AgentVerdict: c.AgentVerdict}
	at, text := 0, 0
	keep := func(s Span) {
		out.Tokens = append(out.Tokens, c.Tokens[at:s.Start]...)
		if c.LogProbs != nil {
			out.LogProbs = append(out.LogProbs, c.LogProbs[at:s.Start]...)
		}
		if c.Entropies != nil {
			out.Entropies = append(out.Entropies, c.Entropies[at:s.Start]...)
		}
		out.Text += c.Text[text:s.TextStart]
		at, text = s.End, s.TextEnd
	}
	for _, s := range without {
		keep(s)
	}
	keep(Span{Start: len(c.Tokens), TextStart: len(c.Text)})
	return out
}

// Stored returns the inserted parts with their places in Text as JSON keeps it: a byte that is no UTF-8, such as part
// of a character that the policy did not finish, becomes U+FFFD there, which has three.
func (c *Completion) Stored() []Span {
	if len(c.Inserted) == 0 || utf8.ValidString(c.Text) {
		return c.Inserted
	}
	out := slices.Clone(c.Inserted)
	at, grown := 0, 0
	place := func(x *int) {
		for at < *x {
			r, size := utf8.DecodeRuneInString(c.Text[at:])
			at += size
			if r == utf8.RuneError && size == 1 {
				grown += len(string(utf8.RuneError)) - 1
			}
		}
		*x += grown
	}
	for i := range out {
		place(&out[i].TextStart)
		place(&out[i].TextEnd)
	}
	return out
}

// CheckInserted returns an error unless the inserted parts are in order, not empty, within the
// completion and followed by a sampled token.
func (c *Completion) CheckInserted() error {
	at, text := 0, 0
	for i, s := range c.Inserted {
		if s.Start < at || s.End <= s.Start || s.End >= len(c.Tokens) ||
			s.TextStart < text || s.TextEnd < s.TextStart || s.TextEnd > len(c.Text) {
			return fmt.Errorf("inserted part %d, tokens %d to %d and bytes %d to %d, does not lie between sampled "+
				"tokens: the completion has %d tokens and %d bytes", i+1, s.Start, s.End, s.TextStart, s.TextEnd,
				len(c.Tokens), len(c.Text))
		}
		at, text = s.End, s.TextEnd
	}
	return nil
}
