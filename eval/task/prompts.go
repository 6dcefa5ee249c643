package task

import (
	"context"
	"errors"
	"iter"

	"exp/eval/layout"
	"exp/eval/rows"
	"exp/train/rollout"
)

// promptsTask is the task of texts of any kind, read from files, for which the run's reward alone says how good a
// completion is and whether it is right. Gold answers are read where the rows have them, for that reward.
type promptsTask struct{ onlyRead }

// errNoGrader is returned by Grade of a task that leaves verdicts to the reward.
var errNoGrader = errors.New("the task prompts grades nothing itself: the run's reward does")

// Grade returns an error.
func (promptsTask) Grade(context.Context, *rollout.Problem, *rollout.Completion) (rollout.Verdict, error) {
	return rollout.Verdict{}, errNoGrader
}

// readRows reads rows with a prompt. Repeated problems are dropped.
func (promptsTask) readRows(all iter.Seq2[rows.Row, error], from Source) ([]rollout.Problem, layout.Copies, error) {
	return layout.PromptsAt(all, from.columns())
}

// check accepts every problem that has a prompt.
func (promptsTask) check(p *rollout.Problem) error {
	_, err := layout.FactsOf(p)
	return err
}
