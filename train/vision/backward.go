package vision

import (
	"slices"

	"exp/kernels"
	"exp/train/picture"
)

// This file has the backward pass over an image. It keeps what enters each block and recomputes the activations of
// one block at a time. Gradients of weights sum over blocks of kernels.BlockRows rows, counted from the first row of a
// step (pass.each), one step after another.

// backward is the memory of a backward pass over an image of N patches and M rows. Scratch buffers have a step's rows.
type backward struct {
	*pass

	kept []kernels.Buffer // [1+Layers][M,C] what enters each block, and what leaves the last
	d    kernels.Buffer   // [1+Deep,T,Out] gradients of features
	dx   kernels.Buffer   // [M,C] gradient of the residual stream
	dqkv kernels.Buffer   // [M,3C]
	datt kernels.Buffer   // [M,C]

	// Scratch for the rows of a step: operands in the first line, then floats.
	dact, dgates, raw kernels.Buffer // gradients of pass.act and of QuickGELU's gates; qkv before norms
	dnormed           kernels.Buffer // gradients of what a norm gives
	between           kernels.Buffer // the residual stream between a block's halves; what the last norm gives
	scaled            kernels.Buffer // gradients times factors of channels
	turned            kernels.Buffer // what a turned map reads, in the files' order
	projected, middle kernels.Buffer // before and after a merger's middle norm
	activated         kernels.Buffer // GELU of middle
	djoined           kernels.Buffer // gradients of what joins patches
	pooled, dpooled   kernels.Buffer // [step/unit,C] means of tokens' patches, and their gradients
	inner             kernels.Buffer // [step,2] stats of norms of queries and keys, of the last and of the middle norm
	dtable            kernels.Buffer // of the longest tensor of onHost
	frozen            kernels.Buffer // [2,widest norm] gradients of frozen norms, which nobody reads

	summed []integers // blocks for each number of rows that gradients sum over at once
}

// Backward adds the gradients of all weights, or adapters, to the arena of gradients, given an image and d
// [1+Deep][T][Out], the gradients of the features that Encode returns for it. The tower must be of NewLearning or
// Adapt, with gradients. Backward computes the forward pass again, on be, which must reach the tower's weights and
// gradients, and takes the memory of LearningBytes or AdaptedBytes for the call. The order of images changes bits of
// the sums, the number of threads does not. It panics as Encode does.
func (t *Tower) Backward(be kernels.Backend, p picture.Patches, d []float32) {
	t.BackwardFrom(be, p, kernels.Host(d))
}

// BackwardFrom is Backward from host memory of type F32 or F64.
func (t *Tower) BackwardFrom(be kernels.Backend, p picture.Patches, d kernels.Buffer) {
	be = whole(be)
	if !t.trainable {
		panic("vision: backward pass of a tower without gradients")
	}
	t.Config.check(p)
	b := newBackward(t, p.Rows, p.Columns)
	b.be = be
	defer b.plan(be.Float(), be.Operand(), t.Config.atOnce()).use(be)()
	b.load()
	b.forward(p.Values)
	be.Copy(b.d, d)
	be.Zero(b.dx)
	b.mergerBackward(0, t.Config.Layers)
	for l := t.Config.Layers - 1; l >= 0; l-- {
		if k := slices.Index(t.Config.Deep, l); k >= 0 {
			b.mergerBackward(1+k, l+1)
		}
		b.blockBackward(l)
	}
	if t.adapters == nil {
		b.embedBackward(p.Values)
	}
	be.Sync()
}

// newBackward returns a backward pass over an image of rows × columns patches, without memory.
func newBackward(t *Tower, rows, columns int) *backward {
	b := &backward{pass: newPass(t, rows, columns)}
	b.kept = make([]kernels.Buffer, 1+t.Config.Layers)
	return b
}

