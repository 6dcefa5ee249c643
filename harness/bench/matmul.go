package bench

import (
	"errors"
	"slices"

	"exp/kernels"
	"exp/train/model"
)

// decodeRows returns the numbers of rows in decode steps: a few sequences, and the
// sampler's default.
func decodeRows() []int { return []int{8, 64} }

// batchRows returns the numbers of rows in training: one sequence, half the batch and
// the whole.
func batchRows(o Options) []int {
	list := []int{o.Length, max(1, o.Batch/2) * o.Length, o.Batch * o.Length}
	return slices.Compact(list)
}

const (
	// Weights take turns as in a model's pass, so that none is still in cache from the
	// last call: as many copies as fill the model, but at most this many bytes, more
	// than any second-level cache holds.
	turnBytes = 64 << 20
	// The largest output in elements: 512 MiB of float32. The engine itself never
	// stores logits of that many rows.
	mostOutput = 1 << 27
)

// matmuls measures all linear layers of c.
func (s *suite) matmuls(name string, c model.Config) ([]MatMul, error) {
	list := linears(c)
	s.w.PartStart(PartMatMul, name, len(list)*s.o.Repeat)
	var all []MatMul
	for i, l := range list {
		b := &buffers{be: s.be}
		cases := s.cases(b, l, min(turnBytes, linearWeights(c)*s.be.Operand().Size()))
		err := errors.Join(b.err, s.ctx.Err())
		if err == nil {
			err = s.measure(cases, i*s.o.Repeat)
		}
		b.close()
		if err != nil {
			return nil, err
		}
		for _, x := range cases {
			all = append(all, x.result())
		}
	}
	var best float64
	for _, m := range all {
		best = max(best, m.GFLOPS.Median)
	}
	s.w.PartDone(best, "GFLOP/s")
	return all, nil
}

// measure measures every case once per repeat, with a peak before each repeat, so that
// a disturbance of a second hits one repeat of many cases instead of all repeats of
// one.
func (s *suite) measure(cases []*matmulCase, done int) error {
	s.read()
	for _, x := range cases {
		x.call()
	}
	for r := range s.o.Repeat {
		s.peak()
		for _, x := range cases {
			if err := s.ctx.Err(); err != nil {
				return err
			}
			rate, err := repeat(s.o.Time, func() error {
				x.call()
				s.be.Sync()
				return nil
			})
			if err != nil {
				return err
			}
			x.rates = append(x.rates, rate)
		}
		s.w.PartRepeat(done + r + 1)
	}
	return nil
}

// matmulCase is one operation on one shape.
type matmulCase struct {
	MatMul
	call  func()
	rates []float64 // calls per second
}

func (x *matmulCase) result() MatMul {
	r := spreadOf(x.rates)
	x.GFLOPS, x.Bytes = r.times(x.flops/1e9), r.times(x.bytes/1e9)
	return x.MatMul
}

// cases prepares the measurements of l: forward and backward for the batch's rows,
// forward for a decode step's rows.
func (s *suite) cases(b *buffers, l linear, weightBytes int) []*matmulCase {
	var cases []*matmulCase
	batch := slices.DeleteFunc(batchRows(s.o), func(m int) bool { return m > 1 && m*l.out > mostOutput })
	rows := max(slices.Max(append(batch, 1)), slices.Max(decodeRows()))
	var r stream
	x, out := b.operands(r.floats(rows*l.in, 1)), b.operands(r.floats(rows*l.out, 1))
	dx, dw, bias := b.operands(make([]float32, rows*l.in)), b.floats(make([]float32, l.out*l.in)),
		b.floats(make([]float32, l.out))
	weights := b.weights(l, max(1, weightBytes/(l.out*l.in*s.be.Operand().Size())))
	if b.err != nil {
		return nil
	}
	turn := 0
	next := func() kernels.Matrix {
		turn = (turn + 1) % len(weights)
		return weights[turn]
	}
	none := kernels.Buffer{}
	add := func(op string, m int, decode bool, call func()) {
		size := float64(s.be.Operand().Size())
		cases = append(cases, &matmulCase{call: call, MatMul: MatMul{Layer: l.layer, Op: op, M: m, N: l.out, K: l.in,
			Decode: decode,
			flops:  2 * float64(m) * float64(l.out) * float64(l.in),
			bytes:  size * float64(m*l.in+l.out*l.in+m*l.out)}})
	}
	for _, m := range batch {
		xm, outm, dxm := x.Slice(0, m*l.in), out.Slice(0, m*l.out), dx.Slice(0, m*l.in)
		blocks := b.ints(blockOffsets(m, s.o.Length))
		add("forward", m, false, func() { s.be.MatMul(outm, xm, next(), bias) })
		add("dx", m, false, func() { s.be.MatMulDX(dxm, outm, next()) })
		add("dw", m, false, func() { s.be.MatMulDW(dw, none, outm, xm, blocks) })
	}
	for _, m := range decodeRows() {
		xm, outm := x.Slice(0, m*l.in), out.Slice(0, m*l.out)
		add("forward", m, true, func() { s.be.MatMul(outm, xm, next(), bias) })
	}
	return cases
}

// blockOffsets returns the gradient blocks of m rows in sequences of length rows.
func blockOffsets(m, length int) []int32 {
	at := []int32{0}
	for s := 0; s < m; s += length {
		end := min(s+length, m)
		for i := s; i < end; {
			i = min(i+kernels.BlockRows, end)
			at = append(at, int32(i))
		}
	}
	return at
}
