package kerneltest

import (
	"fmt"

	"exp/kernels"
)

// recurrenceChecks are for backends with linear attention.
func recurrenceChecks() []check {
	return []check{
		{"ShortConv/sequences", checkShortConv},
		{"ShortConv/steps", checkConvSteps},
		{"ShortConvBackward", checkShortConvBackward},
		{"GatedConv/sequences", checkGatedConv},
		{"GatedConv/steps", checkGatedConvSteps},
		{"GatedConvBackward", checkGatedConvBackward},
		{"DeltaGates", checkDeltaGates},
		{"DeltaRule/sequences", checkDeltaRule},
		{"DeltaRule/steps", checkDeltaSteps},
		{"DeltaRuleBackward", checkDeltaRuleBackward},
		{"GatedNorm", checkGatedNorm},
		{"GroupedNorm", checkGroupedNorm},
		{"OutputGate", checkOutputGate},
		{"SplitGates", checkSplitGates},
		{"JoinGates", checkSplitGates},
		{"CopyStates", checkCopyStates},
	}
}

// deltaShapes have heads around the lanes, heads that share keys, and all layouts.
func deltaShapes(short bool) []kernels.DeltaShape {
	list := []kernels.DeltaShape{
		{Keys: 1, Values: 1, KeyDim: 1, ValueDim: 1, Taps: 1},
		{Keys: 2, Values: 4, KeyDim: 5, ValueDim: 3, Taps: 4},
		{Keys: 2, Values: 4, KeyDim: 3, ValueDim: 6, Taps: 3, ByKey: true},
		{Keys: 1, Values: 3, KeyDim: 16, ValueDim: 17, Taps: 4, ByKey: true},
		{Keys: 3, Values: 3, KeyDim: 18, ValueDim: 33, Taps: 2},
		{Keys: 1, Values: 1, KeyDim: 128, ValueDim: 128, Taps: 4}, // the heads of published models
		{Keys: 1, Values: 2, KeyDim: 6, ValueDim: 150, Taps: 3},
	}
	if !short {
		list = append(list, kernels.DeltaShape{Keys: 2, Values: 4, KeyDim: 32, ValueDim: 80, Taps: 4},
			kernels.DeltaShape{Keys: 17, Values: 34, KeyDim: 4, ValueDim: 7, Taps: 4})
	}
	list = append(list,
		kernels.DeltaShape{Keys: 2, Values: 4, KeyDim: 5, ValueDim: 3, Taps: 4, Scan: true, Low: 0.5, High: 2},
		kernels.DeltaShape{Keys: 1, Values: 2, KeyDim: 128, ValueDim: 64, Taps: 4, Scan: true}, // published models
		kernels.DeltaShape{Keys: 1, Values: 1, KeyDim: 128, ValueDim: 128, Taps: 2, Scan: true})
	if !short {
		list = append(list, kernels.DeltaShape{Keys: 1, Values: 18, KeyDim: 17, ValueDim: 80, Taps: 4, Scan: true,
			Low: 0.001})
	}
	return list
}

// earlierShape is the shape of layers before Mamba-2's: its text names data that must not change.
type earlierShape struct {
	Keys, Values, KeyDim, ValueDim, Taps int
	ByKey                                bool
}

// scanShape is Mamba-2's.
type scanShape struct {
	Keys, Values, KeyDim, ValueDim, Taps int
	ByKey, Scan                          bool
	Low, High                            float64
}

// named returns the text by which a shape names its data.
func named(d kernels.DeltaShape) any {
	if d.Conv {
		return d
	}
	if d.Scan {
		return scanShape{d.Keys, d.Values, d.KeyDim, d.ValueDim, d.Taps, d.ByKey, d.Scan, d.Low, d.High}
	}
	return earlierShape{d.Keys, d.Values, d.KeyDim, d.ValueDim, d.Taps, d.ByKey}
}

// ofScan returns n floats for a scan, and nothing for other shapes.
func (r *stream) ofScan(d kernels.DeltaShape, n int) []float32 {
	if !d.Scan {
		return nil
	}
	return r.floats(n)
}

// optional and optionalInout return buffers for x, empty ones if it is.
func (c *call) optional(name string, x []float32) kernels.Buffer {
	if len(x) == 0 {
		return kernels.Buffer{}
	}
	return c.floats(name, x)
}

