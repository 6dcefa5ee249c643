package ref

import "exp/kernels"

// This file has the operations of kernels.Recurrence, of both backends.

func (b *Backend[T]) ShortConv(u, x, weight, bias, tails kernels.Buffer, r kernels.Runs, s kernels.DeltaShape) {
	ShortConv(floats[T](u), floats[T](x), floats[T](weight), floats[T](bias), floats[T](tails), ints(r.Offsets),
		ints(r.Groups), ints(r.Slots), s)
}

func (b *Backend[T]) ShortConvBackward(dx, dweight, dbias, du, x, weight, bias, blocks kernels.Buffer,
	r kernels.Runs, s kernels.DeltaShape) {
	ShortConvBackward(floats[T](dx), floats[T](dweight), floats[T](dbias), floats[T](du), floats[T](x),
		floats[T](weight), floats[T](bias), ints(blocks), ints(r.Offsets), ints(r.Groups), s)
}

func (b *Backend[T]) GatedConv(u, x, weight, tails kernels.Buffer, r kernels.Runs, s kernels.DeltaShape) {
	GatedConv(floats[T](u), floats[T](x), floats[T](weight), floats[T](tails), ints(r.Offsets), ints(r.Groups),
		ints(r.Slots), s)
}

func (b *Backend[T]) GatedConvBackward(dx, dweight, du, x, weight, blocks kernels.Buffer, r kernels.Runs,
	s kernels.DeltaShape) {
	GatedConvBackward(floats[T](dx), floats[T](dweight), floats[T](du), floats[T](x), floats[T](weight), ints(blocks),
		ints(r.Offsets), ints(r.Groups), s)
}

func (b *Backend[T]) DeltaGates(gates, x, logs, bias, skip kernels.Buffer, s kernels.DeltaShape) {
	DeltaGates(floats[T](gates), floats[T](x), floats[T](logs), floats[T](bias), floats[T](skip), s)
}

func (b *Backend[T]) DeltaGatesBackward(dx, dlogs, dbias, dskip, dgates, gates, x, logs, bias,
	blocks kernels.Buffer, s kernels.DeltaShape) {
	DeltaGatesBackward(floats[T](dx), floats[T](dlogs), floats[T](dbias), floats[T](dskip), floats[T](dgates),
		floats[T](gates), floats[T](x), floats[T](logs), floats[T](bias), ints(blocks), s)
}

func (b *Backend[T]) DeltaRule(out, u, gates, states kernels.Buffer, r kernels.Runs, s kernels.DeltaShape) {
	DeltaRule(floats[T](out), floats[T](u), floats[T](gates), floats[T](states), ints(r.Offsets), ints(r.Groups),
		ints(r.Slots), s)
}

func (b *Backend[T]) DeltaRuleBackward(du, dgates, dout, u, gates kernels.Buffer, r kernels.Runs,
	s kernels.DeltaShape) {
	DeltaRuleBackward(floats[T](du), floats[T](dgates), floats[T](dout), floats[T](u), floats[T](gates),
		ints(r.Offsets), ints(r.Groups), s)
}

func (b *Backend[T]) GatedNorm(out, rstd, x, p, weight kernels.Buffer, s kernels.DeltaShape, eps float64) {
	GatedNorm(floats[T](out), floats[T](rstd), floats[T](x), floats[T](p), floats[T](weight), s, eps)
}

func (b *Backend[T]) GatedNormBackward(dx, dp, dweight, dout, x, p, weight, rstd, blocks kernels.Buffer,
	s kernels.DeltaShape) {
	GatedNormBackward(floats[T](dx), floats[T](dp), floats[T](dweight), floats[T](dout), floats[T](x), floats[T](p),
		floats[T](weight), floats[T](rstd), ints(blocks), s)
}

func (b *Backend[T]) GroupedNorm(out, rstd, x, p, weight kernels.Buffer, s kernels.DeltaShape, eps float64) {
	GroupedNorm(floats[T](out), floats[T](rstd), floats[T](x), floats[T](p), floats[T](weight), s, eps)
}

func (b *Backend[T]) GroupedNormBackward(dx, dp, dweight, dout, x, p, weight, rstd, blocks kernels.Buffer,
	s kernels.DeltaShape) {
	GroupedNormBackward(floats[T](dx), floats[T](dp), floats[T](dweight), floats[T](dout), floats[T](x), floats[T](p),
		floats[T](weight), floats[T](rstd), ints(blocks), s)
}

// CopyStates implements kernels.Recurrence for buffers of any type.
func (b *Backend[T]) CopyStates(x, pairs kernels.Buffer, n int) {
	p := ints(pairs)
	if n < 1 || len(p)%2 != 0 {
		panic("ref: CopyStates: length mismatch")
	}
	for i := 0; i < len(p); i += 2 {
		from, to := int(p[i])*n, int(p[i+1])*n
		b.Copy(x.Slice(to, to+n), x.Slice(from, from+n))
	}
}

func (b *Backend[T]) SplitGates(qkv, x kernels.Buffer, s kernels.AttentionShape) {
	SplitGates(floats[T](qkv), floats[T](x), s)
}

func (b *Backend[T]) JoinGates(dx, dqkv kernels.Buffer, s kernels.AttentionShape) {
	JoinGates(floats[T](dx), floats[T](dqkv), s)
}

func (b *Backend[T]) OutputGate(out, att, x kernels.Buffer, s kernels.AttentionShape) {
	OutputGate(floats[T](out), floats[T](att), floats[T](x), s)
}

func (b *Backend[T]) OutputGateBackward(datt, dx, dout, att, x kernels.Buffer, s kernels.AttentionShape) {
	OutputGateBackward(floats[T](datt), floats[T](dx), floats[T](dout), floats[T](att), floats[T](x), s)
}

