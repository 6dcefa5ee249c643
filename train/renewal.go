package train

import (
	"errors"

	"exp/kernels"
	"exp/train/model"
	"exp/train/ranks"
	"exp/train/rl"
)

// Renewal moves the reference policy to the policy while training runs: at the end of every step that Every divides.
// The Reference of a run with it holds parameters of its own, as the policy does.
type Renewal struct {
	Every int // steps; 0: never
	// Mix is the share of the policy in the new reference, Mix·policy + (1 - Mix)·reference in each parameter; 1 is
	// the policy itself.
	Mix float64
	// ResetOptimizer says that the policy's optimizer then restarts, as if it had taken no update.
	ResetOptimizer bool
}

// checkRenewal reports models that a renewal cannot work with.
func (p *Parts) checkRenewal(c Config) error {
	switch {
	case c.Renewal.Every == 0:
		return nil
	case !(c.Renewal.Mix > 0 && c.Renewal.Mix <= 1):
		return errors.New("train: the policy's share in a renewed reference is above 0, at most 1")
	case !c.Needs().Reference:
		return errors.New("train: nothing reads the reference policy, so it cannot be renewed")
	case len(p.Teachers) > 0:
		return errors.New("train: a teacher cannot be renewed: it is another model than the policy")
	case p.Policy.Heads.Adapters != nil:
		return errors.New("train: the reference of a policy with adapters is their base, which cannot be renewed")
	case p.Samplers > 0 && c.SamplersNeedReference():
		return errors.New("train: ranks that only sample cannot read a reference policy that is renewed")
	}
	return nil
}

// renewReference ends a step for the reference policy.
func (t *Trainer) renewReference(step int) {
	r := t.cfg.Renewal
	if r.Every == 0 || step%r.Every != 0 {
		return
	}
	to := t.Reference.Params()
	from := t.Policy.Params().Slice(0, to.Len()) // heads of the policy come last
	if r.Mix == 1 {
		t.Backend.Copy(to, from)
	} else {
		t.mix(to, from, r.Mix)
	}
	t.Backend.Sync()
	t.Reference.Refresh()
	if r.ResetOptimizer {
		t.policy.opt.Reset()
		t.copied = false // the number of updates no longer tells copies of the weights apart
	}
}

// mixElems is the number of parameters that are mixed on the host at a time, 4 MiB of them.
const mixElems = 1 << 20

// mix sets to = share·from + (1 - share)·to, summed in float64 on the host: it is seldom done.
func (t *Trainer) mix(to, from kernels.Buffer, share float64) {
	a, b := make([]float32, min(mixElems, to.Len())), make([]float32, min(mixElems, to.Len()))
	for lo := 0; lo < to.Len(); lo += mixElems {
		hi := min(lo+mixElems, to.Len())
		t.Backend.Copy(kernels.Host(a[:hi-lo]), to.Slice(lo, hi))
		t.Backend.Copy(kernels.Host(b[:hi-lo]), from.Slice(lo, hi))
		t.Backend.Sync()
		for i := range hi - lo {
			a[i] = float32(float64(share*float64(b[i])) + float64((1-share)*float64(a[i])))
		}
		t.Backend.Copy(to.Slice(lo, hi), kernels.Host(a[:hi-lo]))
		t.Backend.Sync()
	}
}

// renewalMetrics tells how old the reference policy is.
func (t *Trainer) renewalMetrics(step int) []rl.Metric {
	if t.cfg.Renewal.Every == 0 {
		return nil
	}
	return []rl.Metric{{Name: "kl/ref_age", Value: float64((step - 1) % t.cfg.Renewal.Every)}}
}

// renewedBuffers returns the buffers of a reference policy that is renewed.
func (t *Trainer) renewedBuffers() []NamedBuffer {
	if t.cfg.Renewal.Every == 0 {
		return nil
	}
	b := NamedBuffer{Name: ReferenceGroup + "/" + ParamsBuffer, Buffer: t.Reference.Params()}
	if all := t.learning.Size(); all > t.data.Size() { // ranks that share products hold parts
		b.Cut = &Cut{group: t.learning, be: t.Backend, n: t.Reference.Len(), own: b.Buffer,
			held: layoutOf(t.Reference, all, all/t.data.Size()).params}
	}
	return []NamedBuffer{b}
}

// restoreReference gives the reference policy that the first rank has restored to the others.
func (t *Trainer) restoreReference() error {
	if t.cfg.Renewal.Every == 0 || t.onlySamples() {
		return nil
	}
	if all := t.learning.Size(); all > 1 && all == t.data.Size() {
		if err := giveParams(t.learning, t.Reference); err != nil {
			return err
		}
	}
	t.Reference.Refresh()
	return nil
}

// giveParams gives the first rank's parameters of a model to the other ranks, which each have them all.
func giveParams(g ranks.Group, m *model.Model) error {
	ends := make([]int, g.Size())
	for r := range ends {
		ends[r] = m.Params().Len()
	}
	return ranks.Gather(g, m.Params(), ends)
}
