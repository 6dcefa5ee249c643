package cpu

// #include "level/args.h"
import "C"

import (
	"math"
	"unsafe"

	"exp/kernels"
)

// runSizes are the most rows of a sequence without its prefix, and of a group.
type runSizes struct{ longest, most int }

// runs fills a list of sequences of m rows, with one slot for each where there are slots, and panics
// if it does not fit.
func (b *Backend) runs(to *C.struct_run_list, r kernels.Runs, m, slots int) (s runSizes) {
	b.flush() // completes the lists
	offsets := kernels.Elems[int32](r.Offsets)
	to.offsets, to.groups, to.slots, to.count = ints(r.Offsets), nil, nil, C.long(len(offsets)-1)
	if len(offsets) == 0 || offsets[0] != 0 || int(offsets[len(offsets)-1]) != m {
		panic("cpu: sequences do not cover the rows")
	}
	for j := 1; j < len(offsets); j++ {
		n := int(offsets[j] - offsets[j-1])
		if n < 0 {
			panic("cpu: sequences are not in order")
		}
		s.longest = max(s.longest, n)
	}
	s.most = s.longest
	if !r.Groups.Empty() {
		groups := kernels.Elems[int32](r.Groups)
		to.groups, to.count = ints(r.Groups), C.long(len(groups)-1)
		if groups[0] != 0 || int(groups[len(groups)-1]) != len(offsets)-1 {
			panic("cpu: groups do not cover the sequences")
		}
		for g := 1; g < len(groups); g++ {
			s.most = max(s.most, int(offsets[groups[g]]-offsets[groups[g-1]]))
		}
	}
	if r.Slots.Empty() {
		return s
	}
	if r.Slots.Len() != len(offsets)-1 || to.groups != nil {
		panic("cpu: runs: one slot for each sequence, and no groups")
	}
	for _, slot := range kernels.Elems[int32](r.Slots) {
		if slot >= int32(slots) || -1-slot >= int32(slots) {
			panic("cpu: no such slot")
		}
	}
	to.slots = ints(r.Slots)
	return s
}

// slotsOf returns how many slots of n elements x has; n may be 0.
func slotsOf(x kernels.Buffer, n int) int {
	if n == 0 {
		return math.MaxInt32
	}
	return x.Len() / n
}

// convStrip is the most channels in a unit of a convolution.
const convStrip = C.CONV_STRIP

// conv fills what ShortConv, GatedConv and their gradients share.
func (b *Backend) conv(x, weight, bias kernels.Buffer, r kernels.Runs, slots int,
	s kernels.DeltaShape) (*C.struct_conv_args, runSizes) {
	m := convRows(x, s)
	check(weight, s.Mixed()*s.Taps)
	if !bias.Empty() {
		check(bias, s.Mixed())
	}
	if s.Taps > C.CONV_TAPS {
		panic("cpu: convolution: too many taps")
	}
	g := &b.a.conv
	*g = C.struct_conv_args{}
	sizes := b.runs(&g.runs, r, m, slots)
	if b.striped != s {
		b.makeStrips(s)
	}
	g.strip, g.strips = ints(b.strips), C.long(b.stripCount)
	g.x, g.weight, g.bias = x.Addr(), floats(weight), floats(bias)
	g.m, g.mixed, g.stride, g.taps = C.long(m), C.long(s.Mixed()), C.long(s.Stride()), C.long(s.Taps)
	return g, sizes
}

// makeStrips sets b.strips to the strips of channels of a shape.
func (b *Backend) makeStrips(s kernels.DeltaShape) {
	var list []int32
	for _, block := range s.Blocks() {
		for i := 0; i < block.N; i += convStrip {
			list = append(list, int32(block.Mixed+i), int32(block.At+i), int32(min(convStrip, block.N-i)))
		}
	}
	b.grow(&b.strips, kernels.I32, len(list), len(list))
	copy(kernels.Elems[int32](b.strips), list)
	b.striped, b.stripCount = s, len(list)/3
}

// ShortConv computes the short convolution and its activation.
func (b *Backend) ShortConv(u, x, weight, bias, tails kernels.Buffer, r kernels.Runs, s kernels.DeltaShape) {
	g, sizes := b.conv(x, weight, bias, r, slotsOf(tails, s.Tail()), s)
	check(u, int(g.m)*s.Mixed())
	g.u, g.tails, g.bf16 = u.Addr(), tails.Addr(), isBF16(u, x, tails)
	b.run(b.k.short_conv, unsafe.Pointer(g), int(g.runs.count*g.strips), max(1, 256/max(1, sizes.longest)))
}

