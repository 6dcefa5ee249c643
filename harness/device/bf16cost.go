package device

import (
	"slices"
	"time"

	"exp/kernels"
	"exp/kernels/cpu"
)

// BF16Cost measures how many times as long a product takes with bf16 operands as with
// float32 ones, on one thread at a level of the CPU kernels. It returns the median over
// turns, after some 20 ms; 0 if the level has instructions for bf16. The error is an *Error.
func BF16Cost(level string) (float64, error) {
	l, err := cpu.ParseLevel(level)
	if err != nil {
		return 0, &Error{Err: err, code: codeUsage}
	}
	if l >= cpu.AVX512BF16 {
		return 0, nil
	}
	return costOf(cpu.Options{Level: &l, Operand: kernels.BF16})
}

// MatrixCost is BF16Cost for the emulation of tensor cores, which no level has instructions for.
func MatrixCost(level string) (float64, error) {
	l, err := cpu.ParseLevel(level)
	if err != nil {
		return 0, &Error{Err: err, code: codeUsage}
	}
	return costOf(cpu.Options{Level: &l, Operand: kernels.BF16, Matrix: true})
}

// costOf compares a product with o's on the same level in float32.
func costOf(o cpu.Options) (float64, error) {
	plain, err := newProduct(cpu.Options{Level: o.Level, Operand: kernels.F32})
	if err != nil {
		return 0, &Error{Err: err, code: codeResource}
	}
	defer plain.be.Close()
	rounded, err := newProduct(o)
	if err != nil {
		return 0, &Error{Err: err, code: codeResource}
	}
	defer rounded.be.Close()
	const turns = 5
	ratios := make([]float64, turns)
	for i := range ratios {
		f32 := plain.time()
		ratios[i] = float64(rounded.time()) / float64(max(f32, 1))
	}
	slices.Sort(ratios)
	return ratios[turns/2], nil
}

// product is a product of the size that a small model has: 64 rows through a 512 × 512 matrix.
type product struct {
	be     *cpu.Backend
	out, x kernels.Buffer
	w      kernels.Matrix
}

func newProduct(o cpu.Options) (*product, error) {
	const rows, width = 64, 512
	o.Threads = 1
	be, err := cpu.Open(o)
	if err != nil {
		return nil, err
	}
	p := &product{be: be, w: kernels.Matrix{Out: width, In: width}}
	packed, packedT := be.PackedLen(width, width)
	for _, b := range []struct {
		buffer *kernels.Buffer
		t      kernels.DType
		n      int
	}{{&p.out, kernels.F32, rows * width}, {&p.x, o.Operand, rows * width}, {&p.w.W, kernels.F32, width * width},
		{&p.w.Packed, o.Operand, packed}, {&p.w.PackedT, o.Operand, packedT}} {
		if *b.buffer, err = be.Alloc(b.t, b.n); err != nil {
			be.Close()
			return nil, err
		}
	}
	be.Pack(p.w)
	p.time() // touches the memory
	return p, nil
}

func (p *product) time() time.Duration {
	start := time.Now()
	p.be.MatMul(p.out, p.x, p.w, kernels.Buffer{})
	p.be.Sync()
	return time.Since(start)
}
