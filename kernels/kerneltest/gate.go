package kerneltest

import (
	"fmt"

	"exp/kernels"
)

func gateChecks() []check {
	return []check{
		{"Gate", checkGate},
		{"Gate/fused", checkGateFused},
	}
}

func checkGate(s *subject) error {
	const M = 11
	for _, F := range append(sizes(), 300, 1100) {
		r := newStream(fmt.Sprint("gate", F))
		gateUp, dact := r.activations(M*2*F), r.floats(M*F)
		for kind, name := range []string{"silu", "gelu-tanh", "clamped", "relu2", "gelu alone", "gelu-tanh alone"} {
			kind := kernels.GateKind(kind)
			width := kind.Factors() * F
			both := field{name: "gateUp", width: width, f: gateUp[:M*width], operand: true}
			over := both
			over.inout = true
			d := field{name: "dact", width: F, f: dact, operand: true}
			for _, rc := range []rowCase{{
				name: fmt.Sprintf("Gate F=%d %s", F, name), op: "Gate", rows: []field{both},
				run: func(c *call, in []kernels.Buffer, M int) { c.b.Gate(c.outOperands("act", M*F), in[0], F, kind) },
			}, {
				name: fmt.Sprintf("GateBackward F=%d %s", F, name), op: "GateBackward", rows: []field{both, d},
				run: func(c *call, in []kernels.Buffer, M int) {
					c.b.GateBackward(c.outOperands("dgateUp", M*width), in[0], in[1], F, kind)
				},
			}, {
				name: fmt.Sprintf("GateBackward F=%d %s in place", F, name), op: "GateBackward",
				rows: []field{over, d},
				run:  func(c *call, in []kernels.Buffer, M int) { c.b.GateBackward(in[0], in[0], in[1], F, kind) },
			}} {
				if err := s.checkRows(rc, M); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// checkGateFused checks that SiLU by itself gives what it gives as part of the products,
// which are the reference's where their bits are.
func checkGateFused(s *subject) error {
	const M = 17
	if s.b.Float() != kernels.F32 {
		return nil // values kept between two calls are rounded to float32
	}
	products := func(f func(c *call)) ([]result, error) { return run(s.b, f) }
	if s.exact {
		products = s.reference
	}
	for _, g := range swigluShapes(true) {
		F, K := g.F, g.K
		r := newStream(fmt.Sprint("gate fused", g))
		x, up, down, dout := r.floats(M*K), r.floats(2*F*K), r.floats(K*F), r.floats(M*K)
		fused, err := products(func(c *call) {
			w := c.matrix("w", up, 2*F, K)
			c.b.MatMulSwiGLU(c.outOperands("act", M*F), c.outOperands("gateUp", M*2*F), c.operands("x", x), w)
		})
		if err != nil {
			return err
		}
		gateUp := fused[1].f
		apart, err := run(s.b, func(c *call) {
			c.b.Gate(c.outOperands("act", M*F), c.operands("gateUp", gateUp), F, kernels.SiLU)
		})
		if err == nil {
			err = same(apart, fused[:1], exactly)
		}
		if err != nil {
			return fmt.Errorf("Gate K=%d F=%d is not what MatMulSwiGLU does: %w", K, F, err)
		}
		grads, err := products(func(c *call) {
			d, m, w := c.outOperands("dact", M*F), c.operands("dout", dout), c.matrix("w", down, K, F)
			c.b.MatMulDX(d, m, w)
			c.b.MatMulDXSwiGLU(c.outOperands("dgateUp", M*2*F), c.operands("gateUp", gateUp), m, w)
		})
		if err != nil {
			return err
		}
		apart, err = run(s.b, func(c *call) {
			c.b.GateBackward(c.outOperands("dgateUp", M*2*F), c.operands("gateUp", gateUp),
				c.operands("dact", grads[0].f), F, kernels.SiLU)
		})
		if err == nil {
			err = same(apart, grads[1:], exactly)
		}
		if err != nil {
			return fmt.Errorf("GateBackward K=%d F=%d is not what MatMulDXSwiGLU does: %w", K, F, err)
		}
	}
	return nil
}
