package task

import (
	"context"
	"fmt"

	"exp/eval/layout"
	"exp/train/rollout"
)

// nobodysGold is a gold answer that no completion gives, so that what a grader extracts does not depend on
// the real one.
const nobodysGold = `\text{nobody wrote this}`

// Agreement tells which completions of a problem give the same answer, without looking at its gold answers.
// It returns the answer of each, as the first completion with that answer wrote it; empty where none was
// found or grader has no verdict. Completions agree if grader calls one right with the other's answer for
// gold; each is compared with the first of every answer so far.
func Agreement(ctx context.Context, grader rollout.Grader, p *rollout.Problem,
	completions []*rollout.Completion) ([]string, error) {
	q, err := layout.WithoutGold(p)
	if err != nil {
		return nil, err
	}
	judge := func(gold string, c *rollout.Completion) (rollout.Verdict, error) {
		q.Answer = gold
		v, err := grader.Grade(ctx, &q, c)
		if err != nil {
			err = fmt.Errorf("comparing answers: %w", err)
		}
		return v, err
	}
	answers := make([]string, len(completions))
	var classes []string
	class := map[string]string{} // of an answer as it was written
	for i, c := range completions {
		v, err := judge(nobodysGold, c)
		if err != nil {
			return nil, err
		}
		if v.Status != rollout.Graded || v.Answer == "" {
			continue
		}
		if found, ok := class[v.Answer]; ok {
			answers[i] = found
			continue
		}
		answers[i] = v.Answer
		for _, first := range classes {
			same, err := judge(first, c)
			if err != nil {
				return nil, err
			}
			if same.Correct {
				answers[i] = first
				break
			}
		}
		if answers[i] == v.Answer {
			classes = append(classes, v.Answer)
		}
		class[v.Answer] = answers[i]
	}
	return answers, nil
}
