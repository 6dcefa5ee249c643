package kerneltest

import (
	"fmt"
	"math"

	"exp/kernels"
)

// flushedChecks have products and sums around 2⁻¹²⁶, below which class "cpu/bf16" makes them zeros. Then the signs
// of zeros, and terms that the last step of a sum does not have, can change results.
func flushedChecks() []check {
	return []check{
		{"Flushed/products", checkFlushedProducts},
		{"Flushed/output", checkFlushedOutput},
		{"Flushed/attention", checkFlushedAttention},
		{"Flushed/infinite", checkFlushedInfinite},
		{"Flushed/pages", checkFlushedPages},
	}
}

// powers returns n powers of two from scale down to 2⁻¹³ of it, or 1+2⁻⁷ of one, of both signs, and zeros. Sums of
// products of two such with scale 2⁻⁶³ come near 2⁻¹²⁶ with differences of 2⁻¹⁵⁰.
func (r *stream) powers(n int, scale float64) []float32 {
	x := make([]float32, n)
	for i := range x {
		a, b, c, _ := r.words()
		y := math.Ldexp(scale, -int(b%14))
		switch c % 8 {
		case 0, 1:
			y = 0
		case 2:
			y *= 1 + 0x1p-7
		}
		if a%2 == 1 {
			y = -y
		}
		x[i] = float32(y)
	}
	return x
}

// nearby returns n numbers of scale, of both signs, whose differences are a few times smaller, and zeros.
func (r *stream) nearby(n int, scale float64) []float32 {
	x := make([]float32, n)
	for i := range x {
		a, b, _, _ := r.words()
		y := scale * []float64{0, 1, 1 + 0x1p-7, 1.5, 1.75, 2}[b%6]
		if a%2 == 1 {
			y = -y
		}
		x[i] = float32(y)
	}
	return x
}

// checkFlushedProducts has chains that end within their first step, within a later one, and with one.
func checkFlushedProducts(s *subject) error {
	for _, g := range []gemmShape{{5, 7, 1}, {3, 19, 13}, {40, 33, 33}, {34, 66, 64}, {2, 35, 95}} {
		r := newStream(fmt.Sprint("flushed products", g))
		x, w, dout := r.powers(g.M*g.K, 0x1p-63), r.powers(g.N*g.K, 0x1p-63), r.powers(g.M*g.N, 0x1p-63)
		bias, dw := r.nearby(g.N, 0x1p-126), r.nearby(g.N*g.K, 0x1p-126)
		err := s.compare("MatMul", func(c *call) {
			m := c.matrix("w", w, g.N, g.K)
			in, outs := c.operands("x", x), c.floats("dout", dout)
			blocks := []int32{0, int32(g.M)}
			if g.M > 33 {
				blocks = []int32{0, 33, int32(g.M)}
			}
			c.b.MatMul(c.out("out", g.M*g.N), in, m, c.floats("bias", bias))
			c.b.MatMul(c.outOperands("out without bias", g.M*g.N), in, m, kernels.Buffer{})
			c.b.MatMulDX(c.out("dx", g.M*g.K), outs, m)
			c.b.MatMulDW(c.inout("dw", dw), kernels.Buffer{}, outs, in, c.ints("blocks", blocks))
			if g.N%2 == 0 {
				c.b.MatMulSwiGLU(c.outOperands("act", g.M*g.N/2), c.outOperands("gateUp", g.M*g.N), in, m)
			}
		})
		if err != nil {
			return fmt.Errorf("%+v: %w", g, err)
		}
	}
	return nil
}

// checkFlushedOutput has tiny logits, and gradients of logits whose products are tiny.
func checkFlushedOutput(s *subject) error {
	for _, o := range []outputShape{{5, 7, 15}, {40, 33, 68}} {
		r := newStream(fmt.Sprint("flushed output", o))
		h, w := r.powers(o.R*o.C, 0x1p-63), r.powers(o.V*o.C, 0x1p-61)
		dlp, dent, targets := r.nearby(o.R, 0x1p-57), r.nearby(o.R, 0x1p-62), r.ids(o.R, o.V)
		dw := r.nearby(o.V*o.C, 0x1p-126)
		err := s.compare("LogProbBackward", func(c *call) {
			m, hb, t, sc := c.matrix("w", w, o.V, o.C), c.operands("h", h), c.ints("targets", targets), scores(c, o.R)
			x := kernels.Softmax{Temperature: 1}
			c.b.Logits(c.out("logits", o.R*o.V), hb, m, 0)
			c.b.LogProb(sc, hb, m, t, x)
			c.b.LogProbBackward(c.out("dh", o.R*o.C), c.inout("dw", dw), c.floats("dlp", dlp), c.floats("dent", dent),
				sc, hb, m, t, c.ints("blocks", []int32{0, int32(o.R)}), x)
		})
		if err != nil {
			return fmt.Errorf("%+v: %w", o, err)
		}
	}
	return nil
}

