package generate

import (
	"context"
	"fmt"
	"math"

	"exp/train/model"
	"exp/train/rollout"
)

// Score returns completions[i][k] that consist of the tokens of option k of list[i], with the log-probs that the model
// gives them at temperature 1, and the entropies there. Nothing is drawn: before each draw, the given token's logit is
// raised above all others, which changes no score (kernels.Sampling). So Score schedules as Sample does: the options
// of a question share its pages, prompts share what they begin with, and a step computes several tokens of an option,
// as drafts that are always right. The scores have the bits of the trainer's, whatever else is computed.
//
// An option may have end tokens. done and errors are as in Sample; a question may need no more tokens than MaxTokens.
func (e *Engine) Score(ctx context.Context, list []rollout.Question, done func(n int)) ([][]rollout.Completion,
	error) {
	reqs, longest := make([]rollout.Request, len(list)), 1
	given := make([][][]int32, len(list))
	for i, q := range list {
		if err := e.checkQuestion(i, &q); err != nil {
			return nil, err
		}
		reqs[i] = rollout.Request{Prompt: q.Prompt, Seeds: make([]uint64, len(q.Options))}
		given[i] = q.Options
		for _, o := range q.Options {
			longest = max(longest, len(o))
		}
	}
	s := newSchedule(e, reqs, rollout.Params{TopP: 1, MaxNewTokens: longest})
	s.given = given
	s.know(reqs)
	return e.run(ctx, s, done)
}

// checkQuestion returns an error for a question that the engine cannot take.
func (e *Engine) checkQuestion(i int, q *rollout.Question) error {
	if err := q.Check(); err != nil {
		return fmt.Errorf("generate: question %d: %w", i, err)
	}
	vocab := e.m.Config.Vocab
	if id := q.Prompt[len(q.Prompt)-1]; int(id) >= vocab {
		return fmt.Errorf("generate: the prompt of question %d ends with an image; text must follow it", i)
	}
	for k, o := range q.Options {
		if n := len(q.Prompt) + len(o); n > e.opt.MaxTokens {
			return fmt.Errorf("generate: question %d needs %d tokens (prompt %d + option %d of %d), the engine holds "+
				"%d", i, n, len(q.Prompt), k, len(o), e.opt.MaxTokens)
		}
		for _, id := range o {
			if id < 0 || int(id) >= vocab {
				return fmt.Errorf("generate: option %d of question %d has token %d, the model has 0 to %d", k, i, id,
					vocab-1)
			}
		}
	}
	return nil
}

// giving is added to the logit of a given token: with any logits that are numbers, it is drawn.
const giving = 1e30

// rest returns the tokens that q is given after those that it has.
func (s *schedule) rest(q *sequence) []int32 { return s.given[q.req][q.k][len(q.drawn):] }

// longest returns the most tokens that a completion may have.
func (s *schedule) longest(req, k int) int {
	if s.given != nil {
		return len(s.given[req][k])
	}
	return s.params(req).MaxNewTokens
}

// give makes the given tokens of running completions their drafts: of the first as many as a step draws at once, then
// of the next. Layers with linear attention take one token a step.
func (d *drafter) give(s *schedule) {
	rows := len(s.running)
	d.drew = !s.e.state.exist()
	if !d.drew {
		return
	}
	for _, q := range s.running {
		rest := s.rest(q)
		n := max(0, min(len(rest)-1, d.most-rows))
		n = max(0, min(n, s.reserve(q, n)))
		q.draft = append(q.draft[:0], rest[:n]...)
		rows += n
	}
}

// raise returns the adjustment that makes a draw take its given token.
func (s *schedule) raise(d draw) model.Adjustment {
	return model.Adjustment{Token: s.rest(d.q)[d.behind], Factor: 1, Before: giving}
}

// taken returns the given token that q takes next, with its scores. If another one was drawn, the model's logits are
// no numbers, and neither is the log-prob.
func (s *schedule) taken(q *sequence, t drawnToken) drawnToken {
	if id := s.rest(q)[0]; t.id != id {
		t.id, t.logProb = id, float32(math.NaN())
	}
	return t
}
