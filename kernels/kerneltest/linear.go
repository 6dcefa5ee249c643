package kerneltest

import (
	"fmt"

	"exp/kernels"
)

func linearChecks() []check {
	return []check{
		{"MatMul/shapes", checkMatMulShapes},
		{"MatMul/rows", checkMatMulRows},
		{"MatMul/tiny", checkMatMulTiny},
		{"MatMulDX/shapes", checkMatMulDXShapes},
		{"MatMulDX/rows", checkMatMulDXRows},
		{"MatMulSwiGLU", checkMatMulSwiGLU},
		{"MatMulDXSwiGLU", checkMatMulDXSwiGLU},
		{"MatMulDW/shapes", checkMatMulDWShapes},
		{"MatMulDW/blocks", checkMatMulDWBlocks},
		{"Embed", checkEmbed},
		{"EmbedBackward", checkEmbedBackward},
	}
}

func checkMatMulShapes(s *subject) error {
	for i, g := range gemmShapes(s.short) {
		r := newStream(fmt.Sprint("matmul", g))
		x, w, bias := r.floats(g.M*g.K), r.floats(g.N*g.K), r.floats(g.N)
		err := s.compare("MatMul", func(c *call) {
			out, in := c.outOperands, c.operands
			if i%3 == 0 { // the products take either type
				in = c.floats
			}
			if i%4 < 2 {
				out = c.out
			}
			var b kernels.Buffer
			if i%2 == 0 {
				b = c.floats("bias", bias)
			}
			c.b.MatMul(out("out", g.M*g.N), in("x", x), c.matrix("w", w, g.N, g.K), b)
		})
		if err != nil {
			return fmt.Errorf("%+v, bias %v: %w", g, i%2 == 0, err)
		}
	}
	return nil
}

// matMulRows is the linear map of M rows as a row case.
func matMulRows(M, N, K int) rowCase {
	r := newStream(fmt.Sprint("matmul rows", N, K))
	w, bias := r.floats(N*K), r.floats(N)
	return rowCase{
		name: fmt.Sprintf("MatMul N=%d K=%d", N, K), op: "MatMul",
		rows: []field{{name: "x", width: K, f: r.floats(M * K), operand: true}},
		run: func(c *call, in []kernels.Buffer, M int) {
			c.b.MatMul(c.outOperands("out", M*N), in[0], c.matrix("w", w, N, K), c.floats("bias", bias))
		},
	}
}

func checkMatMulRows(s *subject) error {
	for _, g := range []gemmShape{{100, 33, 64}, {100, 7, 300}, {100, 65, 15}, {37, 14, 16}, {7, 32, 33}, {2, 5, 1}} {
		if err := s.checkRows(matMulRows(g.M, g.N, g.K), g.M); err != nil {
			return err
		}
	}
	return nil
}

// checkMatMulTiny has products and sums around the least normal number, which classes with BF16
// operands replace by zero below it.
func checkMatMulTiny(s *subject) error {
	for _, g := range []gemmShape{{3, 5, 70}, {33, 34, 35}} {
		if err := s.compareTiny(g, 0x1p-64); err != nil {
			return err
		}
		if err := s.compareTiny(g, 0x1p-75); err != nil { // sums of no number but a sign
			return err
		}
	}
	return nil
}

// compareTiny multiplies factors of a scale.
func (s *subject) compareTiny(g gemmShape, scale float32) error {
	r := newStream(fmt.Sprint("matmul tiny", g))
	x, w, dout := r.scaled(g.M*g.K, scale), r.scaled(g.N*g.K, scale), r.scaled(g.M*g.N, scale)
	err := s.compare("MatMul", func(c *call) {
		m := c.matrix("w", w, g.N, g.K)
		c.b.MatMul(c.out("out", g.M*g.N), c.operands("x", x), m, kernels.Buffer{})
		c.b.MatMulDX(c.out("dx", g.M*g.K), c.operands("dout", dout), m)
		c.b.MatMulDW(c.inout("dw", make([]float32, g.N*g.K)), kernels.Buffer{}, c.operands("dout", dout),
			c.operands("x", x), c.ints("blocks", []int32{0, int32(g.M)}))
	})
	if err != nil {
		return fmt.Errorf("%+v: %w", g, err)
	}
	return nil
}

func checkMatMulDXShapes(s *subject) error {
	for i, g := range gemmShapes(s.short) {
		r := newStream(fmt.Sprint("matmul dx", g))
		dout, w := r.floats(g.M*g.N), r.floats(g.N*g.K)
		err := s.compare("MatMulDX", func(c *call) {
			out, in := c.outOperands, c.operands
			if i%3 == 0 {
				in = c.floats
			}
			if i%4 < 2 {
				out = c.out
			}
			c.b.MatMulDX(out("dx", g.M*g.K), in("dout", dout), c.matrix("w", w, g.N, g.K))
		})
		if err != nil {
			return fmt.Errorf("%+v: %w", g, err)
		}
	}
	return nil
}

