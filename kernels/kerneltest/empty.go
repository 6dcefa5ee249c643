package kerneltest

import (
	"fmt"

	"exp/kernels"
)

// checkEmpty calls operations with no rows: they write nothing, not even to buffers
// that they add to. A micro-batch may have no scored position.
func checkEmpty(s *subject) error {
	const C, V = 8, 17
	a := kernels.AttentionShape{H: 2, K: 1, D: 4, Scale: 0.5}
	n := kernels.NormShape{Heads: 1, Dim: C, Stride: C}
	experts := kernels.Routing{Experts: 4, Top: 2, Renorm: true, Shared: true}
	r := newStream("empty")
	w, row, pages := r.floats(V*C), r.floats(C), r.floats(a.K*a.D*16)
	none := func(c *call) kernels.Buffer { return c.out("none", 0) }
	no := func(c *call) kernels.Buffer { return c.ints("no ints", []int32{}) }
	first := func(c *call) kernels.Buffer { return c.ints("first offset", []int32{0}) }
	cached := func(c *call) kernels.Pages {
		return kernels.Pages{Keys: c.inoutOperands("keys", pages), Values: c.inoutOperands("values", pages), Size: 16}
	}
	for _, e := range []struct {
		op string
		f  func(c *call)
	}{
		{"Copy", func(c *call) { c.b.Copy(none(c), none(c)) }},
		{"Zero", func(c *call) { c.b.Zero(none(c)) }},
		{"Add", func(c *call) { c.b.Add(none(c), none(c)) }},
		{"MatMul", func(c *call) { c.b.MatMul(none(c), none(c), c.matrix("w", w, V, C), kernels.Buffer{}) }},
		{"MatMulDX", func(c *call) { c.b.MatMulDX(none(c), none(c), c.matrix("w", w, V, C)) }},
		{"MatMulSwiGLU", func(c *call) {
			c.b.MatMulSwiGLU(none(c), none(c), none(c),
				c.matrix("w", w[:16*C], 16, C))
		}},
		{"MatMulDXSwiGLU", func(c *call) { c.b.MatMulDXSwiGLU(none(c), none(c), none(c), c.matrix("w", w, V, C)) }},
		{"MatMulDW", func(c *call) {
			c.b.MatMulDW(c.inout("dw", w), c.inout("dbias", w[:V]), none(c), none(c),
				first(c))
		}},
		{"Embed", func(c *call) { c.b.Embed(none(c), c.matrix("w", w, len(w)/C, C), no(c), 1) }},
		{"EmbedBackward", func(c *call) { c.b.EmbedBackward(c.inout("dw", w), none(c), no(c), C, 1) }},
		{"RMSNorm", func(c *call) { c.b.RMSNorm(none(c), none(c), none(c), c.floats("w", row), n, eps) }},
		{"RMSNormBackward", func(c *call) {
			c.b.RMSNormBackward(none(c), c.inout("dw", row), none(c), none(c), c.floats("w", row), none(c),
				first(c), n, true)
		}},
		{"AddRMSNorm", func(c *call) {
			c.b.AddRMSNorm(none(c), none(c), none(c), none(c), none(c), c.floats("w", row),
				kernels.NormShape{Heads: 1, Dim: C, Stride: C}, eps)
		}},
		{"LayerNorm", func(c *call) {
			c.b.LayerNorm(none(c), none(c), none(c), c.floats("w", row), c.floats("bias", row), C, eps)
		}},
		{"LayerNormBackward", func(c *call) {
			c.b.LayerNormBackward(none(c), c.inout("dw", row), c.inout("db", row), none(c), none(c),
				c.floats("w", row), none(c), first(c), C)
		}},
		{"GELU", func(c *call) { c.b.GELU(none(c), none(c)) }},
		{"Dropout", func(c *call) { c.b.Dropout(none(c), none(c), no(c), C, 0, 0.1) }},
		{"Rope", func(c *call) { c.b.Rope(none(c), c.floats("cos", row), c.floats("sin", row), no(c), a, false) }},
		{"Attention", func(c *call) { c.b.Attention(none(c), none(c), none(c), first(c), first(c), a) }},
		{"AttentionBackward", func(c *call) {
			c.b.AttentionBackward(none(c), none(c), none(c), none(c), none(c), first(c), first(c), a)
		}},
		{"AppendKV", func(c *call) { c.b.AppendKV(cached(c), none(c), no(c), a) }},
		{"PagedAttention", func(c *call) {
			c.b.PagedAttention(none(c), none(c), none(c), cached(c), no(c), no(c),
				no(c), 1, a)
		}},
		{"latent attention", func(c *call) {
			l := kernels.LatentShape{H: 2, Nope: 2, Rope: 2, Value: 3}
			c.b.JoinLatent(none(c), none(c), none(c), none(c), l)
			c.b.SplitLatent(none(c), none(c), none(c), none(c), l)
			c.b.TakeValues(none(c), none(c), l)
			c.b.PutValues(none(c), none(c), l)
		}},
		{"Sink", func(c *call) { c.b.Sink(none(c), none(c), none(c), c.floats("sinks", make([]float32, a.H)), a) }},
		{"SinkBackward", func(c *call) {
			sinks := make([]float32, a.H)
			c.b.SinkBackward(none(c), c.inout("dsinks", sinks), none(c), none(c), none(c), c.floats("sinks", sinks),
				first(c), a)
		}},
		{"CopyPages", func(c *call) { c.b.CopyPages(cached(c), no(c), a) }},
		{"GatherRows", func(c *call) { c.b.GatherRows(none(c), c.operands("x", w), no(c), C) }},
		{"ScatterRows", func(c *call) { c.b.ScatterRows(c.out("dx", V*C), none(c), no(c), C) }},
		{"SegmentMean", func(c *call) { c.b.SegmentMean(none(c), c.operands("x", w), no(c), C) }},
		{"SegmentMeanBackward", func(c *call) { c.b.SegmentMeanBackward(c.inout("dx", w), none(c), no(c), C) }},
		{"LogProb", func(c *call) {
			c.b.LogProb(scores(c, 0), none(c), c.matrix("w", w, V, C), no(c), kernels.Softmax{Temperature: 1})
		}},
		{"LogProbBackward", func(c *call) {
			c.b.LogProbBackward(none(c), c.inout("dw", w), none(c), none(c), scores(c, 0), none(c),
				c.matrix("w", w, V, C), no(c), first(c), kernels.Softmax{Temperature: 1})
		}},
		{"Sample", func(c *call) {
			c.b.Sample(no(c), scores(c, 0), none(c), c.matrix("w", w, V, C), none(c),
				kernels.Sampling{Temperature: 1, TopP: 0.5})
		}},
		{"TopTokens", func(c *call) {
			c.b.TopTokens(no(c), scores(c, 0), none(c), c.matrix("w", w, V, C), kernels.Softmax{Temperature: 1})
		}},
		{"Logits", func(c *call) { c.b.Logits(none(c), none(c), c.matrix("w", w, V, C), 30) }},
		{"LogProbBackward of a frozen layer", func(c *call) {
			c.b.LogProbBackward(none(c), kernels.Buffer{}, none(c), none(c), scores(c, 0), none(c),
				c.matrix("w", w, V, C), no(c), first(c), kernels.Softmax{Temperature: 1, Cap: 30})
		}},
		{"Gate", func(c *call) { c.b.Gate(none(c), none(c), 7, kernels.GELUTanh) }},
		{"GateBackward", func(c *call) { c.b.GateBackward(none(c), none(c), none(c), 7, kernels.GELUTanh) }},
		{"XIELU", func(c *call) { c.b.XIELU(none(c), none(c), 7, xielu()) }},
		{"XIELUBackward", func(c *call) {
			c.b.XIELUBackward(none(c), c.inout("dalpha", make([]float32, 2)), none(c), none(c), first(c), 7, xielu())
		}},
		{"Clip", func(c *call) { c.b.Clip(none(c), none(c), clipLimit) }},
		{"ClipBackward", func(c *call) { c.b.ClipBackward(none(c), none(c), none(c), clipLimit) }},
		{"TakeColumns", func(c *call) { c.b.TakeColumns(none(c), none(c), 3, 9, 2, 0.5) }},
		{"AddColumns", func(c *call) { c.b.AddColumns(none(c), none(c), 3, 9, 2, 0.5) }},
		{"Route", func(c *call) { c.b.Route(no(c), none(c), none(c), none(c), kernels.Buffer{}, experts) }},
		{"RouteBackward", func(c *call) { c.b.RouteBackward(none(c), none(c), no(c), none(c), none(c), experts) }},
		{"Combine", func(c *call) { c.b.Combine(none(c), none(c), no(c), none(c), C, 2) }},
		{"CombineBackward", func(c *call) {
			c.b.CombineBackward(none(c), none(c), none(c), none(c), no(c),
				none(c), C, 2)
		}},
		{"AdamW", func(c *call) { c.b.AdamW(none(c), none(c), none(c), none(c), kernels.AdamW{Step: 1}) }},
		{"SumSquares", func(c *call) { c.b.SumSquares(c.outDoubles("out", 1), none(c)) }},
		{"recurrence", func(c *call) { noRecurrence(c, none, first) }},
	} {
		// One output at least, so that there is something to compare.
		g := func(c *call) {
			c.inout("next", row)
			e.f(c)
		}
		got, err := run(s.b, g)
		if err != nil {
			return fmt.Errorf("%s: %w", e.op, err)
		}
		want, err := s.reference(g)
		if err != nil {
			return fmt.Errorf("%s: reference: %w", e.op, err)
		}
		if err := same(got, want, exactly); err != nil {
			return fmt.Errorf("%s: %w", e.op, err)
		}
	}
	return nil
}

