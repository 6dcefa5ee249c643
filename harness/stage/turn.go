package stage

import (
	"context"
	"strings"
	"unicode"

	"exp/eval/grade/extract"
	"exp/eval/task"
	"exp/train/rollout"
	"exp/train/tokenizer"
)

// turnGrader grades the answer of a completion's first turn: what stands between its thinking and the next special
// token of the run's tokenizer, sampled or, for mathematics, spelled out or told by the name of another speaker.
// Sampled special tokens have no text, so the text alone does not show where thinking in channels (gpt-oss), or before
// a special </think>, ends. task.ReadsTurns tells which graders are asked so; the others read what their sources do.
type turnGrader struct {
	rollout.Grader
	tok   tokenizer.Tokenizer
	roles []role         // by id
	turns *extract.Turns // nil: all of the text between sampled tokens counts
}

// role is what a special token does to a completion.
type role uint8

const (
	noRole      role = iota
	endsTurn         // ends a turn, or begins the next
	endsThought      // ends the thinking: </think>
	opensName        // <|channel|>, before the name of a channel
	opensText        // <|message|>, after it
)

// inTurns wraps a grader of that name, if it reads turns.
func (e *Env) inTurns(name string, g rollout.Grader) (rollout.Grader, error) {
	if !task.ReadsTurns(name) {
		return g, nil
	}
	p, err := e.prompter()
	if err != nil {
		return nil, err
	}
	texts := tokenizer.SpecialTexts(p.Tokenizer)
	t := newTurnGrader(p.Vocabulary(), texts, g)
	if task.OwnGrader(name) {
		t.turns = extract.NewTurns(texts)
	}
	return t, nil
}

func newTurnGrader(tok tokenizer.Tokenizer, texts []string, g rollout.Grader) *turnGrader {
	t := &turnGrader{Grader: g, tok: tok, roles: make([]role, tok.VocabSize())}
	for _, text := range texts {
		if id, ok := tok.TokenID(text); ok && len(tok.Piece(id)) == 0 {
			t.roles[id] = roleOf(text)
		}
	}
	return t
}

func roleOf(text string) role {
	switch {
	case !extract.IsMark(text):
		return endsTurn
	case text == "<|channel|>":
		return opensName
	case text == "<|message|>":
		return opensText
	case extract.IsEndOfThought(text):
		return endsThought
	}
	return noRole
}

// Grade implements rollout.Grader.
func (t *turnGrader) Grade(ctx context.Context, p *rollout.Problem, c *rollout.Completion) (rollout.Verdict, error) {
	inner := *c
	inner.Text = t.answer(c)
	if t.turns != nil {
		inner.Text = t.turns.First(inner.Text)
	}
	return t.Grader.Grade(ctx, p, &inner)
}

// answer returns the text of the first turn after its thinking, and the white space behind that. Tokens before any
// text begin the turn. Of several channels the first named final is the answer; without one the answer is empty.
func (t *turnGrader) answer(c *rollout.Completion) string {
	start, end := 0, 0
	channels, naming, final, thought := false, false, false, false
	name := ""
	for _, id := range c.Tokens {
		if piece := t.tok.Piece(id); len(piece) > 0 {
			end += len(piece)
			if naming {
				name += string(piece)
			}
			continue
		}
		if int(id) >= len(t.roles) {
			continue
		}
		switch t.roles[id] {
		case opensName:
			channels, naming, name = true, true, ""
		case opensText:
			if naming && strings.HasPrefix(strings.TrimSpace(name), "final") {
				start, final = end, true
			}
			naming = false
		case endsThought:
			start, thought = end, true
		case endsTurn:
			if end > start && (final || !channels) {
				return between(c.Text, start, end, thought)
			}
		}
	}
	if channels && !final {
		return ""
	}
	return between(c.Text, start, len(c.Text), thought)
}

// between returns a part of a text, less the white space that it begins with if it follows thinking. Bounds may lie
// beyond the text, which ends before a stop string.
func between(text string, start, end int, thought bool) string {
	part := text[min(start, len(text)):min(end, len(text))]
	if thought {
		part = strings.TrimLeftFunc(part, unicode.IsSpace)
	}
	return part
}
