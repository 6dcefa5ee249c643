package vision

import (
	"math"

	"exp/kernels"
	"exp/train/picture"
)

// This file has the pass over an image. Attention is not causal: all keys of a segment, the image or a window of it,
// are stored in pages first, and then every query stands at the segment's last position, from where PagedAttention
// sees them all. Queries of a segment that stand in the same place share its keys, as query heads of one row do: so
// `together` rows of H heads become a row of together·H, whose heads have the same bits, and matrix units are filled.

const (
	// pageSize is the positions of a page of keys: those that paged attention computes at once.
	pageSize = 64
	// together is the rows of queries that become one: the rows of a matrix unit's tile.
	together = 16
	// tokensAtOnce bounds the rows that feed-forward blocks and mergers take at once.
	tokensAtOnce = 512
)

// widened returns a BF16 number.
func widened(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }

// pass is the memory of a pass over an image of N patches.
type pass struct {
	*Tower
	be            kernels.Backend
	rows, columns int // of patches
	n, step       int // N; patches at once

	x, out           kernels.Buffer // [N,C]; [1+Deep,T,Out], floats
	normed, sum      kernels.Buffer // [step,C], floats; one of them first has pixels or a merger's
	stats            kernels.Buffer // [step,2] of norms
	cos, sin         kernels.Buffer // [N,D/2]
	qkv, att         kernels.Buffer // [N,3C], [N,C]
	queries, answers kernels.Buffer // qkv and att with rows together
	pages            kernels.Pages
	gates, act       kernels.Buffer // [step,2F] or [step,F], [step,F], or of a merger
	at               kernels.Buffer // [N] 0, 1, …

	whole, windows segments
}

// Encode returns the features of an image, [1+Deep][T][Out], tokens row by row. It computes on be, which must reach
// the tower's weights, and takes the memory of its activations for the call. The features depend on the image alone.
// It panics with a *kernels.RoomError if the device has no room, and if p is not an image for the tower.
func (t *Tower) Encode(be kernels.Backend, p picture.Patches) []float32 {
	out := make([]float32, (1+len(t.Config.Deep))*p.Rows*p.Columns/t.Config.unit()*t.Config.Out)
	t.EncodeInto(be, p, kernels.Host(out))
	return out
}

// EncodeInto is Encode into host memory of type F32 or F64.
func (t *Tower) EncodeInto(be kernels.Backend, p picture.Patches, out kernels.Buffer) {
	t.encode(be, p, out, tokensAtOnce)
}

// encode is EncodeInto with so many tokens at once, which do not change a bit.
func (t *Tower) encode(be kernels.Backend, p picture.Patches, out kernels.Buffer, atOnce int) {
	c, be := t.Config, whole(be)
	if p.Rows < 1 || p.Columns < 1 || p.Rows%c.Merge != 0 || p.Columns%c.Merge != 0 ||
		len(p.Values) != p.Rows*p.Columns*c.pixels() {
		panic("vision: patches of another tower")
	}
	x := &pass{Tower: t, be: be, rows: p.Rows, columns: p.Columns, n: p.Rows * p.Columns}
	r := x.plan(be.Float(), be.Operand(), atOnce)
	owned, err := r.take(be, kernels.ActivationRoom)
	if err != nil {
		panic(err)
	}
	defer func() {
		for _, b := range owned {
			be.Free(b)
		}
	}()
	x.load()
	x.embed(p.Values)
	for l := range t.blocks {
		x.block(l)
	}
	x.merge(t.mergers[0], 0)
	be.Copy(out, x.out)
	be.Sync()
}

