package vision

import "exp/kernels"

// ordered computes attention within segments, the image, its tiles or windows of it, and the backward pass. The
// operations take segments one after another, so it brings rows into that order first.
type ordered struct {
	whole, windows order
	stats          kernels.Buffer // [M,H,2]
	qkv, att, datt kernels.Buffer // [M,3C], [M,C], [M,C] in order; empty if rows are in order anyway
}

// order is an order of rows in which one segment follows another.
type order struct {
	own     bool     // rows are in order anyway
	rows    integers // [M] where each row in order is
	back    integers // [M] where each row is in order
	offsets integers // [segments+1]
}

// newOrder returns the order of segments, which are lists of all rows.
func newOrder(lists [][]int32) (x order) {
	x.own = true
	x.offsets.host = []int32{0}
	for _, list := range lists {
		for _, row := range list {
			x.own = x.own && int(row) == len(x.rows.host)
			x.rows.host = append(x.rows.host, row)
		}
		x.offsets.host = append(x.offsets.host, int32(len(x.rows.host)))
	}
	x.back.host = make([]int32, len(x.rows.host))
	for i, row := range x.rows.host {
		x.back.host[row] = int32(i)
	}
	return x
}

// newOrdered returns the attention of an image of rows × columns patches, without memory.
func newOrdered(c Config, rows, columns int) *ordered {
	x := &ordered{whole: newOrder(c.whole(rows, columns))}
	if x.windows.own = true; c.Window > 0 {
		x.windows = newOrder(c.windows(rows, columns))
	}
	return x
}

// plan adds the memory for M rows, with floats and operands of these types.
func (x *ordered) plan(r *rooms, c Config, f, o kernels.DType, M int) {
	r.add(&x.stats, f, 2*M*c.Heads)
	if x.moves() {
		r.add(&x.qkv, o, 3*M*c.Width)
		r.add(&x.att, o, M*c.Width)
	}
	for _, y := range x.integers() {
		y.plan(r)
	}
}

// planBackward adds what a backward pass needs besides.
func (x *ordered) planBackward(r *rooms, c Config, o kernels.DType, M int) {
	if x.moves() {
		r.add(&x.datt, o, M*c.Width)
	}
}

// moves reports whether some layer's rows are not in order.
func (x *ordered) moves() bool { return !x.whole.own || !x.windows.own }

func (x *ordered) load(be kernels.Backend) {
	for _, y := range x.integers() {
		y.load(be)
	}
}

func (x *ordered) integers() (list []*integers) {
	for _, y := range []*order{&x.whole, &x.windows} {
		list = append(list, &y.rows, &y.back, &y.offsets)
	}
	return list
}

// of returns the order of a layer's segments.
func (x *ordered) of(windowed bool) *order {
	if windowed {
		return &x.windows
	}
	return &x.whole
}

// attend sets p.att to attention within segments.
func (x *ordered) attend(p *pass, windowed bool) {
	y, shape, C := x.of(windowed), p.Config.attention(), p.Config.Width
	shape.Full = true
	qkv, att := p.qkv, p.att
	if !y.own {
		qkv, att = x.qkv, x.att
		p.be.GatherRows(qkv, p.qkv, y.rows.dev, 3*C)
	}
	p.be.Attention(att, x.stats, qkv, y.offsets.dev, kernels.Buffer{}, shape)
	if !y.own {
		p.be.GatherRows(p.att, att, y.back.dev, C)
	}
}

// backward sets dqkv, the gradient of p.qkv, from datt, the gradient of p.att, which attend set last. It may overwrite
// p.qkv.
func (x *ordered) backward(p *pass, dqkv, datt kernels.Buffer, windowed bool) {
	y, shape, C := x.of(windowed), p.Config.attention(), p.Config.Width
	shape.Full = true
	if y.own {
		p.be.AttentionBackward(dqkv, datt, p.att, x.stats, p.qkv, y.offsets.dev, kernels.Buffer{}, shape)
		return
	}
	p.be.GatherRows(x.datt, datt, y.rows.dev, C)
	p.be.AttentionBackward(p.qkv, x.datt, x.att, x.stats, x.qkv, y.offsets.dev, kernels.Buffer{}, shape)
	p.be.GatherRows(dqkv, p.qkv, y.back.dev, 3*C)
}
