package model

import "exp/kernels"

// Adapter is a low-rank adapter on rows of a linear map (Adapters), of a model or of a vision tower (package vision).
type Adapter struct {
	A, B   kernels.Matrix // [Rank,In], [Out,Rank]
	DA, DB kernels.Buffer // gradients; empty: frozen
	Offset int            // the first of the map's rows

	number uint32 // of the adapter in the model: its stream of dropout masks
}

// LowRank is the working memory of adapters: rows of the widest map.
type LowRank struct {
	Z, DZ kernels.Buffer // [N,Rank] operands
	T     kernels.Buffer // [N,widest] floats
	DT    kernels.Buffer // [N,widest output] operands

	x    kernels.Buffer // [N,widest input] floats, with dropout
	keys kernels.Buffer // [N,2] dropout keys of the rows; empty: no dropout
}

// Add adds scale·B·A·x to the adapter's columns of out [M,width].
func (a *Adapter) Add(be kernels.Backend, out, x kernels.Buffer, width int, scale float64, r *LowRank) {
	M := out.Len() / width
	z, t := r.Z.Slice(0, M*a.A.Out), r.T.Slice(0, M*a.B.Out)
	be.MatMul(z, x, a.A, kernels.Buffer{})
	be.MatMul(t, z, a.B, kernels.Buffer{})
	be.AddColumns(out, t, a.B.Out, width, a.Offset, scale)
}

// Backward adds to the adapter's gradients, given dout [M,width], the gradient of what Add adds to, and its x [M,In].
func (a *Adapter) Backward(be kernels.Backend, dout, x, blocks kernels.Buffer, width int, scale float64,
	r *LowRank) {
	M := dout.Len() / width
	z, dz, dt := r.Z.Slice(0, M*a.A.Out), r.DZ.Slice(0, M*a.A.Out), r.DT.Slice(0, M*a.B.Out)
	be.MatMul(z, x, a.A, kernels.Buffer{})
	be.TakeColumns(dt, dout, a.B.Out, width, a.Offset, scale)
	be.MatMulDW(a.DB, kernels.Buffer{}, dt, z, blocks)
	be.MatMulDX(dz, dt, a.B)
	be.MatMulDW(a.DA, kernels.Buffer{}, dz, x, blocks)
}

// InputGradient returns the gradient of x [M,In], floats in r.T, after Backward.
func (a *Adapter) InputGradient(be kernels.Backend, M int, r *LowRank) kernels.Buffer {
	t := r.T.Slice(0, M*a.A.In)
	be.MatMulDX(t, r.DZ.Slice(0, M*a.A.Out), a.A)
	return t
}

// alloc makes the buffers for rows rows: f allocates floats, o operands.
func (r *LowRank) alloc(c Config, a *Adapters, rows int, train bool, f, o func(n int) kernels.Buffer) {
	if a == nil {
		return
	}
	in, out := a.widest(c)
	r.Z, r.T = o(rows*a.Rank), f(rows*max(in, out))
	if !train {
		return
	}
	r.DZ, r.DT = o(rows*a.Rank), o(rows*out)
	if a.Dropout > 0 {
		r.x = f(rows * in)
	}
}

// linear is a linear map with its adapters.
type linear struct {
	w           kernels.Matrix
	bias        kernels.Buffer
	dw, dbias   kernels.Buffer // empty if the map is frozen
	adapters    []Adapter
	scale, drop float64 // of the adapters
}

// apply sets out [M,Out] to the map of x [M,In], adapters included.
func (y *linear) apply(be kernels.Backend, out, x kernels.Buffer, r *LowRank) {
	be.MatMul(out, x, y.w, y.bias)
	for i := range y.adapters {
		a := &y.adapters[i]
		a.Add(be, out, r.dropped(be, y, a, x), y.w.Out, y.scale, r)
	}
}

// dropped returns x [M,In] as the adapter's A sees it.
func (r *LowRank) dropped(be kernels.Backend, y *linear, a *Adapter, x kernels.Buffer) kernels.Buffer {
	if y.drop == 0 || r.keys.Empty() {
		return x
	}
	M := x.Len() / y.w.In
	d := r.x.Slice(0, x.Len())
	be.Copy(d, x)
	be.Dropout(d, d, r.keys.Slice(0, 2*M), y.w.In, a.number, y.drop)
	return d
}

// backward takes dout [M,Out] through the adapters and the map: it adds to their gradients
// and sets dx [M,In], unless it is empty. x is the input of apply.
func (y *linear) backward(be kernels.Backend, dx, dout, x, blocks kernels.Buffer, r *LowRank) {
	if !dx.Empty() {
		be.MatMulDX(dx, dout, y.w)
	}
	if !y.dw.Empty() {
		be.MatMulDW(y.dw, y.dbias, dout, x, blocks)
	}
	y.adaptersBackward(be, dx, dout, x, blocks, r)
}

// adaptersBackward adds to the adapters' gradients and to dx.
func (y *linear) adaptersBackward(be kernels.Backend, dx, dout, x, blocks kernels.Buffer, r *LowRank) {
	M := dout.Len() / y.w.Out
	for i := range y.adapters {
		a := &y.adapters[i]
		a.Backward(be, dout, r.dropped(be, y, a, x), blocks, y.w.Out, y.scale, r)
		if dx.Empty() {
			continue
		}
		t := a.InputGradient(be, M, r)
		if y.drop > 0 && !r.keys.Empty() {
			be.Dropout(t, t, r.keys.Slice(0, 2*M), y.w.In, a.number, y.drop)
		}
		be.AddColumns(dx, t, y.w.In, y.w.In, 0, 1)
	}
}
