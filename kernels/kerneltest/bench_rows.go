package kerneltest

import "exp/kernels"

func normBenchmarks() []benchmark {
	const M, C, F = 2048, 256, 1024
	r := benchStream("bench norm")
	rows, wide := dimsOf("M", M, "C", C), dimsOf("M", M, "F", F)
	fl := func(c *call, name string, n int) kernels.Buffer { return c.floats(name, r.floats(n)) }
	op := func(c *call, name string, n int) kernels.Buffer { return c.operands(name, r.floats(n)) }
	var list []benchmark
	for _, unit := range []bool{false, true} {
		shape, rows := kernels.NormShape{Heads: 1, Dim: C, Stride: C, UnitOffset: unit}, rows
		if unit {
			rows += "/offset=1"
		}
		list = append(list, benchmark{"RMSNorm", rows, 0, 8 * M * C, func(c *call) func() {
			out, rstd, x, w := c.outOperands("out", M*C), c.out("rstd", M), fl(c, "x", M*C), fl(c, "w", C)
			return func() { c.b.RMSNorm(out, rstd, x, w, shape, eps) }
		}}, benchmark{"AddRMSNorm", rows, 0, 16 * M * C, func(c *call) func() {
			sum, out, rstd, x, delta, w := c.out("sum", M*C), c.outOperands("out", M*C), c.out("rstd", M),
				fl(c, "x", M*C), fl(c, "delta", M*C), fl(c, "w", C)
			return func() { c.b.AddRMSNorm(sum, out, rstd, x, delta, w, shape, eps) }
		}}, benchmark{"RMSNormBackward", rows, 0, 12 * M * C, func(c *call) func() {
			dx, dw, dout, x, w := c.out("dx", M*C), c.inout("dw", make([]float32, C)), fl(c, "dout", M*C),
				fl(c, "x", M*C), fl(c, "w", C)
			rstd, blocks := c.floats("rstd", r.positive(M)), c.ints("blocks", even(M, kernels.BlockRows))
			return func() { c.b.RMSNormBackward(dx, dw, dout, x, w, rstd, blocks, shape, true) }
		}})
	}
	return append(list, []benchmark{
		{"LayerNorm", rows, 0, 8 * M * C, func(c *call) func() {
			out, stats, x, w, bias := c.out("out", M*C), c.out("stats", 2*M), fl(c, "x", M*C), fl(c, "w", C),
				fl(c, "bias", C)
			return func() { c.b.LayerNorm(out, stats, x, w, bias, C, eps) }
		}},
		{"LayerNormBackward", rows, 0, 12 * M * C, func(c *call) func() {
			dx, dw, db := c.out("dx", M*C), c.inout("dw", make([]float32, C)), c.inout("db", make([]float32, C))
			dout, x, w, stats := fl(c, "dout", M*C), fl(c, "x", M*C), fl(c, "w", C), c.floats("stats", r.positive(2*M))
			blocks := c.ints("blocks", even(M, kernels.BlockRows))
			return func() { c.b.LayerNormBackward(dx, dw, db, dout, x, w, stats, blocks, C) }
		}},
		{"GELU", rows, 0, 8 * M * C, func(c *call) func() {
			out, x := c.out("out", M*C), fl(c, "x", M*C)
			return func() { c.b.GELU(out, x) }
		}},
		{"GELUBackward", rows, 0, 12 * M * C, func(c *call) func() {
			dx, dout, x := c.out("dx", M*C), fl(c, "dout", M*C), fl(c, "x", M*C)
			return func() { c.b.GELUBackward(dx, dout, x) }
		}},
		{"MatMulSwiGLU", wide, 4 * M * F * C, 4 * (3*M*F + M*C + 2*F*C), func(c *call) func() {
			act, x, w := c.outOperands("act", M*F), op(c, "x", M*C), c.matrix("w", r.floats(2*F*C), 2*F, C)
			gateUp := c.outOperands("gateUp", M*2*F)
			return func() { c.b.MatMulSwiGLU(act, gateUp, x, w) }
		}},
		{"MatMulDXSwiGLU", wide, 2 * M * F * C, 4 * (4*M*F + M*C + F*C), func(c *call) func() {
			dx, dout, x := c.outOperands("dgateUp", M*2*F), op(c, "dout", M*C), op(c, "gateUp", M*2*F)
			w := c.matrix("w", r.floats(F*C), C, F)
			return func() { c.b.MatMulDXSwiGLU(dx, x, dout, w) }
		}},
		{"Dropout", rows, 0, 8 * M * C, func(c *call) func() {
			out, x, keys := c.out("out", M*C), fl(c, "x", M*C), c.ints("keys", r.ids(2*M, 1<<31-1))
			return func() { c.b.Dropout(out, x, keys, C, 0, 0.1) }
		}},
		{"GatherRows", rows, 0, 8 * M * C, func(c *call) func() {
			out, x, idx := c.outOperands("out", M*C), op(c, "x", 2*M*C), c.ints("rows", r.ids(M, 2*M))
			return func() { c.b.GatherRows(out, x, idx, C) }
		}},
		{"ScatterRows", rows, 0, 12 * M * C, func(c *call) func() {
			dx, dout, idx := c.out("dx", 2*M*C), fl(c, "dout", M*C), c.ints("rows", even(M-1, 1))
			return func() { c.b.ScatterRows(dx, dout, idx, C) }
		}},
		{"SegmentMean", rows, 0, 4 * M * C, func(c *call) func() {
			out, x, seg := c.out("out", 8*C), op(c, "x", M*C), c.ints("segments", eighths(M))
			return func() { c.b.SegmentMean(out, x, seg, C) }
		}},
		{"SegmentMeanBackward", rows, 0, 8 * M * C, func(c *call) func() {
			dx, dout, seg := c.inout("dx", make([]float32, M*C)), fl(c, "dout", 8*C), c.ints("segments", eighths(M))
			return func() { c.b.SegmentMeanBackward(dx, dout, seg, C) }
		}},
	}...)
}

