package bench

import (
	"errors"

	"exp/kernels"
)

// buffers owns the buffers of a measurement and keeps the first allocation error.
type buffers struct {
	be    kernels.Backend
	owned []kernels.Buffer
	err   error
}

func (b *buffers) alloc(t kernels.DType, n int) kernels.Buffer {
	buf, err := b.be.Alloc(t, n)
	if err != nil {
		b.err = errors.Join(b.err, err)
		return kernels.Buffer{}
	}
	b.owned = append(b.owned, buf)
	return buf
}

func (b *buffers) floats(x []float32) kernels.Buffer { return b.filled(b.be.Float(), x) }

func (b *buffers) operands(x []float32) kernels.Buffer { return b.filled(b.be.Operand(), x) }

func (b *buffers) filled(t kernels.DType, x []float32) kernels.Buffer {
	buf := b.alloc(t, len(x))
	if b.err == nil {
		b.be.Copy(buf, kernels.Host(x))
		b.be.Sync()
	}
	return buf
}

func (b *buffers) ints(x []int32) kernels.Buffer {
	buf := b.alloc(kernels.I32, len(x))
	if b.err == nil {
		b.be.Copy(buf, kernels.Host(x))
		b.be.Sync()
	}
	return buf
}

// weights returns copies of one weight, each packed separately.
func (b *buffers) weights(l linear, copies int) []kernels.Matrix {
	var r stream
	w := b.floats(r.floats(l.out*l.in, 0.02))
	packed, packedT := b.be.PackedLen(l.out, l.in)
	var list []kernels.Matrix
	for range copies {
		m := kernels.Matrix{W: w, Out: l.out, In: l.in}
		if packed > 0 {
			m.Packed = b.alloc(b.be.Operand(), packed)
		}
		if packedT > 0 {
			m.PackedT = b.alloc(b.be.Operand(), packedT)
		}
		if b.err != nil {
			return nil
		}
		if packed > 0 {
			b.be.Pack(m)
		}
		list = append(list, m)
	}
	return list
}

func (b *buffers) close() {
	for _, buf := range b.owned {
		b.be.Free(buf)
	}
}
