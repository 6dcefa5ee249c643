package optim

import (
	"math"

	"exp/kernels"
)

// AdamW is the optimizer state of an arena of parameters or a shard of one: two moments of
// that length and the number of updates (Loshchilov and Hutter, arXiv:1711.05101, decoupled
// decay; the update itself is kernels.AdamW). As in verl every parameter decays, including
// norms and biases.
type AdamW struct {
	Beta1, Beta2, Eps, WeightDecay float64

	be   kernels.Backend
	m, v kernels.Buffer
	sum  kernels.Buffer // float64, an element for each block of the gradient's norm
	host [1]float64     // sum on the host; a local variable would escape at each norm
	step int
}

// NewAdamW allocates moments for n parameters.
func NewAdamW(be kernels.Backend, n int, beta1, beta2, eps, decay float64) (*AdamW, error) {
	o := &AdamW{Beta1: beta1, Beta2: beta2, Eps: eps, WeightDecay: decay, be: be}
	var err error
	alloc := func(t kernels.DType, n int) kernels.Buffer {
		b, e := be.Alloc(t, n)
		if e != nil && err == nil {
			err = &kernels.RoomError{Part: kernels.MomentRoom, Err: e}
		}
		return b
	}
	o.m, o.v, o.sum = alloc(be.Float(), n), alloc(be.Float(), n), alloc(kernels.F64, max(1, blocks(n)))
	if err != nil {
		o.Close()
		return nil, err
	}
	return o, nil
}

// Close frees the moments.
func (o *AdamW) Close() {
	for _, b := range []*kernels.Buffer{&o.m, &o.v, &o.sum} {
		if !b.Empty() {
			o.be.Free(*b)
			*b = kernels.Buffer{}
		}
	}
}

// Norm returns the L2 norm of grads, summed in float64.
func (o *AdamW) Norm(grads kernels.Buffer) float64 {
	sum := o.sum.Slice(0, 1)
	o.be.SumSquares(sum, grads)
	o.be.Copy(kernels.Host(o.host[:]), sum)
	o.be.Sync()
	return math.Sqrt(o.host[0])
}

// BlockSums sets out to the sums of squares of grads' consecutive blocks of
// kernels.SumBlock elements. Norm is the root of their sum from the first to the last, so
// shards of whole blocks give the norm of the whole gradient.
func (o *AdamW) BlockSums(out []float64, grads kernels.Buffer) {
	for i := range out {
		o.be.SumSquares(o.sum.Slice(i, i+1), grads.Slice(i*kernels.SumBlock, min((i+1)*kernels.SumBlock, grads.Len())))
	}
	o.be.Copy(kernels.Host(out), o.sum.Slice(0, len(out)))
	o.be.Sync()
}

func blocks(n int) int { return (n + kernels.SumBlock - 1) / kernels.SumBlock }

// Update takes one step with learning rate lr along grads multiplied by scale.
func (o *AdamW) Update(params, grads kernels.Buffer, lr, scale float64) {
	o.step++
	o.be.AdamW(params, o.m, o.v, grads, kernels.AdamW{
		LR: lr, Beta1: o.Beta1, Beta2: o.Beta2, Eps: o.Eps, WeightDecay: o.WeightDecay,
		GradScale: scale, Step: o.step,
	})
}

// Steps returns the number of updates taken.
func (o *AdamW) Steps() int { return o.step }

// Restore sets the number of updates taken, after the moments were filled.
func (o *AdamW) Restore(steps int) { o.step = steps }

// Reset makes the state that of an optimizer that has taken no update.
func (o *AdamW) Reset() {
	o.be.Zero(o.m)
	o.be.Zero(o.v)
	o.step = 0
}

// Moments returns the first and second moments, in the parameters' order.
func (o *AdamW) Moments() (m, v kernels.Buffer) { return o.m, o.v }