func ones(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = 1
	}
	return x
}

// eighths are eight segments that cover M rows.
func eighths(M int) []int32 {
	var x []int32
	for _, p := range pairs(even(M, M/8)) {
		x = append(x, p[0], p[1])
	}
	return x
}

// sequenceBenchmarks measure attention on 8 sequences of 256 tokens, and a
// decode step of 64 sequences that have 192; and both with windows and with caps, and on 2
// sequences of 1024 tokens, much longer than a window; and of rows that see those behind them,
// as patches of an image.
func sequenceBenchmarks() []benchmark {
	const S, T, M = 8, 256, 8 * 256
	a := kernels.AttentionShape{H: 4, K: 2, D: 64, Scale: 0.125}
	windowed, capped, full := a, a, a
	windowed.Window, capped.Cap, full.Full = 64, 50, true
	tower := kernels.AttentionShape{H: 4, K: 4, D: 72, Scale: 0.125}
	fullTower := tower
	fullTower.Full = true
	stride := a.Stride()
	r := benchStream("bench attention")
	list := []benchmark{
		{"Rope", dimsOf("S", S, "T", T, "H", a.H, "D", a.D), 0, 8 * M * (a.H + a.K) * a.D, func(c *call) func() {
			cos, sin := ones(T*a.D/2), make([]float32, T*a.D/2) // the values stay unchanged
			x, cb, sb, pos := c.inoutOperands("qkv", r.floats(M*stride)), c.floats("cos", cos), c.floats("sin", sin),
				c.ints("pos", r.ids(M, T))
			return func() { c.b.Rope(x, cb, sb, pos, a, false) }
		}},
	}
	list = append(list, attentionBenchmarks(S, T, a)...)
	list = append(list, attentionBenchmarks(S, T, capped)...)
	list = append(list, attentionBenchmarks(2, 1024, a)...)
	list = append(list, attentionBenchmarks(2, 1024, windowed)...)
	list = append(list, attentionBenchmarks(2, 1024, full)...)
	list = append(list, attentionBenchmarks(1, 4096, tower)...)
	list = append(list, attentionBenchmarks(1, 4096, fullTower)...)
	return append(list, decodeBenchmarks(a, windowed, capped)...)
}

// extras names the window and the cap of a shape.
func extras(a kernels.AttentionShape) string {
	var s string
	if a.Window > 0 {
		s = "/" + dimsOf("window", a.Window)
	}
	if a.Cap > 0 {
		s += "/" + dimsOf("cap", a.Cap)
	}
	if a.Full {
		s += "/full"
	}
	return s
}

