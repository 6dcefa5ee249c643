package kerneltest

import (
	"fmt"

	"exp/kernels"
)

func normChecks() []check {
	return []check{
		{"RMSNorm", checkRMSNorm},
		{"AddRMSNorm", checkAddRMSNorm},
		{"RMSNormBackward", checkRMSNormBackward},
		{"LayerNorm", checkLayerNorm},
		{"LayerNormBackward", checkLayerNormBackward},
		{"GELU", checkGELU},
		{"Dropout", checkDropout},
	}
}

// eps is the constant under the root; 1e-6 is not a float32.
const eps = 1e-6

// normShapes are the plain norm of every size, and norms of the heads of rows
// that hold more than them.
func normShapes() []kernels.NormShape {
	var list []kernels.NormShape
	for _, C := range append(sizes(), 128, 300) {
		list = append(list, kernels.NormShape{Heads: 1, Dim: C, Stride: C})
	}
	for _, C := range []int{1, 15, 16, 33, 64, 128, 300} {
		list = append(list, kernels.NormShape{Heads: 1, Dim: C, Stride: C, UnitOffset: true})
	}
	return append(list,
		kernels.NormShape{Heads: 2, Dim: 16, Stride: 128, Offset: 64, UnitOffset: true},
		kernels.NormShape{Heads: 3, Dim: 5, Stride: 25, Offset: 7, UnitOffset: true},
		kernels.NormShape{Heads: 4, Dim: 16, Stride: 128},             // queries, 4 heads of 8 in all
		kernels.NormShape{Heads: 2, Dim: 16, Stride: 128, Offset: 64}, // keys
		kernels.NormShape{Heads: 2, Dim: 64, Stride: 192, Offset: 64}, // heads of several whole vectors
		kernels.NormShape{Heads: 3, Dim: 5, Stride: 25, Offset: 7},
		kernels.NormShape{Heads: 1, Dim: 33, Stride: 40, Offset: 6},
	)
}