func (c *call) optionalInout(name string, x []float32) kernels.Buffer {
	if len(x) == 0 {
		return kernels.Buffer{}
	}
	return c.inout(name, x)
}

// deltaBatch is a batch of sequences.
type deltaBatch struct {
	kernels.DeltaShape
	packed
}

func (p deltaBatch) String() string { return fmt.Sprintf("%+v %v", named(p.DeltaShape), p.packed) }

// deltaBatches are batches of all shapes.
func deltaBatches(short bool) []deltaBatch { return batchesOf(deltaShapes(short), short) }

// batchesOf have sequences of no rows, of fewer than the taps and of more rows than a backward
// pass keeps states for, shared and not.
func batchesOf(shapes []kernels.DeltaShape, short bool) (list []deltaBatch) {
	batches := []packed{{lengths: []int{1}}, {lengths: []int{5, 0, 2, 33}},
		{lengths: []int{5, 3, 0, 1, 0, 4, 2, 7}, groups: []int32{0, 4, 6, 7, 8}},
		{lengths: []int{0, 3, 2, 1, 9}, groups: []int32{0, 3, 5}}}
	if !short {
		batches = append(batches, packed{lengths: []int{70, 31, 65}, groups: []int32{0, 3}})
	}
	for _, s := range shapes {
		for _, b := range batches {
			list = append(list, deltaBatch{s, b})
		}
	}
	return list
}

// runs returns the batch's sequences for a call.
func (p deltaBatch) runs(c *call) kernels.Runs {
	return kernels.Runs{Offsets: c.ints("offsets", p.offsets()), Groups: p.groupsOf(c)}
}

// gates returns gates of n rows.
func (r *stream) gates(n int) []float32 {
	x := r.positive(n)
	for i := range x {
		x[i] = (x[i] - 0.5) / 1.5
	}
	return x
}

// checkSequences compares f, which computes rows [M,width] of a batch, with the reference, and each sequence
// with itself alone, and looks whether NaN reaches rows that do not follow it.
func (s *subject) checkSequences(op string, p deltaBatch, width int, x []float32,
	f func(c *call, p deltaBatch, x []float32)) error {
	if err := s.compare(op, func(c *call) { f(c, p, x) }); err != nil {
		return err
	}
	all, err := run(s.b, func(c *call) { f(c, p, x) })
	if err != nil {
		return err
	}
	for j, n := range p.lengths {
		if n == 0 {
			continue
		}
		rows, prefix := p.sequence(j)
		one := deltaBatch{p.DeltaShape, packed{lengths: []int{len(rows)}}}
		alone, err := run(s.b, func(c *call) { f(c, one, pick(x, width, rows)) })
		if err != nil {
			return err
		}
		if err := same(rowsOf(alone, len(rows), upTo(len(rows))[prefix:]), rowsOf(all, p.rows(), rows[prefix:]),
			exactly); err != nil {
			return fmt.Errorf("sequence %d alone: %w", j, err)
		}
		bad := rows[prefix+n/2]
		y := append([]float32(nil), x...)
		copy(y[bad*width:(bad+1)*width], nans(width))
		got, err := run(s.b, func(c *call) { f(c, p, y) })
		if err != nil {
			return err
		}
		others := p.notSeeing(bad)
		if err := same(rowsOf(got, p.rows(), others), rowsOf(all, p.rows(), others), exactly); err != nil {
			return fmt.Errorf("NaN in row %d: %w", bad, err)
		}
	}
	return nil
}

func checkShortConv(s *subject) error {
	for _, p := range deltaBatches(s.short) {
		r := newStream("short conv" + p.String())
		w, x := r.floats(p.Mixed()*p.Taps), r.floats(p.rows()*p.Stride())
		bias := r.ofScan(p.DeltaShape, p.Mixed())
		err := s.checkSequences("ShortConv", p, p.Stride(), x,
			func(c *call, p deltaBatch, x []float32) {
				c.b.ShortConv(c.outOperands("u", p.rows()*p.Mixed()), c.operands("x", x), c.floats("weight", w),
					c.optional("bias", bias), kernels.Buffer{}, p.runs(c), p.DeltaShape)
			})
		if err != nil {
			return fmt.Errorf("%v: %w", p, err)
		}
	}
	return nil
}

