package vision

import "exp/kernels"

// This file has the backward pass of a tower's two ends: the embedding of patches and the mergers.

// mergerBackward adds to dx the gradient that comes from part k of the features. Merger k makes it of kept[l].
func (b *backward) mergerBackward(k, l int) {
	c, y := b.Config, &b.mergers[k]
	U, T := c.unit(), b.n/c.unit()
	part := b.d.Slice(k*T*c.Out, (k+1)*T*c.Out)
	b.each(b.n, func(lo, hi int) {
		in, dx := b.part(b.kept[l], lo, hi), b.part(b.dx, lo, hi)
		d := part.Slice(lo/U*c.Out, hi/U*c.Out)
		if k > 0 || b.last.width == 0 {
			b.patchesBackward(y, dx, d, in)
			return
		}
		x, dlast := b.part(b.between, 0, hi-lo), b.part(b.sum, 0, hi-lo)
		b.normWith(x, in, b.last, b.inner)
		b.be.Zero(dlast)
		b.patchesBackward(y, dlast, d, x)
		b.normBackward(dx, dlast, in, b.last, b.inner, b.normed)
	})
}

// patchesBackward is tokensBackward for patches x [rows,C]; a token may be the mean of some.
func (b *backward) patchesBackward(y *merger, dx, d, x kernels.Buffer) {
	if !b.Config.has().mean {
		b.tokensBackward(y, dx, d, x)
		return
	}
	C := b.Config.Width
	tokens := x.Len() / C / b.Config.unit()
	dmean := b.dpooled.Slice(0, tokens*C)
	b.be.Zero(dmean)
	b.tokensBackward(y, dmean, d, b.mean(b.pooled.Slice(0, tokens*C), x))
	b.be.SegmentMeanBackward(dx, dmean, b.patchesOf(tokens), C)
}

// tokensBackward adds to dx the gradient of x [rows,C], the patches of tokens whose features have the gradient d
// [rows/unit,Out]. It overwrites b.sum and b.inner if the merger has a join.
func (b *backward) tokensBackward(y *merger, dx, d, x kernels.Buffer) {
	n, dn := b.normed.Slice(0, x.Len()), b.dnormed.Slice(0, x.Len())
	b.norm(n, x, y.norm)
	read, dread := n, dn
	joins := y.join.w.In > 0
	if joins {
		read = b.joined(n, y)
		dread = b.djoined.Slice(0, read.Len())
	}
	if y.fc1.w.In > 0 {
		act := b.activate(read, y.fc1, y.activation)
		dact := b.dact.Slice(0, act.Len())
		b.linearBackward(dact, d, act, y.fc2)
		b.linearBackward(dread, b.activationBackward(dact, y.fc1, y.activation), read, y.fc1)
	} else {
		b.linearBackward(dread, d, read, y.fc2)
	}
	if joins {
		b.joinBackward(dn, dread, n, y)
	}
	b.normBackward(dx, dn, x, y.norm, b.stats, b.normed)
}

// joined is join in buffers that joinBackward reads.
func (b *backward) joined(n kernels.Buffer, y *merger) kernels.Buffer {
	tokens := n.Len() / y.join.w.In
	sum := b.sum.Slice(0, tokens*y.join.w.Out)
	b.apply(sum, n, y.join)
	if y.proj.w.In == 0 {
		return sum
	}
	k := tokens * y.proj.w.Out
	projected, middle, activated := b.projected.Slice(0, k), b.middle.Slice(0, k), b.activated.Slice(0, k)
	b.apply(projected, sum, y.proj)
	b.normWith(middle, projected, y.middle, b.inner)
	b.be.GELU(activated, middle)
	return activated
}

// joinBackward sets dn, the gradient of n [rows,C], from d, the gradient of what joined returned for n. It overwrites
// d.
func (b *backward) joinBackward(dn, d, n kernels.Buffer, y *merger) {
	if y.proj.w.In > 0 {
		sum := b.sum.Slice(0, n.Len()/y.join.w.In*y.join.w.Out)
		b.be.GELUBackward(d, d, b.middle.Slice(0, d.Len()))
		dprojected := b.activated.Slice(0, d.Len())
		b.be.Zero(dprojected)
		b.normBackward(dprojected, d, b.projected.Slice(0, d.Len()), y.middle, b.inner, b.middle)
		d = d.Slice(0, sum.Len())
		b.linearBackward(d, dprojected, sum, y.proj)
	}
	if y.join.turn == nil {
		b.linearBackward(dn, d, n, y.join)
		return
	}
	b.be.MatMulDX(dn, d, y.join.w)
	files := b.turned.Slice(0, n.Len())
	y.join.turn.toFiles(b.be, files, n)
	b.linearBackward(kernels.Buffer{}, d, files, y.join)
}

// embedBackward adds to the gradients of the map from pixels, of the norm behind it, of learned positions and of the
// rows of tiles.
func (b *backward) embedBackward(pixels []float32) {
	P := b.Config.pixels()
	b.tablesBackward()
	b.each(b.n, func(lo, hi int) {
		in, d := b.normed.Slice(0, (hi-lo)*P), b.part(b.dx, lo, hi)
		b.be.Copy(in, kernels.Host(pixels[lo*P:hi*P]))
		if b.first.width > 0 {
			x, dx := b.part(b.sum, 0, hi-lo), b.part(b.dnormed, 0, hi-lo)
			b.be.MatMul(x, in, b.patches.w, b.patches.bias)
			b.norm(b.part(b.scaled, 0, hi-lo), x, b.first)
			b.be.Zero(dx)
			b.normBackward(dx, d, x, b.first, b.stats, b.scaled)
			d = dx
		}
		b.linearBackward(kernels.Buffer{}, d, in, b.patches)
		b.be.Sync() // before pixels go
	})
}

// tablesBackward adds to the gradients of learned positions and of the rows of tiles. It sums on the host in float64,
// first over patches and then over tiles, and rounds once.
func (b *backward) tablesBackward() {
	c := b.Config
	C := c.Width
	var tables [][]float64
	for _, t := range c.onHost() {
		tables = append(tables, make([]float64, t.Len()))
	}
	if len(tables) == 0 {
		return
	}
	d := make([]float64, b.step*C)
	positions := tables[0]
	if c.has().class {
		positions = positions[C:]
	}
	b.each(b.n, func(lo, hi int) {
		b.be.Copy(kernels.Host(d[:(hi-lo)*C]), b.part(b.dx, lo, hi))
		b.be.Sync()
		c.positionsBackward(positions, d, b.pass.rows, b.columns, lo, hi)
	})
	for i := b.n; i < b.m; i++ {
		b.be.Copy(kernels.Host(d[:C]), b.part(b.dx, i, i+1))
		b.be.Sync()
		for j, v := range d[:C] {
			tables[0][j] += v
			tables[1][j] += v
		}
	}
	for i, t := range tables {
		x := b.dtable.Slice(0, len(t))
		b.be.Copy(x, kernels.Host(t))
		b.be.Add(b.tables[i].dw, x)
		b.be.Sync() // before t goes
	}
}
