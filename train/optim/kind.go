package optim

import (
	"fmt"
	"math"

	"exp/kernels"
)

// Kind is the formula of an update.
type Kind uint8

const (
	KindAdamW Kind = iota // type AdamW
	KindSGD               // type SGD
	KindMuon              // type Muon
)

// ParseKind returns the kind of a configured name; the empty one is adamw.
func ParseKind(name string) (Kind, error) {
	switch name {
	case "adamw", "":
		return KindAdamW, nil
	case "sgd":
		return KindSGD, nil
	case "muon":
		return KindMuon, nil
	}
	return 0, fmt.Errorf("unknown optimizer %q: want adamw, sgd or muon", name)
}

// Moments returns how many numbers the optimizer keeps for a parameter; Muon's matrices have one.
func (k Kind) Moments(momentum float64) int {
	switch {
	case k != KindSGD:
		return 2
	case momentum != 0:
		return 1
	}
	return 0
}

// MomentLen returns how many numbers it keeps for the first n parameters of an arena with these matrices.
func (k Kind) MomentLen(n int, matrices []Matrix, momentum float64) int {
	if k == KindMuon {
		return n + outside(matrices, n)
	}
	return k.Moments(momentum) * n
}

// Moment is a part of an optimizer's state, in the parameters' order.
type Moment struct {
	Name   string // of the part in a checkpoint: "m" or "v"
	Buffer kernels.Buffer
	// Place returns how many elements the part has for the first n parameters of the whole arena; nil: n.
	Place func(n int) int
}

// progress is what all optimizers have: the norm of a gradient, the number of updates and what learns faster.
type progress struct {
	be     kernels.Backend
	sum    kernels.Buffer // float64, an element for each block of the gradient's norm
	host   [1]float64     // sum on the host; a local variable would escape at each norm
	step   int
	faster Faster
}

// Hasten makes elements of the shard learn faster from now on.
func (o *progress) Hasten(x Faster) { o.faster = x }

// Norm returns the L2 norm of grads, summed in float64.
func (o *progress) Norm(grads kernels.Buffer) float64 {
	sum := o.sum.Slice(0, 1)
	o.be.SumSquares(sum, grads)
	o.be.Copy(kernels.Host(o.host[:]), sum)
	o.be.Sync()
	return math.Sqrt(o.host[0])
}

// BlockSums sets out to the sums of squares of grads' consecutive blocks of
// kernels.SumBlock elements. Norm is the root of their sum from the first to the last, so
// shards of whole blocks give the norm of the whole gradient.
func (o *progress) BlockSums(out []float64, grads kernels.Buffer) {
	for i := range out {
		o.be.SumSquares(o.sum.Slice(i, i+1), grads.Slice(i*kernels.SumBlock, min((i+1)*kernels.SumBlock, grads.Len())))
	}
	o.be.Copy(kernels.Host(out), o.sum.Slice(0, len(out)))
	o.be.Sync()
}

func blocks(n int) int { return (n + kernels.SumBlock - 1) / kernels.SumBlock }

// Steps returns the number of updates taken.
func (o *progress) Steps() int { return o.step }

// Restore sets the number of updates taken, after the moments were filled.
func (o *progress) Restore(steps int) { o.step = steps }

// room allocates buffers until one fails.
type room struct {
	be  kernels.Backend
	err error
}

func (r *room) alloc(t kernels.DType, n int) kernels.Buffer {
	if r.err != nil {
		return kernels.Buffer{}
	}
	b, err := r.be.Alloc(t, n)
	if err != nil {
		r.err = &kernels.RoomError{Part: kernels.MomentRoom, Err: err}
	}
	return b
}

// free frees the buffers that are not empty.
func free(be kernels.Backend, list ...*kernels.Buffer) {
	for _, b := range list {
		if !b.Empty() {
			be.Free(*b)
			*b = kernels.Buffer{}
		}
	}
}

// row is the width in which vectors go through operations on columns, which share rows out to threads.
const row = 1024

// scale sets x to s·x, element by element.
func scale(be kernels.Backend, x kernels.Buffer, s float64) {
	inRows(x.Len(), func(lo, hi, n int) { be.TakeColumns(x.Slice(lo, hi), x.Slice(lo, hi), n, n, 0, s) })
}

// add sets y to fma(s, x, y), element by element.
func add(be kernels.Backend, y, x kernels.Buffer, s float64) {
	inRows(x.Len(), func(lo, hi, n int) { be.AddColumns(y.Slice(lo, hi), x.Slice(lo, hi), n, n, 0, s) })
}

// inRows calls f with the whole rows of n elements, and with the rest as one row.
func inRows(n int, f func(lo, hi, row int)) {
	whole := n / row * row
	if whole > 0 {
		f(0, whole, row)
	}
	if whole < n {
		f(whole, n, n-whole)
	}
}
