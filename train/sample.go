package train

import (
	"context"
	"fmt"
	"math"
	"slices"

	"exp/train/rl"
	"exp/train/rollout"
)

// RolloutLabel names the random stream of completion k of a problem in a step.
func RolloutLabel(step int, problem string, k int) string {
	return fmt.Sprintf("rollout/step=%d/prompt=%s/sample=%d", step, problem, k)
}

// sample draws n(p) completions of each problem p for a step. Each has its own labelled stream.
func (t *Trainer) sample(ctx context.Context, step int, problems []int, n func(p int) int) ([]Trajectory, error) {
	reqs := make([]rollout.Request, len(problems))
	total := 0
	for i, p := range problems {
		reqs[i] = rollout.Request{Prompt: t.prompt[p], Seeds: make([]uint64, n(p)), Problem: &t.Problems[p]}
		total += len(reqs[i].Seeds)
		for k := range reqs[i].Seeds {
			reqs[i].Seeds[k] = t.Seed(RolloutLabel(step, t.Problems[p].ID, k))
		}
	}
	t.passes.passed = nil
	out, err := t.Sampler.Sample(ctx, reqs, t.cfg.Sampling, func(n int) { t.phase(step, "rollout", n, total) })
	if err != nil {
		return nil, err
	}
	traj := make([]Trajectory, 0, total)
	for i, p := range problems {
		for k := range out[i] {
			if at := FirstNonFinite(out[i][k].LogProbs); at >= 0 {
				return nil, &NonFiniteError{Step: step, Problem: t.Problems[p].ID, Sample: k, Token: at,
					LogProb: out[i][k].LogProbs[at]}
			}
			traj = append(traj, Trajectory{Problem: &t.Problems[p], Sample: k, Prompt: out[i][k].PromptOf(t.prompt[p]),
				Completion: &out[i][k]})
		}
	}
	return traj, nil
}

// NonFiniteError reports a sampled token whose log-prob under the policy is NaN or
// infinite. The weights are broken, every sample from them is meaningless, and the run must
// stop.
type NonFiniteError struct {
	Step          int
	Problem       string
	Sample, Token int
	LogProb       float32
}

func (e *NonFiniteError) Error() string {
	return fmt.Sprintf("step %d: problem %s, sample %d, token %d: the policy's log-prob is %v: the weights are "+
		"broken; "+
		"go on from an earlier checkpoint with a smaller learning rate or gradient limit", e.Step, e.Problem,
		e.Sample,
		e.Token, e.LogProb)
}

// FirstNonFinite returns the first index of a NaN or an infinity, or -1.
func FirstNonFinite(x []float32) int {
	return slices.IndexFunc(x, func(v float32) bool { return math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) })
}

// grade fills in the verdicts of some of a step's trajectories. It returns a
// *NotGradedError if too many lack one.
func (t *Trainer) grade(ctx context.Context, step int, all []Trajectory, events *[]Event) error {
	t.phase(step, "grade", 0, len(all))
	if err := t.judge(ctx, step, all); err != nil {
		return err
	}
	ungraded, parts := 0, len(rollout.ComponentNames(t.Grader))
	var first *Trajectory
	for i := range all {
		tr := &all[i]
		v := &tr.Verdict
		if v.Status == rollout.Graded {
			if len(v.Components) != parts {
				return fmt.Errorf("problem %s: the grader returned %d reward components but names %d",
					tr.Problem.ID, len(v.Components), parts)
			}
			KeepFinite(v)
		}
		if v.Status != rollout.Graded {
			ungraded++
			if ungraded == 1 {
				first = tr
				*events = append(*events, Event{Kind: "not-graded", Text: fmt.Sprintf("step %d: problem %s: %s", step,
					tr.Problem.ID, v.Reason)})
			}
		}
	}
	if limit := t.cfg.MaxNotGraded; limit > 0 && float64(ungraded) > limit*float64(len(all)) {
		return &NotGradedError{NotGraded: ungraded, Completions: len(all), Limit: limit, Problem: first.Problem.ID,
			Sample: first.Sample, Reason: first.Verdict.Reason}
	}
	return nil
}

// KeepFinite takes back a verdict with a reward, or a part of one, that training cannot use.
func KeepFinite(v *rollout.Verdict) {
	for _, x := range append([]float64{v.Reward}, v.Components...) {
		if !(math.Abs(x) <= math.MaxFloat32) { // NaN too
			*v = rollout.Verdict{Status: rollout.NotGraded, Reason: fmt.Sprintf("reward is %v, no finite float32", x)}
			return
		}
	}
}