func checkDeltaRule(s *subject) error {
	for _, p := range deltaBatches(s.short) {
		r, gated := newStream("delta rule"+p.String()), p.Mixed()+p.Gates()
		x := r.floats(p.rows() * gated)
		for m := range p.rows() {
			copy(x[m*gated+p.Mixed():], r.gates(p.Gates()))
		}
		err := s.checkSequences("DeltaRule", p, gated, x, func(c *call, p deltaBatch, x []float32) {
			u, gates := splitRows(x, p.Mixed(), p.Gates())
			c.b.DeltaRule(c.outOperands("out", p.rows()*p.Out()), c.operands("u", u), c.floats("gates", gates),
				kernels.Buffer{}, p.runs(c), p.DeltaShape)
		})
		if err != nil {
			return fmt.Errorf("%v: %w", p, err)
		}
	}
	return nil
}

// splitRows parts rows of a and b columns.
func splitRows(x []float32, a, b int) (left, right []float32) {
	for i := 0; i < len(x); i += a + b {
		left, right = append(left, x[i:i+a]...), append(right, x[i+a:i+a+b]...)
	}
	return left, right
}

// stepLengths are the rows of three sequences in each of three steps. They lie in slots 4, 0 and 2.
func stepLengths() [][]int { return [][]int{{2, 1, 5}, {1, 1, 1}, {3, 35, 2}} }

const stepRows = 51 // of all steps

func stepSlots(step int) []int32 {
	if step == 0 {
		return []int32{-5, -1, -3}
	}
	return []int32{4, 0, 2}
}

// checkSteps compares steps with the reference, and their results with whole sequences: whole computes
// three of the given lengths from rows x [M,width], step a step's rows on the memory that start made.
func (s *subject) checkSteps(op string, width int, x []float32, start func(c *call) kernels.Buffer,
	compute func(c *call, x []float32, memory kernels.Buffer, r kernels.Runs)) error {
	lengths, total := stepLengths(), make([]int, 3)
	for _, l := range lengths {
		for j, n := range l {
			total[j] += n
		}
	}
	first := []int{0, total[0], total[0] + total[1]}
	steps := func(c *call) {
		memory, done := start(c), append([]int(nil), first...)
		for i, l := range lengths {
			var rows []int
			for j, n := range l {
				rows = append(rows, upTo(done[j] + n)[done[j]:]...)
				done[j] += n
			}
			compute(c, pick(x, width, rows), memory, kernels.Runs{
				Offsets: c.ints("offsets", packed{lengths: l}.offsets()), Slots: c.ints("slots", stepSlots(i))})
		}
	}
	if err := s.compare(op, steps); err != nil {
		return err
	}
	got, err := run(s.b, steps)
	if err != nil {
		return err
	}
	want, err := run(s.b, func(c *call) {
		compute(c, x, kernels.Buffer{}, kernels.Runs{Offsets: c.ints("offsets", packed{lengths: total}.offsets())})
	})
	if err != nil {
		return err
	}
	done := append([]int(nil), first...)
	for i, l := range lengths {
		var rows []int
		n := 0
		for j := range l {
			rows = append(rows, upTo(done[j] + l[j])[done[j]:]...)
			done[j] += l[j]
			n += l[j]
		}
		whole := rowsOf(want, total[0]+total[1]+total[2], rows)
		if err := same(rowsOf(got[1+i:2+i], n, upTo(n)), whole, exactly); err != nil {
			return fmt.Errorf("step %d is not what it is in whole sequences: %w", i, err)
		}
	}
	return nil
}

func checkConvSteps(s *subject) error {
	for _, d := range deltaShapes(s.short) {
		r := newStream(fmt.Sprint("conv steps", named(d)))
		w, tails, x := r.floats(d.Mixed()*d.Taps), r.floats(5*d.Tail()), r.floats(stepRows*d.Stride())
		bias := r.ofScan(d, d.Mixed())
		err := s.checkSteps("ShortConv", d.Stride(), x,
			func(c *call) kernels.Buffer { return c.inoutOperands("tails", tails) },
			func(c *call, x []float32, memory kernels.Buffer, runs kernels.Runs) {
				u := c.outOperands("u", len(x)/d.Stride()*d.Mixed())
				c.b.ShortConv(u, c.operands("x", x), c.floats("weight", w), c.optional("bias", bias), memory, runs, d)
			})
		if err != nil {
			return fmt.Errorf("%+v: %w", d, err)
		}
	}
	return nil
}

