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
// take AdamW, with the same rate and decay. Both moments exist for all parameters, though
// matrices leave the second at 0.
//
// The arithmetic is the backend's, so products of matrices have float32 factors or factors
// rounded to BF16, as Jordan's have. Update overwrites the gradient.
type Muon struct {
	Momentum float64
	AdamW

	arena Arena
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

// NewMuon allocates moments of a's shard, in moments' memory, and room for one matrix at a time in be's.
func NewMuon(be, moments kernels.Backend, a Arena, momentum float64, settings AdamW) (*Muon, error) {
	w, err := NewAdamW(moments, a.Hi-a.Lo, settings.Beta1, settings.Beta2, settings.Eps, settings.WeightDecay)
	if err != nil {
		return nil, err
	}
	o := &Muon{Momentum: momentum, AdamW: *w, arena: a}
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
	at := 0
	for _, m := range o.arena.Matrices {
		lo, hi := o.within(m)
		o.vectors(params, grads, at, lo, lr, factor)
		g, b := grads.Slice(lo, hi), o.m.Slice(lo, hi)
		scale(o.be, g, float64((1-o.Momentum)*factor))
		scale(o.be, b, o.Momentum)
		o.be.Add(b, g)
		add(o.be, g, b, o.Momentum)
		at = hi
	}
	o.vectors(params, grads, at, params.Len(), lr, factor)
	if o.arena.Gather != nil {
		o.arena.Gather()
	}
	for _, m := range o.arena.Matrices {
		lo, hi := o.within(m)
		u := o.n.orthogonal(o.arena.Grads.Slice(m.At, m.end()), m.Rows, m.Cols)
		from := o.arena.Lo + lo - m.At
		scale(o.be, params.Slice(lo, hi), 1-float64(lr*o.WeightDecay))
		add(o.be, params.Slice(lo, hi), u.Slice(from, from+hi-lo), -float64(lr*rmsOfAdamW(m)))
	}
}

// rmsOfAdamW returns what gives an orthogonal matrix the root mean square 0.2 (arXiv:2502.16982 §2.2).
func rmsOfAdamW(m Matrix) float64 { return 0.2 * math.Sqrt(float64(max(m.Rows, m.Cols))) }

// within returns the elements of the shard that are m's.
func (o *Muon) within(m Matrix) (lo, hi int) {
	return max(m.At, o.arena.Lo) - o.arena.Lo, min(m.end(), o.arena.Hi) - o.arena.Lo
}

// vectors updates elements lo to hi of the shard as AdamW does.
func (o *Muon) vectors(params, grads kernels.Buffer, lo, hi int, lr, factor float64) {
	if lo == hi {
		return
	}
	o.be.AdamW(params.Slice(lo, hi), o.m.Slice(lo, hi), o.v.Slice(lo, hi), grads.Slice(lo, hi), kernels.AdamW{
		LR: lr, Beta1: o.Beta1, Beta2: o.Beta2, Eps: o.Eps, WeightDecay: o.WeightDecay,
		GradScale: factor, Step: o.step,
	})
}