// plan lists the memory of the pass, of so many tokens at once.
func (x *pass) plan(f, o kernels.DType, atOnce int) (r rooms) {
	c, N := x.Config, x.n
	C, U := c.Width, c.unit()
	x.step = min(N, atOnce*U)
	wide := x.step * max(C, c.pixels())
	x.whole = c.segments([][]int32{count(N)})
	if c.Window > 0 {
		x.windows = c.segments(c.windows(x.rows, x.columns))
	}
	r.add(&x.x, f, N*C)
	r.add(&x.out, f, (1+len(c.Deep))*N/U*c.Out)
	r.add(&x.normed, f, wide)
	r.add(&x.sum, f, wide)
	r.add(&x.stats, f, 2*x.step)
	half := c.Width / c.Heads / 2
	r.add(&x.cos, f, N*half)
	r.add(&x.sin, f, N*half)
	r.add(&x.qkv, o, 3*N*C)
	r.add(&x.att, o, N*C)
	groups, pages := max(x.whole.groups, x.windows.groups), max(x.whole.pages, x.windows.pages)
	r.add(&x.queries, o, groups*(together+2)*C)
	r.add(&x.answers, o, groups*together*C)
	x.pages.Size = pageSize
	r.add(&x.pages.Keys, o, pages*pageSize*C)
	r.add(&x.pages.Values, o, pages*pageSize*C)
	factors := c.factors()
	if c.Activation == QuickGELU {
		factors = 2
	}
	r.add(&x.gates, o, max(x.step*factors*c.FFN, x.step*C))
	r.add(&x.act, o, max(x.step*c.FFN, x.step*C))
	r.add(&x.at, kernels.I32, N)
	for _, s := range []*segments{&x.whole, &x.windows} {
		s.plan(&r)
	}
	return r
}

// load fills what depends on the shape of the image alone.
func (x *pass) load() {
	cos, sin := x.Config.rotary(x.rows, x.columns)
	x.be.Copy(x.cos, kernels.Host(cos))
	x.be.Copy(x.sin, kernels.Host(sin))
	x.be.Copy(x.at, kernels.Host(count(x.n)))
	x.whole.load(x.be)
	x.windows.load(x.be)
	x.be.Sync()
}

func count(n int) []int32 {
	list := make([]int32, n)
	for i := range list {
		list[i] = int32(i)
	}
	return list
}

// each calls f for rows lo to hi, a step at a time.
func (x *pass) each(f func(lo, hi int)) {
	for lo := 0; lo < x.n; lo += x.step {
		f(lo, min(lo+x.step, x.n))
	}
}

// embed sets x.x to the maps of patches, with their positions.
func (x *pass) embed(pixels []float32) {
	c := x.Config
	C, P := c.Width, c.pixels()
	var at []float64
	x.each(func(lo, hi int) {
		in, to := x.normed.Slice(0, (hi-lo)*P), x.x.Slice(lo*C, hi*C)
		x.be.Copy(in, kernels.Host(pixels[lo*P:hi*P]))
		x.be.MatMul(to, in, x.patches.w, x.patches.bias)
		if c.Side > 0 {
			at = make([]float64, (hi-lo)*C)
			c.positions(at, x.table, x.rows, x.columns, lo, hi)
			add := x.sum.Slice(0, (hi-lo)*C)
			x.be.Copy(add, kernels.Host(at))
			x.be.Add(to, add)
		}
		x.be.Sync() // before pixels and at go
	})
}

// norm sets out [M,C] to a norm of rows of x.
func (x *pass) norm(out, in kernels.Buffer, w norm) {
	M := in.Len() / w.width
	if x.Config.layerNorms() {
		x.be.LayerNorm(out, x.stats.Slice(0, 2*M), in, w.w, w.bias, w.width, normEps)
		return
	}
	shape := kernels.NormShape{Heads: 1, Dim: w.width, Stride: w.width}
	x.be.RMSNorm(out, x.stats.Slice(0, M), in, w.w, shape, normEps)
}

