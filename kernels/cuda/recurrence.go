//go:build cuda

package cuda

/*
#include "args.h"
*/
import "C"

import (
	"math"
	"unsafe"

	"exp/kernels"
)

// recurrenceModules have the kernels of linear attention. They are loaded when a model wants them.
var recurrenceModules = []string{"shortconv.ptx", "deltagates.ptx", "deltarule.ptx", "deltaruleback.ptx",
	"gatednorm.ptx"}

// deltaShape returns the shape for kernels, and M for rows x of so many elements each.
func (b *Backend) deltaShape(x kernels.Buffer, width int, s kernels.DeltaShape) (C.struct_delta_shape, int) {
	keys := s.Keys // kernels divide by it
	switch {
	case s.Conv:
		if s.Mixed() < 1 || s.Taps < 1 {
			panic("cuda: GatedConv: no channels or taps")
		}
		keys = 1
	case s.Keys < 1 || s.Values < 1 || s.Values%s.Keys != 0 || s.KeyDim < 1 || s.ValueDim < 1 || s.Taps < 1:
		panic("cuda: value heads are not a multiple of key heads")
	}
	b.loadOnce(recurrenceModules)
	return C.struct_delta_shape{keys: C.long(keys), values: C.long(s.Values), key_dim: C.long(s.KeyDim),
		value_dim: C.long(s.ValueDim), taps: C.long(s.Taps), mixed: C.long(s.Mixed()), stride: C.long(s.Stride()),
		by_key: flag(s.ByKey), scan: flag(s.Scan)}, rowsOf(x, width)
}

// slotsOf panics unless r has a slot for each sequence, and no groups, or none at all.
func slotsOf(r kernels.Runs) *C.int {
	if !r.Slots.Empty() && (r.Slots.Len() != r.Offsets.Len()-1 || !r.Groups.Empty()) {
		panic("cuda: runs: one slot for each sequence, and no groups")
	}
	return ints(r.Slots)
}

// launchStrips queues a kernel on the strips of mixed rows.
func (b *Backend) launchStrips(name string, rows int, s kernels.DeltaShape, args unsafe.Pointer) {
	strips := pitch(s.Mixed()) / chunk
	if s.ByKey {
		strips = s.Keys * (2*pitch(s.KeyDim) + pitch(s.Values/s.Keys*s.ValueDim)) / chunk
	}
	b.launch(name, rows*strips, args)
}

// ShortConv implements kernels.Recurrence.
func (b *Backend) ShortConv(u, x, weight, bias, tails kernels.Buffer, r kernels.Runs, s kernels.DeltaShape) {
	shape, M := b.deltaShape(x, s.Stride(), s)
	check(u, M*s.Mixed())
	check(weight, s.Mixed()*s.Taps)
	checkBias(bias, s)
	args := C.struct_short_conv_args{u: b.operand(u), x: b.operand(x), tails: b.operand(tails), weight: floats(weight),
		bias: floats(bias), slots: slotsOf(r), p: packingOf(M, r.Offsets, r.Groups), s: shape}
	b.launchStrips(biased("short_conv", bias), M, s, unsafe.Pointer(&args))
	if n := r.Slots.Len(); s.Taps > 1 {
		b.launchStrips("short_conv_tails", n, s, unsafe.Pointer(&args))
	}
}

// checkBias panics unless a convolution's bias has its length or is empty.
func checkBias(bias kernels.Buffer, s kernels.DeltaShape) {
	if !bias.Empty() {
		check(bias, s.Mixed())
	}
}

// biased returns the name of the kernel that adds a bias, unless that is empty.
func biased(name string, bias kernels.Buffer) string {
	if bias.Empty() {
		return name
	}
	return name + "_biased"
}

// ShortConvBackward implements kernels.Recurrence.
func (b *Backend) ShortConvBackward(dx, dweight, dbias, du, x, weight, bias, blocks kernels.Buffer, r kernels.Runs,
	s kernels.DeltaShape) {
	shape, M := b.deltaShape(x, s.Stride(), s)
	check(dx, x.Len())
	check(du, M*s.Mixed())
	check(weight, s.Mixed()*s.Taps)
	check(dweight, weight.Len())
	checkBias(bias, s)
	if !bias.Empty() {
		check(dbias, s.Mixed())
	}
	B := blocks.Len() - 1
	room := b.scratch(M*s.Mixed() + B*(weight.Len()+bias.Len()))
	if b.err != nil || M == 0 {
		return
	}
	parts := room.Slice(M*s.Mixed(), room.Len())
	args := C.struct_short_conv_backward_args{dx: b.operand(dx), du: b.operand(du), x: b.operand(x), dy: floats(room),
		parts: floats(parts), weight: floats(weight), bias: floats(bias), blocks: ints(blocks),
		p: packingOf(M, r.Offsets, r.Groups),
		s: shape, B: C.long(B)}
	b.launchStrips(biased("short_conv_slopes", bias), M, s, unsafe.Pointer(&args))
	b.launchStrips("short_conv_dx", M, s, unsafe.Pointer(&args))
	b.launch("short_conv_dw", B*s.Mixed(), unsafe.Pointer(&args))
	b.addParts(dweight, parts, B)
	if !bias.Empty() {
		b.launch("short_conv_dbias", B*s.Mixed(), unsafe.Pointer(&args))
		b.addParts(dbias, parts.Slice(B*weight.Len(), parts.Len()), B)
	}
}

