package train

import (
	"fmt"
	"math"

	"exp/kernels"
	"exp/train/model"
	"exp/train/optim"
	"exp/train/ranks"
)

// learner is a model in training: parameters, gradients, optimizer. Every rank has all
// parameters; the optimizer's moments are cut into the ranks' shards (ZeRO, arXiv:1910.02054
// stage 1).
type learner struct {
	name  string // "actor", "critic": the prefix of its metrics
	be    kernels.Backend
	m     *model.Model
	opt   *optim.AdamW // of this rank's shard
	cfg   Optim
	group ranks.Group
	sum   *ranks.Sum
}

func newLearner(be kernels.Backend, name string, m *model.Model, cfg Optim, slices int,
	g ranks.Group) (*learner, error) {
	sum, err := ranks.NewSum(be, g, slices, m.Grads())
	if err != nil {
		return nil, err
	}
	lo, hi := sum.Shard()
	opt, err := optim.NewAdamW(be, hi-lo, cfg.Beta1, cfg.Beta2, cfg.Eps, cfg.WeightDecay)
	if err != nil {
		sum.Close()
		return nil, err
	}
	return &learner{name: name, be: be, m: m, opt: opt, cfg: cfg, group: g, sum: sum}, nil
}

func (l *learner) close() {
	l.opt.Close()
	l.sum.Close()
}

// gradient sums the gradients of a mini-batch's slices and leaves this rank's shard of the sum
// in the model's gradient. rows adds the gradients of rows r0 to r1 to the model's.
func (l *learner) gradient(b *sliced, rows func(r0, r1 int)) {
	ranks.Must(l.sum.Of(b.present(), func(i int) {
		l.m.ZeroGrads()
		rows(b.start(i), b.ends[i])
		l.m.FinishGrads()
	}))
}

// update clips the summed gradient to the global norm limit and takes one optimizer step
// at the learning rate of the given trainer step. It returns the norm before clipping. It
// skips the update if the gradient is not finite: parameters and moments stay, and the
// event names the first bad element.
func (l *learner) update(step int) (norm float64, event *Event) {
	norm = l.norm()
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
	lo, hi := l.sum.Shard()
	l.opt.Update(l.m.Params().Slice(lo, hi), l.m.Grads().Slice(lo, hi), l.cfg.rate(step), factor)
	if l.group.Size() > 1 {
		l.be.Sync()
		ranks.Must(ranks.Gather(l.group, l.m.Params(), l.sum.Ends()))
	}
	l.m.Refresh()
	return norm, nil
}

// norm returns the norm of the summed gradient. Ranks exchange the sums of their shards'
// blocks, and each adds all sums in order: the norm of a rank alone, bit for bit.
func (l *learner) norm() float64 {
	if l.group.Size() == 1 {
		return l.opt.Norm(l.m.Grads())
	}
	ends := make([]int, l.group.Size())
	for r, end := range l.sum.Ends() {
		ends[r] = (end + kernels.SumBlock - 1) / kernels.SumBlock
	}
	sums := make([]float64, ends[len(ends)-1])
	lo, hi := l.sum.Shard()
	own := sums[lo/kernels.SumBlock:][:(hi-lo+kernels.SumBlock-1)/kernels.SumBlock]
	l.opt.BlockSums(own, l.m.Grads().Slice(lo, hi))
	ranks.Must(ranks.Gather(l.group, kernels.Host(sums), ends))
	total := 0.0
	for _, x := range sums {
		total += x
	}
	return math.Sqrt(total)
}

// firstNonFinite names the first gradient element that is not finite.
func (l *learner) firstNonFinite() string {
	lo, hi := l.sum.Shard()
	places, err := ranks.Share(l.group, []byte(l.firstNonFiniteIn(lo, hi)))
	ranks.Must(err)
	for _, p := range places {
		if len(p) > 0 {
			return string(p)
		}
	}
	return "the sum of squares"
}

// firstNonFiniteIn names the first of elements lo to hi that is not finite; empty if all are.
func (l *learner) firstNonFiniteIn(lo, hi int) string {
	for _, t := range l.m.Tensors() {
		from, to := max(lo, t.Offset()), min(hi, t.Offset()+t.Len())
		if from >= to {
			continue
		}
		g := make([]float32, to-from)
		l.be.Copy(kernels.Host(g), l.m.Grads().Slice(from, to))
		l.be.Sync()
		if i := firstNonFinite(g); i >= 0 {
			return fmt.Sprintf("%s[%d]", t.Name, from-t.Offset()+i)
		}
	}
	return ""
}
