package train

import (
	"context"
	"fmt"
	"time"

	"exp/kernels"
	"exp/train/model"
	"exp/train/ranks"
	"exp/train/rl"
	"exp/train/rollout"
)

// StepModelConfig holds the settings of training a process reward model.
type StepModelConfig struct {
	Steps            int
	AnswersPerStep   int
	MicroBatchTokens int
	Recompute        bool
	Slices           int // as in Config
	Offload          Offload
	Optim            Optim
	// ValidateEvery is the number of steps between validations on held-out answers; 0: only after the last step.
	ValidateEvery int
}

// Rows returns the rows of a step whose answers have at most so many tokens with their prompts, as
// SteppedAnswer.Length counts them.
func (c StepModelConfig) Rows(longest int) Rows {
	return Rows{Problems: c.AnswersPerStep, Update: c.AnswersPerStep, Samples: 1, Slices: c.Slices, Longest: longest,
		New: longest, Budget: c.MicroBatchTokens}
}

// SteppedAnswer is an answer in steps, some of them labelled.
type SteppedAnswer struct {
	ID     string
	Prompt []int32
	Tokens []int32 // of all steps
	Ends   []int   // of each labelled step, the place in Tokens of its last token; rising
	Right  []bool  // whether that step is right
}

// Length returns the tokens of the answer with its prompt, and one more, which is not computed: the engine reads the
// state before a token.
func (a *SteppedAnswer) Length() int { return len(a.Prompt) + len(a.Tokens) + 1 }

// StepModelParts are the inputs of training a process reward model.
type StepModelParts struct {
	Backend  kernels.Backend
	Model    *model.Model // trainable, with a score head
	Answers  []SteppedAnswer
	HeldOut  []SteppedAnswer // for validation; may be empty
	Seed     func(label string) uint64
	Recorder Recorder
	Clock    func() time.Time
	Ranks    ranks.Group // nil: ranks.Alone
	Tensor   int         // as in Parts
}

// StepModel trains a process reward model on labelled steps in a file: it minimises the mean of rl.StepLoss over the
// labelled steps of an update. A step's score is read at its last token. Answers come in a new
// random order each epoch. Create it with NewStepModel, then Run it.
type StepModel struct {
	scoreTuner
	answers, heldOut []SteppedAnswer
}

// NewStepModel prepares training from step 0. Close it afterwards.
func NewStepModel(c StepModelConfig, p StepModelParts) (*StepModel, error) {
	longest, err := p.longest()
	switch {
	case err != nil:
		return nil, err
	case len(p.Answers) < c.AnswersPerStep:
		return nil, fmt.Errorf("reward model: only %d answers, fewer than answers_per_step %d", len(p.Answers),
			c.AnswersPerStep)
	case !ranks.Valid(c.Slices):
		return nil, fmt.Errorf("reward model: %d slices: a power of two up to %d", c.Slices, ranks.MaxSlices)
	}
	t := &StepModel{answers: p.Answers, heldOut: p.HeldOut,
		scoreTuner: scoreTuner{m: p.Model, rows: c.Rows(longest), optim: c.Optim, slices: c.Slices,
			every: c.ValidateEvery,
			tuner: tuner{be: p.Backend, ranks: p.Ranks, clock: p.Clock, recorder: p.Recorder, steps: c.Steps,
				order: order{n: len(p.Answers), perStep: c.AnswersPerStep, shuffled: true, seed: p.Seed}}}}
	if err := t.open("reward_model", p.Model, c.Optim, t.rows, c.Offload, keptBy(c.Recompute), p.Tensor); err != nil {
		return nil, err
	}
	return t, nil
}

// longest checks the answers and returns the greatest Length.
func (p *StepModelParts) longest() (most int, err error) {
	limit := p.Model.Config.MaxPositions
	for _, list := range [][]SteppedAnswer{p.Answers, p.HeldOut} {
		for i := range list {
			x := &list[i]
			last := -1
			for _, end := range x.Ends {
				if end <= last || end >= len(x.Tokens) {
					return 0, fmt.Errorf("reward model: answer %s has a step that ends at token %d of %d", x.ID, end,
						len(x.Tokens))
				}
				last = end
			}
			switch {
			case len(x.Prompt) == 0:
				return 0, fmt.Errorf("reward model: answer %s has an empty prompt", x.ID)
			case len(x.Ends) == 0 || len(x.Ends) != len(x.Right):
				return 0, fmt.Errorf("reward model: answer %s has %d steps and %d labels", x.ID, len(x.Ends),
					len(x.Right))
			case x.Length()-1 > limit:
				return 0, fmt.Errorf("reward model: answer %s ends after %d tokens, the model holds %d positions",
					x.ID, x.Length()-1, limit)
			}
			most = max(most, x.Length())
		}
	}
	return most, nil
}

