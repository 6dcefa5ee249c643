package optim

import "exp/kernels"

// SGD is gradient descent with momentum (Polyak 1964) in the form of torch.optim.SGD with a
// dampening of 0 and without Nesterov's variant: with g the scaled gradient and b the moment,
//
//	b = Momentum·b + g
//	p = p·(1 - lr·WeightDecay) - lr·b
//
// Without momentum b is g and no moment exists. The decay is decoupled as AdamW's is, where
// torch's adds WeightDecay·p to g: a config's decay then means the same for every optimizer,
// momentum does not gather it, and the norm that clipping bounds is the loss's alone.
type SGD struct {
	Momentum, WeightDecay float64

	progress
	m kernels.Buffer
}

// NewSGD allocates the moment of n parameters, if momentum is not 0.
func NewSGD(be kernels.Backend, n int, momentum, decay float64) (*SGD, error) {
	o := &SGD{Momentum: momentum, WeightDecay: decay, progress: progress{be: be}}
	r := room{be: be}
	if momentum != 0 {
		o.m = r.alloc(be.Float(), n)
	}
	o.sum = r.alloc(kernels.F64, max(1, blocks(n)))
	if r.err != nil {
		o.Close()
		return nil, r.err
	}
	return o, nil
}

// Close frees the moment.
func (o *SGD) Close() { free(o.be, &o.m, &o.sum) }

// Update takes one step with learning rate lr along grads multiplied by factor.
func (o *SGD) Update(params, grads kernels.Buffer, lr, factor float64) {
	o.step++
	along := grads
	if o.Momentum != 0 {
		scale(o.be, o.m, o.Momentum)
		add(o.be, o.m, grads, factor)
		along, factor = o.m, 1
	}
	o.faster.each(0, params.Len(), lr, func(a, b int, rate float64) {
		scale(o.be, params.Slice(a, b), 1-float64(rate*o.WeightDecay))
		add(o.be, params.Slice(a, b), along.Slice(a, b), -float64(rate*factor))
	})
}

// Reset restores the state before the first update.
func (o *SGD) Reset() {
	if o.Momentum != 0 {
		o.be.Zero(o.m)
	}
	o.step = 0
}

// Moments returns the moment, which may be of no parameters, or nothing without momentum.
func (o *SGD) Moments() []Moment {
	if o.Momentum == 0 {
		return nil
	}
	return []Moment{{Name: "m", Buffer: o.m}}
}
