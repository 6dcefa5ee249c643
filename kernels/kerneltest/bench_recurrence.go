package kerneltest

import "exp/kernels"

// recurrenceBenchmarks measure linear attention with the heads of Qwen3.5's smallest model, a quarter of
// them: 4 sequences of 256 tokens, and a decode step of 64 sequences.
func recurrenceBenchmarks() []benchmark {
	s := kernels.DeltaShape{Keys: 4, Values: 4, KeyDim: 128, ValueDim: 128, Taps: 4}
	const S, T, M = 4, 256, 4 * 256
	r := benchStream("bench recurrence")
	dims := dimsOf("S", S, "T", T, "H", s.Values, "D", s.ValueDim)
	whole := func(c *call) kernels.Runs { return kernels.Runs{Offsets: c.ints("offsets", even(M, T))} }
	blocks := func(c *call) kernels.Buffer { return c.ints("blocks", even(M, T)) }
	flops := 8 * M * s.State()
	list := []benchmark{
		{"ShortConv", dims, 0, 8 * M * s.Mixed(), func(c *call) func() {
			u, x, w := c.outOperands("u", M*s.Mixed()), c.operands("x", r.floats(M*s.Stride())),
				c.floats("weight", r.floats(s.Mixed()*s.Taps))
			runs := whole(c)
			return func() { c.b.ShortConv(u, x, w, kernels.Buffer{}, kernels.Buffer{}, runs, s) }
		}},
		{"ShortConvBackward", dims, 0, 12 * M * s.Mixed(), func(c *call) func() {
			dx, dw, du := c.outOperands("dx", M*s.Stride()), c.out("dw", s.Mixed()*s.Taps),
				c.operands("du", r.floats(M*s.Mixed()))
			x, w := c.operands("x", r.floats(M*s.Stride())), c.floats("weight", r.floats(s.Mixed()*s.Taps))
			runs, b := whole(c), blocks(c)
			var none kernels.Buffer
			return func() { c.b.ShortConvBackward(dx, dw, none, du, x, w, none, b, runs, s) }
		}},
		{"DeltaRule", dims, flops, 0, func(c *call) func() {
			out, u, gates := c.outOperands("out", M*s.Out()), c.operands("u", r.floats(M*s.Mixed())),
				c.floats("gates", r.gates(M*2*s.Values))
			runs := whole(c)
			return func() { c.b.DeltaRule(out, u, gates, kernels.Buffer{}, runs, s) }
		}},
		{"DeltaRuleBackward", dims, 4 * flops, 0, func(c *call) func() {
			du, dg, dout := c.outOperands("du", M*s.Mixed()), c.out("dgates", M*2*s.Values),
				c.operands("dout", r.floats(M*s.Out()))
			u, gates := c.operands("u", r.floats(M*s.Mixed())), c.floats("gates", r.gates(M*2*s.Values))
			runs := whole(c)
			return func() { c.b.DeltaRuleBackward(du, dg, dout, u, gates, runs, s) }
		}},
	}
	list = append(append(list, deltaRowBenchmarks(s, M)...), gatedConvBenchmarks()...)
	return append(list, decodeDeltaBenchmark(s), copyStatesBenchmark(s))
}