// block adds what a block computes to x.x:
//
//	x += Wproj·Attention(Rope(Wqkv·norm1(x)))
//	x += Wdown·a(Wup·norm2(x))
func (x *pass) block(l int) {
	c, y := x.Config, x.blocks[l]
	C := c.Width
	x.each(func(lo, hi int) {
		n := x.normed.Slice(0, (hi-lo)*C)
		x.norm(n, x.x.Slice(lo*C, hi*C), y.norm1)
		x.be.MatMul(x.qkv.Slice(3*lo*C, 3*hi*C), n, y.qkv.w, y.qkv.bias)
	})
	x.be.Rope(x.qkv, x.cos, x.sin, x.at, c.attention(), false)
	if c.windowed(l) {
		x.attend(&x.windows)
	} else {
		x.attend(&x.whole)
	}
	x.each(func(lo, hi int) {
		n, sum, to := x.normed.Slice(0, (hi-lo)*C), x.sum.Slice(0, (hi-lo)*C), x.x.Slice(lo*C, hi*C)
		x.be.MatMul(sum, x.att.Slice(lo*C, hi*C), y.proj.w, y.proj.bias)
		x.be.Add(to, sum)
		x.norm(n, to, y.norm2)
		x.be.MatMul(sum, x.activate(n, y.up, c.Activation), y.down.w, y.down.bias)
		x.be.Add(to, sum)
	})
	for k, at := range c.Deep {
		if at == l {
			x.merge(x.mergers[1+k], 1+k)
		}
	}
}

// attend sets x.att to attention within segments.
func (x *pass) attend(s *segments) {
	shape := x.Config.attention()
	D := shape.D
	pages := kernels.Pages{Keys: x.pages.Keys.Slice(0, s.pages*pageSize*x.Config.Width),
		Values: x.pages.Values.Slice(0, s.pages*pageSize*x.Config.Width), Size: pageSize}
	x.be.AppendKV(pages, x.qkv, s.slots, shape)
	shape.H *= together
	queries := x.queries.Slice(0, s.groups*shape.Stride())
	answers := x.answers.Slice(0, s.groups*shape.H*D)
	x.be.GatherRows(queries, x.qkv, s.join, D)
	x.be.PagedAttention(answers, kernels.Buffer{}, queries, pages, s.table, s.seq, s.last, s.width, shape)
	x.be.GatherRows(x.att, answers, s.part, D)
}

// activate returns a(x·Wᵀ + bias) for rows n.
func (x *pass) activate(n kernels.Buffer, up linear, activation string) kernels.Buffer {
	M := n.Len() / up.w.In
	kinds := map[string]kernels.GateKind{SiLU: kernels.SiLU, GELU: kernels.PlainGELU, GELUTanh: kernels.PlainGELUTanh}
	kind, gated := kinds[activation]
	if !gated {
		return x.quick(n, up, M)
	}
	F := up.w.Out / kind.Factors()
	gates, act := x.gates.Slice(0, M*up.w.Out), x.act.Slice(0, M*F)
	x.be.MatMul(gates, n, up.w, up.bias)
	x.be.Gate(act, gates, F, kind)
	return act
}

// quick is activate for QuickGELU, an OutputGate of h by 1.702·h.
func (x *pass) quick(n kernels.Buffer, up linear, M int) kernels.Buffer {
	F := up.w.Out
	gates, h := x.gates.Slice(0, 2*M*F), x.act.Slice(0, M*F)
	x.be.MatMul(h, n, up.w, up.bias)
	x.be.Zero(gates)
	x.be.AddColumns(gates, h, F, 2*F, F, quickSlope)
	x.be.OutputGate(h, h, gates, kernels.AttentionShape{H: 1, D: F})
	return h
}

// merge sets part k of x.out: W2·GELU(W1·norm(x of a token's patches)).
func (x *pass) merge(y merger, k int) {
	c := x.Config
	C, U := c.Width, c.unit()
	part := x.out.Slice(k*x.n/U*c.Out, (k+1)*x.n/U*c.Out)
	x.each(func(lo, hi int) {
		n := x.normed.Slice(0, (hi-lo)*C)
		x.norm(n, x.x.Slice(lo*C, hi*C), y.norm)
		x.be.MatMul(part.Slice(lo/U*c.Out, hi/U*c.Out), x.activate(n, y.fc1, GELU), y.fc2.w, y.fc2.bias)
	})
}
