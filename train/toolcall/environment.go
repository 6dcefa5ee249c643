package toolcall

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"exp/train/rollout"
)

// Side says which side of a long answer is cut. The names are verl's (tool_response_truncate_side): the side
// that stays.
type Side string

// The sides.
const (
	Left   Side = "left"   // the beginning stays
	Right  Side = "right"  // the end stays
	Middle Side = "middle" // both ends stay
)

// Options configure an Environment.
type Options struct {
	Format    Format
	Tool      rollout.Tool
	MaxTurns  int // of the policy; a call at the end of the last one ends the completion
	MaxCalls  int // of a turn that are answered; further ones are dropped
	MaxOutput int // characters of an answer; longer ones are cut; 0: no limit
	Side      Side
	// Chat returns the tokens from the end of a turn, which token end ended, to where the policy speaks again
	// after messages. Only formats with messages need it.
	Chat func(end int32, messages []rollout.Message) ([]int32, error)
	// Text returns the tokens of an answer between the texts around it.
	Text func(before, answer, after string) ([]int32, error)
}

// Environment answers calls.
type Environment struct {
	o     Options
	marks []string
}

var _ rollout.Environment = (*Environment)(nil)

// New returns an environment.
func New(o Options) *Environment { return &Environment{o: o, marks: o.Format.marks()} }

// Marks implements rollout.Environment.
func (e *Environment) Marks() []string { return e.marks }

// Read implements rollout.Environment.
func (e *Environment) Read(t rollout.Turn) rollout.Action {
	calls := e.o.Format.calls(t)
	switch last := t.Number >= e.o.MaxTurns; {
	case len(calls) == 0, last && e.o.Format.User:
		return rollout.Action{}
	case last:
		return rollout.Action{Over: true}
	}
	calls = calls[:min(len(calls), max(1, e.o.MaxCalls))]
	return rollout.Action{Reply: func(ctx context.Context) (rollout.Reply, error) { return e.reply(ctx, t, calls) }}
}

// reply asks the tool for each call in turn.
func (e *Environment) reply(ctx context.Context, t rollout.Turn, calls []found) (r rollout.Reply, err error) {
	var texts []string
	for _, c := range calls {
		if c.wrong != "" {
			texts = append(texts, c.wrong)
			continue
		}
		a, err := e.o.Tool.Answer(ctx, rollout.ToolCall{Problem: t.Problem, Turn: t.Number, Name: c.name,
			Arguments: c.arguments, Input: c.input, Response: t.Text})
		if err != nil {
			return r, fmt.Errorf("problem %s: %w", t.Problem.ID, err)
		}
		if a.End {
			return rollout.Reply{Over: true}, nil
		}
		texts = append(texts, cut(strings.ToValidUTF8(a.Text, "\uFFFD"), e.o.MaxOutput, e.o.Side))
	}
	if !e.o.Format.chat() {
		r.Tokens, err = e.o.Text(e.before(t.Text), texts[0], e.o.Format.After)
		return r, err
	}
	messages := make([]rollout.Message, len(texts))
	for i, x := range texts {
		messages[i] = rollout.Message{Role: e.o.Format.role(), Content: x}
	}
	r.Tokens, err = e.o.Chat(t.End, messages)
	return r, err
}

// before returns the text before an answer, without a line end that the policy has written.
func (e *Environment) before(text string) string {
	if strings.HasSuffix(text, "\n") {
		return strings.TrimPrefix(e.o.Format.Before, "\n")
	}
	return e.o.Format.Before
}

// cut shortens a text to at most n characters and a note, as verl does.
func cut(text string, n int, side Side) string {
	if n <= 0 || utf8.RuneCountInString(text) <= n {
		return text
	}
	const note = "(truncated)"
	runes := []rune(text)
	switch side {
	case Left:
		return string(runes[:n]) + "..." + note
	case Right:
		return note + "..." + string(runes[len(runes)-n:])
	}
	half := n / 2
	return string(runes[:half]) + "..." + note + "..." + string(runes[len(runes)-half:])
}