// GatedConv implements kernels.Recurrence.
func (b *Backend) GatedConv(u, x, weight, tails kernels.Buffer, r kernels.Runs, s kernels.DeltaShape) {
	checkConv(s)
	shape, M := b.deltaShape(x, s.Stride(), s)
	check(u, M*s.Mixed())
	check(weight, s.Mixed()*s.Taps)
	args := C.struct_short_conv_args{u: b.operand(u), x: b.operand(x), tails: single(tails), weight: floats(weight),
		slots: slotsOf(r), p: packingOf(M, r.Offsets, r.Groups), s: shape}
	b.launchStrips("gated_conv", M, s, unsafe.Pointer(&args))
	if n := r.Slots.Len(); s.Taps > 1 {
		b.launchStrips("gated_conv_tails", n, s, unsafe.Pointer(&args))
	}
}

// checkConv panics unless a shape is a gated convolution's.
func checkConv(s kernels.DeltaShape) {
	if !s.Conv {
		panic("cuda: GatedConv: another layout")
	}
}

// GatedConvBackward implements kernels.Recurrence.
func (b *Backend) GatedConvBackward(dx, dweight, du, x, weight, blocks kernels.Buffer, r kernels.Runs,
	s kernels.DeltaShape) {
	checkConv(s)
	shape, M := b.deltaShape(x, s.Stride(), s)
	check(dx, x.Len())
	check(du, M*s.Mixed())
	check(weight, s.Mixed()*s.Taps)
	check(dweight, weight.Len())
	B := blocks.Len() - 1
	room := b.scratch(M*s.Mixed() + B*weight.Len())
	if b.err != nil || M == 0 {
		return
	}
	parts := room.Slice(M*s.Mixed(), room.Len())
	args := C.struct_short_conv_backward_args{dx: b.operand(dx), du: b.operand(du), x: b.operand(x), dy: floats(room),
		parts: floats(parts), weight: floats(weight), blocks: ints(blocks), p: packingOf(M, r.Offsets, r.Groups),
		s: shape, B: C.long(B)}
	b.launchStrips("gated_conv_slopes", M, s, unsafe.Pointer(&args))
	b.launchStrips("gated_conv_dx", M, s, unsafe.Pointer(&args))
	b.launch("gated_conv_dw", B*s.Mixed(), unsafe.Pointer(&args))
	b.addParts(dweight, parts, B)
}

// addParts adds to dst the first B sums of parts, in order.
func (b *Backend) addParts(dst, parts kernels.Buffer, B int) {
	n := dst.Len()
	b.launch("add_parts", n, unsafe.Pointer(&C.struct_add_parts_args{dst: floats(dst), parts: floats(parts),
		n: C.long(n), B: C.long(B)}))
}

// DeltaGates implements kernels.Recurrence.
func (b *Backend) DeltaGates(gates, x, logs, bias, skip kernels.Buffer, s kernels.DeltaShape) {
	shape, M := b.deltaShape(x, s.Stride(), s)
	check(gates, M*s.Gates())
	check(logs, s.Values)
	check(bias, s.Values)
	name := "delta_gates"
	if s.Scan {
		name = "scan_gates"
		check(skip, s.Values)
	}
	low, high := timeSteps(s)
	b.launch(name, M*s.Values, unsafe.Pointer(&C.struct_delta_gates_args{gates: floats(gates), x: b.operand(x),
		logs: floats(logs), bias: floats(bias), skip: floats(skip), s: shape, M: C.long(M), low: low, high: high}))
}

// timeSteps returns the limits of a scan's time steps.
func timeSteps(s kernels.DeltaShape) (low, high C.float) {
	if s.High == 0 {
		return C.float(s.Low), C.float(math.Inf(1))
	}
	return C.float(s.Low), C.float(s.High)
}

