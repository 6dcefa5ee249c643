package optim

import "exp/kernels"

// AdamW is the optimizer state of an arena of parameters or a shard of one: two moments of
// that length and the number of updates (Loshchilov and Hutter, arXiv:1711.05101, decoupled
// decay; the update itself is kernels.AdamW). As in verl every parameter decays, including
// norms and biases.
type AdamW struct {
	Beta1, Beta2, Eps, WeightDecay float64

	progress
	m, v kernels.Buffer
}

// NewAdamW allocates moments for n parameters.
func NewAdamW(be kernels.Backend, n int, beta1, beta2, eps, decay float64) (*AdamW, error) {
	o := &AdamW{Beta1: beta1, Beta2: beta2, Eps: eps, WeightDecay: decay}
	if err := o.alloc(be, n, n); err != nil {
		return nil, err
	}
	return o, nil
}

// alloc allocates the first moments of n parameters and so many second ones.
func (o *AdamW) alloc(be kernels.Backend, n, second int) error {
	o.be = be
	r := room{be: be}
	o.m, o.v, o.sum = r.alloc(be.Float(), n), r.alloc(be.Float(), second), r.alloc(kernels.F64, max(1, blocks(n)))
	if r.err != nil {
		o.Close()
	}
	return r.err
}

// Close frees the moments.
func (o *AdamW) Close() { free(o.be, &o.m, &o.v, &o.sum) }

// Update takes one step with learning rate lr along grads multiplied by scale.
func (o *AdamW) Update(params, grads kernels.Buffer, lr, scale float64) {
	o.step++
	o.part(params, grads, 0, params.Len(), 0, lr, scale)
}

// part updates elements lo to hi of the shard, with second moments from the given one on.
func (o *AdamW) part(params, grads kernels.Buffer, lo, hi, second int, lr, scale float64) {
	o.faster.each(lo, hi, lr, func(a, b int, rate float64) {
		v := o.v.Slice(second+a-lo, second+b-lo)
		o.be.AdamW(params.Slice(a, b), o.m.Slice(a, b), v, grads.Slice(a, b), kernels.AdamW{
			LR: rate, Beta1: o.Beta1, Beta2: o.Beta2, Eps: o.Eps, WeightDecay: o.WeightDecay,
			GradScale: scale, Step: o.step,
		})
	})
}

// Reset restores the state before the first update.
func (o *AdamW) Reset() {
	o.be.Zero(o.m)
	o.be.Zero(o.v)
	o.step = 0
}

// Moments returns the first and second moments.
func (o *AdamW) Moments() []Moment {
	return []Moment{{Name: "m", Buffer: o.m}, {Name: "v", Buffer: o.v}}
}
