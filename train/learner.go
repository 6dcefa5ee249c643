package train

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"

	"exp/kernels"
	"exp/train/model"
	"exp/train/optim"
	"exp/train/ranks"
)

// Offload names the parts of training that a GPU keeps in the host's memory. It changes no result.
type Offload struct {
	Moments bool // of the optimizer
	Sums    bool // gradients of slices that wait for others
}

// onHostIf returns be with an Alloc that takes the host's memory, if asked to.
func onHostIf(yes bool, be kernels.Backend) kernels.Backend {
	if yes {
		return kernels.OnHost(be)
	}
	return be
}

// learner is a model in training: parameters, gradients, optimizer. Ranks that share a
// mini-batch have the same parameters, and cut the optimizer's moments into shards (ZeRO,
// arXiv:1910.02054 stage 1); those that share products have parts of the parameters.
type learner struct {
	name   string // "actor", "critic", "reward_model": the prefix of its metrics
	be     kernels.Backend
	m      *model.Model
	opt    optimizer // of this rank's shard
	cfg    Optim
	all    ranks.Group // of the run
	group  ranks.Group // those that share a mini-batch and hold the same parameters
	sum    *ranks.Sum
	layout layout
	runs   []run          // of the norm
	block  kernels.Buffer // one of the norm that several ranks hold
}

func newLearner(be kernels.Backend, name string, m *model.Model, cfg Optim, slices int, off Offload,
	all, data ranks.Group) (*learner, error) {
	sum, err := ranks.NewSum(onHostIf(off.Sums, be), data, slices, m.Grads())
	if err != nil {
		return nil, err
	}
	l := &learner{name: name, be: be, m: m, cfg: cfg, all: all, group: data, sum: sum}
	if l.opt, err = l.newOptimizer(onHostIf(off.Moments, be)); err != nil {
		sum.Close()
		return nil, err
	}
	if all.Size() > 1 {
		l.layout = layoutOf(m, all.Size(), all.Size()/data.Size())
	}
	l.opt.Hasten(l.faster())
	if all.Size() == 1 {
		return l, nil
	}
	l.runs = runsOf(l.layout.shards.owners, m.Len())
	if l.block, err = be.Alloc(m.Grads().DType(), kernels.SumBlock); err != nil {
		l.close()
		return nil, &kernels.RoomError{Part: kernels.MomentRoom, Err: err}
	}
	return l, nil
}

// optimizer is the state and the formula of updates. Update may overwrite the gradient; the others are as of
// optim.AdamW.
type optimizer interface {
	Norm(grads kernels.Buffer) float64
	BlockSums(out []float64, grads kernels.Buffer)
	Update(params, grads kernels.Buffer, lr, scale float64)
	Steps() int
	Restore(steps int)
	Reset()
	Hasten(x optim.Faster)
	Moments() []optim.Moment
	Close()
}

// newOptimizer makes the optimizer of this rank's shard, with moments in the memory of moments.
func (l *learner) newOptimizer(moments kernels.Backend) (optimizer, error) {
	c := l.cfg
	lo, hi := l.sum.Shard()
	switch c.Kind {
	case optim.KindSGD:
		return optim.NewSGD(moments, hi-lo, c.Momentum, c.WeightDecay)
	case optim.KindMuon:
		if l.cutsParams() {
			return nil, errors.New("train: muon needs whole matrices, but ranks that share products hold parts")
		}
		a := optim.Arena{Grads: l.m.Grads(), Lo: lo, Hi: hi, Matrices: HiddenMatrices(l.m.Tensors())}
		if l.group.Size() > 1 {
			a.Gather = func() {
				l.be.Sync()
				ranks.Must(ranks.Gather(l.group, l.m.Grads(), l.sum.Ends()))
			}
		}
		return optim.NewMuon(l.be, moments, a, c.Momentum, optim.AdamW{Beta1: c.Beta1, Beta2: c.Beta2, Eps: c.Eps,
			WeightDecay: c.WeightDecay})
	}
	return optim.NewAdamW(moments, hi-lo, c.Beta1, c.Beta2, c.Eps, c.WeightDecay)
}

// faster returns the elements of this rank's shard that are of adapters' B, with LoRA+.
func (l *learner) faster() (x optim.Faster) {
	x.Ratio = l.cfg.BRatio
	if x.Ratio == 0 || x.Ratio == 1 {
		return x
	}
	pieces := l.layout.shards.all
	if l.all.Size() == 1 {
		pieces = []piece{{hi: l.m.Len()}}
	}
	for _, t := range l.m.Tensors() {
		if !t.AdapterB() {
			continue
		}
		for _, p := range pieces {
			if part, ok := p.within(t.Offset(), t.Offset()+t.Len()); ok && p.rank == l.all.Rank() {
				x.Ranges = append(x.Ranges, optim.Range{Lo: part.at, Hi: part.at + part.hi - part.lo})
			}
		}
	}
	slices.SortFunc(x.Ranges, func(a, b optim.Range) int { return cmp.Compare(a.Lo, b.Lo) })
	return x
}

