package optim

import (
	"math"

	"exp/kernels"
)

// Muon orthogonalises the updates of matrices (Jordan 2024, kellerjordan.github.io/posts/muon)
// in the form of "Muon is Scalable for LLM Training" (arXiv:2502.16982). For a matrix P
// [Rows,Cols] with the scaled gradient G and the moment B,
//
//	G = (1-Momentum)·G
//	B = Momentum·B + G
//	U = Momentum·B + G                  Nesterov
//	O = Orthogonal(U)
//	P = P·(1 - lr·WeightDecay) - lr·0.2·sqrt(max(Rows, Cols))·O
//
// The factor gives an update about the size of AdamW's, so learning rates and decays carry
// over. It is torch.optim.Muon with adjust_lr_fn="match_rms_adamw". All other parameters
// take AdamW, with the same rate and decay; they alone have a second moment.
//
// The arithmetic is the backend's, so products of matrices have float32 factors or factors
// rounded to BF16, as Jordan's have. Update overwrites the gradient.
type Muon struct {
	Momentum float64
	AdamW

	arena Arena
	all   []Matrix // of the whole arena; arena.Matrices are those that the shard touches
	n     newton
}

// Arena is the parameters that Muon updates: this rank's shard of them, and the matrices that it touches.
type Arena struct {
	Grads    kernels.Buffer // of all parameters
	Lo, Hi   int            // the shard
	Matrices []Matrix       // of the whole arena, ascending
	// Gather completes Grads on every rank from the shards; nil where the shard is the whole.
	Gather func()
}

// Matrix is a matrix of an arena, from element At on.
type Matrix struct{ At, Rows, Cols int }

func (m Matrix) end() int { return m.At + int(m.Rows*m.Cols) }

// outside returns how many of an arena's first n elements belong to no matrix.
func outside(matrices []Matrix, n int) int {
	out := n
	for _, m := range matrices {
		out -= max(0, min(m.end(), n)-m.At)
	}
	return out
}

// NewMuon allocates moments of a's shard, in moments' memory, and room for one matrix at a time in be's.
func NewMuon(be, moments kernels.Backend, a Arena, momentum float64, settings AdamW) (*Muon, error) {
	o := &Muon{Momentum: momentum, AdamW: settings, arena: a, all: a.Matrices}
	if err := o.alloc(moments, a.Hi-a.Lo, outside(a.Matrices, a.Hi)-outside(a.Matrices, a.Lo)); err != nil {
		return nil, err
	}
	var err error
	var touched []Matrix
	for _, m := range a.Matrices {
		if m.At < a.Hi && a.Lo < m.end() {
			touched = append(touched, m)
		}
	}
	o.arena.Matrices = touched
	if o.n, err = newNewton(be, touched); err != nil {
		o.Close()
		return nil, err
	}
	return o, nil
}

// Close frees the moments and the room.
func (o *Muon) Close() {
	o.AdamW.Close()
	o.n.close()
}

// Update takes one step of the shard with learning rate lr along its grads multiplied by factor.
// All ranks call it.
func (o *Muon) Update(params, grads kernels.Buffer, lr, factor float64) {
	o.step++
	at, second := 0, 0
	for _, m := range o.arena.Matrices {
		lo, hi := o.within(m)
		o.part(params, grads, at, lo, second, lr, factor)
		second += lo - at
		g, b := grads.Slice(lo, hi), o.m.Slice(lo, hi)
		scale(o.be, g, float64((1-o.Momentum)*factor))
		scale(o.be, b, o.Momentum)
		o.be.Add(b, g)
		add(o.be, g, b, o.Momentum)
		at = hi
	}
	o.part(params, grads, at, params.Len(), second, lr, factor)
	if o.arena.Gather != nil {
		o.arena.Gather()
	}
	for _, m := range o.arena.Matrices {
		lo, hi := o.within(m)
		u := o.n.orthogonal(o.arena.Grads.Slice(m.At, m.end()), m.Rows, m.Cols)
		from := o.arena.Lo + lo - m.At
		o.faster.each(lo, hi, lr, func(a, b int, rate float64) {
			scale(o.be, params.Slice(a, b), 1-float64(rate*o.WeightDecay))
			add(o.be, params.Slice(a, b), u.Slice(from+a-lo, from+b-lo), -float64(rate*rmsOfAdamW(m)))
		})
	}
}

// rmsOfAdamW returns what gives an orthogonal matrix the root mean square 0.2 (arXiv:2502.16982 §2.2).
func rmsOfAdamW(m Matrix) float64 { return 0.2 * math.Sqrt(float64(max(m.Rows, m.Cols))) }

// within returns the elements of the shard that are m's.
func (o *Muon) within(m Matrix) (lo, hi int) {
	return max(m.At, o.arena.Lo) - o.arena.Lo, min(m.end(), o.arena.Hi) - o.arena.Lo
}

// Moments returns the first moments, and the second ones of elements outside matrices.
func (o *Muon) Moments() []Moment {
	return []Moment{{Name: "m", Buffer: o.m},
		{Name: "v", Buffer: o.v, Place: func(n int) int { return outside(o.all, n) }}}
}
