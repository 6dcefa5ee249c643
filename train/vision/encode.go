package vision

import (
	"math"
	"slices"

	"exp/kernels"
	"exp/train/model"
	"exp/train/picture"
)

// This file has the pass over an image.

// patchesAtOnce bounds the patches that feed-forward blocks and mergers take at once.
const patchesAtOnce = 2048

// widened returns a BF16 number.
func widened(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }

// pass is the memory of a pass over an image of N patches and M rows.
type pass struct {
	*Tower
	be            kernels.Backend
	rows, columns int // of patches
	n, m, step    int // N, M; rows at once
	wide, acts    int // elements of normed and of act

	x, out      kernels.Buffer // [M,C]; [1+Deep,T,Out], floats
	normed, sum kernels.Buffer // [step,C], floats; one of them first has pixels or a merger's
	stats       kernels.Buffer // [step,2] of norms
	cos, sin    kernels.Buffer // [N,D/2] where rotary positions turn
	qkv, att    kernels.Buffer // [M,3C], [M,C]
	gates, act  kernels.Buffer // [step,2F] or [step,F], [step,F], or of a merger
	hidden      kernels.Buffer // [step,F] in a backward pass: h of quick
	at          kernels.Buffer // [N] 0, 1, … where rotary positions turn
	scaling     scaling
	means       integers // [step/unit,2] the patches of each token of a step, where its features come from their mean
	low         model.LowRank
	inFiles     kernels.Buffer // what adapters of a turned map read, in the files' order

	ordered *ordered
}

// newPass returns a pass over an image of rows × columns patches, without memory.
func newPass(t *Tower, rows, columns int) *pass {
	n := rows * columns
	return &pass{Tower: t, rows: rows, columns: columns, n: n, m: n + t.Config.extra(rows),
		ordered: newOrdered(t.Config, rows, columns)}
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
	t.encode(be, p, out, t.Config.atOnce())
}

// encode is EncodeInto with so many tokens at once, which do not change a bit.
func (t *Tower) encode(be kernels.Backend, p picture.Patches, out kernels.Buffer, atOnce int) {
	be = whole(be)
	t.Config.check(p)
	x := newPass(t, p.Rows, p.Columns)
	x.be = be
	defer x.plan(be.Float(), be.Operand(), atOnce).use(be)()
	x.load()
	x.embed(p.Values)
	for l := range t.blocks {
		x.block(l)
		if k := slices.Index(t.Config.Deep, l); k >= 0 {
			x.merge(t.mergers[1+k], 1+k)
		}
	}
	x.end()
	x.merge(t.mergers[0], 0)
	be.Copy(out, x.out)
	be.Sync()
}

// check panics unless p is an image for the tower.
func (c Config) check(p picture.Patches) {
	if p.Rows < 1 || p.Columns < 1 || p.Rows%c.Merge != 0 || p.Columns%c.Merge != 0 ||
		len(p.Values) != p.Rows*p.Columns*c.pixels() ||
		c.has().tiled && (p.Columns != c.Side || p.Rows%c.Side != 0) {
		panic("vision: patches of another tower")
	}
}

// plan lists the memory of the pass, of so many tokens at once.
func (x *pass) plan(f, o kernels.DType, atOnce int) (r rooms) {
	c, C := x.Config, x.Config.Width
	r.add(&x.x, f, x.m*C)
	r.add(&x.out, f, (1+len(c.Deep))*x.n/c.unit()*c.Out)
	x.planRows(&r, f, o, atOnce)
	return r
}

// planRows adds the memory of all but the residual stream and the features.
func (x *pass) planRows(r *rooms, f, o kernels.DType, atOnce int) {
	c, N, M := x.Config, x.n, x.m
	C, U := c.Width, c.unit()
	x.step = min(N, atOnce*U)
	wide := x.step * max(C, c.pixels())
	factors := c.gates()
	if c.Activation == QuickGELU {
		factors = 2
	}
	gates, act := x.step*factors*c.FFN, x.step*c.FFN
	if c.has().mean {
		for t := range x.step / U {
			x.means.host = append(x.means.host, int32(t*U), int32((t+1)*U))
		}
		x.means.plan(r)
	}
	for _, y := range c.mergers() {
		tokens := x.step / U
		if y.fc1.names != nil {
			gates, act = max(gates, tokens*y.fc1.out()), max(act, tokens*y.fc2.in)
		}
		if y.join.names != nil {
			wide = max(wide, tokens*c.Out)
		}
	}
	r.add(&x.normed, f, wide)
	r.add(&x.sum, f, wide)
	r.add(&x.stats, f, 2*x.step)
	if c.has().turned {
		half := c.Width / c.Heads / 2
		r.add(&x.cos, f, N*half)
		r.add(&x.sin, f, N*half)
		r.add(&x.at, kernels.I32, N)
	}
	r.add(&x.qkv, o, 3*M*C)
	r.add(&x.att, o, M*C)
	x.wide, x.acts = wide, act
	r.add(&x.gates, o, gates)
	r.add(&x.act, o, act)
	x.ordered.plan(r, c, f, o, M)
	if len(c.factors()) > 0 {
		x.scaling.plan(r, f, M, x.step, C)
	}
	x.planLowRank(r, f, o, false)
}