func checkRMSNorm(s *subject) error {
	const M = 9
	for _, n := range normShapes() {
		r := newStream(fmt.Sprint("rmsnorm", n))
		heads := n.Dim < n.Stride // of operands; a plain norm makes operands of floats
		x, w, old := r.floats(M*n.Stride), r.floats(n.Dim), r.floats(M*n.Stride)
		apart := rowCase{
			name: fmt.Sprintf("RMSNorm %+v", n), op: "RMSNorm",
			rows: []field{{name: "x", width: n.Stride, f: x, operand: heads}, {name: "out", width: n.Stride, f: old,
				inout: true, operand: true}},
			run: func(c *call, in []kernels.Buffer, M int) {
				c.b.RMSNorm(in[1], c.out("rstd", M*n.Heads), in[0], c.floats("weight", w), n, eps)
			},
		}
		inPlace := rowCase{
			name: fmt.Sprintf("RMSNorm %+v in place", n), op: "RMSNorm",
			rows: []field{{name: "x", width: n.Stride, f: x, inout: true, operand: heads}},
			run: func(c *call, in []kernels.Buffer, M int) {
				c.b.RMSNorm(in[0], c.out("rstd", M*n.Heads), in[0], c.floats("weight", w), n, eps)
			},
		}
		cases := []rowCase{apart, inPlace}
		if !heads && s.b.Operand() != s.b.Float() {
			wide := apart
			wide.name += " to floats"
			wide.rows = []field{apart.rows[0], {name: "out", width: n.Stride, f: old, inout: true}}
			cases = append(cases, wide)
		}
		for _, rc := range cases {
			if err := s.checkRows(rc, M); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkAddRMSNorm(s *subject) error {
	const M = 9
	for _, C := range append(sizes(), 128, 300) {
		r := newStream(fmt.Sprint("addrmsnorm", C))
		w, x, delta := r.floats(C), r.floats(M*C), r.floats(M*C)
		// over is the argument that the sum is written to: 0 x, 1 delta, 2 neither.
		for i, name := range []string{"over x", "over delta", "apart", "over x, one more", "over delta, one more",
			"apart, one more"} {
			over, n := i%3, kernels.NormShape{Heads: 1, Dim: C, Stride: C, UnitOffset: i >= 3}
			err := s.checkRows(rowCase{
				name: fmt.Sprintf("AddRMSNorm C=%d %s", C, name), op: "AddRMSNorm",
				rows: []field{{name: "x", width: C, f: x, inout: over == 0}, {name: "delta", width: C, f: delta,
					inout: over == 1}},
				run: func(c *call, in []kernels.Buffer, M int) {
					sum := append(in, kernels.Buffer{})[over]
					if over == 2 {
						sum = c.out("sum", M*C)
					}
					c.b.AddRMSNorm(sum, c.outOperands("out", M*C), c.out("rstd", M), in[0], in[1],
						c.floats("weight", w), n, eps)
				},
			}, M)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// rmsMode is how RMSNormBackward writes dx.
type rmsMode uint8

const (
	rmsAdd rmsMode = iota
	rmsSet
	rmsSetInPlace // dx is dout
)

func checkRMSNormBackward(s *subject) error {
	for _, n := range normShapes() {
		for mode, name := range []string{"add", "set", "set in place"} {
			if err := s.checkRMSNormBackward(n, rmsMode(mode), name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *subject) checkRMSNormBackward(n kernels.NormShape, mode rmsMode, name string) error {
	const M = 23
	r := newStream(fmt.Sprint("rmsnorm backward", n))
	dout, x, dx0, w := r.floats(M*n.Stride), r.floats(M*n.Stride), r.floats(M*n.Stride), r.floats(n.Dim)
	dw0, rstd := r.floats(n.Dim), r.positive(M*n.Heads)
	name = fmt.Sprintf("RMSNormBackward %+v %s", n, name)
	heads := n.Dim < n.Stride // of operands

	rows := []field{{name: "dout", width: n.Stride, f: dout, inout: mode == rmsSetInPlace, operand: heads},
		{name: "x", width: n.Stride, f: x, operand: heads}, {name: "rstd", width: n.Heads, f: rstd}}
	if mode != rmsSetInPlace {
		rows = append(rows, field{name: "dx", width: n.Stride, f: dx0, inout: true, operand: heads})
	}
	err := s.checkRows(rowCase{name: name, op: "RMSNormBackward", rows: rows,
		run: func(c *call, in []kernels.Buffer, M int) {
			dx := in[0]
			if mode != rmsSetInPlace {
				dx = in[3]
			}
			c.b.RMSNormBackward(dx, c.spare("dweight", dw0), in[0], in[1], c.floats("weight", w), in[2],
				c.ints("blocks", []int32{0, int32(M)}), n, mode != rmsAdd)
		},
	}, M)
	if err != nil {
		return err
	}
	return s.checkGradient(gradientCase{name: name, op: "RMSNormBackward", blocks: r.cuts(M, 9),
		setup: func(c *call) func(lo, hi int, blocks []int32) {
			in, inout := c.floats, c.inout
			if heads {
				in, inout = c.operands, c.inoutOperands
			}
			wb, xb, rb, dw := c.floats("weight", w), in("x", x), c.floats("rstd", rstd), c.inout("dweight", dw0)
			var dx, d kernels.Buffer
			if mode == rmsSetInPlace {
				d = inout("dx", dout)
				dx = d
			} else {
				d, dx = in("dout", dout), inout("dx", dx0)
			}
			return func(lo, hi int, blocks []int32) {
				view := func(b kernels.Buffer, width int) kernels.Buffer { return b.Slice(lo*width, hi*width) }
				c.b.RMSNormBackward(view(dx, n.Stride), dw, view(d, n.Stride), view(xb, n.Stride), wb,
					view(rb, n.Heads),
					c.ints("blocks", blocks), n, mode != rmsAdd)
			}
		},
	})
}

func checkLayerNorm(s *subject) error {
	const M = 9
	for _, C := range append(sizes(), 128, 300) {
		r := newStream(fmt.Sprint("layernorm", C))
		w, b := r.floats(C), r.floats(C)
		err := s.checkRows(rowCase{
			name: fmt.Sprintf("LayerNorm C=%d", C), op: "LayerNorm",
			rows: []field{{name: "x", width: C, f: r.floats(M * C)}},
			run: func(c *call, in []kernels.Buffer, M int) {
				c.b.LayerNorm(c.out("out", M*C), c.out("stats", 2*M), in[0], c.floats("weight", w),
					c.floats("bias", b), C, 1e-2)
			},
		}, M)
		if err != nil {
			return err
		}
	}
	return nil
}

func checkLayerNormBackward(s *subject) error {
	const M = 23
	for _, C := range append(sizes(), 128, 300) {
		r := newStream(fmt.Sprint("layernorm backward", C))
		w, dw0, db0 := r.floats(C), r.floats(C), r.floats(C)
		dout, x, stats := r.floats(M*C), r.floats(M*C), r.positive(2*M)
		name := fmt.Sprintf("LayerNormBackward C=%d", C)
		err := s.checkRows(rowCase{
			name: name, op: "LayerNormBackward",
			rows: []field{{name: "dout", width: C, f: dout}, {name: "x", width: C, f: x},
				{name: "stats", width: 2, f: stats}},
			run: func(c *call, in []kernels.Buffer, M int) {
				c.b.LayerNormBackward(c.out("dx", M*C), c.spare("dweight", dw0), c.spare("dbias", db0), in[0], in[1],
					c.floats("weight", w), in[2], c.ints("blocks", []int32{0, int32(M)}), C)
			},
		}, M)
		if err != nil {
			return err
		}
		err = s.checkGradient(gradientCase{
			name: name, op: "LayerNormBackward", blocks: r.cuts(M, 9),
			setup: func(c *call) func(lo, hi int, blocks []int32) {
				dx, dw, db, wb := c.out("dx", M*C), c.inout("dweight", dw0), c.inout("dbias", db0),
					c.floats("weight", w)
				d, xb, st := c.floats("dout", dout), c.floats("x", x), c.floats("stats", stats)
				return func(lo, hi int, blocks []int32) {
					c.b.LayerNormBackward(dx.Slice(lo*C, hi*C), dw, db, d.Slice(lo*C, hi*C), xb.Slice(lo*C, hi*C), wb,
						st.Slice(2*lo, 2*hi), c.ints("blocks", blocks), C)
				}
			},
		})
		if err != nil {
			return err
		}
	}
	return nil
}
