package train

import (
	"fmt"
	"math"
	"slices"

	"exp/train/rl"
	"exp/train/rollout"
)

// Recording holds completions that another engine sampled. A Trainer with a Recording
// learns from them instead of sampling. Their sampler is then not the policy of the step,
// and Config.Correction accounts for the distance.
type Recording struct {
	// LogProbs says whether all completions carry their sampler's log-probs or none does.
	// If none does, training treats the policy before a step's updates as the sampler and
	// corrects nothing.
	LogProbs bool
	// Problems holds the completions of each problem by its ID. A problem's n-th visit
	// takes completions from n·Samples on, wrapping around at the end.
	Problems map[string][]Recorded
}

// Recorded is one completion of a Recording.
type Recorded struct {
	Completion rollout.Completion // LogProbs nil where Recording.LogProbs is false; Entropies nil
	Reward     *float64           // replaces the grader's reward where there is a verdict; nil: none recorded
}

// RecordingError says that a problem of the run has too few recorded completions.
type RecordingError struct {
	Problem    string
	Have, Need int
	Others     int // further problems of the run with too few
}

func (e *RecordingError) Error() string {
	s := fmt.Sprintf("problem %s has %d recorded completions; a step needs %d", e.Problem, e.Have, e.Need)
	if e.Others > 0 {
		s += fmt.Sprintf("; %d more of the run's problems have too few", e.Others)
	}
	return s
}

// Hint suggests a fix.
func (e *RecordingError) Hint() string {
	return "record more, lower rollout.n to the recorded number, or remove the problem from data.train"
}

// CheckRecording reports completions that cannot be trained on, and (as a *RecordingError)
// problems of the run's steps with fewer than Samples completions. A Filter may draw further
// problems; each step checks them itself.
func (c Config) CheckRecording(r *Recording, problems []rollout.Problem, seed func(label string) uint64) error {
	for id, list := range r.Problems {
		for i := range list {
			if err := r.check(&list[i].Completion, c.Sampling.MaxNewTokens); err != nil {
				return fmt.Errorf("recorded completion %d of problem %s: %w", i+1, id, err)
			}
		}
	}
	if len(problems) < c.PromptsPerStep {
		return fmt.Errorf("train: only %d problems, fewer than prompts_per_step %d", len(problems), c.PromptsPerStep)
	}
	o := order{n: len(problems), perStep: c.PromptsPerStep, shuffled: c.Shuffled, seed: seed}
	few := make(map[int]bool)
	var first *RecordingError
	for step := 1; step <= c.Steps && len(few) < len(problems); step++ {
		batch, _ := o.step(step)
		for _, p := range batch {
			id := problems[p].ID
			have := len(r.Problems[id])
			if have >= c.Samples || few[p] {
				continue
			}
			few[p] = true
			if first == nil {
				first = &RecordingError{Problem: id, Have: have, Need: c.Samples}
			}
		}
	}
	if first != nil {
		first.Others = len(few) - 1
		return first
	}
	return nil
}

func (r *Recording) check(c *rollout.Completion, limit int) error {
	switch {
	case len(c.Tokens) == 0:
		return fmt.Errorf("no tokens")
	case len(c.Tokens) > limit:
		return fmt.Errorf("%d tokens, max_new_tokens is %d", len(c.Tokens), limit)
	case r.LogProbs && len(c.LogProbs) != len(c.Tokens):
		return fmt.Errorf("%d log-probs for %d tokens", len(c.LogProbs), len(c.Tokens))
	case !r.LogProbs && c.LogProbs != nil:
		return fmt.Errorf("unexpected log-probs: the recording is declared without")
	case FirstNonFinite(c.LogProbs) >= 0:
		return fmt.Errorf("the log-prob of token %d is %v", FirstNonFinite(c.LogProbs),
			c.LogProbs[FirstNonFinite(c.LogProbs)])
	}
	// Rounding may leave a value slightly above 0; a probability is far above.
	if at := slices.IndexFunc(c.LogProbs, func(x float32) bool { return x > 1e-3 }); at >= 0 {
		return fmt.Errorf("the log-prob of token %d is %v, above 0", at, c.LogProbs[at])
	}
	return c.Check()
}

// foreign reports whether the completions carry log-probs of a policy outside this run.
func (t *Trainer) foreign() bool { return t.Recorded != nil && t.Recorded.LogProbs }

// recall takes the completions of problems in an epoch, and their recorded rewards, from
// the recording. It returns copies, because a step may write into them.
func (t *Trainer) recall(step, epoch int, problems []int) ([]Trajectory, []*float64, error) {
	n := t.cfg.Samples
	var traj []Trajectory
	var given []*float64
	for _, p := range problems {
		list := t.Recorded.Problems[t.Problems[p].ID]
		if len(list) < n {
			return nil, nil, &RecordingError{Problem: t.Problems[p].ID, Have: len(list), Need: n}
		}
		for k := range n {
			r := &list[(epoch*n+k)%len(list)]
			c := r.Completion
			traj = append(traj, Trajectory{Problem: &t.Problems[p], Sample: k, Prompt: t.prompt[p], Completion: &c})
			given = append(given, r.Reward)
		}
	}
	if t.Recorded.LogProbs {
		return traj, given, nil
	}
	return traj, given, t.adopt(step, traj)
}

// adopt gives completions without log-probs the policy's, as if it had sampled them.
func (t *Trainer) adopt(step int, traj []Trajectory) error {
	for i := range traj {
		c := traj[i].Completion
		// so that the batch accepts it
		c.LogProbs, traj[i].Verdict.Status = make([]float32, len(c.Tokens)), rollout.Graded
	}
	b := newBatch(traj, rl.Overlong{}, nil)
	own := t.passes.scores(t.Policy, b, t.cfg.Sampling.Temperature, false)
	for i, tr := range b.traj {
		lo, hi := b.rows[i], b.rows[i+1]
		tr.Completion.LogProbs, tr.Completion.Entropies = own.logProb[lo:hi:hi], own.entropy[lo:hi:hi]
		for _, s := range tr.Completion.Inserted {
			clear(tr.Completion.LogProbs[s.Start:s.End])
			clear(tr.Completion.Entropies[s.Start:s.End])
		}
		if at := FirstNonFinite(tr.Completion.LogProbs); at >= 0 {
			return &NonFiniteError{Step: step, Problem: tr.Problem.ID, Sample: tr.Sample, Token: at,
				LogProb: tr.Completion.LogProbs[at]}
		}
		tr.Verdict = rollout.Verdict{}
	}
	return nil
}

// reward replaces the grader's rewards with recorded ones. Completions that could not be
// graded stay so, because their correctness is unknown.
func reward(traj []Trajectory, given []*float64) {
	for i, r := range given {
		if r != nil && traj[i].Verdict.Status == rollout.Graded && !math.IsNaN(*r) && !math.IsInf(*r, 0) {
			traj[i].Verdict.Reward, traj[i].Verdict.Steps = *r, nil
		}
	}
}
