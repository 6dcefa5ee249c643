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
	FinishShown                    // no policy sampled it: a demonstration, from the problem
)

func (f Finish) String() string {
	switch f {
	case FinishStop:
		return "stop"
	case FinishLength:
		return "length"
	case FinishTurns:
		return "turns"
	case FinishShown:
		return "shown"
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
	// Asked holds the prompts that an agent wrote; nil: the problem's is the only one.
	Asked *Asked
	// AgentVerdict is what an agent says of its own episode; nil: a grader judges.
	AgentVerdict *Verdict
	// Acts are the turns that the policy took in an agent's episode: in the order in which they were answered, first
	// without a name of the conversation, then by name, shorter names first. None, unless the agent or the algorithm
	// tells turns apart.
	Acts []Act
	// Options are the scores of all options of a multiple-choice question, in order. The completion is then the
	// likeliest one; no policy sampled it. Nil: it is a sample.
	Options []OptionScore
}

// Span is a part of a completion: Tokens[Start:End], and TextStart to TextEnd in bytes of Text.
type Span struct {
	Start     int `json:"start"`
	End       int `json:"end"`
	TextStart int `json:"text_start"`
	TextEnd   int `json:"text_end"`
}

// Turns returns the number of the policy's turns.
func (c *Completion) Turns() int { return 1 + len(c.Inserted) + len(c.Later()) }

// Messages returns the number of messages of the conversations, as verl's num_turns counts them: prompts, the
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

// SampledTokens returns the number of tokens that the policy sampled; of a demonstration, all.
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
	if c.Turns() == 1 {
		return c
	}
	all := Span{End: len(c.Tokens), TextEnd: len(c.Text)} // then the conversation with the last turn, then that turn
	if later := c.Later(); len(later) > 0 {
		n := c.Asked.Final
		if n > 0 {
			all.Start, all.TextStart = later[n-1].Start, later[n-1].TextStart
		}
		if n < len(later) {
			all.End, all.TextEnd = later[n].Start, later[n].TextStart
		}
	}
	for _, s := range c.Inserted {
		if all.Start <= s.Start && s.End <= all.End {
			all.Start, all.TextStart = s.End, s.TextEnd
		}
	}
	return c.joined([]Span{{End: all.Start, TextEnd: all.TextStart},
		{Start: all.End, End: len(c.Tokens), TextStart: all.TextEnd, TextEnd: len(c.Text)}})
}

// joined returns c without some parts.
func (c *Completion) joined(without []Span) *Completion {
	out := &Completion{Finish: c.Finish, AgentVerdict: c.AgentVerdict, Options: c.Options}
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

// Stored returns the inserted parts and what an agent asked, with their places in Text as JSON keeps it: a byte that
// is not UTF-8, such as part of a character that the policy did not finish, becomes U+FFFD there, which has three.
func (c *Completion) Stored() ([]Span, *Asked) {
	later := c.Later()
	if len(c.Inserted) == 0 && len(later) == 0 || utf8.ValidString(c.Text) {
		return c.Inserted, c.Asked
	}
	inserted, asked := slices.Clone(c.Inserted), c.Asked
	if len(later) > 0 {
		own := *asked
		later = slices.Clone(later)
		own.Later, asked = later, &own
	}
	stored := storedPlaces{text: c.Text}
	begin := func(before int) { // conversations that begin up to there
		for ; len(later) > 0 && later[0].TextStart <= before; later = later[1:] {
			stored.place(&later[0].TextStart)
		}
	}
	for i := range inserted {
		begin(inserted[i].TextStart)
		stored.place(&inserted[i].TextStart)
		stored.place(&inserted[i].TextEnd)
	}
	begin(len(c.Text))
	return inserted, asked
}

// storedPlaces finds places of a text in the text that JSON keeps, in ascending order.
type storedPlaces struct {
	text      string
	at, grown int
}

// place moves a place.
func (s *storedPlaces) place(x *int) {
	for s.at < *x {
		r, size := utf8.DecodeRuneInString(s.text[s.at:])
		s.at += size
		if r == utf8.RuneError && size == 1 {
			s.grown += len(string(utf8.RuneError)) - 1
		}
	}
	*x += s.grown
}

// Check returns an error unless the inserted parts and the conversations are in order: each part lies within one
// conversation, has a token and is followed by a sampled one, and each conversation has a prompt and a token. The
// tokens of images that an agent brought must be of images that it names, and acts have each sampled token once.
func (c *Completion) Check() error {
	inserted, later := c.Inserted, c.Later()
	at, text := 0, 0
	for n := range len(later) + 1 {
		end := Later{Start: len(c.Tokens), TextStart: len(c.Text)} // where the conversation ends
		if n < len(later) {
			end = later[n]
		}
		if n > 0 && len(later[n-1].Tokens) == 0 || len(later) > 0 && end.Start == at ||
			end.Start < at || end.Start > len(c.Tokens) || end.TextStart < text || end.TextStart > len(c.Text) {
			return fmt.Errorf("conversation %d, tokens %d to %d, has no prompt or no tokens, or is not in order: the "+
				"completion has %d tokens and %d bytes", n+1, at, end.Start, len(c.Tokens), len(c.Text))
		}
		for ; len(inserted) > 0 && inserted[0].Start < end.Start; inserted = inserted[1:] {
			s := inserted[0]
			if s.Start < at || s.End <= s.Start || s.End >= end.Start ||
				s.TextStart < text || s.TextEnd < s.TextStart || s.TextEnd > end.TextStart {
				return c.notBetween(s)
			}
			at, text = s.End, s.TextEnd
		}
		at, text = end.Start, end.TextStart
	}
	if len(inserted) > 0 {
		return c.notBetween(inserted[0])
	}
	if a := c.Asked; a != nil && (a.Final < 0 || a.Final > len(a.Later)) {
		return fmt.Errorf("conversation %d is said to be the final one of %d", a.Final+1, 1+len(a.Later))
	}
	if err := c.checkActs(); err != nil {
		return err
	}
	return c.checkImages()
}

// notBetween is the error of a part.
func (c *Completion) notBetween(s Span) error {
	n := 1 + slices.Index(c.Inserted, s)
	return fmt.Errorf("inserted part %d, tokens %d to %d and bytes %d to %d, does not lie between sampled tokens of "+
		"one conversation: the completion has %d tokens and %d bytes", n, s.Start, s.End, s.TextStart, s.TextEnd,
		len(c.Tokens), len(c.Text))
}
