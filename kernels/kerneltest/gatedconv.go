package kerneltest

import (
	"fmt"

	"exp/kernels"
)

// convShapes have channels around the lanes and more than a strip, and taps around those of published models.
func convShapes(short bool) []kernels.DeltaShape {
	list := []kernels.DeltaShape{
		{Values: 1, ValueDim: 1, Taps: 1, Conv: true},
		{Values: 1, ValueDim: 5, Taps: 3, Conv: true},
		{Values: 1, ValueDim: 16, Taps: 4, Conv: true},
		{Values: 3, ValueDim: 9, Taps: 2, Conv: true},
		{Values: 1, ValueDim: 150, Taps: 3, Conv: true},
	}
	if !short {
		list = append(list, kernels.DeltaShape{Values: 1, ValueDim: 301, Taps: 6, Conv: true})
	}
	return list
}

func checkGatedConv(s *subject) error {
	for _, p := range batchesOf(convShapes(s.short), s.short) {
		r := newStream("gated conv" + p.String())
		w, x := r.floats(p.Mixed()*p.Taps), r.floats(p.rows()*p.Stride())
		err := s.checkSequences("GatedConv", p, p.Stride(), x, func(c *call, p deltaBatch, x []float32) {
			c.b.GatedConv(c.outOperands("u", p.rows()*p.Mixed()), c.operands("x", x), c.floats("weight", w),
				kernels.Buffer{}, p.runs(c), p.DeltaShape)
		})
		if err != nil {
			return fmt.Errorf("%v: %w", p, err)
		}
	}
	return nil
}

func checkGatedConvSteps(s *subject) error {
	for _, d := range convShapes(s.short) {
		r := newStream(fmt.Sprint("gated conv steps", named(d)))
		w, tails, x := r.floats(d.Mixed()*d.Taps), r.floats(5*d.Tail()), r.floats(stepRows*d.Stride())
		err := s.checkSteps("GatedConv", d.Stride(), x,
			func(c *call) kernels.Buffer { return c.inout("tails", tails) },
			func(c *call, x []float32, memory kernels.Buffer, runs kernels.Runs) {
				u := c.outOperands("u", len(x)/d.Stride()*d.Mixed())
				c.b.GatedConv(u, c.operands("x", x), c.floats("weight", w), memory, runs, d)
			})
		if err != nil {
			return fmt.Errorf("%+v: %w", d, err)
		}
	}
	return nil
}

func checkGatedConvBackward(s *subject) error {
	for _, p := range batchesOf(convShapes(s.short), s.short) {
		M, r := p.rows(), newStream("gated conv backward"+p.String())
		w, x, du := r.floats(p.Mixed()*p.Taps), r.floats(M*p.Stride()), r.floats(M*p.Mixed())
		dw, blocks := r.floats(len(w)), p.blocks(r)
		if err := s.compare("GatedConvBackward", func(c *call) {
			c.b.GatedConvBackward(c.outOperands("dx", len(x)), c.inout("dweight", dw), c.operands("du", du),
				c.operands("x", x), c.floats("weight", w), c.ints("blocks", blocks), p.runs(c), p.DeltaShape)
		}); err != nil {
			return fmt.Errorf("%v: %w", p, err)
		}
	}
	return nil
}
