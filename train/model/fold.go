package model

import "exp/kernels"

// AdaptedTensor is a weight with an adapter: the names of the weight [Out,In], of A
// [Rank,In] and of B [Out,Rank].
type AdaptedTensor struct {
	Weight, A, B string
	Out, In      int
}

// Tensors returns the weights of c that have adapters, the vision tower's last.
func (a *Adapters) Tensors(c Config) (list []AdaptedTensor) {
	if a == nil {
		return nil
	}
	for _, t := range adapted(c, a) {
		list = append(list, adaptedTensor(t.name, t.out, t.in))
	}
	for _, t := range a.Tower {
		list = append(list, t.Adapted())
	}
	return list
}

func adaptedTensor(name string, out, in int) AdaptedTensor {
	a, b := adapterNames(name)
	return AdaptedTensor{Weight: name + ".weight", A: a, B: b, Out: out, In: in}
}

// Fold adds an adapter to its map's weight, some rows at a time, with the bits of
// Model.FoldAdapters but without a model.
type Fold struct {
	A, B kernels.Buffer // [Rank,In] and [Out,Rank] floats; call Refresh after setting A

	be    kernels.Backend
	a     kernels.Matrix
	delta kernels.Buffer // [rows,In]
	scale float64
	rank  int
	owned []kernels.Buffer
}

// NewFold makes room for an adapter, all zeros, and for Add of at most rows rows.
func (a *Adapters) NewFold(be kernels.Backend, t AdaptedTensor, rows int) (*Fold, error) {
	f := &Fold{be: be, scale: a.Scale(), rank: a.Rank}
	packed, _ := be.PackedLen(a.Rank, t.In)
	f.a = kernels.Matrix{Out: a.Rank, In: t.In}
	for _, x := range []struct {
		into *kernels.Buffer
		t    kernels.DType
		n    int
	}{
		{&f.A, be.Float(), a.Rank * t.In}, {&f.B, be.Float(), t.Out * a.Rank}, {&f.delta, be.Float(), rows * t.In},
		{&f.a.Packed, be.Operand(), packed},
	} {
		b, err := be.Alloc(x.t, x.n)
		if err != nil {
			f.Close()
			return nil, &kernels.RoomError{Part: kernels.WeightRoom, Err: err}
		}
		*x.into, f.owned = b, append(f.owned, b)
	}
	f.a.W = f.A
	return f, nil
}

// Refresh makes Add use the current A.
func (f *Fold) Refresh() {
	if !f.a.Packed.Empty() {
		f.be.Pack(f.a)
	}
}

// Add adds to w [n,In], rows [from, from+n) of the weight as floats:
//
//	w = fma(Alpha/Rank, B·A, w), B·A as MatMulDX gives it
func (f *Fold) Add(w kernels.Buffer, from int) {
	n := w.Len() / f.a.In
	delta := f.delta.Slice(0, w.Len())
	f.be.MatMulDX(delta, f.B.Slice(from*f.rank, (from+n)*f.rank), f.a)
	f.be.AddColumns(w, delta, f.a.In, f.a.In, 0, f.scale)
}

// Close frees the room.
func (f *Fold) Close() {
	f.be.Sync()
	for _, b := range f.owned {
		f.be.Free(b)
	}
	f.owned = nil
}
