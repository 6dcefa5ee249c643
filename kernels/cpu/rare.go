package cpu

import (
	"exp/kernels"
	"exp/kernels/ref"
)

// The operations of this file belong to the log Z head: they see one row per
// sequence and take no time worth saving, so they are kernels/ref's, on goroutines
// where rows are independent.

// LayerNorm normalises rows.
func (b *Backend) LayerNorm(out, stats, x, weight, bias kernels.Buffer, C int, eps float64) {
	o, st, s := kernels.Elems[float32](out), kernels.Elems[float32](stats), kernels.Elems[float32](x)
	w, bi := kernels.Elems[float32](weight), kernels.Elems[float32](bias)
	b.pool.runGo(func(lo, hi int) {
		ref.LayerNorm(o[lo*C:hi*C], st[lo*2:hi*2], s[lo*C:hi*C], w, bi, C, eps)
	}, len(s)/C, max(1, 4096/C))
}

// LayerNormBackward computes the gradients of LayerNorm.
func (b *Backend) LayerNormBackward(dx, dweight, dbias, dout, x, weight, stats, blocks kernels.Buffer, C int) {
	ref.LayerNormBackward(kernels.Elems[float32](dx), kernels.Elems[float32](dweight), kernels.Elems[float32](dbias),
		kernels.Elems[float32](dout), kernels.Elems[float32](x), kernels.Elems[float32](weight),
		kernels.Elems[float32](stats), kernels.Elems[int32](blocks), C)
}

// Dropout drops elements by the counters of their rows' keys.
func (b *Backend) Dropout(out, x, keys kernels.Buffer, C int, layer uint32, p float64) {
	o, s, k := kernels.Elems[float32](out), kernels.Elems[float32](x), kernels.Elems[int32](keys)
	b.pool.runGo(func(lo, hi int) {
		ref.Dropout(o[lo*C:hi*C], s[lo*C:hi*C], k[lo*2:hi*2], C, layer, p)
	}, len(s)/C, max(1, 1024/C))
}

// SegmentMean averages rows.
func (b *Backend) SegmentMean(out, x, segments kernels.Buffer, C int) {
	if x.DType() == kernels.BF16 && !x.Empty() {
		y := b.workspace(x.Len())
		b.Copy(y, x)
		x = y
	}
	o, s, g := kernels.Elems[float32](out), kernels.Elems[float32](x), kernels.Elems[int32](segments)
	b.pool.runGo(func(lo, hi int) { ref.SegmentMean(o[lo*C:hi*C], s, g[lo*2:hi*2], C) }, len(o)/C, 8)
}

// SegmentMeanBackward adds a segment's share to its rows. Segments may overlap, so
// it is not shared out.
func (b *Backend) SegmentMeanBackward(dx, dout, segments kernels.Buffer, C int) {
	ref.SegmentMeanBackward(kernels.Elems[float32](dx), kernels.Elems[float32](dout), kernels.Elems[int32](segments), C)
}
