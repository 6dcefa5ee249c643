package train

import "exp/kernels"

// State is the part of a Trainer outside its buffers that a resumed run needs.
type State struct {
	Step          int     `json:"step"`
	KLCoef        float64 `json:"kl_coef"`
	PolicyUpdates int     `json:"policy_updates"`
	CriticUpdates int     `json:"critic_updates"`
	// ProcessUpdates counts the process reward model's.
	ProcessUpdates int `json:"process_updates,omitempty"`
	// Batches counts the batches of problems sampled; 0 stands for Step.
	Batches int `json:"batches,omitempty"`
	// Spread is the moving average of groups' standard deviations (Filter.Spread).
	Spread float64 `json:"spread,omitempty"`
	// Pending are the steps after Step that were sampled ahead (Config.Staleness).
	Pending []Pending `json:"pending,omitempty"`
	// Tracked are the values of all problems after the last batch that was sampled, if they are tracked.
	Tracked []Tracked `json:"tracked,omitempty"`
}

// State returns the loop's state after the last finished step.
func (t *Trainer) State() State {
	s := State{Step: t.step, KLCoef: t.klCoef, Batches: t.batches, Spread: t.meanSpread,
		Tracked: t.tracker.state(t.Problems)}
	if t.policy != nil {
		s.PolicyUpdates = t.policy.opt.Steps()
	}
	if t.critic != nil {
		s.CriticUpdates = t.critic.opt.Steps()
	}
	if t.process != nil {
		s.ProcessUpdates = t.process.opt.Steps()
	}
	for _, c := range t.pending {
		s.Pending = append(s.Pending, pendingOf(c))
	}
	return s
}

// Whole reports whether State and Buffers are those after the last recorded step, whatever error Run
// returned.
func (t *Trainer) Whole() bool { return !t.within && t.told == t.step }

// NamedBuffer is a device buffer that a checkpoint saves.
type NamedBuffer struct {
	Name   string
	Shape  []int          // nil for a whole arena
	Buffer kernels.Buffer // the rank's part if Cut is not nil
	Cut    *Cut           // nil where the buffer is whole
}

// PolicyGroup and ParamsBuffer name the policy's parameters among Buffers, PolicyGroup/ParamsBuffer, ReferenceGroup
// the parameters of a reference policy that is renewed.
const (
	PolicyGroup    = "actor"
	ReferenceGroup = "reference"
	ParamsBuffer   = "params"
)

// Buffers returns the buffers of everything that changes: the arenas of parameters and moments of the policy and, if
// present, the critic and the process reward model, and a renewed reference policy's parameters.
func (t *Trainer) Buffers() (out []NamedBuffer) {
	for _, l := range t.learners() {
		out = append(out, l.buffers()...)
	}
	return append(out, t.renewedBuffers()...)
}

// learners returns the models that learn on this rank.
func (t *Trainer) learners() (list []*learner) {
	for _, l := range []*learner{t.policy, t.critic, t.process} {
		if l != nil {
			list = append(list, l)
		}
	}
	return list
}

// WithBuffers calls f on the first rank with Buffers, to save or to fill them, while the
// other ranks serve their shards. All ranks call it. It returns f's error.
func (t *Trainer) WithBuffers(f func(list []NamedBuffer) error) (err error) {
	if !t.onlySamples() {
		err = withBuffers(t.learning, t.Backend, t.Buffers(), f)
	}
	if t.Samplers == 0 {
		return err
	}
	return t.Meet(err)
}

// Restore continues from a state whose Buffers have been filled on the first rank, which
// gives the state and the parameters to the others. It returns an error if the state
// belongs to other problems.
func (t *Trainer) Restore(s State) error {
	if err := t.spread(&s, t.learners()...); err != nil {
		return err
	}
	if err := t.restoreReference(); err != nil {
		return err
	}
	t.step, t.told, t.klCoef, t.batches, t.meanSpread = s.Step, s.Step, s.KLCoef, s.Batches, s.Spread
	if s.Batches == 0 {
		t.batches = s.Step
	}
	t.pending, t.copied = nil, false
	if len(s.Pending) > 0 {
		problem := t.problemIndex()
		for _, p := range s.Pending {
			c, err := collectedOf(p, problem, t)
			if err != nil {
				return err
			}
			t.pending = append(t.pending, c)
		}
	}
	if err := t.restoreTracker(s); err != nil {
		return err
	}
	if t.policy != nil {
		t.policy.restore(s.PolicyUpdates)
	}
	if t.critic != nil {
		t.critic.restore(s.CriticUpdates)
	}
	if t.process != nil {
		t.process.restore(s.ProcessUpdates)
	}
	return nil
}

func (l *learner) buffers() []NamedBuffer {
	params := NamedBuffer{Name: l.name + "/" + ParamsBuffer, Buffer: l.m.Params()}
	if l.cutsParams() {
		params.Cut = l.cut(l.layout.params, params.Buffer)
	}
	list := []NamedBuffer{params}
	for _, m := range l.opt.Moments() {
		x := NamedBuffer{Name: l.name + "/" + m.Name, Buffer: m.Buffer}
		if l.all.Size() > 1 {
			x.Cut = l.cut(l.layout.shards, m.Buffer)
			if m.Place != nil {
				x.Cut.held, x.Cut.n = l.layout.shards.placed(m.Place), m.Place(l.m.Len())
			}
		}
		list = append(list, x)
	}
	return list
}

// cutsParams reports whether ranks share products, and so may hold parts of the parameters.
func (l *learner) cutsParams() bool { return l.all.Size() > l.group.Size() }

func (l *learner) cut(h held, own kernels.Buffer) *Cut {
	return &Cut{group: l.all, be: l.be, held: h, n: l.m.Len(), own: own}
}

// withTensors calls f on the first rank with the parameters by name, to read them, while the
// other ranks serve their parts.
func (l *learner) withTensors(f func(list []NamedBuffer) error) error {
	var list []NamedBuffer
	if !l.cutsParams() {
		for _, t := range l.m.Tensors() {
			list = append(list, NamedBuffer{Name: t.Name, Shape: t.Shape, Buffer: l.m.View(t.Name)})
		}
		if l.all.Rank() != 0 {
			return nil
		}
		return f(list)
	}
	whole := l.buffers()[:1]
	return withBuffers(l.all, l.be, whole, func([]NamedBuffer) error {
		for _, t := range l.m.Tensors() {
			list = append(list, NamedBuffer{Name: t.Name, Shape: t.Shape,
				Cut: whole[0].Cut.Slice(t.Offset(), t.Offset()+t.Len())})
		}
		return f(list)
	})
}

// WithPolicy calls f on the first rank with the policy's parameters by name, to read them. All
// ranks call it, and it returns f's error, except on ranks that only sample.
func (t *Trainer) WithPolicy(f func(list []NamedBuffer) error) error {
	if t.onlySamples() {
		return nil
	}
	return t.policy.withTensors(f)
}

func (l *learner) restore(updates int) {
	l.opt.Restore(updates)
	l.m.Refresh()
}