// Run takes the remaining steps. Between steps it calls stop; if that returns true, Run returns ErrStopped, and State
// and Buffers can be saved. All ranks stop if one is asked to.
func (t *StepModel) Run(ctx context.Context, stop func() bool) error { return t.run(ctx, stop, t.Step) }

// Step takes one step and returns its record. It fails only if another rank does.
func (t *StepModel) Step() (*Step, error) {
	var heldOut func() scoredExamples
	if len(t.heldOut) > 0 {
		heldOut = func() scoredExamples { return stepScoresOf(t.heldOut) }
	}
	return t.learn(func(drawn []int) scoredExamples {
		list := make([]SteppedAnswer, len(drawn))
		for i, k := range drawn {
			list[i] = t.answers[k]
		}
		return stepScoresOf(list)
	}, heldOut)
}

// stepScoresOf lays out answers.
func stepScoresOf(list []SteppedAnswer) *stepScores {
	rows, of, n := make([]Trajectory, len(list)), map[*rollout.Problem]*SteppedAnswer{}, 0
	for i := range list {
		x := &list[i]
		q := &rollout.Problem{ID: x.ID}
		of[q], n = x, n+len(x.Ends)
		tokens := append(append(make([]int32, 0, len(x.Tokens)+1), x.Tokens...), 0) // see SteppedAnswer.Length
		rows[i] = Trajectory{Problem: q, Prompt: x.Prompt,
			Completion: &rollout.Completion{Tokens: tokens, LogProbs: make([]float32, len(tokens))},
			Verdict:    rollout.Verdict{Status: rollout.Graded}}
	}
	return &stepScores{stateScores: stateScores{batch: newBatch(rows, rl.Overlong{}, nil)}, of: of, n: n}
}

// stepScores are the scores of the steps of answers.
type stepScores struct {
	stateScores
	of map[*rollout.Problem]*SteppedAnswer // of each row's problem
	n  int                                 // labelled steps
}

// steps calls f with the place in value of each labelled step of a row, the place of the token after it, and its
// label.
func (x *stepScores) steps(row int, f func(place int, right bool)) {
	a := x.of[x.traj[row].Problem]
	for i, end := range a.Ends {
		f(x.rows[row]+end+1, a.Right[i])
	}
}

func (x *stepScores) slopes(grad []float32, r0, r1 int) {
	for row := r0; row < r1; row++ {
		x.steps(row, func(place int, right bool) {
			_, slope := rl.StepLoss(float64(x.value[place]), right)
			grad[place-x.rows[r0]] = float32(slope / float64(x.n))
		})
	}
}

// stepSummary holds means over labelled steps.
type stepSummary struct {
	loss, accuracy, right float64
	scores, counts        [2]float64 // sums and numbers of wrong and of right steps
}

// summary sums up all steps. One without a positive score counts as wrong.
func (x *stepScores) summary() (s stepSummary) {
	for row := range x.traj {
		x.steps(row, func(place int, right bool) {
			score := float64(x.value[place])
			loss, _ := rl.StepLoss(score, right)
			s.loss += loss
			if (score > 0) == right {
				s.accuracy++
			}
			label := 0
			if right {
				label = 1
			}
			s.scores[label] += score
			s.counts[label]++
		})
	}
	n := s.counts[0] + s.counts[1]
	s.right = s.counts[1] / n
	s.loss /= n
	s.accuracy /= n
	return s
}

// metrics returns the measurements of an update's steps. Without right steps, or without wrong ones, their mean
// score is left out.
func (x *stepScores) metrics() []rl.Metric {
	s := x.summary()
	list := []rl.Metric{{Name: "rm/step_loss", Value: s.loss}, {Name: "rm/step_accuracy", Value: s.accuracy},
		{Name: "rm/steps_right", Value: s.right}}
	if n := s.counts[1]; n > 0 {
		list = append(list, rl.Metric{Name: "rm/score_right", Value: s.scores[1] / n})
	}
	if n := s.counts[0]; n > 0 {
		list = append(list, rl.Metric{Name: "rm/score_wrong", Value: s.scores[0] / n})
	}
	return list
}

// heldOut returns the measurements of the steps of held-out answers.
func (x *stepScores) heldOut() []rl.Metric {
	s := x.summary()
	return []rl.Metric{{Name: "rm/val_step_loss", Value: s.loss}, {Name: "rm/val_step_accuracy", Value: s.accuracy},
		{Name: "rm/val_steps_right", Value: s.right}}
}
