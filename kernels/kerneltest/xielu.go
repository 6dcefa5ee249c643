package kerneltest

import (
	"fmt"

	"exp/kernels"
)

func xieluChecks() []check {
	return []check{
		{"XIELU", checkXIELU},
		{"XIELUBackward", checkXIELUBackward},
		{"Clip", checkClip},
	}
}

// xielu are numbers such as a trained model has, and an Eps that some elements are above.
func xielu() kernels.Xielu {
	return kernels.Xielu{Positive: 0.83, Negative: 1.27, Beta: 0.5, Eps: -0.125, DPositive: 0.56, DNegative: 0.31}
}

func checkXIELU(s *subject) error {
	const M = 11
	for _, F := range append(sizes(), 300, 1100) {
		r := newStream(fmt.Sprint("xielu", F))
		x := field{name: "x", width: F, f: r.activations(M * F), operand: true}
		over := x
		over.inout = true
		for _, rc := range []rowCase{
			{rows: []field{x}, run: func(c *call, in []kernels.Buffer, M int) {
				c.b.XIELU(c.outOperands("act", M*F), in[0], F, xielu())
			}},
			{rows: []field{over}, run: func(c *call, in []kernels.Buffer, M int) {
				c.b.XIELU(in[0], in[0], F, xielu())
			}},
		} {
			rc.op, rc.name = "XIELU", fmt.Sprintf("XIELU F=%d", F)
			if err := s.checkRows(rc, M); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkXIELUBackward(s *subject) error {
	const M = 19
	for _, F := range append(sizes(), 300, 1100) {
		r := newStream(fmt.Sprint("xielu backward", F))
		x, dact, dalpha := r.activations(M*F), r.floats(M*F), r.floats(2)
		for _, place := range []string{"", "x", "dact"} {
			if err := s.checkGradient(gradientCase{
				name: fmt.Sprintf("XIELUBackward F=%d in place of %q", F, place), op: "XIELUBackward",
				blocks: r.cuts(M, 9),
				setup: func(c *call) func(lo, hi int, blocks []int32) {
					da := c.inout("dalpha", dalpha)
					var dx, in, d kernels.Buffer
					switch place {
					case "x":
						dx, d = c.inoutOperands("dx", x), c.operands("dact", dact)
						in = dx
					case "dact":
						in, dx = c.operands("x", x), c.inoutOperands("dx", dact)
						d = dx
					default:
						dx, in, d = c.outOperands("dx", M*F), c.operands("x", x), c.operands("dact", dact)
					}
					return func(lo, hi int, blocks []int32) {
						rows := func(b kernels.Buffer) kernels.Buffer { return b.Slice(lo*F, hi*F) }
						c.b.XIELUBackward(rows(dx), da, rows(in), rows(d), c.ints("blocks", blocks), F, xielu())
					}
				},
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

// clipLimit is near the largest elements of the suite, and BF16 has it.
const clipLimit = 1.25

func checkClip(s *subject) error {
	const M = 11
	for _, n := range append(sizes(), 300, 1100) {
		r := newStream(fmt.Sprint("clip", n))
		x := field{name: "x", width: n, f: r.activations(M * n), operand: true}
		for i := range x.f {
			if i%7 == 0 {
				x.f[i] = clipLimit // neither above nor below
			}
		}
		d := field{name: "dout", width: n, f: r.floats(M * n), operand: true}
		over, dover := x, d
		over.inout, dover.inout = true, true
		for _, rc := range []rowCase{
			{op: "Clip", rows: []field{x}, run: func(c *call, in []kernels.Buffer, M int) {
				c.b.Clip(c.outOperands("out", M*n), in[0], clipLimit)
			}},
			{op: "Clip", rows: []field{over}, run: func(c *call, in []kernels.Buffer, M int) {
				c.b.Clip(in[0], in[0], clipLimit)
			}},
			{op: "ClipBackward", rows: []field{x, d}, run: func(c *call, in []kernels.Buffer, M int) {
				c.b.ClipBackward(c.outOperands("dx", M*n), in[1], in[0], clipLimit)
			}},
			{op: "ClipBackward", rows: []field{x, dover}, run: func(c *call, in []kernels.Buffer, M int) {
				c.b.ClipBackward(in[1], in[1], in[0], clipLimit)
			}},
		} {
			rc.name = fmt.Sprintf("%s n=%d", rc.op, n)
			if err := s.checkRows(rc, M); err != nil {
				return err
			}
		}
	}
	return nil
}

// xieluBenchmarks measure the activation and cut values on rows of training.
func xieluBenchmarks() []benchmark {
	const M, F = 2048, 1024
	r, dims := benchStream("bench xielu"), dimsOf("M", M, "F", F)
	return []benchmark{
		{"XIELU", dims, 0, 8 * M * F, func(c *call) func() {
			act, x := c.outOperands("act", M*F), c.operands("x", r.floats(M*F))
			return func() { c.b.XIELU(act, x, F, xielu()) }
		}},
		{"XIELUBackward", dims, 0, 12 * M * F, func(c *call) func() {
			dx, da, x := c.outOperands("dx", M*F), c.out("dalpha", 2), c.operands("x", r.floats(M*F))
			blocks := c.ints("blocks", even(M, 64))
			return func() { c.b.XIELUBackward(dx, da, x, x, blocks, F, xielu()) }
		}},
		{"Clip", dims, 0, 8 * M * F, func(c *call) func() {
			out, x := c.outOperands("out", M*F), c.operands("x", r.floats(M*F))
			return func() { c.b.Clip(out, x, clipLimit) }
		}},
		{"ClipBackward", dims, 0, 12 * M * F, func(c *call) func() {
			dx, x := c.outOperands("dx", M*F), c.operands("x", r.floats(M*F))
			return func() { c.b.ClipBackward(dx, x, x, clipLimit) }
		}},
	}
}
