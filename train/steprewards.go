package train

import (
	"fmt"

	"exp/train/rl"
	"exp/train/rollout"
)

// placeSteps is place for a row, of tokens lo to hi, whose steps earn rewards.
func (b *batch) placeSteps(lo, hi int, v *rollout.Verdict, score float64) (rest float64) {
	rest = v.Outcome + (score - v.Reward) // exactly the outcome, unless there is a penalty
	earned := make([]float64, hi-lo)
	earned[hi-lo-1] = rest
	for _, s := range v.Steps {
		earned[max(s.End, 1)-1] += s.Reward
	}
	for k, r := range earned {
		b.reward[lo+k] = float32(r)
	}
	return rest
}

// steps returns the steps that earn rewards.
func (b *batch) steps() (*rl.Steps, error) {
	all := new(rl.Steps)
	for i, t := range b.traj {
		if len(t.Verdict.Steps) == 0 && b.rows[i+1] > b.rows[i] {
			return nil, fmt.Errorf("problem %s, sample %d: no process reward model has scored its steps",
				t.Problem.ID, t.Sample)
		}
		for _, s := range t.Verdict.Steps {
			if b.rows[i+1] > b.rows[i] {
				all.Add(i, b.rows[i]+max(s.End, 1)-1, s.Reward)
			}
		}
	}
	return all, nil
}

// outcomes returns what steps leave of the scores of rows: less the KL that is charged to the rewards, if it is.
func (b *batch) outcomes(charged bool) []float32 {
	list := make([]float32, len(b.traj))
	sums := b.rewardSums()
	for i, t := range b.traj {
		list[i] = float32(b.rest[i])
		if charged {
			list[i] = float32(float64(sums[i]) - rollout.Earned(t.Verdict.Steps))
		}
	}
	return list
}

// stepMetrics returns what a process reward model says of graded completions whose steps earn rewards; nothing without
// them:
//
//	reward/steps         mean number of a completion's steps
//	reward/step_right    mean over steps of the probability that they are right
//	reward/unsound       share of completions with a step that is wrong rather than right
//	reward/steps_agree   share of completions without such a step that are right, or with one that are wrong
//	reward/step_sum      mean over completions of what their steps earn
//	reward/outcome       mean over completions of what the outcome earns
func stepMetrics(all []Trajectory) []rl.Metric {
	var steps, probability, unsound, agree, earned, outcome, n float64
	for i := range all {
		v := &all[i].Verdict
		if v.Status != rollout.Graded || len(v.Steps) == 0 {
			continue
		}
		n++
		steps, earned, outcome = steps+float64(len(v.Steps)), earned+rollout.Earned(v.Steps), outcome+v.Outcome
		for _, s := range v.Steps {
			probability += s.Right
		}
		sound := rollout.Sound(v.Steps)
		if !sound {
			unsound++
		}
		if sound == v.Correct {
			agree++
		}
	}
	if n == 0 {
		return nil
	}
	return []rl.Metric{{Name: "reward/steps", Value: steps / n},
		{Name: "reward/step_right", Value: probability / steps},
		{Name: "reward/unsound", Value: unsound / n}, {Name: "reward/steps_agree", Value: agree / n},
		{Name: "reward/step_sum", Value: earned / n}, {Name: "reward/outcome", Value: outcome / n}}
}

// checkSteps reports settings that cannot go with an estimator of steps.
func (c Config) checkSteps(e rl.Estimator) error {
	if e.Steps && (c.Turns || c.Self != RewardGraded) {
		return fmt.Errorf("train: %s reads rewards of steps, which come from a process reward model and go with "+
			"neither tools nor rewards that completions give themselves", e.Name)
	}
	return nil
}
