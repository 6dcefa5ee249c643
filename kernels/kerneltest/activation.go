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

func checkSwiGLU(s *subject) error {
	const M = 9
	for _, F := range append(sizes(), 300) {
		r := newStream(fmt.Sprint("swiglu", F))
		x, dout := r.activations(M*2*F), r.floats(M*F)
		cases := []rowCase{{
			name: fmt.Sprintf("SwiGLU F=%d", F), op: "SwiGLU",
			rows: []field{{name: "gateUp", width: 2 * F, f: x, operand: true}},
			run:  func(c *call, in []kernels.Buffer, M int) { c.b.SwiGLU(c.outOperands("out", M*F), in[0], F) },
		}, {
			name: fmt.Sprintf("SwiGLUBackward F=%d", F), op: "SwiGLUBackward",
			rows: []field{{name: "gateUp", width: 2 * F, f: x, operand: true}, {name: "dout", width: F, f: dout, operand: true}},
			run: func(c *call, in []kernels.Buffer, M int) {
				c.b.SwiGLUBackward(c.outOperands("dgateUp", 2*M*F), in[1], in[0], F)
			},
		}, {
			name: fmt.Sprintf("SwiGLUBackward F=%d in place", F), op: "SwiGLUBackward",
			rows: []field{{name: "gateUp", width: 2 * F, f: x, inout: true, operand: true}, {name: "dout", width: F, f: dout, operand: true}},
			run:  func(c *call, in []kernels.Buffer, M int) { c.b.SwiGLUBackward(in[0], in[1], in[0], F) },
		}}
		for _, rc := range cases {
			if err := s.checkRows(rc, M); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkDropout(s *subject) error {
	const M = 9
	for _, C := range sizes() {
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
