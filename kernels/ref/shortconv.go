package ref

import "exp/kernels"

// runs are the sequences of a call with what came before them.
type runs struct {
	list  []sequence
	slots []int32 // nil without memory
}

// runsOf returns the runs of M rows.
func runsOf(offsets, groups, slots []int32, M int) runs {
	r := runs{list: sequences(offsets, groups, M)}
	if len(slots) == 0 {
		return r
	}
	if len(slots) != len(r.list) || len(groups) != 0 {
		panic("ref: runs: one slot for each sequence, and no groups")
	}
	r.slots = slots
	return r
}

// slot returns the slot of run j and whether its rows are the sequence's first; -1 without memory.
func (r runs) slot(j int) (slot int, first bool) {
	switch {
	case r.slots == nil:
		return -1, true
	case r.slots[j] < 0:
		return int(-1 - r.slots[j]), true
	}
	return int(r.slots[j]), false
}

// channel reads channel c of the rows of a sequence.
type channel[T Float] struct {
	x, tail       []T // tail: nil, or a slot's
	seq           sequence
	stride, at, c int // at: the projected column of c
	s             kernels.DeltaShape
}

// before returns the input `back` rows before position t.
func (h channel[T]) before(t, back int) T {
	if t -= back; t >= 0 {
		return h.x[h.seq.row(t)*h.stride+h.at]
	}
	if h.tail == nil {
		return 0
	}
	return h.tail[(h.s.Taps-1+t)*h.s.Mixed()+h.c]
}

// conv returns the convolution at position t, before the activation. bias may be empty.
func (h channel[T]) conv(weight, bias []T, t int) (y T) {
	n := h.s.Taps
	if len(bias) > 0 {
		y = bias[h.c]
	}
	for j := range n {
		y = FMA(weight[h.c*n+j], h.before(t, n-1-j), y)
	}
	return y
}

// leave sets h's column of tail to its last inputs. next is room for them.
func (h channel[T]) leave(tail, next []T) {
	for k := range next {
		next[k] = h.before(h.seq.len()-1, len(next)-1-k)
	}
	for k, v := range next {
		tail[k*h.s.Mixed()+h.c] = v
	}
}

// ShortConv sets u [M,Mixed] to the SiLU of the short convolution of projected rows x, see
// kernels.Recurrence. bias may be empty. tails is [slots,Tail], or empty without slots.
func ShortConv[T Float](u, x, weight, bias, tails []T, offsets, groups, slots []int32, s kernels.DeltaShape) {
	M := deltaRows(x, s)
	if len(u) != M*s.Mixed() || len(weight) != s.Mixed()*s.Taps || len(bias) > 0 && len(bias) != s.Mixed() {
		panic("ref: ShortConv: length mismatch")
	}
	all := runsOf(offsets, groups, slots, M)
	next := make([]T, s.Taps-1)
	for j, seq := range all.list {
		slot, first := all.slot(j)
		for _, b := range s.Blocks() {
			for i := range b.N {
				h := channel[T]{x: x, seq: seq, stride: s.Stride(), at: b.At + i, c: b.Mixed + i, s: s}
				var tail []T
				if slot >= 0 {
					if tail = tails[slot*s.Tail():][:s.Tail()]; !first {
						h.tail = tail
					}
				}
				for t := seq.prefix; t < seq.len(); t++ {
					y := h.conv(weight, bias, t)
					u[seq.row(t)*s.Mixed()+h.c] = T(y * Sigmoid(y))
				}
				if slot < 0 {
					continue
				}
				h.leave(tail, next)
			}
		}
	}
}

// ShortConvBackward sets the columns q, k and v of dx [M,Stride] and adds to dweight
// [Mixed,Taps] and, unless bias is empty, to dbias [Mixed], see kernels.Recurrence.
func ShortConvBackward[T Float](dx, dweight, dbias, du, x, weight, bias []T, blocks, offsets, groups []int32,
	s kernels.DeltaShape) {
	M := deltaRows(x, s)
	if len(dx) != len(x) || len(du) != M*s.Mixed() || len(weight) != s.Mixed()*s.Taps ||
		len(dweight) != len(weight) || len(bias) > 0 && (len(bias) != s.Mixed() || len(dbias) != len(bias)) {
		panic("ref: ShortConvBackward: length mismatch")
	}
	checkBlocks(blocks, M)
	list := sequences(offsets, groups, M)
	dy := make([]T, M)
	for _, b := range s.Blocks() {
		for i := range b.N {
			h := channel[T]{x: x, stride: s.Stride(), at: b.At + i, c: b.Mixed + i, s: s}
			for _, seq := range list {
				h.seq = seq
				for t := seq.prefix; t < seq.len(); t++ {
					y := h.conv(weight, bias, t)
					g := Sigmoid(y)
					m := seq.row(t)
					dy[m] = du[m*s.Mixed()+h.c] * T(g*FMA(y, 1-g, 1))
				}
			}
			h.backward(dx, dweight, dy, weight, list, blocks)
			if len(bias) > 0 {
				dbias[h.c] = addBlocks(dbias[h.c], dy, blocks)
			}
		}
	}
}

// backward sets the column of dx that h reads of x, and adds to its rows of dweight, from dy [M], the gradients of
// the results of conv.
func (h channel[T]) backward(dx, dweight, dy, weight []T, list []sequence, blocks []int32) {
	n := h.s.Taps
	inputs := make([]T, len(dy)*n)
	for _, h.seq = range list {
		for t := h.seq.prefix; t < h.seq.len(); t++ {
			m := h.seq.row(t)
			dx[m*h.stride+h.at] = 0
			for k := range n {
				inputs[m*n+k] = h.before(t, n-1-k)
			}
		}
	}
	for _, seq := range list {
		for t := seq.prefix; t < seq.len(); t++ {
			for k := range n {
				if from := t - (n - 1) + k; from >= 0 {
					d := &dx[seq.row(from)*h.stride+h.at]
					*d = FMA(weight[h.c*n+k], dy[seq.row(t)], *d)
				}
			}
		}
	}
	shortConvDW(dweight[h.c*n:][:n], dy, inputs, blocks)
}

// shortConvDW adds to dweight the blocked sums of the chains of dy [M] and inputs [M,Taps].
func shortConvDW[T Float](dweight, dy, inputs []T, blocks []int32) {
	n := len(dweight)
	for b := 1; b < len(blocks); b++ {
		acc := make([]T, n)
		for m := int(blocks[b-1]); m < int(blocks[b]); m++ {
			accumulate(acc, dy[m], inputs[m*n:(m+1)*n])
		}
		addTo(dweight, acc)
	}
}

// addBlocks adds to acc the plain sums of the gradient blocks of dy.
func addBlocks[T Float](acc T, dy []T, blocks []int32) T {
	for b := 1; b < len(blocks); b++ {
		var sum T
		for _, d := range dy[blocks[b-1]:blocks[b]] {
			sum += d
		}
		acc += sum
	}
	return acc
}

// deltaRows returns M, the number of projected rows.
func deltaRows[T Float](x []T, s kernels.DeltaShape) int {
	if s.Keys < 1 || s.Values < 1 || s.KeyDim < 1 || s.ValueDim < 1 || s.Taps < 1 || s.Values%s.Keys != 0 {
		panic("ref: value heads are not a multiple of key heads")
	}
	if len(x)%s.Stride() != 0 {
		panic("ref: delta rule: not a whole number of rows")
	}
	return len(x) / s.Stride()
}
