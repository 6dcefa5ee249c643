package kerneltest

import (
	"fmt"

	"exp/kernels"
)

// tails are arguments far from 0, where exp and erf reach their limits.
var tails = [...]float32{-104, -88, -87.4, -87.2, -40, -9, -6, -3.5, -3, 3, 3.5, 6, 9, 17, 40, 87.2, 88, 88.8, 104}

// activations returns n arguments with tails among them.
func (r *stream) activations(n int) []float32 {
	x := r.scaled(n, 2)
	for i := range x {
		if r.intn(8) == 0 {
			x[i] = tails[r.intn(len(tails))]
		}
	}
	return x
}

func checkGELU(s *subject) error {
	for _, M := range append(sizes(), 1000) {
		r := newStream(fmt.Sprint("gelu", M))
		x, dout := r.activations(M), r.floats(M)
		cases := []rowCase{{
			name: "GELU", op: "GELU",
			rows: []field{{name: "x", width: 1, f: x}},
			run:  func(c *call, in []kernels.Buffer, M int) { c.b.GELU(c.out("out", M), in[0]) },
		}, {
			name: "GELUBackward", op: "GELUBackward",
			rows: []field{{name: "x", width: 1, f: x}, {name: "dout", width: 1, f: dout}},
			run:  func(c *call, in []kernels.Buffer, M int) { c.b.GELUBackward(c.out("dx", M), in[1], in[0]) },
		}, {
			name: "GELUBackward in place", op: "GELUBackward",
			rows: []field{{name: "x", width: 1, f: x}, {name: "dout", width: 1, f: dout, inout: true}},
			run:  func(c *call, in []kernels.Buffer, M int) { c.b.GELUBackward(in[1], in[1], in[0]) },
		}}
		for _, rc := range cases {
			if err := s.checkRows(rc, M); err != nil {
				return err
			}
		}
	}
	return nil
}

// swigluShapes are widths of x, or of dout, and numbers of gates.
func swigluShapes(short bool) []struct{ K, F int } {
	list := []struct{ K, F int }{{1, 1}, {1, 16}, {3, 33}, {16, 32}, {33, 64}, {40, 15}, {300, 7}, {64, 96}, {7, 300}}
	if !short {
		list = append(list, []struct{ K, F int }{{260, 64}, {513, 32}, {1030, 33}, {32, 1024}}...)
	}
	return list
}

func checkMatMulSwiGLU(s *subject) error {
	const M = 37
	for _, g := range swigluShapes(s.short) {
		F, K := g.F, g.K
		r := newStream(fmt.Sprint("matmul swiglu", g))
		x, w := r.floats(M*K), r.floats(2*F*K)
		if K == 1 { // gates and ups have x's rows, all tails among them
			x = r.activations(M)
			copy(x, tails[:])
			for i := range w {
				w[i] = 1 - 2*float32(i%2)
			}
		}
		for _, kept := range []bool{true, false} {
			if err := s.checkRows(rowCase{
				name: fmt.Sprintf("MatMulSwiGLU K=%d F=%d kept %v", K, F, kept), op: "MatMulSwiGLU",
				rows: []field{{name: "x", width: K, f: x, operand: true}},
				run: func(c *call, in []kernels.Buffer, M int) {
					var gateUp kernels.Buffer
					act := c.outOperands("act", M*F)
					if kept {
						gateUp = c.outOperands("gateUp", M*2*F)
					}
					c.b.MatMulSwiGLU(act, gateUp, in[0], c.matrix("w", w, 2*F, K))
				},
			}, M); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkMatMulDXSwiGLU(s *subject) error {
	const M = 37
	for i, g := range swigluShapes(s.short) {
		F, K := g.F, g.K
		r := newStream(fmt.Sprint("matmul dx swiglu", g))
		dout, w, x := r.floats(M*K), r.floats(K*F), r.activations(M*2*F)
		for _, inPlace := range []bool{false, true} {
			if err := s.checkRows(rowCase{
				name: fmt.Sprintf("MatMulDXSwiGLU K=%d F=%d in place %v", K, F, inPlace), op: "MatMulDXSwiGLU",
				rows: []field{
					{name: "gateUp", width: 2 * F, f: x, operand: true, inout: inPlace},
					{name: "dout", width: K, f: dout, operand: i%2 == 0},
				},
				run: func(c *call, in []kernels.Buffer, M int) {
					out := in[0]
					if !inPlace {
						out = c.outOperands("dgateUp", M*2*F)
					}
					c.b.MatMulDXSwiGLU(out, in[0], in[1], c.matrix("w", w, K, F))
				},
			}, M); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkDropout(s *subject) error {
	const M = 9
	for _, C := range append(sizes(), 64, 65, 300) {
		for _, p := range []float64{0, 0.1, 0.5} {
			r := newStream(fmt.Sprint("dropout", C))
			x, keys := r.floats(M*C), r.ids(2*M, 1<<31-1)
			keys[0] = -1 // a key is a bit pattern
			for _, inPlace := range []bool{false, true} {
				err := s.checkRows(rowCase{
					name: fmt.Sprintf("Dropout C=%d p=%v in place %v", C, p, inPlace), op: "Dropout",
					rows: []field{{name: "x", width: C, f: x, inout: inPlace}, {name: "keys", width: 2, i: keys}},
					run: func(c *call, in []kernels.Buffer, M int) {
						out := in[0]
						if !inPlace {
							out = c.out("out", M*C)
						}
						c.b.Dropout(out, in[0], in[1], C, 3, p)
					},
				}, M)
				if err != nil {
					return err
				}
			}
		}
	}
	return nil
}