// ShortConvBackward computes the gradients of ShortConv.
func (b *Backend) ShortConvBackward(dx, dweight, dbias, du, x, weight, bias, blocks kernels.Buffer, r kernels.Runs,
	s kernels.DeltaShape) {
	r.Slots = kernels.Buffer{}
	g, sizes := b.conv(x, weight, bias, r, 0, s)
	m := int(g.m)
	check(dx, m*s.Stride())
	check(du, m*s.Mixed())
	check(dweight, weight.Len())
	if !bias.Empty() {
		check(dbias, bias.Len())
	}
	g.dx, g.du, g.dweight, g.dbias = dx.Addr(), du.Addr(), floats(dweight), floats(dbias)
	g.block, g.bf16 = ints(blocks), isBF16(dx, du, x)
	g.scratch, g.scratch_len = b.roomFor(sizes.most * convStrip)
	b.run(b.k.short_conv_backward, unsafe.Pointer(g), int(g.strips), 1)
}

// GatedConv computes the gated short convolution.
func (b *Backend) GatedConv(u, x, weight, tails kernels.Buffer, r kernels.Runs, s kernels.DeltaShape) {
	checkConv(s)
	g, sizes := b.conv(x, weight, kernels.Buffer{}, r, slotsOf(tails, s.Tail()), s)
	check(u, int(g.m)*s.Mixed())
	g.u, g.tails, g.bf16 = u.Addr(), unsafe.Pointer(floats(tails)), isBF16(u, x)
	b.run(b.k.gated_conv, unsafe.Pointer(g), int(g.runs.count*g.strips), max(1, 512/max(1, sizes.longest)))
}

// GatedConvBackward computes the gradients of GatedConv.
func (b *Backend) GatedConvBackward(dx, dweight, du, x, weight, blocks kernels.Buffer, r kernels.Runs,
	s kernels.DeltaShape) {
	checkConv(s)
	r.Slots = kernels.Buffer{}
	g, sizes := b.conv(x, weight, kernels.Buffer{}, r, 0, s)
	check(dx, x.Len())
	check(du, int(g.m)*s.Mixed())
	check(dweight, weight.Len())
	g.dx, g.du, g.dweight, g.block, g.bf16 = dx.Addr(), du.Addr(), floats(dweight), ints(blocks), isBF16(dx, du, x)
	g.scratch, g.scratch_len = b.roomFor(sizes.most * convStrip)
	b.run(b.k.gated_conv_backward, unsafe.Pointer(g), int(g.strips), 1)
}

// checkConv panics unless a shape is a gated convolution's.
func checkConv(s kernels.DeltaShape) {
	if !s.Conv {
		panic("cpu: GatedConv: another layout")
	}
}

// convRows returns the number of rows that a convolution reads.
func convRows(x kernels.Buffer, s kernels.DeltaShape) int {
	if !s.Conv {
		return deltaRows(x, s)
	}
	if s.Mixed() < 1 || s.Taps < 1 {
		panic("cpu: GatedConv: no channels or taps")
	}
	m := x.Len() / s.Stride()
	check(x, m*s.Stride())
	return m
}

// deltaRows returns the number of projected rows and panics unless the shape is one.
func deltaRows(x kernels.Buffer, s kernels.DeltaShape) int {
	if s.Keys < 1 || s.Values < 1 || s.Values%s.Keys != 0 || s.KeyDim < 1 || s.ValueDim < 1 || s.Taps < 1 {
		panic("cpu: value heads are not a multiple of key heads")
	}
	m := x.Len() / s.Stride()
	check(x, m*s.Stride())
	return m
}

// deltaGates fills what DeltaGates and its gradients share.
func (b *Backend) deltaGates(gates, x, logs, bias kernels.Buffer, s kernels.DeltaShape) (*C.struct_delta_gates_args,
	int) {
	m := deltaRows(x, s)
	check(gates, m*s.Gates())
	check(logs, s.Values)
	check(bias, s.Values)
	g := &b.a.delta_gates
	*g = C.struct_delta_gates_args{}
	g.gates, g.x, g.logs, g.bias = floats(gates), x.Addr(), floats(logs), floats(bias)
	g.heads, g.keys, g.stride, g.at = C.long(s.Values), C.long(s.Keys), C.long(s.Stride()), C.long(s.Mixed()+s.Out())
	g.by_key, g.scan = flag(s.ByKey), flag(s.Scan)
	g.low, g.high = C.float(s.Low), C.float(s.High)
	if s.High == 0 {
		g.high = C.float(math.Inf(1))
	}
	return g, m
}