// HiddenMatrices returns the matrices that Muon orthogonalises, one for each tensor of a checkpoint: queries, keys
// and values on their own, and each expert's, but fused ones whole.
func HiddenMatrices(tensors []model.Tensor) (list []optim.Matrix) {
	for _, t := range tensors {
		if t.Hidden() {
			list = append(list, optim.Matrix{At: t.Offset(), Rows: t.Shape[0], Cols: t.Shape[1]})
		}
	}
	return list
}

// allocate makes the learners, and workspaces for sequences of at most longest tokens.
func (t *Trainer) allocate(longest int) (err error) {
	c, keep := t.cfg, model.KeepNothing
	if !t.onlySamples() {
		keep = keptBy(c.Recompute)
		if t.policy, err = t.newLearner(PolicyGroup, t.Policy, c.Policy); err != nil {
			return err
		}
		if t.needs.Critic {
			if t.critic, err = t.newLearner("critic", t.Critic, c.Critic); err != nil {
				return err
			}
		}
		if t.needs.Process {
			if !reflect.DeepEqual(t.Process.Config, t.Policy.Config) {
				return errors.New("train: the process reward model has another architecture than the policy")
			}
			if t.process, err = t.newLearner("reward_model", t.Process, c.Process.Optim); err != nil {
				return err
			}
		}
	}
	if t.passes, err = newPasses(t.Backend, t.data, t.Policy.Config, t.Policy.Heads, c.Rows(longest), true,
		keep); err != nil {
		return err
	}
	return t.addReferences(c.Rows(longest))
}

// newLearner makes the learner of a model on this rank.
func (t *Trainer) newLearner(name string, m *model.Model, cfg Optim) (*learner, error) {
	return newLearner(t.Backend, name, m, cfg, t.cfg.Slices, t.cfg.Offload, t.learning, t.data)
}

func (l *learner) close() {
	l.opt.Close()
	l.sum.Close()
	if !l.block.Empty() {
		l.be.Free(l.block)
	}
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
// at the given learning rate; step is the trainer's. It returns the norm before clipping. It
// skips the update if the gradient is not finite: parameters and moments stay, and the
// event names the first bad element.
func (l *learner) update(step int, rate float64) (norm float64, event *Event) {
	norm = l.norm()
	limit := l.cfg.GradClip
	if limit == 0 {
		limit = math.Inf(1)
	}
	factor, ok := optim.ClipFactor(norm, limit)
	if !ok {
		return norm, &Event{Kind: "nonfinite", Text: fmt.Sprintf("step %d: gradient norm of the %s is %v, first in "+
			"%s; update skipped",
			step, l.name, norm, l.FirstNonFinite())}
	}
	lo, hi := l.sum.Shard()
	l.m.KeepConstants(func() { // every parameter decays
		l.opt.Update(l.m.Params().Slice(lo, hi), l.m.Grads().Slice(lo, hi), rate, factor)
	})
	if l.group.Size() > 1 {
		l.be.Sync()
		ranks.Must(ranks.Gather(l.group, l.m.Params(), l.sum.Ends()))
	}
	l.m.Refresh()
	return norm, nil
}

// firstNonFinite names the first gradient element that is not finite.
func (l *learner) FirstNonFinite() string {
	places, err := ranks.Share(l.all, []byte(strconv.Itoa(l.firstNonFiniteHere())))
	ranks.Must(err)
	first := -1
	for _, p := range places {
		if at, err := strconv.Atoi(string(p)); err == nil && at >= 0 && (first < 0 || at < first) {
			first = at
		}
	}
	for _, t := range l.m.Tensors() {
		if from := t.Offset(); first >= from && first < from+t.Len() {
			return fmt.Sprintf("%s[%d]", t.Name, first-from)
		}
	}
	return "the sum of squares"
}

// firstNonFiniteHere returns the place in the whole gradient of the first element of this
// rank's shard that is not finite; -1 if all are.
func (l *learner) firstNonFiniteHere() int {
	lo, hi := l.sum.Shard()
	pieces := l.layout.shards.owners
	if l.all.Size() == 1 {
		pieces = []piece{{hi: l.m.Len()}}
	}
	for _, p := range pieces {
		if p.rank != l.all.Rank() {
			continue
		}
		g := make([]float32, p.hi-p.lo)
		l.be.Copy(kernels.Host(g), p.slice(l.m.Grads().Slice(lo, hi)))
		l.be.Sync()
		if i := FirstNonFinite(g); i >= 0 {
			return p.lo + i
		}
	}
	return -1
}
