package train

import "exp/kernels"

// State is what a Trainer needs beside its buffers to go on where another stopped.
type State struct {
	Step          int     `json:"step"`
	KLCoef        float64 `json:"kl_coef"`
	PolicyUpdates int     `json:"policy_updates"`
	CriticUpdates int     `json:"critic_updates"`
	// Batches of problems that were sampled; 0 stands for Step.
	Batches int `json:"batches,omitempty"`
}

// State returns the loop's state after the last finished step.
func (t *Trainer) State() State {
	s := State{Step: t.step, KLCoef: t.klCoef, PolicyUpdates: t.policy.opt.Steps(), Batches: t.batches}
	if t.critic != nil {
		s.CriticUpdates = t.critic.opt.Steps()
	}
	return s
}

// NamedBuffer is a device buffer that a checkpoint keeps.
type NamedBuffer struct {
	Name   string
	Buffer kernels.Buffer
}

// Buffers returns everything that learns: the arenas of parameters and moments of
// the policy and, where there is one, the critic.
func (t *Trainer) Buffers() []NamedBuffer {
	out := t.policy.buffers()
	if t.critic != nil {
		out = append(out, t.critic.buffers()...)
	}
	return out
}

// Restore continues from a state whose Buffers have been filled.
func (t *Trainer) Restore(s State) {
	t.step, t.klCoef, t.batches = s.Step, s.KLCoef, s.Batches
	if s.Batches == 0 {
		t.batches = s.Step
	}
	t.policy.restore(s.PolicyUpdates)
	if t.critic != nil {
		t.critic.restore(s.CriticUpdates)
	}
}

func (l *learner) buffers() []NamedBuffer {
	m, v := l.opt.Moments()
	return []NamedBuffer{{l.name + "/params", l.m.Params()}, {l.name + "/m", m}, {l.name + "/v", v}}
}

func (l *learner) restore(updates int) {
	l.opt.Restore(updates)
	l.m.Refresh()
}