// load fills what depends on the shape of the image alone.
func (x *pass) load() {
	if x.Config.has().turned {
		cos, sin := x.Config.rotary(x.rows, x.columns)
		x.be.Copy(x.cos, kernels.Host(cos))
		x.be.Copy(x.sin, kernels.Host(sin))
		x.be.Copy(x.at, kernels.Host(count(x.n)))
	}
	x.ordered.load(x.be)
	x.scaling.load(x.be)
	if len(x.means.host) > 0 {
		x.means.load(x.be)
	}
	x.be.Sync()
}

func count(n int) []int32 {
	list := make([]int32, n)
	for i := range list {
		list[i] = int32(i)
	}
	return list
}

// each calls f for rows lo to hi, a step of n at a time.
func (x *pass) each(n int, f func(lo, hi int)) {
	for lo := 0; lo < n; lo += x.step {
		f(lo, min(lo+x.step, n))
	}
}

// embed sets x.x to the maps of patches, with their positions, and the rows of tiles.
func (x *pass) embed(pixels []float32) {
	c := x.Config
	C, P := c.Width, c.pixels()
	var at []float64
	x.each(x.n, func(lo, hi int) {
		in, to := x.normed.Slice(0, (hi-lo)*P), x.x.Slice(lo*C, hi*C)
		x.be.Copy(in, kernels.Host(pixels[lo*P:hi*P]))
		x.be.MatMul(to, in, x.patches.w, x.patches.bias)
		if x.first.width > 0 {
			x.norm(to, to, x.first)
		}
		if c.Side > 0 {
			at = make([]float64, (hi-lo)*C)
			c.positions(at, x.table, x.rows, x.columns, lo, hi)
			add := x.sum.Slice(0, (hi-lo)*C)
			x.be.Copy(add, kernels.Host(at))
			x.be.Add(to, add)
		}
		x.be.Sync() // before pixels and at go
	})
	for i := x.n; i < x.m; i++ {
		x.be.Copy(x.x.Slice(i*C, (i+1)*C), kernels.Host(x.class))
	}
}

// norm sets out [rows,C] to a norm of rows of in. An RMSNorm's may be in.
func (x *pass) norm(out, in kernels.Buffer, w norm) { x.normWith(out, in, w, x.stats) }

// normWith is norm with other room for stats.
func (x *pass) normWith(out, in kernels.Buffer, w norm, stats kernels.Buffer) {
	rows := in.Len() / w.width
	if w.layer {
		x.be.LayerNorm(out, stats.Slice(0, 2*rows), in, w.w, w.bias, w.width, w.eps)
		return
	}
	x.be.RMSNorm(out, stats.Slice(0, rows), in, w.w, w.shape(), w.eps)
}

// normPart norms columns of qkv [rows,3C] from offset on in place.
func (x *pass) normPart(qkv kernels.Buffer, offset int, w norm) {
	if w.width == 0 {
		return
	}
	shape := kernels.NormShape{Heads: 1, Dim: w.width, Stride: 3 * w.width, Offset: offset}
	x.be.RMSNorm(qkv, x.stats.Slice(0, qkv.Len()/shape.Stride), qkv, w.w, shape, w.eps)
}

// block adds what a block computes to x.x:
//
//	x += s1·Wproj·Attention(Rope(norm(Wqkv·norm1(x))))
//	x += s2·Wdown·a(Wup·norm2(x))
//
// Most towers have no factors s1 and s2 of channels and no norms of queries and keys.
func (x *pass) block(l int) {
	c, y := x.Config, x.blocks[l]
	C := c.Width
	x.attention(l)
	x.each(x.m, func(lo, hi int) {
		n, sum, to := x.normed.Slice(0, (hi-lo)*C), x.sum.Slice(0, (hi-lo)*C), x.x.Slice(lo*C, hi*C)
		x.apply(sum, x.att.Slice(lo*C, hi*C), y.proj)
		x.scaling.scale(x.be, sum, y.scale1.w)
		x.be.Add(to, sum)
		x.norm(n, to, y.norm2)
		x.apply(sum, x.activate(n, y.up, c.Activation), y.down)
		x.scaling.scale(x.be, sum, y.scale2.w)
		x.be.Add(to, sum)
	})
}

