package train

import "exp/kernels"

// State is the part of a Trainer outside its buffers that a resumed run needs.
type State struct {
	Step          int     `json:"step"`
	KLCoef        float64 `json:"kl_coef"`
	PolicyUpdates int     `json:"policy_updates"`
	CriticUpdates int     `json:"critic_updates"`
	// Batches counts the batches of problems sampled; 0 stands for Step.
	Batches int `json:"batches,omitempty"`
	// Pending are the steps after Step that were sampled ahead (Config.Staleness).
	Pending []Pending `json:"pending,omitempty"`
}

// State returns the loop's state after the last finished step.
func (t *Trainer) State() State {
	s := State{Step: t.step, KLCoef: t.klCoef, PolicyUpdates: t.policy.opt.Steps(), Batches: t.batches}
	if t.critic != nil {
		s.CriticUpdates = t.critic.opt.Steps()
	}
	for _, c := range t.pending {
		s.Pending = append(s.Pending, pendingOf(c))
	}
	return s
}

// NamedBuffer is a device buffer that a checkpoint saves.
type NamedBuffer struct {
	Name   string
	Buffer kernels.Buffer
}

// Buffers returns the buffers of everything that learns: the arenas of parameters and
// moments of the policy and, if present, the critic.
func (t *Trainer) Buffers() []NamedBuffer {
	out := t.policy.buffers()
	if t.critic != nil {
		out = append(out, t.critic.buffers()...)
	}
	return out
}

// Restore continues from a state whose Buffers have been filled. It returns an error if the
// state belongs to other problems.
func (t *Trainer) Restore(s State) error {
	t.step, t.klCoef, t.batches = s.Step, s.KLCoef, s.Batches
	if s.Batches == 0 {
		t.batches = s.Step
	}
	t.pending = nil
	if len(s.Pending) > 0 {
		problem := make(map[string]int, len(t.Problems))
		for i := range t.Problems {
			problem[t.Problems[i].ID] = i
		}
		for _, p := range s.Pending {
			c, err := collectedOf(p, problem, t)
			if err != nil {
				return err
			}
			t.pending = append(t.pending, c)
		}
	}
	t.policy.restore(s.PolicyUpdates)
	if t.critic != nil {
		t.critic.restore(s.CriticUpdates)
	}
	return nil
}

func (l *learner) buffers() []NamedBuffer {
	m, v := l.opt.Moments()
	return []NamedBuffer{{l.name + "/params", l.m.Params()}, {l.name + "/m", m}, {l.name + "/v", v}}
}

func (l *learner) restore(updates int) {
	l.opt.Restore(updates)
	l.m.Refresh()
}
