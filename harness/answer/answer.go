// Package answer puts the reference answers of problems in the places of completions' own, for rewards by likelihood.
// It knows tokens and their texts, no model.
package answer

import (
	"exp/eval/task"
	"exp/train"
	"exp/train/rollout"
)

// Writer writes reference answers. It is safe for concurrent use if its functions are.
type Writer struct {
	Task   task.Config
	Encode func(text string) ([]int32, error) // text to learn, without special tokens
	Piece  func(id int32) []byte              // what a token adds to a text that has begun
	End    int32                              // closes an answer that ends its completion
}

// Answer returns the reference answer of p in the place of c's own, nil if it gives none, or as one without reasoning
// if c is nil (train.Parts). The completion's tokens stay as sampled up to the place of the answer. Where a token
// reaches into it, such as {4 of \boxed{4}, its text before the answer is encoded again, with the answer.
func (w *Writer) Answer(p *rollout.Problem, c *rollout.Completion) (*train.Answer, error) {
	if c == nil {
		text, place := task.WithoutReasoning(w.Task, p)
		return w.tail(p, 0, text, place)
	}
	place, ok := task.AnswerPlace(w.Task, p, c.Text)
	if !ok {
		return nil, nil
	}
	kept, at := 0, 0
	for at < place.Start && kept < len(c.Tokens) {
		n := len(w.Piece(c.Tokens[kept]))
		if at+n > place.Start {
			break
		}
		kept, at = kept+1, at+n
	}
	return w.tail(p, kept, c.Text[at:place.Start], place)
}

// tail encodes a problem's answer, and what closes it, after so many tokens and the text before the answer.
func (w *Writer) tail(p *rollout.Problem, kept int, before string, place task.Place) (*train.Answer, error) {
	answer := task.ReferenceAnswer(p)
	lead := before + place.Gap
	ids, err := w.continued(lead + answer + place.Close)
	if err != nil {
		return nil, err
	}
	out := &train.Answer{Kept: kept, Tokens: ids}
	for i, at := 0, 0; i < len(ids); i++ {
		if at <= len(before) {
			out.Start = i
		}
		if at <= len(lead) {
			out.From = i
		}
		if at < len(lead)+len(answer) {
			out.To = i + 1
		}
		at += len(w.Piece(ids[i]))
	}
	if place.Close == "" {
		out.Tokens = append(out.Tokens, w.End)
	}
	return out, nil
}

// continued returns the tokens of a text that continues another one. Tokenizers that begin every text with a space
// would write one here, too, so they get a line's end before it, whose tokens are dropped.
func (w *Writer) continued(text string) ([]int32, error) {
	ids, err := w.Encode(text)
	if err != nil || w.text(ids) != " "+text {
		return ids, err
	}
	const line = "\n"
	longer, err := w.Encode(line + text)
	if err != nil {
		return nil, err
	}
	for i := range longer {
		if w.text(longer[i:]) == text {
			return longer[i:], nil
		}
	}
	return ids, nil
}

// text returns the text that tokens add to one that has begun.
func (w *Writer) text(ids []int32) string {
	var out []byte
	for _, id := range ids {
		out = append(out, w.Piece(id)...)
	}
	return string(out)
}