// LearningBytes returns the memory that Backward takes for a square image of at least so many patches, beside the
// weights, with floats and operands of these types.
func (c Config) LearningBytes(float, operand kernels.DType, patches int) int64 {
	rows, columns := c.square(patches)
	return newBackward(&Tower{Config: c}, rows, columns).plan(float, operand, c.atOnce()).bytes()
}

// plan lists the memory of the pass, of so many tokens at once.
func (b *backward) plan(f, o kernels.DType, atOnce int) (r rooms) {
	c, M := b.Config, b.m
	C := c.Width
	b.planRows(&r, f, o, atOnce)
	b.ordered.planBackward(&r, c, o, M)
	for i := range b.kept {
		r.add(&b.kept[i], f, M*C)
	}
	r.add(&b.d, f, (1+len(c.Deep))*b.n/c.unit()*c.Out)
	r.add(&b.dx, f, M*C)
	r.add(&b.dqkv, o, 3*M*C)
	r.add(&b.datt, o, M*C)
	r.add(&b.dact, o, b.acts)
	r.add(&b.dnormed, f, b.wide)
	r.add(&b.inner, f, 2*b.step)
	if c.Activation == QuickGELU {
		r.add(&b.hidden, o, b.step*c.FFN)
		r.add(&b.dgates, o, 2*b.step*c.FFN)
	}
	if c.QKNorm {
		r.add(&b.raw, o, 3*b.step*C)
	}
	factors := len(c.factors()) > 0
	if factors || b.Config.last().width > 0 {
		r.add(&b.between, f, b.step*C)
	}
	if factors || b.Config.first().width > 0 {
		r.add(&b.scaled, f, b.step*C)
	}
	if c.has().mean {
		r.add(&b.pooled, f, b.step/c.unit()*C)
		r.add(&b.dpooled, f, b.step/c.unit()*C)
	}
	last := c.merger(-1)
	if last.join.names != nil {
		r.add(&b.turned, f, b.step*C)
		r.add(&b.djoined, f, b.step/c.unit()*max(last.join.out(), last.proj.out()))
	}
	if last.proj.names != nil {
		for _, x := range []*kernels.Buffer{&b.projected, &b.middle, &b.activated} {
			r.add(x, f, b.step/c.unit()*c.Out)
		}
	}
	if tables := c.onHost(); len(tables) > 0 && b.adapters == nil {
		r.add(&b.dtable, f, tables[0].Len())
	}
	if b.adapters != nil {
		widest := 0
		for _, n := range c.norms() {
			widest = max(widest, n.width)
		}
		r.add(&b.frozen, f, 2*widest)
		b.planLowRank(&r, f, o, true)
	}
	b.planBlocks(&r)
	return r
}

// planBlocks adds the blocks of all numbers of rows.
func (b *backward) planBlocks(r *rooms) {
	U := b.Config.unit()
	var counts []int
	for _, n := range []int{b.step, b.m % b.step, b.n % b.step, b.step / U, b.n % b.step / U} {
		if !slices.Contains(counts, n) {
			counts = append(counts, n)
		}
	}
	for _, n := range counts {
		b.summed = append(b.summed, newBlocks(n, kernels.BlockRows))
	}
	for i := range b.summed {
		b.summed[i].plan(r)
	}
}

// load fills what depends on the shape of the image alone.
func (b *backward) load() {
	b.pass.load()
	for i := range b.summed {
		b.summed[i].load(b.be)
	}
	b.be.Sync()
}

// sums returns the blocks of so many rows.
func (b *backward) sums(rows int) kernels.Buffer {
	for _, x := range b.summed {
		if int(x.host[len(x.host)-1]) == rows {
			return x.dev
		}
	}
	panic("vision: gradients over an unplanned number of rows")
}

// forward fills kept.
func (b *backward) forward(pixels []float32) {
	b.x = b.kept[0]
	b.embed(pixels)
	for l := range b.blocks {
		b.be.Copy(b.kept[l+1], b.kept[l])
		b.x = b.kept[l+1]
		b.block(l)
	}
}

