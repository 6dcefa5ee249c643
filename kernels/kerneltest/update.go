package kerneltest

import (
	"fmt"

	"exp/kernels"
)

func updateChecks() []check {
	return []check{
		{"AdamW", checkAdamW},
		{"SumSquares", checkSumSquares},
	}
}

func checkAdamW(s *subject) error {
	settings := []kernels.AdamW{
		{LR: 1e-3, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, WeightDecay: 0.01, GradScale: 1, Step: 1},
		{LR: 3e-2, Beta1: 0.95, Beta2: 0.99, Eps: 1e-6, WeightDecay: 0, GradScale: 0.37, Step: 1000},
		{LR: 0, Beta1: 0, Beta2: 0, Eps: 1, WeightDecay: 0.1, GradScale: 0, Step: 3},
	}
	for _, n := range append(sizes(), 5000) {
		r := newStream(fmt.Sprint("adamw", n))
		p, m, g, v := r.floats(n), r.floats(n), r.floats(n), r.positive(n)
		v[0] = 0
		for _, a := range settings {
			err := s.checkRows(rowCase{
				name: fmt.Sprintf("AdamW %+v", a), op: "AdamW",
				rows: []field{{name: "p", width: 1, f: p, inout: true}, {name: "m", width: 1, f: m, inout: true},
					{name: "v", width: 1, f: v, inout: true}, {name: "g", width: 1, f: g}},
				run: func(c *call, in []kernels.Buffer, _ int) { c.b.AdamW(in[0], in[1], in[2], in[3], a) },
			}, n)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func checkSumSquares(s *subject) error {
	const b = kernels.SumBlock
	for _, n := range append(sizes(), 0, b-1, b, b+1, 2*b+17, 50000) {
		x := newStream(fmt.Sprint("sumsquares", n)).floats(n)
		err := s.compare("SumSquares", func(c *call) {
			c.b.SumSquares(c.outDoubles("out", 1), c.floats("x", x))
		})
		if err != nil {
			return fmt.Errorf("%d elements: %w", n, err)
		}
	}
	return nil
}
