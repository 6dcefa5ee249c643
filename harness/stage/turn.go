package stage

import (
	"context"

	"exp/eval/grade/extract"
	"exp/eval/task"
	"exp/train/rollout"
	"exp/train/tokenizer"
)

// turnGrader grades the first turn of a completion: what stands before the first special token of the run's
// tokenizer, sampled or spelled out. Our grader of mathematics is asked so; the others read what their sources do.
type turnGrader struct {
	rollout.Grader
	tok     tokenizer.Tokenizer
	special []bool // by id
	turns   *extract.Turns
}

// inTurns wraps a grader of that name, if it is ours of mathematics.
func (e *Env) inTurns(name string, g rollout.Grader) (rollout.Grader, error) {
	if !task.OwnGrader(name) {
		return g, nil
	}
	p, err := e.prompter()
	if err != nil {
		return nil, err
	}
	return newTurnGrader(p.Vocabulary(), tokenizer.SpecialTexts(p.Tokenizer), g), nil
}

func newTurnGrader(tok tokenizer.Tokenizer, texts []string, g rollout.Grader) *turnGrader {
	t := &turnGrader{Grader: g, tok: tok, special: make([]bool, tok.VocabSize()), turns: extract.NewTurns(texts)}
	for _, text := range texts {
		if id, ok := tok.TokenID(text); ok && len(tok.Piece(id)) == 0 && !extract.IsMark(text) {
			t.special[id] = true
		}
	}
	return t
}

// Grade implements rollout.Grader.
func (t *turnGrader) Grade(ctx context.Context, p *rollout.Problem, c *rollout.Completion) (rollout.Verdict, error) {
	inner := *c
	inner.Text = t.turns.First(c.Text[:t.end(c)])
	return t.Grader.Grade(ctx, p, &inner)
}

// end returns where the text of the first turn ends: special tokens have no text, and those before any text begin
// the turn.
func (t *turnGrader) end(c *rollout.Completion) int {
	n := 0
	for _, id := range c.Tokens {
		switch piece := t.tok.Piece(id); {
		case len(piece) > 0:
			n += len(piece)
		case n > 0 && int(id) < len(t.special) && t.special[id]:
			return min(n, len(c.Text))
		}
	}
	return len(c.Text)
}