// flushedBatches have sequences that end within a step, windows that end within one, prefixes, and rows that see
// all, or some of those behind them. Classes that flush nothing take few.
func flushedBatches(s *subject) []packed {
	list := []packed{
		{kernels.AttentionShape{H: 1, K: 1, D: 33}, []int{37, 64}, nil},
		{kernels.AttentionShape{H: 2, K: 2, D: 5}, []int{70, 45, 3}, []int32{0, 3}},
	}
	if s.ref.Class() != "cpu/bf16" {
		return scaledScores(list)
	}
	list = append(list, []packed{
		{kernels.AttentionShape{H: 3, K: 1, D: 33, Window: 32}, []int{69, 70, 71}, nil},
		{kernels.AttentionShape{H: 1, K: 1, D: 5, Window: 40}, []int{60, 30, 41}, []int32{0, 3}},
		{kernels.AttentionShape{H: 1, K: 1, D: 17, Full: true}, []int{39, 65}, nil},
	}...)
	return scaledScores(append(list, withBlocks(packed{kernels.AttentionShape{H: 2, K: 1, D: 5}, []int{50, 70}, nil},
		block{0, 20, 19}, block{1, 33, 9}, block{1, 60, 10}),
		withBlocks(packed{kernels.AttentionShape{H: 1, K: 1, D: 8, Window: 35}, []int{45, 30, 66}, []int32{0, 3}},
			block{1, 3, 20}, block{2, 31, 12})))
}

// flushed gives the factors of attention scales of which one is tiny.
type flushed struct {
	name          string
	q, k, v, dout float64
}

// flushedFactors have tiny values, with equal scores and others; tiny queries and tiny keys, which make gradients
// tiny; and tiny gradients of results.
func flushedFactors() []flushed {
	return []flushed{
		{name: "values, equal scores", q: 0, k: 1, v: 0x1p-126, dout: 1},
		{name: "values", q: 2, k: 2, v: 0x1p-125, dout: 1},
		{name: "queries", q: 0x1p-123, k: 1, v: 1, dout: 1},
		{name: "keys", q: 1, k: 0x1p-123, v: 1, dout: 1},
		{name: "gradients", q: 1, k: 1, v: 1, dout: 0x1p-121},
		{name: "gradients, equal scores", q: 0, k: 1, v: 1, dout: 0x1p-121},
	}
}

// rows returns rows of p, and gradients of results, of these scales.
func (f flushed) rows(p packed) (qkv, dout []float32) {
	a, r := p.shape, newStream("flushed "+f.name+p.String())
	for range p.rows() {
		qkv = append(qkv, r.nearby(a.H*a.D, f.q)...)
		qkv = append(qkv, r.nearby(a.K*a.D, f.k)...)
		qkv = append(qkv, r.nearby(a.K*a.D, f.v)...)
	}
	return qkv, r.nearby(p.rows()*a.H*a.D, f.dout)
}

func checkFlushedAttention(s *subject) error {
	return s.eachFlushed(func(p packed, x flushed) error {
		qkv, dout := x.rows(p)
		if x.v < 1 {
			return s.compare("Attention", func(c *call) { p.attend(c, qkv) })
		}
		return s.compareBack(p, qkv, dout)
	})
}

// eachFlushed runs f on each batch, with each factor tiny.
func (s *subject) eachFlushed(f func(p packed, x flushed) error) error {
	for _, p := range flushedBatches(s) {
		for _, x := range flushedFactors() {
			if err := f(p, x); err != nil {
				return fmt.Errorf("%v, tiny %s: %w", p, x.name, err)
			}
		}
	}
	return nil
}

// compareBack compares the pass back from the reference's results of the pass forward.
func (s *subject) compareBack(p packed, qkv, dout []float32) error {
	fwd, err := s.reference(func(c *call) { p.attend(c, qkv) })
	if err != nil {
		return err
	}
	return s.compare("AttentionBackward", func(c *call) { p.back(c, qkv, dout, fwd) })
}

// checkFlushedInfinite is checkFlushedAttention with an infinite number in the last row, which fast code may take
// another way: in its value for the pass forward, in its gradient for the one back.
func checkFlushedInfinite(s *subject) error {
	return s.eachFlushed(func(p packed, x flushed) error {
		qkv, dout := x.rows(p)
		if x.v < 1 {
			qkv[len(qkv)-1] = float32(math.Inf(1))
			return s.compare("Attention", func(c *call) { p.attend(c, qkv) })
		}
		dout[len(dout)-1] = float32(math.Inf(1))
		return s.compareBack(p, qkv, dout)
	})
}

// checkFlushedPages compares attention to pages.
func checkFlushedPages(s *subject) error {
	for _, p := range flushedBatches(s) {
		if p.shape.Full {
			continue
		}
		for _, x := range flushedFactors()[:2] {
			k := newCache(p, 16)
			k.qkv, _ = x.rows(p)
			err := s.compare("PagedAttention", func(c *call) { k.decodeParts(c, []int{0, k.rows()}) })
			if err != nil {
				return fmt.Errorf("%v, tiny %s: %w", k, x.name, err)
			}
		}
	}
	return nil
}