func checkDeltaSteps(s *subject) error {
	for _, d := range deltaShapes(s.short) {
		r, width := newStream(fmt.Sprint("delta steps", named(d))), d.Mixed()+d.Gates()
		states, x := r.floats(5*d.State()), r.floats(stepRows*width)
		for m := range stepRows {
			copy(x[m*width+d.Mixed():], r.gates(d.Gates()))
		}
		err := s.checkSteps("DeltaRule", width, x,
			func(c *call) kernels.Buffer { return c.inout("states", states) },
			func(c *call, x []float32, memory kernels.Buffer, runs kernels.Runs) {
				u, gates := splitRows(x, d.Mixed(), d.Gates())
				c.b.DeltaRule(c.outOperands("out", len(x)/width*d.Out()), c.operands("u", u), c.floats("gates", gates),
					memory, runs, d)
			})
		if err != nil {
			return fmt.Errorf("%+v: %w", d, err)
		}
	}
	return nil
}

func checkShortConvBackward(s *subject) error {
	for _, p := range deltaBatches(s.short) {
		M, r := p.rows(), newStream("short conv backward"+p.String())
		w, x, du := r.floats(p.Mixed()*p.Taps), r.floats(M*p.Stride()), r.floats(M*p.Mixed())
		dw, dx, blocks := r.floats(len(w)), r.floats(len(x)), p.blocks(r)
		bias, dbias := r.ofScan(p.DeltaShape, p.Mixed()), r.ofScan(p.DeltaShape, p.Mixed())
		if err := s.compare("ShortConvBackward", func(c *call) {
			c.b.ShortConvBackward(c.inoutOperands("dx", dx), c.inout("dweight", dw), c.optionalInout("dbias", dbias),
				c.operands("du", du), c.operands("x", x), c.floats("weight", w), c.optional("bias", bias),
				c.ints("blocks", blocks), p.runs(c), p.DeltaShape)
		}); err != nil {
			return fmt.Errorf("%v: %w", p, err)
		}
	}
	return nil
}

// blocks returns gradient blocks of a batch: each ends at most where a group does.
func (p deltaBatch) blocks(r *stream) []int32 {
	off, groups, list := p.offsets(), p.groups, []int32{0}
	if groups == nil {
		for j := range off {
			groups = append(groups, int32(j))
		}
	}
	for g := 1; g < len(groups); g++ {
		from := off[groups[g-1]]
		if n := int(off[groups[g]] - from); n > 0 {
			for _, cut := range r.cuts(n, 9)[1:] {
				list = append(list, from+cut)
			}
		}
	}
	return list
}

func checkDeltaRuleBackward(s *subject) error {
	for _, p := range deltaBatches(s.short) {
		M, r := p.rows(), newStream("delta rule backward"+p.String())
		u, gates, dout := r.floats(M*p.Mixed()), r.gates(M*p.Gates()), r.floats(M*p.Out())
		back := func(c *call) {
			c.b.DeltaRuleBackward(c.outOperands("du", len(u)), c.out("dgates", len(gates)), c.operands("dout", dout),
				c.operands("u", u), c.floats("gates", gates), p.runs(c), p.DeltaShape)
		}
		if err := s.compare("DeltaRuleBackward", back); err != nil {
			return fmt.Errorf("%v: %w", p, err)
		}
	}
	return nil
}