func checkMatMulDXRows(s *subject) error {
	for _, g := range []gemmShape{{100, 33, 64}, {37, 300, 7}, {7, 16, 33}} {
		r := newStream(fmt.Sprint("matmul dx rows", g))
		w := r.floats(g.N * g.K)
		err := s.checkRows(rowCase{
			name: fmt.Sprintf("MatMulDX N=%d K=%d", g.N, g.K), op: "MatMulDX",
			rows: []field{{name: "dout", width: g.N, f: r.floats(g.M * g.N)}},
			run: func(c *call, in []kernels.Buffer, M int) {
				c.b.MatMulDX(c.out("dx", M*g.K), in[0], c.matrix("w", w, g.N, g.K))
			},
		}, g.M)
		if err != nil {
			return err
		}
	}
	return nil
}

// matMulDW is the weight gradient of a linear map as a gradient case.
func matMulDW(g gemmShape, blocks []int32, bias, operands bool) gradientCase {
	r := newStream(fmt.Sprint("matmul dw", g))
	dout, x := r.floats(g.M*g.N), r.floats(g.M*g.K)
	dw0, dbias0 := r.floats(g.N*g.K), r.floats(g.N)
	return gradientCase{
		name: fmt.Sprintf("MatMulDW %+v in %d blocks, bias %v", g, len(blocks)-1, bias), op: "MatMulDW",
		blocks: blocks,
		setup: func(c *call) func(lo, hi int, blocks []int32) {
			in := c.floats
			if operands {
				in = c.operands
			}
			d, a, dw := in("dout", dout), in("x", x), c.inout("dw", dw0)
			var dbias kernels.Buffer
			if bias {
				dbias = c.inout("dbias", dbias0)
			}
			return func(lo, hi int, blocks []int32) {
				c.b.MatMulDW(dw, dbias, d.Slice(lo*g.N, hi*g.N), a.Slice(lo*g.K, hi*g.K), c.ints("blocks", blocks))
			}
		},
	}
}

func checkMatMulDWShapes(s *subject) error {
	for i, g := range gemmShapes(s.short) {
		blocks := newStream(fmt.Sprint("blocks", g)).cuts(g.M, min(g.M, kernels.BlockRows))
		gc := matMulDW(g, blocks, i%2 == 0, i%3 != 0)
		one := func(c *call) { gc.setup(c)(0, g.M, blocks) }
		if err := s.compare(gc.op, one); err != nil {
			return fmt.Errorf("%s: %w", gc.name, err)
		}
	}
	return nil
}

func checkMatMulDWBlocks(s *subject) error {
	full := []int32{0, kernels.BlockRows, kernels.BlockRows + 1, 2*kernels.BlockRows + 1, 2*kernels.BlockRows + 20}
	for _, gc := range []gradientCase{
		matMulDW(gemmShape{int(full[len(full)-1]), 18, 21}, full, true, true),
		matMulDW(gemmShape{40, 33, 17}, []int32{0, 1, 2, 9, 40}, true, true),
		matMulDW(gemmShape{40, 5, 35}, newStream("dw blocks").cuts(40, 6), false, false),
		matMulDW(gemmShape{6, 1, 1}, []int32{0, 1, 2, 3, 4, 5, 6}, true, true),
	} {
		if err := s.checkGradient(gc); err != nil {
			return err
		}
	}
	return nil
}

// embedScales are 1 and a scale that float32 cannot hold.
func embedScales() []float64 { return []float64{1, 5.656854249492381} }

func checkEmbed(s *subject) error {
	const V, M = 23, 37
	for _, C := range sizes() {
		r := newStream(fmt.Sprint("embed", C))
		w, ids := r.floats(V*C), r.ids(M, V)
		for _, scale := range embedScales() {
			err := s.checkRows(rowCase{
				name: fmt.Sprintf("Embed C=%d scale %v", C, scale), op: "Embed",
				rows: []field{{name: "ids", width: 1, i: ids}},
				run: func(c *call, in []kernels.Buffer, M int) {
					c.b.Embed(c.out("out", M*C), c.matrix("weight", w, len(w)/C, C), in[0], scale)
				},
			}, M)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func checkEmbedBackward(s *subject) error {
	const V, M = 11, 100
	for _, C := range sizes() {
		r := newStream(fmt.Sprint("embed backward", C))
		dout, ids, dw0 := r.floats(M*C), r.ids(M, V), r.floats(V*C)
		blocks := r.cuts(M, 20)
		for _, scale := range embedScales() {
			err := s.checkGradient(gradientCase{
				name: fmt.Sprintf("EmbedBackward C=%d scale %v", C, scale), op: "EmbedBackward", blocks: blocks,
				setup: func(c *call) func(lo, hi int, blocks []int32) {
					dw, d, id := c.inout("dweight", dw0), c.floats("dout", dout), c.ints("ids", ids)
					return func(lo, hi int, _ []int32) {
						c.b.EmbedBackward(dw, d.Slice(lo*C, hi*C), id.Slice(lo, hi), C, scale)
					}
				},
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}