func (b Mixed) ShortConv(u, x, weight, bias, tails kernels.Buffer, r kernels.Runs, s kernels.DeltaShape) {
	y, end := wide(u), wide(tails)
	ShortConv(y, wide(x), floats[float32](weight), floats[float32](bias), end, ints(r.Offsets),
		ints(r.Groups), ints(r.Slots), s)
	store(u, y)
	store(tails, end)
}

func (b Mixed) ShortConvBackward(dx, dweight, dbias, du, x, weight, bias, blocks kernels.Buffer,
	r kernels.Runs, s kernels.DeltaShape) {
	y := wide(dx)
	ShortConvBackward(y, floats[float32](dweight), floats[float32](dbias), wide(du), wide(x), floats[float32](weight),
		floats[float32](bias), ints(blocks), ints(r.Offsets), ints(r.Groups), s)
	store(dx, y)
}

func (b Mixed) GatedConv(u, x, weight, tails kernels.Buffer, r kernels.Runs, s kernels.DeltaShape) {
	y := wide(u)
	GatedConv(y, wide(x), floats[float32](weight), floats[float32](tails), ints(r.Offsets), ints(r.Groups),
		ints(r.Slots), s)
	store(u, y)
}

func (b Mixed) GatedConvBackward(dx, dweight, du, x, weight, blocks kernels.Buffer, r kernels.Runs,
	s kernels.DeltaShape) {
	y := wide(dx)
	GatedConvBackward(y, floats[float32](dweight), wide(du), wide(x), floats[float32](weight), ints(blocks),
		ints(r.Offsets), ints(r.Groups), s)
	store(dx, y)
}

func (b Mixed) DeltaGates(gates, x, logs, bias, skip kernels.Buffer, s kernels.DeltaShape) {
	DeltaGates(floats[float32](gates), wide(x), floats[float32](logs), floats[float32](bias), floats[float32](skip), s)
}

func (b Mixed) DeltaGatesBackward(dx, dlogs, dbias, dskip, dgates, gates, x, logs, bias,
	blocks kernels.Buffer, s kernels.DeltaShape) {
	y := wide(dx)
	DeltaGatesBackward(y, floats[float32](dlogs), floats[float32](dbias), floats[float32](dskip),
		floats[float32](dgates), floats[float32](gates), wide(x), floats[float32](logs), floats[float32](bias),
		ints(blocks), s)
	store(dx, y)
}

func (b Mixed) DeltaRule(out, u, gates, states kernels.Buffer, r kernels.Runs, s kernels.DeltaShape) {
	y := wide(out)
	DeltaRule(y, wide(u), floats[float32](gates), floats[float32](states), ints(r.Offsets), ints(r.Groups),
		ints(r.Slots), s)
	store(out, y)
}

func (b Mixed) DeltaRuleBackward(du, dgates, dout, u, gates kernels.Buffer, r kernels.Runs, s kernels.DeltaShape) {
	y := wide(du)
	DeltaRuleBackward(y, floats[float32](dgates), wide(dout), wide(u), floats[float32](gates), ints(r.Offsets),
		ints(r.Groups), s)
	store(du, y)
}

func (b Mixed) GatedNorm(out, rstd, x, p, weight kernels.Buffer, s kernels.DeltaShape, eps float64) {
	y := wide(out)
	GatedNorm(y, floats[float32](rstd), wide(x), wide(p), floats[float32](weight), s, eps)
	store(out, y)
}

func (b Mixed) GatedNormBackward(dx, dp, dweight, dout, x, p, weight, rstd, blocks kernels.Buffer,
	s kernels.DeltaShape) {
	y, z := wide(dx), wide(dp)
	GatedNormBackward(y, z, floats[float32](dweight), wide(dout), wide(x), wide(p), floats[float32](weight),
		floats[float32](rstd), ints(blocks), s)
	store(dx, y)
	store(dp, z)
}

func (b Mixed) GroupedNorm(out, rstd, x, p, weight kernels.Buffer, s kernels.DeltaShape, eps float64) {
	y := wide(out)
	GroupedNorm(y, floats[float32](rstd), wide(x), wide(p), floats[float32](weight), s, eps)
	store(out, y)
}

func (b Mixed) GroupedNormBackward(dx, dp, dweight, dout, x, p, weight, rstd, blocks kernels.Buffer,
	s kernels.DeltaShape) {
	y, z := wide(dx), wide(dp)
	GroupedNormBackward(y, z, floats[float32](dweight), wide(dout), wide(x), wide(p), floats[float32](weight),
		floats[float32](rstd), ints(blocks), s)
	store(dx, y)
	store(dp, z)
}

func (b Mixed) SplitGates(qkv, x kernels.Buffer, s kernels.AttentionShape) {
	y := wide(qkv)
	SplitGates(y, wide(x), s)
	store(qkv, y)
}

func (b Mixed) JoinGates(dx, dqkv kernels.Buffer, s kernels.AttentionShape) {
	y := wide(dx)
	JoinGates(y, wide(dqkv), s)
	store(dx, y)
}

func (b Mixed) OutputGate(out, att, x kernels.Buffer, s kernels.AttentionShape) {
	y := wide(out)
	OutputGate(y, wide(att), wide(x), s)
	store(out, y)
}

func (b Mixed) OutputGateBackward(datt, dx, dout, att, x kernels.Buffer, s kernels.AttentionShape) {
	y, z := wide(datt), wide(dx)
	OutputGateBackward(y, z, wide(dout), wide(att), wide(x), s)
	store(datt, y)
	store(dx, z)
}
