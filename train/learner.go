package train

import (
	"fmt"
	"math"

	"exp/kernels"
	"exp/train/model"
	"exp/train/optim"
)

// learner is a model in training: parameters, gradients, optimizer.
type learner struct {
	name string // "actor", "critic": the prefix of its metrics
	be   kernels.Backend
	m    *model.Model
	opt  *optim.AdamW
	cfg  Optim
}

func newLearner(be kernels.Backend, name string, m *model.Model, cfg Optim) (*learner, error) {
	opt, err := optim.NewAdamW(be, m.Params().Len(), cfg.Beta1, cfg.Beta2, cfg.Eps, cfg.WeightDecay)
	if err != nil {
		return nil, err
	}
	return &learner{name: name, be: be, m: m, opt: opt, cfg: cfg}, nil
}

// update clips the gathered gradient to the global norm limit and takes one optimizer step
// at the learning rate of the given trainer step. It returns the norm before clipping. It
// skips the update if the gradient is not finite: parameters and moments stay, and the
// event names the first bad element.
func (l *learner) update(step int) (norm float64, event *Event) {
	l.m.FinishGrads()
	norm = l.opt.Norm(l.m.Grads())
	limit := l.cfg.GradClip
	if limit == 0 {
		limit = math.Inf(1)
	}
	factor, ok := optim.ClipFactor(norm, limit)
	if !ok {
		return norm, &Event{Kind: "nonfinite", Text: fmt.Sprintf("step %d: gradient norm of the %s is %v, first in "+
			"%s; update skipped",
			step, l.name, norm, l.firstNonFinite())}
	}
	l.opt.Update(l.m.Params(), l.m.Grads(), l.cfg.rate(step), factor)
	l.m.Refresh()
	return norm, nil
}

// firstNonFinite names the first gradient element that is not finite.
func (l *learner) firstNonFinite() string {
	for _, t := range l.m.Tensors() {
		g := make([]float32, t.Len())
		l.be.Copy(kernels.Host(g), l.m.Grad(t.Name))
		l.be.Sync()
		for i, x := range g {
			if x != x || math.IsInf(float64(x), 0) {
				return fmt.Sprintf("%s[%d]", t.Name, i)
			}
		}
	}
	return "the sum of squares"
}