// DeltaGatesBackward implements kernels.Recurrence.
func (b *Backend) DeltaGatesBackward(dx, dlogs, dbias, dskip, dgates, gates, x, logs, bias, blocks kernels.Buffer,
	s kernels.DeltaShape) {
	shape, M := b.deltaShape(x, s.Stride(), s)
	check(dx, x.Len())
	check(gates, M*s.Gates())
	check(dgates, gates.Len())
	name, sums := "delta_gates_backward", []kernels.Buffer{dlogs, dbias}
	if s.Scan {
		name, sums = "scan_gates_backward", append(sums, dskip)
	}
	for _, v := range append([]kernels.Buffer{logs, bias}, sums...) {
		check(v, s.Values)
	}
	B := blocks.Len() - 1
	parts := b.scratch(len(sums) * B * s.Values)
	if b.err != nil || M == 0 {
		return
	}
	low, high := timeSteps(s)
	b.launch(name, B*s.Values, unsafe.Pointer(&C.struct_delta_gates_backward_args{dx: b.operand(dx), x: b.operand(x),
		dgates: floats(dgates), gates: floats(gates), logs: floats(logs), bias: floats(bias), blocks: ints(blocks),
		parts: floats(parts), s: shape, B: C.long(B), low: low, high: high}))
	for _, v := range sums {
		b.addParts(v, parts, B)
		parts = parts.Slice(B*s.Values, parts.Len())
	}
}

// launchDelta queues a kernel of the recurrence, or of the way back. Where states do not lie in registers, a block
// gets shared memory.
func (b *Backend) launchDelta(name string, blocks int, back bool, s kernels.DeltaShape, args unsafe.Pointer) {
	if inRegisters(s) {
		b.launchBlocks(name, blocks, deltaColumns, args)
		return
	}
	if !DeltaFits(s, back) {
		panic("cuda: keys of linear attention have too many channels")
	}
	if name += "_any"; s.Scan {
		name = "scan_rule"
		if back {
			name = "scan_rule_backward"
		}
	}
	b.launchShared(name, blocks, deltaColumns, 4*deltaShare(s, back), args)
}

// launchLanes queues a kernel on n half warps or a few more.
func (b *Backend) launchLanes(name string, n int, args unsafe.Pointer) {
	b.launchBlocks(name, (n*kernels.Lanes+laneThreads-1)/laneThreads, laneThreads, args)
}

// keyScale multiplies queries of length 1. A scan does not scale its queries.
func keyScale(s kernels.DeltaShape) C.float {
	if s.Scan {
		return 1
	}
	return C.float(1 / math.Sqrt(float64(s.KeyDim)))
}

// DeltaRule implements kernels.Recurrence.
func (b *Backend) DeltaRule(out, u, gates, states kernels.Buffer, r kernels.Runs, s kernels.DeltaShape) {
	shape, M := b.deltaShape(u, s.Mixed(), s)
	check(out, M*s.Out())
	check(gates, M*s.Gates())
	lengths := b.scratch(M * 2 * s.Keys)
	columns := deltaTile(s)
	args := C.struct_delta_rule_args{out: b.operand(out), u: b.operand(u), gates: floats(gates),
		lengths: floats(lengths), states: floats(states), slots: slotsOf(r), p: packingOf(M, r.Offsets, r.Groups),
		s: shape, step: 1, heads: C.long(s.Values), columns: C.long(columns),
		tiles: C.long((s.ValueDim + columns - 1) / columns), scale: keyScale(s)}
	b.launchLanes("delta_lengths", M*2*s.Keys, unsafe.Pointer(&args))
	b.launchRule(&args, s)
}

// launchRule takes sequences through the recurrence.
func (b *Backend) launchRule(args *C.struct_delta_rule_args, s kernels.DeltaShape) {
	b.launchDelta("delta_rule", int(args.p.S*args.heads*args.tiles), false, s, unsafe.Pointer(args))
}

