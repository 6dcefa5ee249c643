package optim

import (
	"math"

	"exp/kernels"
)

// The quintic iteration's coefficients and number of steps (Jordan 2024). Most singular
// values end between about 0.7 and 1.2; the smallest of square matrices stay below.
const (
	newtonA, newtonB, newtonC = 3.4445, -4.7750, 2.0315

	newtonSteps = 5
	newtonEps   = 1e-7 // least norm that a matrix is divided by
)

// newton is room for the Newton-Schulz iteration on one matrix at a time. With k the lesser of
// its two sides,
//
//	X = U/max(|U|, 1e-7)            |U| the root of the sum of squares
//	five times:
//	  G = XXᵀ, or XᵀX where X has more rows than columns      [k,k]
//	  H = b·G + c·GG
//	  X = a·X + HX, or a·X + XH
type newton struct {
	be           kernels.Backend
	sum          kernels.Buffer // float64 [1]
	host         [1]float64
	offsets      kernels.Buffer // int32: of blocks of rows
	rows         []int32        // offsets on the host
	x, y         kernels.Buffer // [Rows,Cols]
	g, h         kernels.Buffer // [k,k]
	packed, back kernels.Buffer // copies of a factor that products read
}

// newtonRoom is the lengths of a newton's buffers.
type newtonRoom struct{ x, g, packed, back, offsets int }

func roomOf(list []Matrix, packedLen func(out, in int) (packed, back int)) (r newtonRoom) {
	for _, m := range list {
		k := min(m.Rows, m.Cols)
		r.x, r.g = max(r.x, int(m.Rows*m.Cols)), max(r.g, int(k*k))
		p, b := packedLen(k, k)
		r.packed, r.back = max(r.packed, p), max(r.back, b)
		if m.Rows <= m.Cols {
			p, b := packedLen(m.Rows, m.Cols)
			r.packed, r.back = max(r.packed, p), max(r.back, b)
		} else {
			r.offsets = max(r.offsets, len(blocksOf(m.Rows)))
		}
	}
	return r
}

// blocksOf returns the offsets of the blocks of so many rows that a product of gradients takes.
func blocksOf(rows int) []int32 {
	list := []int32{0}
	for at := 0; at < rows; {
		at = min(at+kernels.BlockRows, rows)
		list = append(list, int32(at))
	}
	return list
}

// NewtonBytes returns the memory in which Muon orthogonalises the greatest of the matrices, where copies of weights
// for products have the lengths of packedLen and size bytes an element.
func NewtonBytes(list []Matrix, packedLen func(out, in int) (packed, back int), size int) int {
	r := roomOf(list, packedLen)
	return int(8*(r.x+r.g)) + int(size*(r.packed+r.back)) + int(4*r.offsets)
}

// NewtonFLOPs returns the operations of the products with which Muon makes all the matrices orthogonal once.
func NewtonFLOPs(list []Matrix) (n float64) {
	for _, m := range list {
		k, l := float64(min(m.Rows, m.Cols)), float64(max(m.Rows, m.Cols))
		n += newtonSteps * (2*2*k*k*l + 2*k*k*k)
	}
	return n
}

func newNewton(be kernels.Backend, list []Matrix) (newton, error) {
	n, r, l := newton{be: be}, room{be: be}, roomOf(list, be.PackedLen)
	if len(list) == 0 {
		return n, nil
	}
	n.x, n.y = r.alloc(be.Float(), l.x), r.alloc(be.Float(), l.x)
	n.g, n.h = r.alloc(be.Float(), l.g), r.alloc(be.Float(), l.g)
	n.packed, n.back = r.alloc(be.Operand(), l.packed), r.alloc(be.Operand(), l.back)
	n.sum, n.offsets = r.alloc(kernels.F64, 1), r.alloc(kernels.I32, l.offsets)
	if r.err != nil {
		n.close()
	}
	return n, r.err
}

func (n *newton) close() { free(n.be, &n.x, &n.y, &n.g, &n.h, &n.packed, &n.back, &n.sum, &n.offsets) }

// orthogonal returns a matrix [rows,cols] near the orthogonal one that is nearest to u, valid until the next call.
func (n *newton) orthogonal(u kernels.Buffer, rows, cols int) kernels.Buffer {
	k, be := min(rows, cols), n.be
	x, y, g, h := n.x.Slice(0, u.Len()), n.y.Slice(0, u.Len()), n.g.Slice(0, int(k*k)), n.h.Slice(0, int(k*k))
	var offsets kernels.Buffer
	if rows > cols {
		n.rows = blocksOf(rows)
		offsets = n.offsets.Slice(0, len(n.rows))
		be.Copy(offsets, kernels.Host(n.rows))
	}
	be.SumSquares(n.sum, u)
	be.Copy(kernels.Host(n.host[:]), n.sum)
	be.Sync()
	be.Copy(x, u)
	scale(be, x, 1/max(math.Sqrt(n.host[0]), newtonEps))
	wide := rows <= cols
	for range newtonSteps {
		if wide {
			be.MatMul(g, x, n.factor(x, rows, cols), kernels.Buffer{})
		} else {
			be.Zero(g)
			be.MatMulDW(g, kernels.Buffer{}, x, x, offsets)
		}
		be.MatMul(h, g, n.factor(g, k, k), kernels.Buffer{}) // G is symmetric
		scale(be, h, newtonC)
		add(be, h, g, newtonB)
		if wide {
			be.MatMulDX(y, h, n.factor(x, rows, cols))
		} else {
			be.MatMul(y, x, n.factor(h, k, k), kernels.Buffer{})
		}
		add(be, y, x, newtonA)
		x, y = y, x
	}
	return x
}

// factor returns x as the second factor of a product.
func (n *newton) factor(x kernels.Buffer, out, in int) kernels.Matrix {
	w := kernels.Matrix{W: x, Out: out, In: in}
	p, b := n.be.PackedLen(out, in)
	if p > 0 {
		w.Packed = n.packed.Slice(0, p)
	}
	if b > 0 {
		w.PackedT = n.back.Slice(0, b)
	}
	n.be.Pack(w)
	return w
}
