package prompt

import (
	"errors"
	"fmt"

	"exp/eval/layout"
	"exp/train/rollout"
)

// continuation encodes a text and what to learn after it, without a chat template.
func (p *Prompter) continuation(q *layout.Conversation, x *Conversation) (*Conversation, error) {
	if p.template != nil {
		return nil, errors.New("prompt and completion are texts, which are learned as they are, and the run samples " +
			"with a chat template; make them lists of messages, or set data.chat: none")
	}
	end, err := p.End()
	if err != nil {
		return nil, err
	}
	if x.Prompt, err = p.plain(q.Prompt); err == nil {
		err = p.known(x.Prompt)
	}
	if err == nil && len(x.Prompt) == 0 {
		err = errors.New("it is empty, and the model's texts begin with no token of their own")
	}
	if err != nil {
		return nil, fmt.Errorf("prompt: %w", err)
	}
	if err := p.target(x, q.Target, end); err != nil {
		return nil, err
	}
	return x.shortened(), nil
}

// MaskedTarget encodes a problem's prompt and its target, whose tool output sft.mask encloses.
func (p *Prompter) MaskedTarget(q *rollout.Problem, end int32) (x *Conversation, err error) {
	if q.Target == "" {
		return nil, errors.New("it has no target")
	}
	x = &Conversation{mask: p.sft.Mask}
	if x.Prompt, err = p.Encode(q); err != nil {
		return nil, fmt.Errorf("prompt: %w", err)
	}
	return x, p.target(x, q.Target, end)
}

// Demonstration encodes a problem's target, and the token that ends it, as a completion; nil without a target.
func (p *Prompter) Demonstration(q *rollout.Problem) (*rollout.Completion, error) {
	if q.Target == "" {
		return nil, nil
	}
	end, err := p.End()
	if err != nil {
		return nil, err
	}
	ids, err := p.Target(q.Target)
	return &rollout.Completion{Tokens: append(ids, end), Text: q.Target}, err
}

// target adds a text to learn, and end; what sft.mask encloses is not learned.
func (p *Prompter) target(x *Conversation, text string, end int32) error {
	own := func(text string, _ rune) ([]int32, error) { return p.Target(text) }
	if err := p.split(x, text, 0, true, own); err != nil {
		return fmt.Errorf("target: %w", err)
	}
	x.add([]int32{end}, true)
	return nil
}