// attentionBenchmarks measure both passes on S sequences of T tokens.
func attentionBenchmarks(S, T int, a kernels.AttentionShape) []benchmark {
	M, stride, outs := S*T, a.Stride(), a.H*a.D
	r := benchStream("bench attention")
	dims := dimsOf("S", S, "T", T, "H", a.H, "D", a.D) + extras(a)
	scoresMade := 0 // each is a chain of D, and so is its share of a value
	for n := 1; n <= T; n++ {
		seen := n
		if a.Window > 0 {
			seen = min(n, a.Window)
		}
		if a.Full {
			seen = T
		}
		scoresMade += S * a.H * seen
	}
	return []benchmark{
		{"Attention", dims, 4 * scoresMade * a.D, 4 * M * (stride + outs), func(c *call) func() {
			out, stats, qkv, off := c.outOperands("out", M*outs), c.out("stats", M*a.H*2),
				c.operands("qkv", r.floats(M*stride)), c.ints("offsets", even(M, T))
			return func() { c.b.Attention(out, stats, qkv, off, kernels.Buffer{}, a) }
		}},
		{"AttentionBackward", dims, 10 * scoresMade * a.D, 4 * M * 2 * (stride + outs), func(c *call) func() {
			out, stats, qkv, off := c.spareOperands("out", nans(M*outs)), c.spare("stats", nans(M*a.H*2)),
				c.operands("qkv", r.floats(M*stride)), c.ints("offsets", even(M, T))
			dqkv, dout := c.outOperands("dqkv", M*stride), c.operands("dout", r.floats(M*outs))
			c.b.Attention(out, stats, qkv, off, kernels.Buffer{}, a)
			return func() { c.b.AttentionBackward(dqkv, dout, out, stats, qkv, off, kernels.Buffer{}, a) }
		}},
	}
}

// decodeBenchmarks measure a decode step of 64 sequences that have 192 tokens, for several
// shapes, which differ in windows and caps.
func decodeBenchmarks(shapes ...kernels.AttentionShape) []benchmark {
	const S, T = 64, 192
	a := shapes[0]
	stride, outs := a.Stride(), a.H*a.D
	r := benchStream("bench attention")
	p := packed{shape: a}
	for range S {
		p.lengths = append(p.lengths, T)
	}
	dims := dimsOf("S", S, "T", T, "H", a.H, "D", a.D)
	last := func(x []int32) []int32 { // the last row of each sequence
		var y []int32
		for j := range S {
			y = append(y, x[(j+1)*T-1])
		}
		return y
	}
	pagesOf := func(c *call, k *cache) kernels.Pages {
		return kernels.Pages{Keys: c.spareOperands("keys", r.floats(k.elements())), Values: c.spareOperands("values",
			r.floats(k.elements())), Size: k.size}
	}
	var list []benchmark
	for _, a := range shapes {
		seen := T
		if a.Window > 0 {
			seen = min(T, a.Window)
		}
		list = append(list, benchmark{"PagedAttention", dims + extras(a), 4 * S * seen * a.H * a.D,
			8 * S * seen * a.K * a.D, func(c *call) func() {
				k := newCache(p, 16)
				out, qkv, table := c.outOperands("out", S*outs), c.operands("qkv", r.floats(S*stride)),
					c.ints("table", k.table)
				pages, seq, pos := pagesOf(c, k), c.ints("seq", last(k.seq)), c.ints("pos", last(k.pos))
				return func() { c.b.PagedAttention(out, kernels.Buffer{}, qkv, pages, table, seq, pos, k.width, a) }
			}})
	}
	return append(list,
		benchmark{"AppendKV", dims, 0, 16 * S * a.K * a.D, func(c *call) func() {
			k := newCache(p, 16)
			pages, qkv, slots := pagesOf(c, k), c.operands("qkv", r.floats(S*stride)), c.ints("slots", last(k.slots))
			return func() { c.b.AppendKV(pages, qkv, slots, a) }
		}},
		benchmark{"CopyPages", dimsOf("pages", S, "K", a.K, "D", a.D), 0, 16 * S * a.K * a.D * 16,
			func(c *call) func() {
				k := newCache(p, 16)
				pages := pagesOf(c, k)
				list := c.ints("pairs", even(2*S-1, 1))
				return func() { c.b.CopyPages(pages, list, a) }
			}})
}

// logitScale times a sum of 256 products is a logit of a trained model: with larger ones
// most probabilities are subnormal, which processors are slow at.
const logitScale = 0.2

