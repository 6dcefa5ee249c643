package prompt

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"exp/eval/layout"
	"exp/experiments/quantity"
)

// PairPlan says what learning from preferences learns from.
type PairPlan struct {
	Pairs   int `json:"pairs"`
	Tokens  int `json:"tokens"`  // of both sides, the prompt counted once
	Learned int `json:"learned"` // of them
	Longest int `json:"longest"` // tokens of an answer with its prompt
	// Same are the pairs left out because their answers have the same tokens, Long because of prefer.max_tokens.
	Same int `json:"same,omitempty"`
	Long int `json:"long,omitempty"`
	// Images are what the pairs show, a prompt counted once; nil: nothing.
	Images *ImagePlan `json:"images,omitempty"`
	// Chosen and Rejected are the sides of the first pair, as the model reads them.
	Chosen   []ConversationPart `json:"chosen"`
	Rejected []ConversationPart `json:"rejected"`
}

// String describes it in a line.
func (t *PairPlan) String() string {
	s := fmt.Sprintf("%s of up to %d tokens a side; %.0f %% of all %d are learned, the answers'",
		quantity.Plural(t.Pairs, "pair"), t.Longest, 100*float64(t.Learned)/float64(max(1, t.Tokens)), t.Tokens)
	if t.Same > 0 {
		s += fmt.Sprintf("; %d left out, as both answers are the same", t.Same)
	}
	if t.Long > 0 {
		s += fmt.Sprintf("; %d longer than prefer.max_tokens left out", t.Long)
	}
	return s + t.Images.among()
}

// Pair is a pair as the model learns it. Both sides have the same prompt.
type Pair struct{ Chosen, Rejected *Conversation }

// Pairs encodes pairs on all processors. Those that are left out are nil.
func (p *Prompter) Pairs(ctx context.Context, list []layout.Pair) ([]*Pair, PairPlan, error) {
	var plan PairPlan
	out, err := encodePairs(ctx, list, p.pair)
	if err != nil {
		return nil, plan, err
	}
	for i, x := range out {
		if x == nil || slices.Equal(x.Chosen.Tokens, x.Rejected.Tokens) {
			plan.Same++
			out[i] = nil
			continue
		}
		longest := len(x.Chosen.Prompt) + max(len(x.Chosen.Tokens), len(x.Rejected.Tokens))
		if most := p.prefer.MaxTokens; most > 0 && longest > most {
			plan.Long++
			out[i] = nil
			continue
		}
		plan.Pairs++
		plan.Longest = max(plan.Longest, longest)
		plan.Tokens += len(x.Chosen.Prompt) + len(x.Chosen.Tokens) + len(x.Rejected.Tokens)
		plan.Learned += x.Chosen.SampledTokens() + x.Rejected.SampledTokens()
		p.countImages(&plan.Images, list[i].Pictures())
	}
	return out, plan, nil
}

// encodePairs encodes pairs on all processors. One whose answers are the same is nil. The error is the first pair's
// that has one.
func encodePairs[T any](ctx context.Context, list []layout.Pair, encode func(*layout.Pair) (*T, error)) ([]*T, error) {
	facts := func(q *layout.Pair) (*layout.Conversation, bool) { return &q.Chosen, q.Same }
	return encodeRows(ctx, "pair", list, facts, encode)
}

// encodeRows encodes what, as read from rows, on all processors. facts returns where an item is from, and whether it
// is left out, as nil. The error is the first item's that has one.
func encodeRows[Q, T any](ctx context.Context, what string, list []Q, facts func(*Q) (*layout.Conversation, bool),
	encode func(*Q) (*T, error)) ([]*T, error) {
	out, errs := make([]*T, len(list)), make([]error, len(list))
	inParallel(ctx, len(list), func(i int) {
		if _, same := facts(&list[i]); !same {
			out[i], errs[i] = encode(&list[i])
		}
	})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for i, err := range errs {
		if err != nil {
			from, _ := facts(&list[i])
			return nil, fmt.Errorf("%s: %w", cmp.Or(from.Where, what+" "+from.ID), err)
		}
	}
	return out, nil
}

func (p *Prompter) pair(q *layout.Pair) (x *Pair, err error) {
	x = &Pair{}
	if x.Chosen, err = p.conversation(&q.Chosen, &Conversation{}); err != nil {
		return nil, fmt.Errorf("chosen: %w", err)
	}
	if x.Rejected, err = p.conversation(&q.Rejected, &Conversation{}); err != nil {
		return nil, fmt.Errorf("rejected: %w", err)
	}
	if !slices.Equal(x.Chosen.Prompt, x.Rejected.Prompt) {
		return nil, fmt.Errorf("the chat template writes different prompts before chosen and rejected")
	}
	return x, nil
}

// CheckPairs finds pairs that the run cannot learn from, or that are longer than so many positions (0: unknown), and
// notes for Plan what the others hold.
func (p *Prompter) CheckPairs(list []layout.Pair, positions int) error {
	pairs, plan, err := p.Pairs(context.Background(), list)
	if err != nil {
		return err
	}
	for i, x := range pairs {
		if x != nil {
			plan.Chosen, plan.Rejected = p.parts(&list[i].Chosen, x.Chosen), p.parts(&list[i].Rejected, x.Rejected)
			break
		}
	}
	p.prefers = &plan
	if n := p.prefer.PairsPerStep; plan.Pairs < n {
		left := ""
		if plan.Same+plan.Long > 0 {
			left = fmt.Sprintf(" (%d with the same answers and %d longer than prefer.max_tokens are left out)",
				plan.Same, plan.Long)
		}
		return fmt.Errorf("%s has %s to learn from%s, prefer.pairs_per_step asks for %d", p.prefer.Source,
			quantity.Plural(plan.Pairs, "pair"), left, n)
	}
	for i, x := range pairs {
		if x == nil {
			continue
		}
		n := len(x.Chosen.Prompt) + max(len(x.Chosen.Tokens), len(x.Rejected.Tokens))
		if err := tooLong(list[i].Chosen.Where, n, positions, "prefer.max_tokens", "pairs"); err != nil {
			return err
		}
	}
	return nil
}
