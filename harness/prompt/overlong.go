package prompt

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"exp/train/rollout"
)

// This file counts, cuts and refuses prompts that are longer than data.max_prompt_tokens.

// cut returns the ids of a problem's prompt as data.truncate cuts them.
func (p *Prompter) cut(q *rollout.Problem, ids []int32) ([]int32, error) {
	limit := p.data.MaxPromptTokens
	if len(ids) <= limit {
		return ids, nil
	}
	cut := p.data.Truncate
	if len(q.Images) > 0 {
		cut = "error"
	}
	switch cut {
	case "left":
		return ids[len(ids)-limit:], nil
	case "right":
		return ids[:limit:limit], nil
	case "middle":
		right := limit - limit/2
		return slices.Concat(ids[:limit/2], ids[len(ids)-right:]), nil
	}
	return nil, &TooLongError{Tokens: len(ids), Limit: limit, Images: len(q.Images)}
}

// Cutting returns a prompter that cuts longer prompts as how says, which the key sets, instead of data.truncate.
func (p *Prompter) Cutting(how, key string) *Prompter {
	q := *p
	q.data.Truncate, q.cutKey = how, key
	return &q
}

// CutBy returns how longer prompts are cut, and the key that says so.
func (p *Prompter) CutBy() (how, key string) {
	return p.data.Truncate, cmp.Or(p.cutKey, "data.truncate")
}

// overlong reports whether a prompt has more tokens than data.max_prompt_tokens.
func (p *Prompter) overlong(q *rollout.Problem) (bool, error) {
	ids, err := p.tokens(q)
	return len(ids) > p.data.MaxPromptTokens, err
}

// Fitting leaves out the problems whose prompts are too long, if data.filter_overlong says so.
func (p *Prompter) Fitting(problems []rollout.Problem) ([]rollout.Problem, error) {
	if !p.data.FilterOverlong {
		return problems, nil
	}
	p.remember(problems)
	kept := make([]rollout.Problem, 0, len(problems))
	for i := range problems {
		long, err := p.overlong(&problems[i])
		if err != nil {
			return nil, fmt.Errorf("problem %s: %w", problems[i].ID, err)
		}
		if !long {
			kept = append(kept, problems[i])
		}
	}
	return kept, nil
}

// Check finds the first prompt that cannot be encoded, or else the longest of those that are too long.
func (p *Prompter) Check(problems []rollout.Problem) error {
	p.remember(problems)
	var longest *TooLongError
	long := 0
	for i := range problems {
		ids, err := p.Encode(&problems[i])
		var e *TooLongError
		switch {
		case errors.As(err, &e):
			long++
			if longest == nil || e.Tokens > longest.Tokens {
				e.Problem, longest = problems[i].ID, e
			}
			continue
		case err == nil && len(ids) == 0:
			err = errors.New("the prompt is empty")
		}
		if err != nil {
			return fmt.Errorf("problem %s: %w", problems[i].ID, err)
		}
	}
	if longest == nil {
		return nil
	}
	longest.Among = long
	return longest
}

// TooLongError reports prompts that exceed data.max_prompt_tokens while the configuration does not allow cutting them.
type TooLongError struct {
	Problem       string // with the longest prompt; empty: not known here
	Tokens, Limit int    // of it, and data.max_prompt_tokens
	Among         int    // prompts that are too long; 0: not counted
	Images        int    // that the prompt shows; data.truncate cuts no such prompt
	All           bool   // of a benchmark, which is scored on all its problems: data.filter_overlong leaves none out
}

func (e *TooLongError) Error() string {
	which := "the prompt"
	if e.Problem != "" {
		which = "problem " + e.Problem + ": the prompt"
	}
	most := ""
	if e.Among > 1 {
		most = fmt.Sprintf(", the most of %d prompts that are too long", e.Among)
	}
	help := "set data.truncate or data.filter_overlong"
	switch {
	case e.All && e.Images > 0:
		help = "set a lower data.image_max_pixels: prompts with images are not cut"
	case e.All:
		help = "set eval.final.truncate (exp eval --truncate); data.filter_overlong leaves out no problem of a " +
			"benchmark"
	case e.Images > 0:
		help = "set data.filter_overlong or a lower data.image_max_pixels: prompts with images are not cut"
	}
	return fmt.Sprintf("%s has %d tokens%s, data.max_prompt_tokens is %d; raise it, or %s", which, e.Tokens, most,
		e.Limit, help)
}

// Truncated counts the problems whose prompts are cut.
func (p *Prompter) Truncated(problems []rollout.Problem) (n int) {
	for i := range problems {
		if long, err := p.overlong(&problems[i]); err == nil && long {
			n++
		}
	}
	return n
}
