package kerneltest

import (
	"fmt"
	"math"

	"exp/kernels"
)

// A frozen matrix has BF16 weights, or is packed a few rows at a time without lying in memory as
// a whole, and has no PackedT. Whatever it is made of, it gives the bits of the reference's loops
// on the same values.

func frozenChecks() []check {
	return []check{
		{"Frozen/MatMul", checkFrozenMatMul},
		{"Frozen/MatMulDX", checkFrozenMatMulDX},
		{"Frozen/MatMulSwiGLU", checkFrozenSwiGLU},
		{"Frozen/MatMulDXSwiGLU", checkFrozenDXSwiGLU},
		{"Frozen/Embed", checkFrozenEmbed},
		{"Frozen/subnormals", checkFrozenSubnormals},
		{"Frozen/Output", checkFrozenOutput},
		{"Frozen/LogProbBackward", checkFrozenLogProbBackward},
	}
}

// frozenKind is how a frozen matrix comes to its packed weights.
type frozenKind int

const (
	hostBits    frozenKind = iota // BF16 rows of the host, a few at a time; no W
	hostFloats                    // the same in float32
	bits                          // all at once from W, which is BF16
	floatPanels                   // float32 panels of BF16 rows on the device; no W
	trained                       // not frozen: float32 W and both packed copies
)

// allKinds lists the kinds of frozen matrices.
func allKinds() []frozenKind { return []frozenKind{hostBits, hostFloats, bits, floatPanels} }

func (k frozenKind) String() string {
	return [...]string{"BF16 from the host", "float32 from the host", "BF16 W", "float32 panels of BF16", "trained"}[k]
}

// truncated returns n values that BF16 represents, normal ones and zeros.
func (r *stream) truncated(n int) []float32 {
	x := r.floats(n)
	for i, v := range x {
		x[i] = math.Float32frombits(math.Float32bits(v) &^ 0xffff)
	}
	return x
}

// upperHalves returns x, which BF16 represents, as BF16.
func upperHalves(x []float32) []uint16 {
	y := make([]uint16, len(x))
	for i, v := range x {
		y[i] = uint16(math.Float32bits(v) >> 16)
	}
	return y
}

// frozen returns a weight [out,in] of values that BF16 represents. A backend that does not pack
// has it in W.
func (c *call) frozen(name string, w []float32, out, in int, kind frozenKind) kernels.Matrix {
	if kind == trained {
		return c.matrix(name, w, out, in)
	}
	m := kernels.Matrix{Out: out, In: in}
	packed, _ := c.b.PackedLen(out, in)
	if kind == bits {
		m.W = c.place(name, input, image{f: w}, kernels.BF16)
	}
	room := kernels.BF16
	if kind == hostFloats || kind == floatPanels {
		room = c.b.Operand()
	}
	switch {
	case packed > 0:
		m.Packed = c.place(name+" packed", scratch, image{f: nans(packed)}, room)
	case kind != bits:
		m.W = c.place(name, scratch, image{f: nans(out * in)}, room)
	}
	var rows kernels.Buffer
	switch kind {
	case bits:
		c.b.Pack(m)
		return m
	case hostBits:
		rows = kernels.HostBits(upperHalves(w))
	case hostFloats:
		rows = kernels.Host(w)
	case floatPanels:
		rows = c.place(name+" rows", input, image{f: w}, kernels.BF16)
	}
	for from, some := 0, kernels.PackAlign; from < out; from, some = from+some, 3*kernels.PackAlign-some {
		some = min(some, out-from)
		c.b.PackRows(m, from, rows.Slice(from*in, (from+some)*in))
		if some%kernels.PackAlign != 0 {
			break
		}
	}
	c.b.Sync()
	return m
}

// frozenShapes cover the sizes where panels, tiles and parts of chains end, in few
// combinations.
func frozenShapes(short bool) []gemmShape {
	list := []gemmShape{{1, 1, 1}, {1, 33, 7}, {2, 64, 16}, {5, 7, 33}, {8, 130, 31}, {14, 32, 65}, {15, 97, 300},
		{33, 31, 16}, {100, 65, 257},
		{1, 40, 1100}, {3, 300, 40}, {1, 4100, 70}, {64, 70, 530}}
	if short {
		return list
	}
	return append(list, gemmShape{1, 520, 1030}, gemmShape{8, 1030, 520}, gemmShape{150, 300, 290},
		gemmShape{200, 64, 128})
}