func checkDeltaGates(s *subject) error {
	const M = 19
	for _, d := range deltaShapes(s.short) {
		r := newStream(fmt.Sprint("delta gates", named(d)))
		x, logs, bias := r.scaled(M*d.Stride(), 3), r.floats(d.Values), r.floats(d.Values)
		x[d.Forget(0)], x[d.Stride()+d.Forget(0)] = 25, 100 // above SoftplusLinear, and where Exp overflows
		gates, dgates, dx := r.gates(M*d.Gates()), r.floats(M*d.Gates()), r.floats(len(x))
		dlogs, dbias := r.floats(d.Values), r.floats(d.Values)
		skip, dskip := r.ofScan(d, d.Values), r.ofScan(d, d.Values)
		rows := field{name: "x", width: d.Stride(), f: x, operand: true}
		if err := s.checkRows(rowCase{
			name: fmt.Sprintf("DeltaGates %+v", named(d)), op: "DeltaGates", rows: []field{rows},
			run: func(c *call, in []kernels.Buffer, M int) {
				c.b.DeltaGates(c.out("gates", M*d.Gates()), in[0], c.floats("logs", logs), c.floats("bias", bias),
					c.optional("skip", skip), d)
			},
		}, M); err != nil {
			return err
		}
		if err := s.checkGradient(gradientCase{
			name: fmt.Sprintf("DeltaGatesBackward %+v", named(d)), op: "DeltaGatesBackward", blocks: r.cuts(M, 9),
			setup: func(c *call) func(lo, hi int, blocks []int32) {
				dxb, dl, db := c.inoutOperands("dx", dx), c.inout("dlogs", dlogs), c.inout("dbias", dbias)
				dg, g, xb := c.floats("dgates", dgates), c.floats("gates", gates), c.operands("x", x)
				l, b, ds := c.floats("logs", logs), c.floats("bias", bias), c.optionalInout("dskip", dskip)
				return func(lo, hi int, blocks []int32) {
					view := func(x kernels.Buffer, width int) kernels.Buffer { return x.Slice(lo*width, hi*width) }
					c.b.DeltaGatesBackward(view(dxb, d.Stride()), dl, db, ds, view(dg, d.Gates()), view(g, d.Gates()),
						view(xb, d.Stride()), l, b, c.ints("blocks", blocks), d)
				}
			},
		}); err != nil {
			return err
		}
	}
	return nil
}

// outputNorm is a norm of what a recurrence puts out, with its gate.
type outputNorm struct {
	op, data       string // data names the numbers
	shape          any    // as it is printed
	heads, weights int    // of a row
	norm           func(b kernels.Backend, out, rstd, x, p, weight kernels.Buffer, s kernels.DeltaShape, eps float64)
	backward       func(b kernels.Backend, dx, dp, dweight, dout, x, p, weight, rstd, blocks kernels.Buffer,
		s kernels.DeltaShape)
}

func checkGatedNorm(s *subject) error {
	for _, d := range deltaShapes(s.short) {
		if err := s.checkOutputNorm(d, outputNorm{"GatedNorm", "gated norm", named(d), d.Values, d.ValueDim,
			kernels.Backend.GatedNorm, kernels.Backend.GatedNormBackward}); err != nil {
			return err
		}
	}
	return nil
}

func checkGroupedNorm(s *subject) error {
	for _, d := range deltaShapes(s.short) {
		if !d.Scan {
			continue
		}
		if err := s.checkOutputNorm(d, outputNorm{"GroupedNorm", "grouped norm", named(d), d.Keys, d.Out(),
			kernels.Backend.GroupedNorm, kernels.Backend.GroupedNormBackward}); err != nil {
			return err
		}
	}
	return nil
}

func (s *subject) checkOutputNorm(d kernels.DeltaShape, n outputNorm) error {
	const M = 19
	r := newStream(fmt.Sprint(n.data, n.shape))
	x, p, w, dout := r.floats(M*d.Out()), r.floats(M*d.Stride()), r.floats(n.weights), r.floats(M*d.Out())
	rstd, dp, dw := r.positive(M*n.heads), r.floats(len(p)), r.floats(n.weights)
	if err := s.checkRows(rowCase{
		name: fmt.Sprintf("%s %+v", n.op, n.shape), op: n.op,
		rows: []field{{name: "x", width: d.Out(), f: x, operand: true},
			{name: "p", width: d.Stride(), f: p, operand: true}},
		run: func(c *call, in []kernels.Buffer, M int) {
			n.norm(c.b, c.outOperands("out", M*d.Out()), c.out("rstd", M*n.heads), in[0], in[1],
				c.floats("weight", w), d, 1e-2)
		},
	}, M); err != nil {
		return err
	}
	for _, place := range []bool{false, true} {
		if err := s.checkGradient(gradientCase{
			name: fmt.Sprintf("%sBackward %+v in place %v", n.op, n.shape, place), op: n.op + "Backward",
			blocks: r.cuts(M, 9),
			setup: func(c *call) func(lo, hi int, blocks []int32) {
				dpb, dwb := c.inoutOperands("dp", dp), c.inout("dweight", dw)
				xb, pb, wb := c.operands("x", x), c.operands("p", p), c.floats("weight", w)
				rb := c.floats("rstd", rstd)
				dx := c.inoutOperands("dx", dout)
				do := dx
				if !place {
					do = c.operands("dout", dout)
				}
				return func(lo, hi int, blocks []int32) {
					view := func(x kernels.Buffer, width int) kernels.Buffer { return x.Slice(lo*width, hi*width) }
					n.backward(c.b, view(dx, d.Out()), view(dpb, d.Stride()), dwb, view(do, d.Out()),
						view(xb, d.Out()), view(pb, d.Stride()), wb, view(rb, n.heads), c.ints("blocks", blocks), d)
				}
			},
		}); err != nil {
			return err
		}
	}
	return nil
}