// part returns rows lo to hi of x, C elements each.
func (b *backward) part(x kernels.Buffer, lo, hi int) kernels.Buffer {
	return x.Slice(lo*b.Config.Width, hi*b.Config.Width)
}

// blockBackward takes dx from what leaves a block to what enters it.
func (b *backward) blockBackward(l int) {
	c, y := b.Config, &b.blocks[l]
	C := c.Width
	b.x = b.kept[l]
	b.attention(l)
	b.each(b.m, func(lo, hi int) { b.feedForwardBackward(y, b.kept[l], lo, hi) })
	b.ordered.backward(b.pass, b.dqkv, b.datt, c.windowed(l))
	if c.has().turned {
		b.be.Rope(b.dqkv, b.cos, b.sin, b.at, c.attention(), true)
	}
	b.each(b.m, func(lo, hi int) {
		in, n := b.part(b.kept[l], lo, hi), b.part(b.normed, 0, hi-lo)
		dqkv, dn := b.dqkv.Slice(3*lo*C, 3*hi*C), b.part(b.dnormed, 0, hi-lo)
		b.norm(n, in, y.norm1)
		b.partsBackward(y, dqkv, n, b.qkv.Slice(3*lo*C, 3*hi*C))
		b.linearBackward(dn, dqkv, n, y.qkv)
		b.normBackward(b.part(b.dx, lo, hi), dn, in, y.norm1, b.stats, b.normed)
	})
}

// feedForwardBackward takes rows lo to hi of dx through a block's second half, and sets these rows of datt, the
// gradient of attention before its projection. in [M,C] is what entered the block.
func (b *backward) feedForwardBackward(y *block, in kernels.Buffer, lo, hi int) {
	c, rows := b.Config, hi-lo
	d, att, n := b.part(b.dx, lo, hi), b.part(b.att, lo, hi), b.part(b.normed, 0, rows)
	sum, dn := b.part(b.sum, 0, rows), b.part(b.dnormed, 0, rows)
	b.apply(sum, att, y.proj)
	x := sum // the residual stream
	if !y.scale1.w.Empty() {
		x = b.part(b.between, 0, rows)
		b.be.Copy(x, sum)
		b.scaling.scale(b.be, x, y.scale1.w)
	}
	b.be.Add(x, b.part(in, lo, hi))
	b.norm(n, x, y.norm2)
	act := b.activate(n, y.up, c.Activation)

	dsum := d
	if !y.scale2.w.Empty() {
		b.apply(dn, act, y.down)
		dsum = b.factorsBackward(d, dn, y.scale2)
	}
	dact := b.dact.Slice(0, act.Len())
	b.linearBackward(dact, dsum, act, y.down)
	b.linearBackward(dn, b.activationBackward(dact, y.up, c.Activation), n, y.up)
	b.normBackward(d, dn, x, y.norm2, b.stats, b.normed)

	dsum = d
	if !y.scale1.w.Empty() {
		dsum = b.factorsBackward(d, sum, y.scale1)
	}
	b.linearBackward(b.part(b.datt, lo, hi), dsum, att, y.proj)
}

// linearBackward sets dx, unless it is empty, from dout, the gradient of a linear map's result for x, and adds to the
// gradients of the map, unless it is frozen, and of its adapters.
func (b *backward) linearBackward(dx, dout, x kernels.Buffer, w linear) {
	if w.across {
		b.be.MatMul(dx, dout, w.w, kernels.Buffer{})
		if !w.dw.Empty() {
			b.be.MatMulDW(w.dw, kernels.Buffer{}, x, dout, b.sums(x.Len()/w.w.Out))
		}
		return
	}
	if !dx.Empty() {
		b.be.MatMulDX(dx, dout, w.w)
	}
	if !w.dw.Empty() {
		b.be.MatMulDW(w.dw, w.dbias, dout, x, b.sums(dout.Len()/w.w.Out))
	}
	b.adaptersBackward(dx, dout, x, w)
}

