package reward

import (
	"context"
	"fmt"

	"exp/train/program"
	"exp/train/rollout"
)

// GenerativeOptions configure a generative reward model.
type GenerativeOptions struct {
	Template string // of the message, with {prompt} (see Transcript), {response} and {gold}
	Reading
	// Encode returns the model's prompt for a message, [P].
	Encode func(message string) ([]int32, error)
	Limit  int // tokens of a prompt
	// Sampler samples the model's answers, as Params say.
	Sampler rollout.Sampler
	Params  rollout.Params
	Seed    func(message string) uint64 // of the answer to a message
	Close   func()                      // frees the model
}

// Generative scores with a language model on our own engine, which reads a message about a completion and writes an
// answer that holds the score: a generative reward model (GenRM, arXiv:2408.15240; or a judge, arXiv:2306.05685).
//
// Its answer depends on the message and the seed alone, at any temperature, so equal completions of a problem have
// equal scores and a repeated run has the same ones.
type Generative struct{ opt GenerativeOptions }

// NewGenerative returns the scorer, which closes the model.
func NewGenerative(o GenerativeOptions) *Generative { return &Generative{o} }

// Close implements Scorer. It may be called again.
func (g *Generative) Close() error {
	if g.opt.Close != nil {
		g.opt.Close()
	}
	g.opt.Close = nil
	return nil
}

// Score implements Scorer. Items with the same message are judged once. A completion is not graded if its message is
// too long for the model, or if the answer was cut or holds no score.
func (g *Generative) Score(ctx context.Context, items []rollout.Item) ([]Score, error) {
	var reqs []rollout.Request
	scores, of, index := make([]Score, len(items)), make([]int, len(items)), map[string]int{}
	for i, it := range items {
		message := Message(g.opt.Template, it)
		k, known := index[message]
		if !known {
			ids, err := g.opt.Encode(message)
			if err == nil && len(ids) > g.opt.Limit {
				err = fmt.Errorf("its prompt has %d tokens, more than the %d that reward.judge.context leaves it",
					len(ids), g.opt.Limit)
			}
			if err != nil {
				scores[i], of[i] = Score{Reason: "the judge: " + err.Error()}, -1
				continue
			}
			k, index[message] = len(reqs), len(reqs)
			reqs = append(reqs, rollout.Request{Prompt: ids, Seeds: []uint64{g.opt.Seed(message)}})
		}
		of[i] = k
	}
	answers, err := g.opt.Sampler.Sample(ctx, reqs, g.opt.Params, nil)
	if err != nil {
		return nil, err
	}
	for i, k := range of {
		if k >= 0 {
			scores[i] = g.read(&answers[k][0])
		}
	}
	return scores, nil
}

// read finds the score in an answer.
func (g *Generative) read(c *rollout.Completion) Score {
	if c.Finish == rollout.FinishLength {
		return Score{Reason: "the judge: its answer was cut at reward.judge.max_tokens: " +
			program.Excerpt([]byte(c.Text))}
	}
	return g.opt.read(c.Text)
}