// noRecurrence calls the operations of linear attention with no rows.
func noRecurrence(c *call, none, first func(c *call) kernels.Buffer) {
	a := kernels.AttentionShape{H: 2, K: 1, D: 4}
	d := kernels.DeltaShape{Keys: 1, Values: 2, KeyDim: 2, ValueDim: 3, Taps: 2}
	w := func() kernels.Buffer { return c.inout("weight", make([]float32, d.Mixed()*d.Taps)) }
	head := func() kernels.Buffer { return c.inout("head", make([]float32, d.Values)) }
	norm := func() kernels.Buffer { return c.inout("norm", make([]float32, d.ValueDim)) }
	r := kernels.Runs{Offsets: first(c)}
	var absent kernels.Buffer
	c.b.ShortConv(none(c), none(c), w(), absent, absent, r, d)
	c.b.ShortConvBackward(none(c), w(), absent, none(c), none(c), w(), absent, first(c), r, d)
	conv := kernels.DeltaShape{Values: 1, ValueDim: 3, Taps: 2, Conv: true}
	taps := func() kernels.Buffer { return c.inout("taps", make([]float32, conv.Mixed()*conv.Taps)) }
	c.b.GatedConv(none(c), none(c), taps(), absent, r, conv)
	c.b.GatedConvBackward(none(c), taps(), none(c), none(c), taps(), first(c), r, conv)
	c.b.DeltaGates(none(c), none(c), head(), head(), absent, d)
	c.b.DeltaGatesBackward(none(c), head(), head(), absent, none(c), none(c), none(c), head(), head(), first(c), d)
	c.b.DeltaRule(none(c), none(c), none(c), kernels.Buffer{}, r, d)
	c.b.DeltaRuleBackward(none(c), none(c), none(c), none(c), none(c), r, d)
	c.b.GatedNorm(none(c), none(c), none(c), none(c), norm(), d, eps)
	c.b.GatedNormBackward(none(c), none(c), norm(), none(c), none(c), none(c), norm(), none(c), first(c), d)
	scan := d
	scan.Scan = true
	out := func() kernels.Buffer { return c.inout("norm", make([]float32, d.Out())) }
	c.b.DeltaGates(none(c), none(c), head(), head(), head(), scan)
	c.b.DeltaGatesBackward(none(c), head(), head(), head(), none(c), none(c), none(c), head(), head(), first(c), scan)
	c.b.DeltaRule(none(c), none(c), none(c), absent, r, scan)
	c.b.DeltaRuleBackward(none(c), none(c), none(c), none(c), none(c), r, scan)
	c.b.GroupedNorm(none(c), none(c), none(c), none(c), out(), scan, eps)
	c.b.GroupedNormBackward(none(c), none(c), out(), none(c), none(c), none(c), out(), none(c), first(c), scan)
	c.b.CopyStates(c.inout("states", make([]float32, 6)), c.ints("pairs", []int32{}), 3)
	c.b.SplitGates(none(c), none(c), a)
	c.b.JoinGates(none(c), none(c), a)
	c.b.OutputGate(none(c), none(c), none(c), a)
	c.b.OutputGateBackward(none(c), none(c), none(c), none(c), none(c), a)
}
