package ref

import "exp/kernels"

// convProducts returns v [M,Mixed], what the convolution of projected rows x reads, and M.
func convProducts[T Float](x []T, s kernels.DeltaShape) ([]T, int) {
	C := s.Mixed()
	if !s.Conv || C < 1 || s.Taps < 1 || len(x)%s.Stride() != 0 {
		panic("ref: gated convolution: not a whole number of rows")
	}
	M := len(x) / s.Stride()
	v := make([]T, M*C)
	for m := range M {
		row := x[m*s.Stride():][:s.Stride()]
		for c := range C {
			v[m*C+c] = row[c] * row[2*C+c]
		}
	}
	return v, M
}

// GatedConv sets u [M,Mixed] to the gated short convolution of projected rows x, see kernels.Recurrence. tails is
// [slots,Tail], or empty without slots.
func GatedConv[T Float](u, x, weight, tails []T, offsets, groups, slots []int32, s kernels.DeltaShape) {
	v, M := convProducts(x, s)
	C := s.Mixed()
	if len(u) != M*C || len(weight) != C*s.Taps {
		panic("ref: GatedConv: length mismatch")
	}
	all := runsOf(offsets, groups, slots, M)
	next := make([]T, s.Taps-1)
	for j, seq := range all.list {
		slot, first := all.slot(j)
		for c := range C {
			h := channel[T]{x: v, seq: seq, stride: C, at: c, c: c, s: s}
			var tail []T
			if slot >= 0 {
				if tail = tails[slot*s.Tail():][:s.Tail()]; !first {
					h.tail = tail
				}
			}
			for t := seq.prefix; t < seq.len(); t++ {
				m := seq.row(t)
				u[m*C+c] = x[m*s.Stride()+C+c] * h.conv(weight, nil, t)
			}
			if slot >= 0 {
				h.leave(tail, next)
			}
		}
	}
}

// GatedConvBackward sets dx [M,Stride] and adds to dweight [Mixed,Taps], see kernels.Recurrence.
func GatedConvBackward[T Float](dx, dweight, du, x, weight []T, blocks, offsets, groups []int32,
	s kernels.DeltaShape) {
	v, M := convProducts(x, s)
	C := s.Mixed()
	if len(dx) != len(x) || len(du) != M*C || len(weight) != C*s.Taps || len(dweight) != len(weight) {
		panic("ref: GatedConvBackward: length mismatch")
	}
	checkBlocks(blocks, M)
	list := sequences(offsets, groups, M)
	dy, dv := make([]T, M), make([]T, M*C)
	for c := range C {
		h := channel[T]{x: v, stride: C, at: c, c: c, s: s}
		for _, h.seq = range list {
			for t := h.seq.prefix; t < h.seq.len(); t++ {
				m := h.seq.row(t)
				d, after := du[m*C+c], m*s.Stride()+C+c
				dx[after] = d * h.conv(weight, nil, t)
				dy[m] = d * x[after]
			}
		}
		h.backward(dv, dweight, dy, weight, list, blocks)
		for m := range M {
			before := m*s.Stride() + c
			dx[before] = dv[m*C+c] * x[before+2*C]
			dx[before+2*C] = dv[m*C+c] * x[before]
		}
	}
}