// DeltaRuleBackward implements kernels.Recurrence. Value heads that share keys follow one another, and so
// do the tiles of a head's columns.
func (b *Backend) DeltaRuleBackward(du, dgates, dout, u, gates kernels.Buffer, r kernels.Runs, s kernels.DeltaShape) {
	r.Slots = kernels.Buffer{}
	shape, M := b.deltaShape(u, s.Mixed(), s)
	check(du, u.Len())
	check(gates, M*s.Gates())
	check(dgates, gates.Len())
	check(dout, M*s.Out())
	S := r.Offsets.Len() - 1
	room := deltaRoom(s, M, S, !r.Groups.Empty(), b.deltaKept)
	memory := b.scratch(room.all())
	if b.err != nil || M == 0 {
		return
	}
	take := func(n int) *C.float {
		x := memory.Slice(0, n)
		memory = memory.Slice(n, memory.Len())
		return floats(x)
	}
	back := C.struct_delta_rule_backward_args{du: b.operand(du), dout: b.operand(dout), u: b.operand(u),
		gates: floats(gates), dgates: floats(dgates), lengths: take(room.lengths), dqk: take(room.dqk),
		kept: take(room.kept), starts: take(room.starts), between: take(room.between),
		p: packingOf(M, r.Offsets, r.Groups), s: shape, step: C.long(s.Values / s.Keys),
		columns: C.long(room.columns), kept_rows: C.long(room.keptRows), scale: keyScale(s)}
	forth := C.struct_delta_rule_args{u: back.u, gates: back.gates, lengths: back.lengths, kept: back.kept, p: back.p,
		s: shape, step: back.step, columns: back.columns, tiles: 1, kept_rows: back.kept_rows, scale: back.scale}
	b.launchLanes("delta_lengths", M*2*s.Keys, unsafe.Pointer(&forth))
	for key := 0; key < s.Keys; key += room.heads {
		back.heads = C.long(min(room.heads, s.Keys-key))
		for i := range s.Values / s.Keys {
			for column := 0; column < s.ValueDim; column += room.columns {
				back.head, back.column = C.long(key)*back.step+C.long(i), C.long(column)
				back.first = flag(i == 0 && column == 0)
				b.launchBack(&forth, &back, s)
			}
		}
	}
	b.launchLanes("delta_unscale", M*2*s.Keys, unsafe.Pointer(&back))
}

// launchBack takes sequences through the recurrence and back, first those that follow the first of their group.
func (b *Backend) launchBack(forth *C.struct_delta_rule_args, back *C.struct_delta_rule_backward_args,
	s kernels.DeltaShape) {
	forth.head, forth.heads, forth.column = back.head, back.heads, back.column
	b.launchRule(forth, s)
	units := int(back.p.S * back.heads)
	for ahead := flag(back.p.G > 0); ahead >= 0; ahead-- {
		back.ahead = ahead
		b.launchDelta("delta_rule_backward", min(units, deltaBlocks), true, s, unsafe.Pointer(back))
	}
}

// outputNorm is what GatedNorm and GroupedNorm differ in.
type outputNorm struct {
	kernel         string
	heads, weights int // of a row
}

func gatedNorm(s kernels.DeltaShape) outputNorm {
	return outputNorm{"gated_norm", s.Values, s.ValueDim}
}

func groupedNorm(s kernels.DeltaShape) outputNorm {
	if !s.Scan {
		panic("cuda: GroupedNorm: gates are not contiguous")
	}
	return outputNorm{"grouped_norm", s.Keys, s.Out()}
}

// check returns the shape of the rows and their number.
func (n outputNorm) check(b *Backend, rstd, x, p, weight kernels.Buffer,
	s kernels.DeltaShape) (C.struct_delta_shape, int) {
	shape, M := b.deltaShape(p, s.Stride(), s)
	check(x, M*s.Out())
	check(rstd, M*n.heads)
	check(weight, n.weights)
	return shape, M
}

func (n outputNorm) forward(b *Backend, out, rstd, x, p, weight kernels.Buffer, s kernels.DeltaShape, eps float64) {
	shape, M := n.check(b, rstd, x, p, weight, s)
	check(out, x.Len())
	b.launchLanes(n.kernel, M*n.heads, unsafe.Pointer(&C.struct_gated_norm_args{out: b.operand(out),
		x: b.operand(x), p: b.operand(p), rstd: floats(rstd), weight: floats(weight), s: shape, M: C.long(M),
		eps: C.float(eps)}))
}

// backward computes the weight's gradient first: dx may be dout.
func (n outputNorm) backward(b *Backend, dx, dp, dweight, dout, x, p, weight, rstd, blocks kernels.Buffer,
	s kernels.DeltaShape) {
	shape, M := n.check(b, rstd, x, p, weight, s)
	check(dx, x.Len())
	check(dout, x.Len())
	check(dp, p.Len())
	check(dweight, n.weights)
	B := blocks.Len() - 1
	parts := b.scratch(B * n.weights)
	if b.err != nil || M == 0 {
		return
	}
	args := C.struct_gated_norm_backward_args{dx: b.operand(dx), dp: b.operand(dp), dout: b.operand(dout),
		x: b.operand(x), p: b.operand(p), weight: floats(weight), rstd: floats(rstd), blocks: ints(blocks),
		parts: floats(parts), s: shape, M: C.long(M), B: C.long(B)}
	b.launch(n.kernel+"_dw", B*n.weights, unsafe.Pointer(&args))
	b.addParts(dweight, parts, B)
	b.launchLanes(n.kernel+"_backward", M*n.heads, unsafe.Pointer(&args))
}