// NotGradedError reports that more of a step's completions lack a verdict than
// Config.MaxNotGraded allows: the grader is broken, not the policy.
type NotGradedError struct {
	NotGraded, Completions int
	Limit                  float64 // share; 0: none has one, whatever the limit
	Problem                string  // of the first completion without a verdict
	Sample                 int
	Reason                 string // why it has none
}

// noneGraded is the error of completions that all lack a verdict.
func noneGraded(all []Trajectory) *NotGradedError {
	first := &all[0]
	return &NotGradedError{NotGraded: len(all), Completions: len(all), Problem: first.Problem.ID,
		Sample: first.Sample, Reason: first.Verdict.Reason}
}

func (e *NotGradedError) Error() string {
	if e.Limit == 0 {
		return fmt.Sprintf("none of %d completions could be graded: %s", e.Completions, e.Reason)
	}
	return fmt.Sprintf("%d of %d completions could not be graded, more than %g %%; the first is sample %d of "+
		"problem %s: %s",
		e.NotGraded, e.Completions, 100*e.Limit, e.Sample, e.Problem, e.Reason)
}

// ExitCode returns the exit code of an evaluation whose infrastructure failed.
func (e *NotGradedError) ExitCode() int { return 8 }

// Hint says how to continue.
func (e *NotGradedError) Hint() string {
	return "fix the cause, then run again: the run continues from its last checkpoint; reward.max_not_graded " +
		"sets the limit"
}

// MismatchError reports a recorded log-prob that the trainer does not reproduce: sampler
// and trainer are not one engine, and the run must stop.
type MismatchError struct {
	Step             int
	Problem          string
	Sample, Token    int
	Sampler, Trainer float32
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("step %d: problem %s, sample %d, token %d: the sampler recorded log-prob %v but the trainer "+
		"computes %v",
		e.Step, e.Problem, e.Sample, e.Token, e.Sampler, e.Trainer)
}

// ExitCode returns the exit code of repeated work that gave other bits.
func (e *MismatchError) ExitCode() int { return 5 }

// Hint says where to look.
func (e *MismatchError) Hint() string {
	return "sampler and trainer disagree: a bug in the engine or bad memory; exp doctor tests the machine"
}

// verify recomputes the log-probs of some rows by the training forward pass and compares
// bits. It checks at least one row per step unless the rate is 0, and other rows each step.
// Recorded rollouts come from another sampler and demonstrations from none, so it skips them.
func (t *Trainer) verify(b *batch, step int) error {
	if t.cfg.VerifyRate <= 0 || t.Recorded != nil {
		return nil
	}
	b = b.withoutShown()
	n := len(b.traj)
	if n == 0 {
		return nil // only demonstrations have verdicts
	}
	count := min(n, int(math.Ceil(t.cfg.VerifyRate*float64(n))))
	lo := (step - 1) * count % n
	hi := min(lo+count, n)
	return t.compare(b, t.passes.logProbs(t.Policy, b, lo, hi, t.cfg.Sampling.Temperature), lo, hi, step)
}

// compare returns an error where the recorded log-probs of sampled tokens in rows lo to hi differ from
// those the trainer computed.
func (t *Trainer) compare(b *batch, got []float32, lo, hi, step int) error {
	for i := lo; i < hi; i++ {
		for k := b.rows[i]; k < b.rows[i+1]; k++ {
			g := got[k-b.rows[lo]]
			if b.mask[k] && math.Float32bits(g) != math.Float32bits(b.roll[k]) {
				return &MismatchError{Step: step, Problem: b.traj[i].Problem.ID, Sample: b.traj[i].Sample,
					Token: k - b.rows[i], Sampler: b.roll[k], Trainer: g}
			}
		}
	}
	return nil
}

// sameProbs returns verl's metrics of the difference between sampler and trainer after
// verify: zeros, since any other difference is an error.
func (t *Trainer) sameProbs() []rl.Metric {
	if t.cfg.VerifyRate <= 0 || t.Recorded != nil {
		return nil
	}
	return []rl.Metric{
		{Name: "training/rollout_probs_diff_valid", Value: 1},
		{Name: "training/rollout_probs_diff_max", Value: 0},
		{Name: "training/rollout_probs_diff_mean", Value: 0},
		{Name: "training/rollout_probs_diff_std", Value: 0},
	}
}