// DeltaGates computes what each value head keeps and writes.
func (b *Backend) DeltaGates(gates, x, logs, bias, skip kernels.Buffer, s kernels.DeltaShape) {
	g, m := b.deltaGates(gates, x, logs, bias, s)
	if s.Scan {
		check(skip, s.Values)
	}
	g.skip, g.bf16 = floats(skip), isBF16(x)
	b.run(b.k.delta_gates, unsafe.Pointer(g), m, rowGrain(64*s.Values))
}

// DeltaGatesBackward computes the gradients of DeltaGates.
func (b *Backend) DeltaGatesBackward(dx, dlogs, dbias, dskip, dgates, gates, x, logs, bias, blocks kernels.Buffer,
	s kernels.DeltaShape) {
	g, m := b.deltaGates(gates, x, logs, bias, s)
	check(dx, m*s.Stride())
	check(dgates, m*s.Gates())
	check(dlogs, s.Values)
	check(dbias, s.Values)
	if s.Scan {
		check(dskip, s.Values)
	}
	g.dskip = floats(dskip)
	g.dx, g.dlogs, g.dbias, g.dgates, g.bf16 = dx.Addr(), floats(dlogs), floats(dbias), floats(dgates), isBF16(dx, x)
	g.block, g.blocks = ints(blocks), C.long(blocks.Len()-1)
	b.run(b.k.delta_gates_backward, unsafe.Pointer(g), ceilDiv(s.Values, kernels.Lanes), 1)
}

// delta fills what DeltaRule and its gradients share.
func (b *Backend) delta(u, gates kernels.Buffer, r kernels.Runs, slots int,
	s kernels.DeltaShape) (*C.struct_delta_args, int) {
	deltaRows(kernels.Buffer{}, s)
	m := u.Len() / s.Mixed()
	check(u, m*s.Mixed())
	check(gates, m*s.Gates())
	g := &b.a.delta
	*g = C.struct_delta_args{}
	sizes := b.runs(&g.runs, r, m, slots)
	g.longest, g.most = C.long(sizes.longest), C.long(sizes.most)
	g.u, g.gates = u.Addr(), floats(gates)
	g.keys, g.values, g.key_dim, g.value_dim = C.long(s.Keys), C.long(s.Values), C.long(s.KeyDim), C.long(s.ValueDim)
	g.mixed, g.scale = C.long(s.Mixed()), C.float(1/math.Sqrt(float64(s.KeyDim)))
	g.query, g.key, g.value = C.long(s.Query()), C.long(s.Key()), C.long(s.Value())
	g.width, g.scan = C.long(s.Gates()), flag(s.Scan)
	return g, m
}

// DeltaRule computes the recurrence.
func (b *Backend) DeltaRule(out, u, gates, states kernels.Buffer, r kernels.Runs, s kernels.DeltaShape) {
	g, m := b.delta(u, gates, r, slotsOf(states, s.State()), s)
	check(out, m*s.Out())
	g.out, g.states, g.bf16 = out.Addr(), floats(states), isBF16(out, u)
	g.scratch, g.scratch_len = b.roomFor(2*s.KeyDim*s.ValueDim + 2*C.DELTA_ROWS*s.KeyDim)
	b.run(b.k.delta_rule, unsafe.Pointer(g), int(g.runs.count)*s.Values, 1)
}

// DeltaRuleBackward computes the gradients of DeltaRule.
func (b *Backend) DeltaRuleBackward(du, dgates, dout, u, gates kernels.Buffer, r kernels.Runs, s kernels.DeltaShape) {
	r.Slots = kernels.Buffer{}
	g, m := b.delta(u, gates, r, 0, s)
	check(du, m*s.Mixed())
	check(dgates, m*s.Gates())
	check(dout, m*s.Out())
	g.du, g.dgates, g.dout, g.bf16 = du.Addr(), floats(dgates), dout.Addr(), isBF16(du, dout, u)
	g.scratch, g.scratch_len = b.roomFor(deltaBackRoom(s, int(g.longest), int(g.most)))
	b.run(b.k.delta_rule_backward, unsafe.Pointer(g), int(g.runs.count)*s.Keys, 1)
}