// deltaRowBenchmarks measure what works on single rows.
func deltaRowBenchmarks(s kernels.DeltaShape, M int) []benchmark {
	a := kernels.AttentionShape{H: 8, K: 2, D: 256}
	wide := a.Stride() + a.H*a.D
	scan := s
	scan.Scan = true
	r := benchStream("bench delta rows")
	dims, blocks := dimsOf("M", M, "H", s.Values), []int32{0, int32(M)}
	return []benchmark{
		{"DeltaGates", dims, 0, 16 * M * s.Values, func(c *call) func() {
			g, x, l := c.out("gates", M*2*s.Values), c.operands("x", r.floats(M*s.Stride())),
				c.floats("logs", r.floats(s.Values))
			return func() { c.b.DeltaGates(g, x, l, l, kernels.Buffer{}, s) }
		}},
		{"DeltaGatesBackward", dims, 0, 24 * M * s.Values, func(c *call) func() {
			dx, dl, db := c.outOperands("dx", M*s.Stride()), c.out("dlogs", s.Values), c.out("dbias", s.Values)
			g, x, l := c.floats("gates", r.gates(M*2*s.Values)), c.operands("x", r.floats(M*s.Stride())),
				c.floats("logs", r.floats(s.Values))
			b := c.ints("blocks", blocks)
			return func() { c.b.DeltaGatesBackward(dx, dl, db, kernels.Buffer{}, g, g, x, l, l, b, s) }
		}},
		{"GatedNorm", dims, 0, 12 * M * s.Out(), func(c *call) func() {
			out, rstd := c.outOperands("out", M*s.Out()), c.out("rstd", M*s.Values)
			x := c.operands("x", r.floats(M*s.Out()))
			p, w := c.operands("p", r.floats(M*s.Stride())), c.floats("weight", r.floats(s.ValueDim))
			return func() { c.b.GatedNorm(out, rstd, x, p, w, s, eps) }
		}},
		{"GatedNormBackward", dims, 0, 20 * M * s.Out(), func(c *call) func() {
			dx, dp, dw := c.outOperands("dx", M*s.Out()), c.outOperands("dp", M*s.Stride()), c.out("dw", s.ValueDim)
			x, p, w := c.operands("x", r.floats(M*s.Out())), c.operands("p", r.floats(M*s.Stride())),
				c.floats("weight", r.floats(s.ValueDim))
			rstd, b := c.floats("rstd", r.positive(M*s.Values)), c.ints("blocks", blocks)
			return func() { c.b.GatedNormBackward(dx, dp, dw, x, x, p, w, rstd, b, s) }
		}},
		{"GroupedNorm", dims, 0, 12 * M * scan.Out(), func(c *call) func() {
			out, rstd := c.outOperands("out", M*scan.Out()), c.out("rstd", M*scan.Keys)
			x := c.operands("x", r.floats(M*scan.Out()))
			p, w := c.operands("p", r.floats(M*scan.Stride())), c.floats("weight", r.floats(scan.Out()))
			return func() { c.b.GroupedNorm(out, rstd, x, p, w, scan, eps) }
		}},
		{"GroupedNormBackward", dims, 0, 20 * M * scan.Out(), func(c *call) func() {
			dx, dp := c.outOperands("dx", M*scan.Out()), c.outOperands("dp", M*scan.Stride())
			dw := c.out("dw", scan.Out())
			x, p, w := c.operands("x", r.floats(M*scan.Out())), c.operands("p", r.floats(M*scan.Stride())),
				c.floats("weight", r.floats(scan.Out()))
			rstd, b := c.floats("rstd", r.positive(M*scan.Keys)), c.ints("blocks", blocks)
			return func() { c.b.GroupedNormBackward(dx, dp, dw, x, x, p, w, rstd, b, scan) }
		}},
		{"SplitGates", dims, 0, 8 * M * a.Stride(), func(c *call) func() {
			qkv, x := c.outOperands("qkv", M*a.Stride()), c.operands("x", r.floats(M*wide))
			return func() { c.b.SplitGates(qkv, x, a) }
		}},
		{"JoinGates", dims, 0, 8 * M * a.Stride(), func(c *call) func() {
			dx, d := c.outOperands("dx", M*wide), c.operands("dqkv", r.floats(M*a.Stride()))
			return func() { c.b.JoinGates(dx, d, a) }
		}},
		{"OutputGate", dims, 0, 12 * M * a.H * a.D, func(c *call) func() {
			out, att, x := c.outOperands("out", M*a.H*a.D), c.operands("att", r.floats(M*a.H*a.D)),
				c.operands("x", r.floats(M*wide))
			return func() { c.b.OutputGate(out, att, x, a) }
		}},
		{"OutputGateBackward", dims, 0, 20 * M * a.H * a.D, func(c *call) func() {
			d, dx := c.outOperands("datt", M*a.H*a.D), c.outOperands("dx", M*wide)
			att, x := c.operands("att", r.floats(M*a.H*a.D)), c.operands("x", r.floats(M*wide))
			return func() { c.b.OutputGateBackward(d, dx, att, att, x, a) }
		}},
	}
}

// gatedConvBenchmarks have the width of LFM2's smallest model.
func gatedConvBenchmarks() []benchmark {
	s := kernels.DeltaShape{Values: 1, ValueDim: 1024, Taps: 3, Conv: true}
	const S, T, M = 4, 256, 4 * 256
	r := benchStream("bench gated conv")
	dims := dimsOf("S", S, "T", T, "C", s.Mixed())
	runs := func(c *call) kernels.Runs { return kernels.Runs{Offsets: c.ints("offsets", even(M, T))} }
	return []benchmark{
		{"GatedConv", dims, 0, 16 * M * s.Mixed(), func(c *call) func() {
			u, x, w := c.outOperands("u", M*s.Mixed()), c.operands("x", r.floats(M*s.Stride())),
				c.floats("weight", r.floats(s.Mixed()*s.Taps))
			at := runs(c)
			return func() { c.b.GatedConv(u, x, w, kernels.Buffer{}, at, s) }
		}},
		{"GatedConvBackward", dims, 0, 28 * M * s.Mixed(), func(c *call) func() {
			dx, dw, du := c.outOperands("dx", M*s.Stride()), c.out("dw", s.Mixed()*s.Taps),
				c.operands("du", r.floats(M*s.Mixed()))
			x, w := c.operands("x", r.floats(M*s.Stride())), c.floats("weight", r.floats(s.Mixed()*s.Taps))
			at, b := runs(c), c.ints("blocks", even(M, T))
			return func() { c.b.GatedConvBackward(dx, dw, du, x, w, b, at, s) }
		}},
	}
}

// decodeDeltaBenchmark takes a row of each of 64 sequences.
func decodeDeltaBenchmark(s kernels.DeltaShape) benchmark {
	const S = 64
	r := benchStream("bench delta decode")
	return benchmark{"DeltaRule", dimsOf("S", S, "T", 1, "H", s.Values), 8 * S * s.State(), 8 * S * s.State(),
		func(c *call) func() {
			out, u, gates := c.outOperands("out", S*s.Out()), c.operands("u", r.floats(S*s.Mixed())),
				c.floats("gates", r.gates(S*2*s.Values))
			states := c.spare("states", make([]float32, S*s.State()))
			var slots []int32
			for _, at := range r.permutation(S) {
				slots = append(slots, int32(at))
			}
			runs := kernels.Runs{Offsets: c.ints("offsets", even(S, 1)), Slots: c.ints("slots", slots)}
			return func() { c.b.DeltaRule(out, u, gates, states, runs, s) }
		}}
}

// copyStatesBenchmark gives eight completions the state of their prompt.
func copyStatesBenchmark(s kernels.DeltaShape) benchmark {
	const n = 8
	return benchmark{"CopyStates", dimsOf("N", n, "state", s.State()), 0, 8 * n * s.State(), func(c *call) func() {
		x := c.spare("states", make([]float32, (n+1)*s.State()))
		var pairs []int32
		for i := range n {
			pairs = append(pairs, 0, int32(i+1))
		}
		p := c.ints("pairs", pairs)
		return func() { c.b.CopyStates(x, p, s.State()) }
	}}
}
