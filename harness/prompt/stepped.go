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

// SteppedPlan says which answers in steps a reward model learns from.
type SteppedPlan struct {
	Answers int `json:"answers"`
	Steps   int `json:"steps"` // with a label
	Right   int `json:"right"` // of them
	Tokens  int `json:"tokens"`
	Longest int `json:"longest"` // tokens of an answer with its prompt
	// Unlabelled are the answers left out because none of their steps has a label, Long those left out because of
	// reward_model.max_tokens.
	Unlabelled int `json:"unlabelled,omitempty"`
	Long       int `json:"long,omitempty"`
	// Begins is the prompt of the first answer, as the model reads it, and First has its steps.
	Begins string      `json:"begins"`
	First  []ShownStep `json:"first"`
}

// ShownStep is a step of an answer with its separator, as the model reads it.
type ShownStep struct {
	Text  string `json:"text"`
	Label string `json:"label"` // right, wrong or reads
}

// String describes it in a line.
func (t *SteppedPlan) String() string {
	s := fmt.Sprintf("%s of up to %d tokens, %d in all; %s with a label, %d of them right",
		quantity.Plural(t.Answers, "answer"), t.Longest, t.Tokens, quantity.Plural(t.Steps, "step"), t.Right)
	return s + t.LeftOut()
}

// LeftOut says how many answers are left out, and why; empty for none.
func (t *SteppedPlan) LeftOut() (s string) {
	if t.Unlabelled > 0 {
		s += fmt.Sprintf("; %d left out, as no step has a label", t.Unlabelled)
	}
	if t.Long > 0 {
		s += fmt.Sprintf("; %d longer than reward_model.max_tokens left out", t.Long)
	}
	return s
}

// Stepped is an answer in steps as a reward model reads it.
type Stepped struct {
	Prompt []int32
	Tokens []int32 // of all steps with their separators
	Ends   []int   // places in Tokens of the last token of each step
}

// length returns the tokens of the answer with its prompt.
func (x *Stepped) length() int { return len(x.Prompt) + len(x.Tokens) }

// SteppedAnswers encodes answers in steps for a reward model on all processors. Those that are left out are nil.
func (p *Prompter) SteppedAnswers(ctx context.Context, list []layout.Stepwise) ([]*Stepped, SteppedPlan, error) {
	var plan SteppedPlan
	out, err := encodeRows(ctx, "answer", list,
		func(q *layout.Stepwise) (*layout.Conversation, bool) { return &q.Asked, !labelled(q) }, p.steppedAnswer)
	if err != nil {
		return nil, plan, err
	}
	for i, x := range out {
		if x == nil {
			plan.Unlabelled++
			continue
		}
		if most := p.rates.MaxTokens; most > 0 && x.length() > most {
			plan.Long++
			out[i] = nil
			continue
		}
		if plan.Answers++; plan.Answers == 1 {
			plan.Begins, plan.First = p.written(x.Prompt), p.shownSteps(&list[i], x)
		}
		plan.Longest = max(plan.Longest, x.length())
		plan.Tokens += x.length()
		for _, right := range list[i].Labels {
			if right != nil {
				plan.Steps++
			}
			if right != nil && *right {
				plan.Right++
			}
		}
	}
	return out, plan, nil
}

// labelled reports whether a step of an answer has a label.
func labelled(q *layout.Stepwise) bool {
	for _, right := range q.Labels {
		if right != nil {
			return true
		}
	}
	return false
}

// shownSteps returns the steps of an answer as the model reads them.
func (p *Prompter) shownSteps(q *layout.Stepwise, x *Stepped) (list []ShownStep) {
	at := 0
	for i, end := range x.Ends {
		s := ShownStep{Text: p.written(x.Tokens[at : end+1]), Label: "reads"}
		if right := q.Labels[i]; right != nil {
			s.Label = map[bool]string{true: "right", false: "wrong"}[*right]
		}
		list, at = append(list, s), end+1
	}
	return list
}

// steppedAnswer encodes an answer in steps.
func (p *Prompter) steppedAnswer(q *layout.Stepwise) (*Stepped, error) {
	var asked []int32
	var err error
	switch {
	case len(q.Asked.Messages) == 0 && p.template != nil:
		return nil, errors.New("its prompt has no roles, which the run's chat template needs; make it a list of " +
			"messages, or set data.chat: none")
	case len(q.Asked.Messages) > 0 && p.template == nil:
		return nil, errNoTemplate
	case p.template == nil:
		asked, err = p.Tokenizer.Encode(q.Asked.Prompt, tokenizer.Options{})
	default:
		asked, err = p.EncodeChat(p.template.messagesOf(&q.Asked.Problem), p.template.toolsOf(&q.Asked.Problem), true)
	}
	if err != nil {
		return nil, err
	}
	return p.Steps(asked, q.Steps, p.rates.Separator)
}

// Steps encodes the steps of an answer after a prompt.
func (p *Prompter) Steps(asked []int32, steps []string, separator string) (*Stepped, error) {
	ids, ends, err := tokenizer.Steps(p.Tokenizer, asked, steps, separator)
	if err == nil {
		err = p.known(ids)
	}
	n := len(asked)
	for i := range ends {
		if ends[i] -= n; err == nil && ends[i] < 0 || i > 0 && ends[i] == ends[i-1] {
			err = fmt.Errorf("step %d and its separator %q have no tokens", i+1, separator)
		}
	}
	if err != nil {
		return nil, err
	}
	return &Stepped{Prompt: ids[:n:n], Tokens: ids[n:], Ends: ends}, nil
}

// AskedOf returns what a reward model of the run reads of a problem before an answer in steps: the prompt that the
// chat template writes, or the text of the problem.
func (p *Prompter) AskedOf(q *rollout.Problem, text string) ([]int32, error) {
	if p.template == nil {
		return p.Tokenizer.Encode(text, tokenizer.Options{})
	}
	asked, tools := p.Chat(q)
	return p.EncodeChat(rollout.WithoutImages(asked), tools, true)
}

// CheckStepped finds answers in steps that a reward model cannot learn from, or that are longer than so many positions
// (0: unknown), and notes for Plan what the others hold. held says that they are the held-out ones.
func (p *Prompter) CheckStepped(list []layout.Stepwise, positions int, held bool) error {
	answers, plan, err := p.SteppedAnswers(context.Background(), list)
	if err != nil {
		return err
	}
	if held {
		p.steppedVal = &plan
	} else {
		p.stepped = &plan
	}
	err = p.enough(held, quantity.Plural(plan.Answers, "answer")+plan.LeftOut(), plan.Answers,
		"reward_model.answers_per_step", p.rates.AnswersPerStep)
	if err != nil {
		return err
	}
	for i, x := range answers {
		if x == nil {
			continue
		}
		err := tooLong(list[i].Asked.Where, x.length(), positions, "reward_model.max_tokens", "answers")
		if err != nil {
			return err
		}
	}
	return nil
}
