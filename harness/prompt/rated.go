package prompt

import (
	"context"
	"errors"
	"fmt"

	"exp/eval/layout"
	"exp/experiments/quantity"
	"exp/train/rollout"
	"exp/train/tokenizer"
)

// RatedPlan says which pairs a reward model learns from.
type RatedPlan struct {
	Pairs   int `json:"pairs"`
	Tokens  int `json:"tokens"`         // of both sides, what they begin with counted once
	Longest int `json:"longest"`        // tokens of a side
	Same    int `json:"same,omitempty"` // pairs left out because their sides have the same tokens
	Long    int `json:"long,omitempty"` // pairs left out because of reward_model.max_tokens
	// Margins are the pairs whose row has the column margin.
	Margins int `json:"margins,omitempty"`
	// Begins, Chosen and Rejected are the first pair, as the model reads it: what both sides begin with, and the rest.
	Begins   string `json:"begins"`
	Chosen   string `json:"chosen"`
	Rejected string `json:"rejected"`
}

// String describes it in a line.
func (t *RatedPlan) String() string {
	s := fmt.Sprintf("%s of up to %d tokens a side, %d in all", quantity.Plural(t.Pairs, "pair"), t.Longest, t.Tokens)
	if t.Margins > 0 {
		s += fmt.Sprintf("; %d with a margin", t.Margins)
	}
	return s + t.leftOut()
}

// leftOut says how many pairs are left out, and why; empty for none.
func (t *RatedPlan) leftOut() (s string) {
	if t.Same > 0 {
		s += fmt.Sprintf("; %d left out, as both answers are the same", t.Same)
	}
	if t.Long > 0 {
		s += fmt.Sprintf("; %d longer than reward_model.max_tokens left out", t.Long)
	}
	return s
}

// Rated is a pair as a reward model reads it: what both sides begin with, and how each goes on.
type Rated struct{ Prompt, Chosen, Rejected []int32 }

// longest returns the tokens of the longer side.
func (x *Rated) longest() int { return len(x.Prompt) + max(len(x.Chosen), len(x.Rejected)) }

// RatedPairs encodes pairs for a reward model on all processors. Those that are left out are nil.
func (p *Prompter) RatedPairs(ctx context.Context, list []layout.Pair) ([]*Rated, RatedPlan, error) {
	var plan RatedPlan
	out, err := encodePairs(ctx, list, p.ratedPair)
	if err != nil {
		return nil, plan, err
	}
	for i, x := range out {
		if x == nil || len(x.Chosen)+len(x.Rejected) == 0 {
			plan.Same++
			out[i] = nil
			continue
		}
		if most := p.rates.MaxTokens; most > 0 && x.longest() > most {
			plan.Long++
			out[i] = nil
			continue
		}
		if plan.Pairs++; plan.Pairs == 1 {
			plan.Begins, plan.Chosen, plan.Rejected = p.written(x.Prompt), p.written(x.Chosen), p.written(x.Rejected)
		}
		if list[i].Margin != nil {
			plan.Margins++
		}
		plan.Longest = max(plan.Longest, x.longest())
		plan.Tokens += len(x.Prompt) + len(x.Chosen) + len(x.Rejected)
	}
	return out, plan, nil
}

// ratedPair encodes both sides of a pair.
func (p *Prompter) ratedPair(q *layout.Pair) (*Rated, error) {
	chosen, err := p.rated(&q.Chosen)
	if err != nil {
		return nil, fmt.Errorf("chosen: %w", err)
	}
	rejected, err := p.rated(&q.Rejected)
	if err != nil {
		return nil, fmt.Errorf("rejected: %w", err)
	}
	n := 0
	for n < min(len(chosen), len(rejected)) && chosen[n] == rejected[n] {
		n++
	}
	if n == 0 {
		return nil, errors.New("chosen and rejected begin with different tokens: both need the same prompt")
	}
	return &Rated{Prompt: chosen[:n:n], Chosen: chosen[n:], Rejected: rejected[n:]}, nil
}

// rated returns what a reward model reads of a prompt with an answer.
func (p *Prompter) rated(q *layout.Conversation) ([]int32, error) {
	switch {
	case len(q.Messages) == 0 && p.template != nil:
		return nil, errors.New("its texts have no roles, which the run's chat template needs; make them lists of " +
			"messages, or set data.chat: none")
	case len(q.Messages) == 0:
		return p.RatedText(q.Prompt + q.Target)
	case p.template == nil:
		return nil, errNoTemplate
	}
	return p.RatedChat(p.template.messagesOf(&q.Problem), &q.Problem)
}

// RatedText returns what a reward model of the run reads of a text: its tokens and the token that ends an answer.
func (p *Prompter) RatedText(text string) ([]int32, error) {
	end, err := p.End()
	if err != nil {
		return nil, err
	}
	ids, err := p.Tokenizer.Encode(text, tokenizer.Options{})
	if err == nil {
		err = p.known(ids)
	}
	return append(ids, end), err
}

// RatedChat returns what a reward model of the run reads of the messages of a whole chat about a problem, whose tools
// it shows: all that the chat template writes.
func (p *Prompter) RatedChat(list []rollout.Message, q *rollout.Problem) ([]int32, error) {
	ids, err := p.EncodeChat(list, p.template.toolsOf(q), false)
	if err == nil {
		err = p.known(ids)
	}
	return ids, err
}

// RatedEnd returns the token that ends what a reward model of the run reads: the last one that the chat template
// writes, or the token that ends an answer.
func (p *Prompter) RatedEnd() (int32, error) {
	if p.template == nil {
		return p.End()
	}
	ids, err := p.EncodeChat([]rollout.Message{{Role: "user", Content: askedBefore},
		{Role: "assistant", Content: askedBefore}}, nil, false)
	if err != nil || len(ids) == 0 {
		return 0, errors.Join(errors.New("the chat template does not write an answer"), err)
	}
	return ids[len(ids)-1], nil
}

// enough returns an error if a file of a reward model has n examples, which has describes, but a step takes perStep of
// them by the key. Validation takes one.
func (p *Prompter) enough(held bool, has string, n int, key string, perStep int) error {
	file, asks := p.rates.Source, key+" asks for"
	if held {
		file, perStep, asks = p.rates.Val, 1, "validation needs"
	}
	if n >= perStep {
		return nil
	}
	return fmt.Errorf("%s has %s, and %s %d", file, has, asks, perStep)
}

// CheckRated finds pairs that a reward model cannot learn from, or that are longer than so many positions (0:
// unknown), and notes for Plan what the others hold. held says that they are the held-out ones.
func (p *Prompter) CheckRated(list []layout.Pair, positions int, held bool) error {
	pairs, plan, err := p.RatedPairs(context.Background(), list)
	if err != nil {
		return err
	}
	if held {
		p.heldOut = &plan
	} else {
		p.ratings = &plan
	}
	err = p.enough(held, quantity.Plural(plan.Pairs, "pair")+plan.leftOut(), plan.Pairs, "reward_model.pairs_per_step",
		p.rates.PairsPerStep)
	if err != nil {
		return err
	}
	for i, x := range pairs {
		if x == nil {
			continue
		}
		err := tooLong(list[i].Chosen.Where, x.longest(), positions, "reward_model.max_tokens", "pairs")
		if err != nil {
			return err
		}
	}
	return nil
}