// gatedShapes are heads with gates.
func gatedShapes() []kernels.AttentionShape {
	return []kernels.AttentionShape{{H: 1, K: 1, D: 1}, {H: 3, K: 1, D: 5}, {H: 4, K: 2, D: 16}, {H: 2, K: 2, D: 33}}
}

func checkOutputGate(s *subject) error {
	const M = 9
	alone := []kernels.AttentionShape{{H: 1, K: 0, D: 1}, {H: 1, K: 0, D: 33}, {H: 3, K: 0, D: 16}}
	for _, a := range append(gatedShapes(), alone...) {
		r, wide, HD := newStream(fmt.Sprint("output gate", namedHeads(a))), a.Stride()+a.H*a.D, a.H*a.D
		x := field{name: "x", width: wide, f: r.floats(M * wide), operand: true}
		att := field{name: "att", width: HD, f: r.floats(M * HD), operand: true}
		dout := field{name: "dout", width: HD, f: r.floats(M * HD), operand: true}
		dx := field{name: "dx", width: wide, f: r.floats(M * wide), operand: true, inout: true}
		over, back := att, dout
		over.inout, back.inout = true, true
		apart := func(c *call, in []kernels.Buffer, M int) {
			c.b.OutputGateBackward(c.outOperands("datt", M*HD), in[3], in[0], in[1], in[2], a)
		}
		inPlace := func(c *call, in []kernels.Buffer, M int) {
			c.b.OutputGateBackward(in[0], in[3], in[0], in[1], in[2], a)
		}
		for _, rc := range []rowCase{
			{op: "OutputGate", rows: []field{att, x}, run: func(c *call, in []kernels.Buffer, M int) {
				c.b.OutputGate(c.outOperands("out", M*HD), in[0], in[1], a)
			}},
			{op: "OutputGate", rows: []field{over, x}, run: func(c *call, in []kernels.Buffer, M int) {
				c.b.OutputGate(in[0], in[0], in[1], a)
			}},
			{op: "OutputGateBackward", rows: []field{dout, att, x, dx}, run: apart},
			{op: "OutputGateBackward", rows: []field{back, att, x, dx}, run: inPlace},
		} {
			rc.name = fmt.Sprintf("%s %+v", rc.op, namedHeads(a))
			if err := s.checkRows(rc, M); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkSplitGates(s *subject) error {
	const M = 9
	for _, a := range gatedShapes() {
		r, wide := newStream(fmt.Sprint("split gates", namedHeads(a))), a.Stride()+a.H*a.D
		x := field{name: "x", width: wide, f: r.floats(M * wide), operand: true}
		into := x
		into.inout = true
		dqkv := field{name: "dqkv", width: a.Stride(), f: r.floats(M * a.Stride()), operand: true}
		for _, rc := range []rowCase{
			{op: "SplitGates", rows: []field{x}, run: func(c *call, in []kernels.Buffer, M int) {
				c.b.SplitGates(c.outOperands("qkv", M*a.Stride()), in[0], a)
			}},
			{op: "JoinGates", rows: []field{into, dqkv}, run: func(c *call, in []kernels.Buffer, M int) {
				c.b.JoinGates(in[0], in[1], a)
			}},
		} {
			rc.name = fmt.Sprintf("%s %+v", rc.op, namedHeads(a))
			if err := s.checkRows(rc, M); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkCopyStates(s *subject) error {
	const n, places = 7, 6
	x := newStream("copy states").floats(n * places)
	for _, operand := range []bool{false, true} {
		if err := s.compare("CopyStates", func(c *call) {
			b := c.inout
			if operand {
				b = c.inoutOperands
			}
			c.b.CopyStates(b("x", x), c.ints("pairs", []int32{0, 3, 3, 5, 1, 3}), n)
		}); err != nil {
			return err
		}
	}
	return nil
}