// attention sets x.att to layer l's attention from x.x, before the projection.
func (x *pass) attention(l int) {
	c, y := x.Config, x.blocks[l]
	C := c.Width
	x.each(x.m, func(lo, hi int) {
		n, qkv := x.normed.Slice(0, (hi-lo)*C), x.qkv.Slice(3*lo*C, 3*hi*C)
		x.norm(n, x.x.Slice(lo*C, hi*C), y.norm1)
		x.apply(qkv, n, y.qkv)
		x.normPart(qkv, 0, y.queries)
		x.normPart(qkv, C, y.keys)
	})
	if c.has().turned {
		x.be.Rope(x.qkv, x.cos, x.sin, x.at, c.attention(), false)
	}
	x.ordered.attend(x, c.windowed(l))
}

// end norms patches before the last merger, in towers with such a norm.
func (x *pass) end() {
	if x.last.width == 0 {
		return
	}
	C := x.Config.Width
	x.each(x.n, func(lo, hi int) {
		n, to := x.normed.Slice(0, (hi-lo)*C), x.x.Slice(lo*C, hi*C)
		x.norm(n, to, x.last)
		x.be.Copy(to, n)
	})
}

// gateKind returns the operation for an activation, false for QuickGELU, which has none.
func gateKind(activation string) (kernels.GateKind, bool) {
	kinds := map[string]kernels.GateKind{SiLU: kernels.SiLU, GELU: kernels.PlainGELU, GELUTanh: kernels.PlainGELUTanh}
	kind, ok := kinds[activation]
	return kind, ok
}

// activate returns a(x·Wᵀ + bias) for rows n.
func (x *pass) activate(n kernels.Buffer, up linear, activation string) kernels.Buffer {
	M := n.Len() / up.w.In
	kind, gated := gateKind(activation)
	if !gated {
		return x.quick(n, up, M)
	}
	F := up.w.Out / kind.Factors()
	gates, act := x.gates.Slice(0, M*up.w.Out), x.act.Slice(0, M*F)
	x.apply(gates, n, up)
	x.be.Gate(act, gates, F, kind)
	return act
}

// quick is activate for QuickGELU, an OutputGate of h by 1.702·h. It keeps h in x.hidden if that has room.
func (x *pass) quick(n kernels.Buffer, up linear, M int) kernels.Buffer {
	F := up.w.Out
	gates, act := x.gates.Slice(0, 2*M*F), x.act.Slice(0, M*F)
	h := act
	if !x.hidden.Empty() {
		h = x.hidden.Slice(0, M*F)
	}
	x.apply(h, n, up)
	x.be.Zero(gates)
	x.be.AddColumns(gates, h, F, 2*F, F, quickSlope)
	x.be.OutputGate(act, h, gates, kernels.AttentionShape{H: 1, D: F})
	return act
}

// merge sets part k of x.out to what a merger makes of the tokens' patches (mergerSpec).
func (x *pass) merge(y merger, k int) {
	c := x.Config
	C, U := c.Width, c.unit()
	part := x.out.Slice(k*x.n/U*c.Out, (k+1)*x.n/U*c.Out)
	x.each(x.n, func(lo, hi int) {
		in, to := x.x.Slice(lo*C, hi*C), part.Slice(lo/U*c.Out, hi/U*c.Out)
		if c.has().mean {
			in = x.mean(x.sum.Slice(0, in.Len()/U), in)
		}
		n := x.normed.Slice(0, in.Len())
		x.norm(n, in, y.norm)
		if y.join.w.In > 0 {
			n = x.join(n, y, (hi-lo)/U)
		}
		if y.fc1.w.In > 0 {
			n = x.activate(n, y.fc1, y.activation)
		}
		x.apply(to, n, y.fc2)
	})
}

// patchesOf returns where the patches of each of n tokens of a step are.
func (x *pass) patchesOf(n int) kernels.Buffer { return x.means.dev.Slice(0, 2*n) }

// mean sets out [tokens,C] to the means of the tokens' patches, in, and returns it.
func (x *pass) mean(out, in kernels.Buffer) kernels.Buffer {
	C := x.Config.Width
	x.be.SegmentMean(out, in, x.patchesOf(out.Len()/C), C)
	return out
}

// join returns join·n, or GELU(middle(proj·join·n)) with proj, of tokens for rows n in x.normed.
func (x *pass) join(n kernels.Buffer, y merger, tokens int) kernels.Buffer {
	sum := x.sum.Slice(0, tokens*y.join.w.Out)
	x.apply(sum, n, y.join)
	if y.proj.w.In == 0 {
		return sum
	}
	normed := x.normed.Slice(0, tokens*x.Config.Out)
	x.apply(normed, sum, y.proj)
	x.norm(sum, normed, y.middle)
	x.be.GELU(sum, sum)
	return sum
}
