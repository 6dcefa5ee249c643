package prompt

import (
	"errors"
	"fmt"
	"slices"
	"strings"

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

// Taught encodes a problem's prompt and its target, as the policy would have sampled it, and end. What sft.mask
// encloses is not learned.
func (p *Prompter) Taught(q *rollout.Problem, end int32) (x *Conversation, err error) {
	if q.Target == "" {
		return nil, errors.New("it has no target")
	}
	x = &Conversation{mask: p.sft.Mask}
	if x.Prompt, err = p.Encode(q); err != nil {
		return nil, fmt.Errorf("prompt: %w", err)
	}
	return x, p.target(x, q.Target, end)
}

// Demonstration returns a problem's target as the policy would have sampled it; nil without a target. It has the
// tokens of Taught, without what follows the first of rollout.stop.
func (p *Prompter) Demonstration(q *rollout.Problem) (*rollout.Completion, error) {
	if q.Target == "" {
		return nil, nil
	}
	end, err := p.End()
	if err != nil {
		return nil, err
	}
	prompt, err := p.whole(q)
	if err != nil {
		return nil, err
	}
	text := p.answered(prompt, q.Target)
	shown, tail := text, []int32{end}
	if from, to := firstStop(text, p.stop); from >= 0 {
		text, shown, tail = text[:to], text[:from], nil
	}
	mark, err := freeMark([]byte(text))
	if err != nil {
		return nil, err
	}
	ids, err := p.ownIDs(p.ends().cut(text, mark), mark)
	if err != nil {
		return nil, err
	}
	for i, id := range ids[:max(0, len(ids)-1+len(tail))] {
		if slices.ContainsFunc(p.Stops, func(s StopID) bool { return s.ID == id }) {
			return nil, fmt.Errorf("token %d of the target, %q, ends completions (rollout.stop_ids), and more follow",
				i+1, p.Tokenizer.Token(id))
		}
	}
	return &rollout.Completion{Tokens: append(ids, tail...), Text: shown}, nil
}

// firstStop returns where the stop string that text completes first begins and ends; -1 if it has none.
func firstStop(text string, stop []string) (from, to int) {
	from = -1
	for _, s := range stop {
		if i := strings.Index(text, s); i >= 0 && (from < 0 || i+len(s) < to) {
			from, to = i, i+len(s)
		}
	}
	return from, to
}

// answered returns a target as the policy writes it behind a prompt, without an opening <think> that the prompt has.
func (p *Prompter) answered(prompt []int32, target string) string {
	text := p.template.opened(target)
	if p.opensThought(prompt) {
		if rest, ok := strings.CutPrefix(strings.TrimLeft(text, " \n"), thoughtMark); ok {
			return strings.TrimPrefix(rest, "\n")
		}
	}
	return text
}

// ends is special that keeps text of a target from becoming a token that ends completions, too.
func (p *Prompter) ends() *escaper {
	e := p.special()
	for _, s := range p.Stops {
		e.tokens = append(e.tokens, s.Token)
	}
	return e
}

// target adds a text to learn behind x.Prompt, and end; what sft.mask encloses is not learned. A text that spells an
// added token, such as </think>, is that token, but no text ends the completion before end.
func (p *Prompter) target(x *Conversation, text string, end int32) error {
	text = p.answered(x.Prompt, text)
	mark, err := freeMark([]byte(text))
	if err == nil {
		err = p.split(x, p.ends().cut(text, mark), mark, p.ends(), true)
	}
	if err != nil {
		return fmt.Errorf("target: %w", err)
	}
	x.add([]int32{end}, true)
	return nil
}