// compareKinds runs f with a matrix of each kind on the backend under test. As all have the same
// values, they must give what one kind gives on the reference.
func (s *subject) compareKinds(op string, kinds []frozenKind, f func(c *call, kind frozenKind)) error {
	want, err := s.reference(func(c *call) { f(c, bits) })
	if err != nil {
		return fmt.Errorf("reference: %w", err)
	}
	for _, kind := range kinds {
		got, err := run(s.b, func(c *call) { f(c, kind) })
		if err == nil {
			err = same(got, want, s.tolerance(op))
		}
		if err != nil {
			return fmt.Errorf("%v: %w", kind, err)
		}
	}
	return nil
}

// eachFrozen runs f, which gets values x [M,K] and y [M,N], for each shape and kind.
func (s *subject) eachFrozen(op string, f func(c *call, g gemmShape, w kernels.Matrix, x, y []float32)) error {
	for _, g := range frozenShapes(s.short) {
		g.N += g.N % 2 // gates and ups
		r := newStream(fmt.Sprint("frozen", g))
		w, x, y := r.truncated(g.N*g.K), r.floats(g.M*g.K), r.floats(g.M*g.N)
		err := s.compareKinds(op, allKinds(), func(c *call, kind frozenKind) {
			f(c, g, c.frozen("w", w, g.N, g.K, kind), x, y)
		})
		if err != nil {
			return fmt.Errorf("%+v, %w", g, err)
		}
	}
	return nil
}

func checkFrozenMatMul(s *subject) error {
	return s.eachFrozen("MatMul", func(c *call, g gemmShape, w kernels.Matrix, x, y []float32) {
		c.b.MatMul(c.out("out", g.M*g.N), c.operands("x", x), w, c.floats("bias", y[:g.N]))
		c.b.MatMul(c.outOperands("out without bias", g.M*g.N), c.operands("x", x), w, kernels.Buffer{})
	})
}

func checkFrozenMatMulDX(s *subject) error {
	return s.eachFrozen("MatMulDX", func(c *call, g gemmShape, w kernels.Matrix, _, y []float32) {
		c.b.MatMulDX(c.out("dx", g.M*g.K), c.operands("dout", y), w)
		c.b.MatMulDX(c.outOperands("dx operand", g.M*g.K), c.operands("dout", y), w)
	})
}

func checkFrozenSwiGLU(s *subject) error {
	return s.eachFrozen("MatMulSwiGLU", func(c *call, g gemmShape, w kernels.Matrix, x, _ []float32) {
		c.b.MatMulSwiGLU(c.outOperands("act", g.M*g.N/2), c.outOperands("gateUp", g.M*g.N), c.operands("x", x), w)
	})
}

func checkFrozenDXSwiGLU(s *subject) error {
	return s.eachFrozen("MatMulDXSwiGLU", func(c *call, g gemmShape, w kernels.Matrix, x, y []float32) {
		c.b.MatMulDXSwiGLU(c.outOperands("dgateUp", g.M*2*g.K), c.operands("gateUp", append(x, x...)),
			c.operands("dout", y), w)
	})
}

func checkFrozenEmbed(s *subject) error {
	const V, M = 150, 37
	for _, C := range sizes() {
		r := newStream(fmt.Sprint("frozen embed", C))
		w, ids := r.truncated(V*C), r.ids(M, V)
		err := s.compareKinds("Embed", allKinds(), func(c *call, kind frozenKind) {
			m, id := c.frozen("w", w, V, C, kind), c.ints("ids", ids)
			c.b.Embed(c.out("out", M*C), m, id, 1)
			c.b.Embed(c.out("out scaled", M*C), m, id, math.Sqrt(float64(C)))
		})
		if err != nil {
			return fmt.Errorf("C=%d, %w", C, err)
		}
	}
	return nil
}

