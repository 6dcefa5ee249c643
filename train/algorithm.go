package train

import (
	"errors"
	"fmt"

	"exp/kernels"
	"exp/train/rl"
)

// The loop does not know which algorithm runs. It looks up the estimator and the loss by
// name in package rl, which holds their functions and the table of algorithms.

// estimator returns the advantage estimator (the loss's own or the configured one) and its
// settings.
func (c Config) estimator() (rl.Estimator, rl.Settings) {
	if l := c.policyLoss(); l.Advantages != nil {
		return l.Advantages(c.Settings)
	}
	e, ok := rl.EstimatorNamed(c.Advantage)
	if !ok {
		panic("train: unknown advantage estimator " + c.Advantage)
	}
	return e, c.Settings
}

// policyLoss returns the configured policy loss.
func (c Config) policyLoss() rl.PolicyLoss {
	l, ok := rl.PolicyLossNamed(c.Loss)
	if !ok {
		panic("train: unknown policy loss " + c.Loss)
	}
	return l
}

// advantages fills b.adv and b.ret. Where rollout correction rejected all tokens but one, estimators that whiten
// have nothing to compare: few says so, and the step learns nothing from rewards.
func advantages(c Config, b *batch) (few bool, err error) {
	e, settings := c.estimator()
	charged := c.KL.RewardCoef != 0
	s := &rl.Graded{Batch: b.ofPolicy(), Group: b.group, Reward: b.reward, Score: b.totals(charged),
		Baseline: b.baseline, Value: b.value, SumPiSquared: b.sumPiSquared, Process: b.process, Ret: b.ret,
		Longest: c.Sampling.MaxNewTokens}
	if e.Components {
		s.Components = b.components()
	}
	if e.Turns {
		if s.Turns, err = b.turns(); err != nil {
			return false, err
		}
	}
	if e.Steps {
		if s.Steps, err = b.steps(); err != nil {
			return false, err
		}
		s.Outcome = b.outcomes(charged)
	}
	err = e.Estimate(s, settings)
	if few = errors.Is(err, rl.ErrTooFew) && b.sampledTokens() > 1; few {
		clear(b.adv)
	} else if err != nil {
		return false, fmt.Errorf("advantage %s: %w", e.Name, err)
	}
	if c.Distill.Teaches() {
		c.Distill.Teach(b.adv, b.old, b.ref, b.mask)
	}
	return few, nil
}

// turns returns the policy's turns. A state of a problem has one number within the step. Turns without tokens, before
// the conversation that is learned from, are left out.
func (b *batch) turns() (*rl.Turns, error) {
	type state struct {
		group  int
		digest string
	}
	numbers, turns := map[state]int{}, new(rl.Turns)
	for i, t := range b.traj {
		c := t.Completion
		if len(c.Acts) == 0 && len(c.Tokens) > 0 {
			return nil, fmt.Errorf("problem %s, sample %d: nothing tells the policy's turns apart, which an agent's "+
				"episodes do", t.Problem.ID, t.Sample)
		}
		for k, a := range c.Acts {
			if !a.Learned() {
				continue
			}
			key := state{b.group[i], a.State}
			n, known := numbers[key]
			if !known {
				n = len(numbers)
				numbers[key] = n
			}
			last := k+1 == len(c.Acts) || c.Acts[k+1].Conversation != a.Conversation
			if last {
				a.Reward += b.rest[i]
			}
			turns.Add(b.rows[i]+a.Start, b.rows[i]+a.End, n, a.Reward, last)
		}
	}
	return turns, nil
}

// checkTurns reports settings that cannot go with an estimator of turns.
func (c Config) checkTurns(e rl.Estimator) error {
	if e.Turns && !c.Turns {
		return fmt.Errorf("train: %s compares turns, and no agent plays episodes", e.Name)
	}
	return nil
}

// resample draws the rows to train on, with replacement, if the estimator weighs rows
// (PF-PPO).
func (t *Trainer) resample(b *batch, step int) {
	n := len(b.traj)
	weight, uniform, index := make([]float64, n), make([]float64, n), make([]int, n)
	if e, settings := t.cfg.estimator(); e.Redraw == nil || !e.Redraw(weight, b.score, settings) {
		return
	}
	key := kernels.PhiloxKey(t.Seed(fmt.Sprintf("pf_ppo/step=%d", step)))
	for i := range uniform {
		uniform[i] = float64(philox64(key, i)>>11) / (1 << 53)
	}
	rl.Resample(index, weight, uniform)
	b.pick(index, t.cfg.Samples)
}