// deltaBackRoom returns the elements of a thread's memory in DeltaRuleBackward, for sequences of at
// most longest rows without prefix and groups of at most most rows. It is delta_back_room's.
func deltaBackRoom(s kernels.DeltaShape, longest, most int) int {
	states := 3 + C.DELTA_KEEP + 1 + 2*(longest/C.DELTA_KEEP+1)
	return states*s.KeyDim*kernels.Lanes + C.DELTA_KEEP*kernels.Lanes + most*4*s.KeyDim
}

// outputNorm fills what a norm of the recurrence's output shares with its gradients. A row has heads of equal
// width; weights is the length of weight.
func (b *Backend) outputNorm(rstd, x, p, weight kernels.Buffer, s kernels.DeltaShape,
	heads, weights int) (*C.struct_gated_norm_args, int) {
	m := deltaRows(p, s)
	check(x, m*s.Out())
	check(rstd, m*heads)
	check(weight, weights)
	g := &b.a.gated_norm
	*g = C.struct_gated_norm_args{}
	g.rstd, g.x, g.p, g.weight = floats(rstd), x.Addr(), p.Addr(), floats(weight)
	g.heads, g.dim, g.stride, g.at = C.long(heads), C.long(s.Out()/heads), C.long(s.Stride()), C.long(s.Gate(0))
	g.per_group = C.long(heads)
	return g, m
}

// outputNormBackward runs the kernel of g, each of whose threads has dn floats of scratch, and adds up the gradient of
// weight.
func (b *Backend) outputNormBackward(kernel C.kernel, g *C.struct_gated_norm_args, m, dn int, dx, dp, dweight, dout,
	x, p, weight, blocks kernels.Buffer, s kernels.DeltaShape) {
	weights := weight.Len()
	check(dx, m*s.Out())
	check(dp, m*s.Stride())
	check(dout, m*s.Out())
	check(dweight, weights)
	n := blocks.Len() - 1
	sums := &b.a.norm_back
	*sums = C.struct_norm_back_args{}
	room, _ := b.roomFor(dn + ceilDiv(n*weights, b.pool.n)) // of all threads: each one's dn, then the parts
	parts := (*C.float)(unsafe.Add(unsafe.Pointer(room), dn*b.pool.n*4))
	g.dx, g.dp, g.dout, g.bf16 = dx.Addr(), dp.Addr(), dout.Addr(), isBF16(dx, dp, dout, x, p)
	g.block, g.parts, g.scratch, g.scratch_len = ints(blocks), parts, room, C.long(dn)
	b.run(kernel, unsafe.Pointer(g), n, 1)
	sums.dweight, sums.parts, sums.blocks, sums.dim = floats(dweight), parts, C.long(n), C.long(weights)
	b.run(b.k.rmsnorm_dweight, unsafe.Pointer(sums), ceilDiv(weights, kernels.Lanes), 1)
}

// gatedNorm fills what GatedNorm and its gradients share.
func (b *Backend) gatedNorm(rstd, x, p, weight kernels.Buffer, s kernels.DeltaShape) (*C.struct_gated_norm_args, int) {
	g, m := b.outputNorm(rstd, x, p, weight, s, s.Values, s.ValueDim)
	if s.ByKey {
		g.per_group = C.long(s.Values / s.Keys)
		if s.Keys > 1 {
			g.group = C.long(s.Gate(s.Values/s.Keys) - s.Gate(0))
		}
	}
	return g, m
}

// GatedNorm normalises the output of the recurrence and applies its gate.
func (b *Backend) GatedNorm(out, rstd, x, p, weight kernels.Buffer, s kernels.DeltaShape, eps float64) {
	g, m := b.gatedNorm(rstd, x, p, weight, s)
	check(out, m*s.Out())
	g.out, g.eps, g.bf16 = out.Addr(), C.float(eps), isBF16(out, x, p)
	b.run(b.k.gated_norm, unsafe.Pointer(g), m, rowGrain(16*s.Out()))
}

// GatedNormBackward computes the gradients of GatedNorm.
func (b *Backend) GatedNormBackward(dx, dp, dweight, dout, x, p, weight, rstd, blocks kernels.Buffer,
	s kernels.DeltaShape) {
	g, m := b.gatedNorm(rstd, x, p, weight, s)
	dn := ceilDiv(s.ValueDim, kernels.Lanes) * kernels.Lanes
	b.outputNormBackward(b.k.gated_norm_backward, g, m, dn, dx, dp, dweight, dout, x, p, weight, blocks, s)
}