// checkFrozenSubnormals packs rows of subnormals. Classes with BF16 operands replace them by zero,
// also for Embed.
func checkFrozenSubnormals(s *subject) error {
	const V, C = 4, 31
	w, x := make([]float32, V*C), newStream("frozen subnormals").scaled(C, 0x1p100)
	for i := range w {
		w[i] = math.Float32frombits(uint32(i) << 16)
	}
	for _, kind := range []frozenKind{hostBits, hostFloats} {
		err := s.compare("Embed", func(c *call) {
			m := c.frozen("w", w, V, C, kind)
			c.b.Embed(c.out("out", V*C), m, c.ints("ids", []int32{0, 1, 2, 3}), 0x1p100)
			c.b.MatMul(c.out("product", V), c.floats("x", x), m, kernels.Buffer{})
		})
		if err != nil {
			return fmt.Errorf("%v: %w", kind, err)
		}
	}
	return nil
}

// frozenOutputs are output layers whose logits are few, or more than the caches keep, for few
// rows, a strip and one more, or many.
func frozenOutputs(short bool) []outputShape {
	list := []outputShape{{1, 7, 17}, {14, 8, 16}, {33, 5, 31}, {6, 9, 33}, {15, 70, 257}, {3, 64, 600}}
	if short {
		return list
	}
	return append(list, outputShape{3, 65, 4100}, outputShape{15, 3, 26000}, outputShape{150, 40, 300})
}

// kinds lists every kind of frozen matrix for small output layers, and one for each type of
// panel for large ones: the small ones show that the way to the panels makes no difference.
func (o outputShape) kinds() []frozenKind {
	if o.V > 10_000 {
		return []frozenKind{hostBits, hostFloats}
	}
	return allKinds()
}

func checkFrozenOutput(s *subject) error {
	for _, o := range frozenOutputs(s.short) {
		h, _, targets := o.data()
		r := newStream(fmt.Sprint("frozen output", o))
		w, u := r.truncated(o.V*o.C), r.uniforms(o.R)
		err := s.compareKinds("LogProb", o.kinds(), func(c *call, kind frozenKind) {
			m, hb := c.frozen("w", w, o.V, o.C, kind), c.operands("h", h)
			c.b.LogProb(scores(c, o.R), hb, m, c.ints("targets", targets), kernels.Softmax{Temperature: 0.7})
			c.b.Logits(c.out("logits", o.R*o.V), hb, m, 0)
			K := min(7, o.V)
			c.b.TopTokens(c.outInts("top", o.R*K), scoresOf(c, o.R, K), hb, m, kernels.Softmax{Temperature: 0.7})
			for _, p := range settings(true) {
				c.b.Sample(c.outInts("ids", o.R), scores(c, o.R), hb, m, c.floats("u", u), p)
			}
		})
		if err != nil {
			return fmt.Errorf("%+v, %w", o, err)
		}
	}
	return nil
}

// checkFrozenLogProbBackward leaves out the gradient of the weight, whatever the blocks.
func checkFrozenLogProbBackward(s *subject) error {
	for _, o := range frozenOutputs(s.short) {
		h, _, targets := o.data()
		r := newStream(fmt.Sprint("frozen output backward", o))
		w, dlp, dent := r.truncated(o.V*o.C), r.floats(o.R), r.floats(o.R)
		err := s.compareKinds("LogProbBackward", append(o.kinds(), trained), func(c *call, kind frozenKind) {
			m := c.frozen("w", w, o.V, o.C, kind)
			hb, t, sc := c.operands("h", h), c.ints("targets", targets), scores(c, o.R)
			c.b.LogProb(sc, hb, m, t, kernels.Softmax{Temperature: 0.7})
			c.b.LogProbBackward(c.out("dh", o.R*o.C), kernels.Buffer{}, c.floats("dlp", dlp),
				c.floats("dent", dent), sc, hb, m, t, kernels.Buffer{}, kernels.Softmax{Temperature: 0.7})
		})
		if err != nil {
			return fmt.Errorf("%+v, %w", o, err)
		}
	}
	return nil
}
