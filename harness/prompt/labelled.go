package prompt

import (
	"context"
	"fmt"

	"exp/eval/layout"
	"exp/experiments/quantity"
)

// AnswerPlan says which single answers learning from preferences learns from.
type AnswerPlan struct {
	Chosen   int `json:"chosen"`   // good answers
	Rejected int `json:"rejected"` // bad ones
	Tokens   int `json:"tokens"`   // of answers with their prompts
	Learned  int `json:"learned"`  // of them
	Longest  int `json:"longest"`  // tokens of an answer with its prompt
	// Same are the answers of pairs with the same tokens, which are left out, Long are left out because of
	// prefer.max_tokens.
	Same int `json:"same,omitempty"`
	Long int `json:"long,omitempty"`
	// Images are those that the answers show; nil: none.
	Images *ImagePlan `json:"images,omitempty"`
	// ChosenWeight and RejectedWeight are the settings of these names.
	ChosenWeight   float64 `json:"chosen_weight"`
	RejectedWeight float64 `json:"rejected_weight"`
	// Good and Bad are the first answers of each kind, as the model reads them.
	Good []ConversationPart `json:"good,omitempty"`
	Bad  []ConversationPart `json:"bad,omitempty"`
}

// Count returns the number of answers.
func (t *AnswerPlan) Count() int { return t.Chosen + t.Rejected }

// String describes it in a line.
func (t *AnswerPlan) String() string {
	s := fmt.Sprintf("%s, %d good and %d bad, of up to %d tokens; %.0f %% of all %d are learned, the answers'",
		quantity.Plural(t.Count(), "answer"), t.Chosen, t.Rejected, t.Longest,
		100*float64(t.Learned)/float64(max(1, t.Tokens)), t.Tokens)
	if t.Same > 0 {
		s += fmt.Sprintf("; %d left out, as both answers of a pair are the same", t.Same)
	}
	if t.Long > 0 {
		s += fmt.Sprintf("; %d longer than prefer.max_tokens left out", t.Long)
	}
	return s + t.Images.among()
}

// The range that chosen_weight·good answers / (rejected_weight·bad answers) should be in, arXiv:2402.01306 eq. 8.
const (
	leastBalance = 1
	mostBalance  = 4.0 / 3
)

// slack says how far out of that range nobody is warned: a quarter, so from 0.8 to 1.67.
const slack = 1.25

// Advice says how weights would balance good and bad answers as the paper of KTO recommends; empty where they nearly
// do.
func (t *AnswerPlan) Advice() string {
	if t.Chosen == 0 || t.Rejected == 0 {
		what := "good"
		if t.Rejected == 0 {
			what = "bad"
		}
		return fmt.Sprintf("no answer is %s: nothing says which of two to prefer, and all move the same way", what)
	}
	good, bad := float64(t.Chosen), float64(t.Rejected)
	balance := t.ChosenWeight * good / (t.RejectedWeight * bad)
	if balance >= leastBalance/slack && balance <= mostBalance*slack {
		return ""
	}
	chosen, rejected := t.RejectedWeight*bad/good, t.ChosenWeight*good/bad
	return fmt.Sprintf("prefer.chosen_weight (%g) × %d good answers is %.2f times prefer.rejected_weight (%g) × %d "+
		"bad ones; the paper of KTO recommends 1 to 1.33: chosen_weight from %.2f to %.2f, or rejected_weight from "+
		"%.2f to %.2f", t.ChosenWeight, t.Chosen, balance, t.RejectedWeight, t.Rejected,
		leastBalance*chosen, mostBalance*chosen, rejected/mostBalance, rejected/leastBalance)
}

// Answers encodes single answers on all processors. Those that are left out are nil.
func (p *Prompter) Answers(ctx context.Context, list []layout.Labelled) ([]*Conversation, AnswerPlan, error) {
	plan := AnswerPlan{ChosenWeight: p.prefer.ChosenWeight, RejectedWeight: p.prefer.RejectedWeight}
	out, err := encodeRows(ctx, "answer", list,
		func(q *layout.Labelled) (*layout.Conversation, bool) { return &q.Answer, q.Same },
		func(q *layout.Labelled) (*Conversation, error) { return p.conversation(&q.Answer, &Conversation{}) })
	if err != nil {
		return nil, plan, err
	}
	for i, x := range out {
		if x == nil {
			plan.Same++
			continue
		}
		n := len(x.Prompt) + len(x.Tokens)
		if most := p.prefer.MaxTokens; most > 0 && n > most {
			plan.Long++
			out[i] = nil
			continue
		}
		if list[i].Good {
			plan.Chosen++
		} else {
			plan.Rejected++
		}
		plan.Longest = max(plan.Longest, n)
		plan.Tokens += n
		plan.Learned += x.SampledTokens()
		p.countImages(&plan.Images, list[i].Answer.Images)
	}
	return out, plan, nil
}

// CheckAnswers is CheckPairs for single answers.
func (p *Prompter) CheckAnswers(list []layout.Labelled, positions int) error {
	out, plan, err := p.Answers(context.Background(), list)
	if err != nil {
		return err
	}
	for i, x := range out {
		switch {
		case x == nil:
		case list[i].Good && plan.Good == nil:
			plan.Good = p.parts(&list[i].Answer, x)
		case !list[i].Good && plan.Bad == nil:
			plan.Bad = p.parts(&list[i].Answer, x)
		}
	}
	p.judged = &plan
	if n := p.prefer.AnswersPerStep; plan.Count() < n {
		left := ""
		if plan.Same+plan.Long > 0 {
			left = fmt.Sprintf(" (%d of pairs with the same answers and %d longer than prefer.max_tokens are left "+
				"out)", plan.Same, plan.Long)
		}
		return fmt.Errorf("%s has %s to learn from%s, prefer.answers_per_step asks for %d", p.prefer.Source,
			quantity.Plural(plan.Count(), "answer"), left, n)
	}
	for i, x := range out {
		if x == nil {
			continue
		}
		n := len(x.Prompt) + len(x.Tokens)
		if err := tooLong(list[i].Answer.Where, n, positions, "prefer.max_tokens", "answers"); err != nil {
			return err
		}
	}
	return nil
}