// groupedNorm fills what GroupedNorm and its gradients share.
func (b *Backend) groupedNorm(rstd, x, p, weight kernels.Buffer,
	s kernels.DeltaShape) (*C.struct_gated_norm_args, int) {
	if !s.Scan {
		panic("cpu: GroupedNorm: gates are not contiguous")
	}
	return b.outputNorm(rstd, x, p, weight, s, s.Keys, s.Out())
}

// GroupedNorm applies the gates to the output of the scan and normalises it.
func (b *Backend) GroupedNorm(out, rstd, x, p, weight kernels.Buffer, s kernels.DeltaShape, eps float64) {
	g, m := b.groupedNorm(rstd, x, p, weight, s)
	check(out, m*s.Out())
	g.out, g.eps, g.bf16 = out.Addr(), C.float(eps), isBF16(out, x, p)
	b.run(b.k.grouped_norm, unsafe.Pointer(g), m, rowGrain(24*s.Out()))
}

// GroupedNormBackward computes the gradients of GroupedNorm.
func (b *Backend) GroupedNormBackward(dx, dp, dweight, dout, x, p, weight, rstd, blocks kernels.Buffer,
	s kernels.DeltaShape) {
	g, m := b.groupedNorm(rstd, x, p, weight, s)
	b.outputNormBackward(b.k.grouped_norm_backward, g, m, 0, dx, dp, dweight, dout, x, p, weight, blocks, s)
}

// CopyStates copies n elements from place to place.
func (b *Backend) CopyStates(x, pairs kernels.Buffer, n int) {
	b.flush() // completes pairs
	list := kernels.Elems[int32](pairs)
	for i := 0; i+1 < len(list); i += 2 {
		from, to := int(list[i])*n, int(list[i+1])*n
		b.Copy(x.Slice(to, to+n), x.Slice(from, from+n))
	}
}

// outputGate fills what the operations on gates of attention share, for rows x.
func (b *Backend) outputGate(x kernels.Buffer, s kernels.AttentionShape) (*C.struct_output_gate_args, int) {
	stride := 2 * (s.H + s.K) * s.D
	m := x.Len() / stride
	check(x, m*stride)
	g := &b.a.output_gate
	*g = C.struct_output_gate_args{}
	g.x, g.h, g.kv, g.d = x.Addr(), C.long(s.H), C.long(s.K), C.long(s.D)
	return g, m
}

// SplitGates copies rows without their gates.
func (b *Backend) SplitGates(qkv, x kernels.Buffer, s kernels.AttentionShape) {
	b.moveHeads(qkv, x, s, false)
}

// JoinGates copies them back.
func (b *Backend) JoinGates(dx, dqkv kernels.Buffer, s kernels.AttentionShape) {
	b.moveHeads(dqkv, dx, s, true)
}

func (b *Backend) moveHeads(qkv, x kernels.Buffer, s kernels.AttentionShape, back bool) {
	g, m := b.outputGate(x, s)
	check(qkv, m*s.Stride())
	g.qkv, g.back, g.bf16 = qkv.Addr(), flag(back), isBF16(qkv, x)
	b.run(b.k.move_heads, unsafe.Pointer(g), m, rowGrain(s.Stride()))
}

// OutputGate applies the gates to the attention's output.
func (b *Backend) OutputGate(out, att, x kernels.Buffer, s kernels.AttentionShape) {
	g, m := b.outputGate(x, s)
	check(out, m*s.H*s.D)
	check(att, m*s.H*s.D)
	g.out, g.att, g.bf16 = out.Addr(), att.Addr(), isBF16(out, att, x)
	b.run(b.k.output_gate, unsafe.Pointer(g), m, rowGrain(8*s.H*s.D))
}

// OutputGateBackward computes the gradients of OutputGate.
func (b *Backend) OutputGateBackward(datt, dx, dout, att, x kernels.Buffer, s kernels.AttentionShape) {
	g, m := b.outputGate(x, s)
	check(datt, m*s.H*s.D)
	check(dout, m*s.H*s.D)
	check(att, m*s.H*s.D)
	check(dx, x.Len())
	g.out, g.dx, g.dout, g.att = datt.Addr(), dx.Addr(), dout.Addr(), att.Addr()
	g.back, g.bf16 = 1, isBF16(datt, dx, dout, att, x)
	b.run(b.k.output_gate, unsafe.Pointer(g), m, rowGrain(16*s.H*s.D))
}