func outputBenchmarks() []benchmark {
	const C, V = 256, 8192
	r := benchStream("bench output")
	var list []benchmark
	for _, R := range []int{64, 512} {
		plain, bytes := dimsOf("R", R, "C", C, "V", V), 4*(R*C+V*C)
		for _, x := range []kernels.Softmax{{Temperature: 1}, {Temperature: 1, Cap: 30}} {
			dims := plain
			if x.Cap > 0 {
				dims += "/cap=30"
			}
			keep := func(p kernels.Sampling) func(c *call) func() { p.Cap = x.Cap; return sampleBenchmark(R, C, V, p) }
			list = append(list, benchmark{"LogProb", dims, 2 * R * C * V, bytes, func(c *call) func() {
				h, w, targets, sc := c.operands("h", r.scaled(R*C, logitScale)), c.matrix("w", r.floats(V*C), V, C),
					c.ints("targets", r.ids(R, V)), scores(c, R)
				return func() { c.b.LogProb(sc, h, w, targets, x) }
			}}, benchmark{"LogProbBackward", dims, 6 * R * C * V, 2 * bytes, logProbBackwardBenchmark(R, C,
				V, x, true)},
				benchmark{"LogProbBackward", dims + "/dw=none", 4 * R * C * V, bytes, logProbBackwardBenchmark(R, C,
					V, x, false)},
				benchmark{"Sample", dims + "/keep=all", 2 * R * C * V, bytes,
					keep(kernels.Sampling{Temperature: 1, TopP: 1})},
				benchmark{"Sample", dims + "/keep=0.95", 2 * R * C * V, bytes,
					keep(kernels.Sampling{Temperature: 1, TopP: 0.95})},
				benchmark{"LogProb", dims + "/targets=65", 2 * R * C * V, bytes, func(c *call) func() {
					h, w := c.operands("h", r.scaled(R*C, logitScale)), c.matrix("w", r.floats(V*C), V, C)
					targets, sc := c.ints("targets", r.ids(R*65, V)), scoresOf(c, R, 65)
					return func() { c.b.LogProb(sc, h, w, targets, x) }
				}},
				benchmark{"TopTokens", dims + "/K=64", 2 * R * C * V, bytes, func(c *call) func() {
					h, w := c.operands("h", r.scaled(R*C, logitScale)), c.matrix("w", r.floats(V*C), V, C)
					ids, sc := c.outInts("ids", R*64), scoresOf(c, R, 64)
					return func() { c.b.TopTokens(ids, sc, h, w, x) }
				}},
				benchmark{"Logits", dims, 2 * R * C * V, bytes + 4*R*V, func(c *call) func() {
					out, h, w := c.out("out", R*V), c.operands("h", r.scaled(R*C, logitScale)),
						c.matrix("w", r.floats(V*C), V, C)
					return func() { c.b.Logits(out, h, w, x.Cap) }
				}})
		}
	}
	return list
}

func logProbBackwardBenchmark(R, C, V int, x kernels.Softmax, trained bool) func(c *call) func() {
	return func(c *call) func() {
		r := benchStream("bench output backward")
		h, w, targets := c.operands("h", r.scaled(R*C, logitScale)), c.matrix("w", r.floats(V*C), V, C),
			c.ints("targets", r.ids(R, V))
		dh, dlp, dent := c.out("dh", R*C), c.floats("dlp", r.floats(R)), c.floats("dent", r.floats(R))
		blocks, sc := c.ints("blocks", even(R, kernels.BlockRows)), scores(c, R)
		var dw kernels.Buffer
		if trained {
			dw = c.inout("dw", make([]float32, V*C))
		}
		c.b.LogProb(sc, h, w, targets, x)
		return func() { c.b.LogProbBackward(dh, dw, dlp, dent, sc, h, w, targets, blocks, x) }
	}
}

func sampleBenchmark(R, C, V int, p kernels.Sampling) func(c *call) func() {
	return func(c *call) func() {
		r := benchStream("bench sample")
		h, w, u := c.operands("h", r.scaled(R*C, logitScale)), c.matrix("w", r.floats(V*C), V, C),
			c.floats("u", r.uniforms(R))
		ids, sc := c.outInts("ids", R), scores(c, R)
		return func() { c.b.Sample(ids, sc, h, w, u, p) }
	}
}
