package ref

import "exp/kernels"

// GatedNorm sets out and rstd from x [M,Out], the gates of projected rows p and weight
// [ValueDim], see kernels.Recurrence.
func GatedNorm[T Float](out, rstd, x, p, weight []T, s kernels.DeltaShape, eps float64) {
	M, n := deltaRows(p, s), s.ValueDim
	if len(out) != M*s.Out() || len(x) != len(out) || len(rstd) != M*s.Values || len(weight) != n {
		panic("ref: GatedNorm: length mismatch")
	}
	for v := range M * s.Values {
		xv, ov := x[v*n:(v+1)*n], out[v*n:(v+1)*n]
		r := 1 / sqrt(LaneDot(xv, xv)/T(n)+T(eps))
		rstd[v] = r
		z := gateOf(p, v, s)
		for i := range xv {
			ov[i] = T(T(xv[i]*r)*weight[i]) * T(z[i]*Sigmoid(z[i]))
		}
	}
}

// gateOf returns the gates of the v-th value head of projected rows, counted row by row.
func gateOf[T Float](p []T, v int, s kernels.DeltaShape) []T {
	return p[v/s.Values*s.Stride()+s.Gate(v%s.Values):][:s.ValueDim]
}

// GatedNormBackward sets dx [M,Out] and the columns z of dp [M,Stride] and adds to dweight
// [ValueDim], see kernels.Recurrence.
func GatedNormBackward[T Float](dx, dp, dweight, dout, x, p, weight, rstd []T, blocks []int32, s kernels.DeltaShape) {
	M, n := deltaRows(p, s), s.ValueDim
	if len(dx) != M*s.Out() || len(dp) != len(p) || len(dout) != len(dx) || len(x) != len(dx) || len(weight) != n ||
		len(dweight) != n || len(rstd) != M*s.Values {
		panic("ref: GatedNormBackward: length mismatch")
	}
	checkBlocks(blocks, M)
	dn, g, acc := make([]T, n), make([]T, n), make([]T, n)
	for b := 1; b < len(blocks); b++ {
		clear(acc)
		for v := int(blocks[b-1]) * s.Values; v < int(blocks[b])*s.Values; v++ {
			xv, dv, r := x[v*n:(v+1)*n], dout[v*n:(v+1)*n], rstd[v]
			z, dz := gateOf(p, v, s), gateOf(dp, v, s)
			for i := range xv {
				sg := Sigmoid(z[i])
				norm := T(xv[i]*r) * weight[i]
				dn[i] = dv[i] * T(z[i]*sg)
				dz[i] = T(dv[i]*norm) * T(sg*FMA(z[i], 1-sg, 1))
				acc[i] = FMA(dn[i], T(xv[i]*r), acc[i])
				g[i] = T(dn[i] * weight[i])
			}
			a := T(LaneDot(g, xv)*T(T(r*r)*r)) / T(n)
			for i := range xv {
				dx[v*n+i] = FMA(-a, xv[i], T(g[i]*r))
			}
		}
		addTo(dweight, acc)
	}
}

// GroupedNorm sets out and rstd from x [M,Out], the gates of projected rows p and weight [Out], see
// kernels.Recurrence.
func GroupedNorm[T Float](out, rstd, x, p, weight []T, s kernels.DeltaShape, eps float64) {
	M, n := deltaRows(p, s), s.Out()/s.Keys
	if len(out) != M*s.Out() || len(x) != len(out) || len(rstd) != M*s.Keys || len(weight) != s.Out() {
		panic("ref: GroupedNorm: length mismatch")
	}
	y := make([]T, n)
	for v := range M * s.Keys {
		gatedGroup(y, x, p, v, s)
		r := 1 / sqrt(LaneDot(y, y)/T(n)+T(eps))
		rstd[v] = r
		w := weight[v%s.Keys*n:][:n]
		for i := range y {
			out[v*n+i] = T(y[i]*r) * w[i]
		}
	}
}

// gatedGroup sets y to the v-th group of channels times their gates, counted row by row.
func gatedGroup[T Float](y, x, p []T, v int, s kernels.DeltaShape) {
	n := len(y)
	xv, z := x[v*n:(v+1)*n], p[v/s.Keys*s.Stride()+s.Gate(0)+v%s.Keys*n:][:n]
	for i := range y {
		y[i] = xv[i] * T(z[i]*Sigmoid(z[i]))
	}
}

// GroupedNormBackward sets dx [M,Out] and the columns z of dp [M,Stride] and adds to dweight [Out], see
// kernels.Recurrence.
func GroupedNormBackward[T Float](dx, dp, dweight, dout, x, p, weight, rstd []T, blocks []int32,
	s kernels.DeltaShape) {
	M, n := deltaRows(p, s), s.Out()/s.Keys
	if len(dx) != M*s.Out() || len(dp) != len(p) || len(dout) != len(dx) || len(x) != len(dx) ||
		len(weight) != s.Out() || len(dweight) != len(weight) || len(rstd) != M*s.Keys {
		panic("ref: GroupedNormBackward: length mismatch")
	}
	checkBlocks(blocks, M)
	y, g, acc := make([]T, n), make([]T, n), make([]T, s.Out())
	for b := 1; b < len(blocks); b++ {
		clear(acc)
		for v := int(blocks[b-1]) * s.Keys; v < int(blocks[b])*s.Keys; v++ {
			xv, dv, r := x[v*n:(v+1)*n], dout[v*n:(v+1)*n], rstd[v]
			at := v/s.Keys*s.Stride() + s.Gate(0) + v%s.Keys*n
			z, dz := p[at:][:n], dp[at:][:n]
			w, sums := weight[v%s.Keys*n:][:n], acc[v%s.Keys*n:][:n]
			gatedGroup(y, x, p, v, s)
			for i := range y {
				sums[i] = FMA(dv[i], T(y[i]*r), sums[i])
				g[i] = T(dv[i] * w[i])
			}
			a := T(LaneDot(g, y)*T(T(r*r)*r)) / T(n)
			for i := range y {
				sg, dy := Sigmoid(z[i]), FMA(-a, y[i], T(g[i]*r))
				dz[i] = T(dy*xv[i]) * T(sg*FMA(z[i], 1-sg, 1))
				dx[v*n+i] = dy * T(z[i]*sg)
			}
		}
		addTo(dweight, acc)
	}
}