// GatedNorm implements kernels.Recurrence.
func (b *Backend) GatedNorm(out, rstd, x, p, weight kernels.Buffer, s kernels.DeltaShape, eps float64) {
	gatedNorm(s).forward(b, out, rstd, x, p, weight, s, eps)
}

// GatedNormBackward implements kernels.Recurrence.
func (b *Backend) GatedNormBackward(dx, dp, dweight, dout, x, p, weight, rstd, blocks kernels.Buffer,
	s kernels.DeltaShape) {
	gatedNorm(s).backward(b, dx, dp, dweight, dout, x, p, weight, rstd, blocks, s)
}

// GroupedNorm implements kernels.Recurrence.
func (b *Backend) GroupedNorm(out, rstd, x, p, weight kernels.Buffer, s kernels.DeltaShape, eps float64) {
	groupedNorm(s).forward(b, out, rstd, x, p, weight, s, eps)
}

// GroupedNormBackward implements kernels.Recurrence.
func (b *Backend) GroupedNormBackward(dx, dp, dweight, dout, x, p, weight, rstd, blocks kernels.Buffer,
	s kernels.DeltaShape) {
	groupedNorm(s).backward(b, dx, dp, dweight, dout, x, p, weight, rstd, blocks, s)
}

// CopyStates implements kernels.Recurrence.
func (b *Backend) CopyStates(x, pairs kernels.Buffer, n int) {
	rowsOf(x, n)
	count := rowsOf(pairs, 2)
	if count == 0 {
		return
	}
	b.launchWide("copy_pages", 1, n, unsafe.Pointer(&C.struct_copy_pages_args{pages: C.struct_pages{keys: array(x)},
		pairs: ints(pairs), n: C.long(count), elements: C.long(n)}))
}

// gatedRows panics unless x [M,stride+H·D] has M rows.
func gatedRows(x kernels.Buffer, s kernels.AttentionShape) (C.struct_attention_shape, int) {
	M := rowsOf(x, s.Stride()+s.H*s.D)
	if s.K == 0 && s.H > 0 && s.D > 0 {
		return rowShape(s), M
	}
	return attentionShape(s), M
}

// SplitGates implements kernels.Recurrence.
func (b *Backend) SplitGates(qkv, x kernels.Buffer, s kernels.AttentionShape) {
	b.moveHeads(qkv, x, s, false)
}

// JoinGates implements kernels.Recurrence.
func (b *Backend) JoinGates(dx, dqkv kernels.Buffer, s kernels.AttentionShape) {
	b.moveHeads(dqkv, dx, s, true)
}

func (b *Backend) moveHeads(qkv, x kernels.Buffer, s kernels.AttentionShape, back bool) {
	shape, M := gatedRows(x, s)
	check(qkv, M*s.Stride())
	b.launchWide("move_heads", M*(s.H+2*s.K), s.D, unsafe.Pointer(&C.struct_move_heads_args{qkv: b.operand(qkv),
		x: b.operand(x), s: shape, M: C.long(M), back: flag(back)}))
}

// OutputGate implements kernels.Recurrence.
func (b *Backend) OutputGate(out, att, x kernels.Buffer, s kernels.AttentionShape) {
	shape, M := gatedRows(x, s)
	check(out, M*s.H*s.D)
	check(att, out.Len())
	b.launchWide("output_gate", M*s.H, s.D, unsafe.Pointer(&C.struct_output_gate_args{out: b.operand(out),
		att: b.operand(att), x: b.operand(x), s: shape, M: C.long(M)}))
}

// OutputGateBackward implements kernels.Recurrence.
func (b *Backend) OutputGateBackward(datt, dx, dout, att, x kernels.Buffer, s kernels.AttentionShape) {
	shape, M := gatedRows(x, s)
	check(datt, M*s.H*s.D)
	check(dout, datt.Len())
	check(att, datt.Len())
	check(dx, x.Len())
	b.launchWide("output_gate_backward", M*s.H, s.D, unsafe.Pointer(&C.struct_output_gate_backward_args{
		datt: b.operand(datt), dx: b.operand(dx), dout: b.operand(dout), att: b.operand(att), x: b.operand(x),
		s: shape, M: C.long(M)}))
}