// gradients returns where a norm's gradients go.
func (b *backward) gradients(w norm) (dw, dbias kernels.Buffer) {
	if w.dw.Empty() {
		return b.frozen.Slice(0, w.width), b.frozen.Slice(w.width, 2*w.width)
	}
	return w.dw, w.dbias
}

// normBackward adds to dx and to a norm's gradients, given dout, the gradient of the norm of x, and its stats. t is
// scratch as long as x.
func (b *backward) normBackward(dx, dout, x kernels.Buffer, w norm, stats, t kernels.Buffer) {
	rows := x.Len() / w.width
	dw, dbias := b.gradients(w)
	if w.layer {
		t = t.Slice(0, x.Len())
		b.be.LayerNormBackward(t, dw, dbias, dout, x, w.w, stats.Slice(0, 2*rows), b.sums(rows), w.width)
		b.be.Add(dx, t)
		return
	}
	b.be.RMSNormBackward(dx, dw, dout, x, w.w, stats.Slice(0, rows), b.sums(rows), w.shape(), false)
}

// partsBackward takes dqkv [rows,3C] through the norms of queries and keys, if the tower has them. n [rows,C] is what
// qkv's map reads. t [rows,3C], operands, is scratch.
func (b *backward) partsBackward(y *block, dqkv, n, t kernels.Buffer) {
	if y.queries.width == 0 {
		return
	}
	rows := dqkv.Len() / (3 * b.Config.Width)
	raw, rstd := b.raw.Slice(0, dqkv.Len()), b.inner.Slice(0, rows)
	b.apply(raw, n, y.qkv)
	for i, w := range []norm{y.queries, y.keys} {
		dw, _ := b.gradients(w)
		shape := kernels.NormShape{Heads: 1, Dim: w.width, Stride: 3 * w.width, Offset: i * w.width}
		b.be.RMSNorm(t, rstd, raw, w.w, shape, w.eps)
		b.be.RMSNormBackward(dqkv, dw, dqkv, raw, w.w, rstd, b.sums(rows), shape, true)
	}
}

// factorsBackward returns d [rows,C] times factors of channels, in scaled, and adds to the factors' gradients, unless
// they are frozen, with x [rows,C] what they multiply:
//
//	dw[c] += blocked sum over rows of d[c]·x[c]
//
// That is RMSNormBackward with rstd = 1, whose dx is not needed.
func (b *backward) factorsBackward(d, x kernels.Buffer, w factors) kernels.Buffer {
	C := b.Config.Width
	rows, t := d.Len()/C, b.scaled.Slice(0, d.Len())
	if !w.dw.Empty() {
		b.be.RMSNormBackward(t, w.dw, d, x, w.w, b.scaling.ones.Slice(0, rows), b.sums(rows),
			kernels.NormShape{Heads: 1, Dim: C, Stride: C}, true)
	}
	b.be.Copy(t, d)
	b.scaling.scale(b.be, t, w.w)
	return t
}

// activationBackward returns the gradient of what activate's map gave, from dact, the gradient of what activate
// returned last. It overwrites dact and the map's result.
func (b *backward) activationBackward(dact kernels.Buffer, up linear, activation string) kernels.Buffer {
	kind, gated := gateKind(activation)
	if gated {
		F := up.w.Out / kind.Factors()
		gates := b.gates.Slice(0, dact.Len()/F*up.w.Out)
		b.be.GateBackward(gates, gates, dact, F, kind)
		return gates
	}
	F := up.w.Out
	h, gates, dgates := b.hidden.Slice(0, dact.Len()), b.gates.Slice(0, 2*dact.Len()), b.dgates.Slice(0, 2*dact.Len())
	b.be.OutputGateBackward(dact, dgates, dact, h, gates, kernels.AttentionShape{H: 1, D: F})
	b.be.TakeColumns(h, dgates, F, 2*F, F, 1)
	b.be.AddColumns(dact, h, F, F, 0, quickSlope)
	return dact
}
