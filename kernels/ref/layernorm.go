package ref

// LayerNorm sets, for each row x [C],
//
//	mean   = (lane sum of x[i]) / C
//	var    = (lane sum of (x[i]-mean)²) / C
//	rstd   = 1 / sqrt(var + eps)
//	out[i] = fma((x[i]-mean)·rstd, weight[i], bias[i])
//
// out and x are [M,C], weight and bias [C]; stats [M,2] holds mean and rstd. eps
// is rounded to T first. Ba, Kiros and Hinton, arXiv:1607.06450 eq. 4.
func LayerNorm[T Float](out, stats, x, weight, bias []T, C int, eps float64) {
	M := len(out) / C
	if len(out) != M*C || len(x) != M*C || len(stats) != M*2 || len(weight) != C || len(bias) != C {
		panic("ref: LayerNorm: length mismatch")
	}
	d := make([]T, C)
	for m := 0; m < M; m++ {
		xm, om := x[m*C:(m+1)*C], out[m*C:(m+1)*C]
		mean := LaneSum(xm) / T(C)
		for i := range d {
			d[i] = xm[i] - mean
		}
		rstd := 1 / sqrt(LaneDot(d, d)/T(C)+T(eps))
		stats[2*m], stats[2*m+1] = mean, rstd
		for i := range d {
			om[i] = FMA(T(d[i]*rstd), weight[i], bias[i])
		}
	}
}

// LayerNormBackward sets, for each row, with h[i] = (x[i]-mean)·rstd and
// g[i] = dout[i]·weight[i],
//
//	a     = (lane sum of g[i]) / C
//	b     = (lane sum of g[i]·h[i]) / C
//	dx[i] = fma(-h[i], b, g[i]-a) · rstd
//
// and adds the blocked sums of dout·h (a chain) to dweight [C] and of dout
// (plain) to dbias [C].
func LayerNormBackward[T Float](dx, dweight, dbias, dout, x, weight, stats []T, blocks []int32, C int) {
	M := len(dx) / C
	if len(dx) != M*C || len(dout) != M*C || len(x) != M*C || len(stats) != M*2 ||
		len(weight) != C || len(dweight) != C || len(dbias) != C {
		panic("ref: LayerNormBackward: length mismatch")
	}
	checkBlocks(blocks, M)
	h, g, acc := make([]T, C), make([]T, C), make([]T, C)
	for block := 1; block < len(blocks); block++ {
		lo, hi := int(blocks[block-1]), int(blocks[block])
		clear(acc)
		for m := lo; m < hi; m++ {
			xm, dom, dxm := x[m*C:(m+1)*C], dout[m*C:(m+1)*C], dx[m*C:(m+1)*C]
			mean, rstd := stats[2*m], stats[2*m+1]
			for i := range h {
				h[i] = T((xm[i] - mean) * rstd)
				g[i] = T(dom[i] * weight[i])
				acc[i] = FMA(dom[i], h[i], acc[i])
			}
			a := LaneSum(g) / T(C)
			b := LaneDot(g, h) / T(C)
			for i := range h {
				dxm[i] = FMA(-h[i], b, g[i]-a) * rstd
			}
		}
		addTo(dweight, acc)
		addColumnSums(dbias, dout[lo*C:hi*C])
	}
}
