package ref

import "exp/kernels"

// RMSNorm sets, for each vector x [Dim] of the shape,
//
//	ss     = lane sum of x[i]·x[i]
//	rstd   = 1 / sqrt(ss/Dim + eps)
//	out[i] = (x[i]·rstd) · weight[i]
//
// with 1 + weight[i] for weight[i] if the shape has UnitOffset. out and x are
// [M,Stride] and may be the same, rstd is [M,Heads], weight [Dim]. Elements of out
// outside the shape keep their value. eps is rounded to T first. Biao Zhang and Rico
// Sennrich, arXiv:1910.07467 eq. 4.
func RMSNorm[T Float](out, rstd, x, weight []T, s kernels.NormShape, eps float64) {
	M := normRows(out, s)
	if len(x) != len(out) || len(rstd) != M*s.Heads || len(weight) != s.Dim {
		panic("ref: RMSNorm: length mismatch")
	}
	for v := range M * s.Heads {
		at := vector(s, v)
		xv, ov := x[at:at+s.Dim], out[at:at+s.Dim]
		r := 1 / sqrt(LaneDot(xv, xv)/T(s.Dim)+T(eps))
		rstd[v] = r
		for i := range xv {
			ov[i] = T(xv[i]*r) * scaleOf(weight[i], s)
		}
	}
}

// AddRMSNorm sets sum = x + delta, then out and rstd to RMSNorm of sum. rstd is [M],
// weight [Dim], the others [M,Dim]; s must be a plain shape. sum may be x or delta.
func AddRMSNorm[T Float](sum, out, rstd, x, delta, weight []T, s kernels.NormShape, eps float64) {
	if s.Heads != 1 || s.Offset != 0 || s.Stride != s.Dim {
		panic("ref: AddRMSNorm: the shape is not a plain one")
	}
	if len(sum) != len(out) || len(x) != len(out) || len(delta) != len(out) {
		panic("ref: AddRMSNorm: length mismatch")
	}
	for i := range sum {
		sum[i] = x[i] + delta[i]
	}
	RMSNorm(out, rstd, sum, weight, s, eps)
}

// scaleOf returns the factor that a stored weight stands for.
func scaleOf[T Float](weight T, s kernels.NormShape) T {
	if s.UnitOffset {
		return 1 + weight
	}
	return weight
}

// RMSNormBackward computes, for each vector of the shape, with
// g[i] = dout[i]·weight[i],
//
//	dot    = lane sum of g[i]·x[i]
//	a      = (dot·((rstd·rstd)·rstd)) / Dim
//	dx[i] += fma(-a, x[i], g[i]·rstd)      or =, with set
//
// and adds to dweight [Dim] the blocked sum over rows, heads ascending within a
// row, of acc = fma(dout[i], x[i]·rstd, acc). With set, dx may be dout. Elements
// of dx outside the shape keep their value.
func RMSNormBackward[T Float](dx, dweight, dout, x, weight, rstd []T, blocks []int32, s kernels.NormShape, set bool) {
	M := normRows(dx, s)
	if len(dout) != len(dx) || len(x) != len(dx) || len(rstd) != M*s.Heads || len(weight) != s.Dim ||
		len(dweight) != s.Dim {
		panic("ref: RMSNormBackward: length mismatch")
	}
	// The weight's gradient first: writing dx may destroy dout.
	rmsNormDW(dweight, dout, x, rstd, blocks, M, s)

	g := make([]T, s.Dim)
	for v := range M * s.Heads {
		at := vector(s, v)
		xv, dov, dxv := x[at:at+s.Dim], dout[at:at+s.Dim], dx[at:at+s.Dim]
		for i := range g {
			g[i] = T(dov[i] * scaleOf(weight[i], s))
		}
		r := rstd[v]
		a := T(LaneDot(g, xv)*T(T(r*r)*r)) / T(s.Dim)
		for i := range g {
			d := FMA(-a, xv[i], T(g[i]*r))
			if set {
				dxv[i] = d
			} else {
				dxv[i] += d
			}
		}
	}
}

func rmsNormDW[T Float](dweight, dout, x, rstd []T, blocks []int32, M int, s kernels.NormShape) {
	checkBlocks(blocks, M)
	acc := make([]T, s.Dim)
	for b := 1; b < len(blocks); b++ {
		clear(acc)
		for v := int(blocks[b-1]) * s.Heads; v < int(blocks[b])*s.Heads; v++ {
			at := vector(s, v)
			for i := range acc {
				acc[i] = FMA(dout[at+i], T(x[at+i]*rstd[v]), acc[i])
			}
		}
		addTo(dweight, acc)
	}
}

// vector returns the offset of the v-th vector of the shape, counted row by row.
func vector(s kernels.NormShape, v int) int {
	return v/s.Heads*s.Stride + s.Offset + v%s.Heads*s.Dim
}

// normRows returns the number of rows of x. It panics if the shape does not fit
// into a row.
func normRows[T Float](x []T, s kernels.NormShape) int {
	if s.Heads < 1 || s.Dim < 1 || s.Offset < 0 || s.Offset+s.Heads*s.Dim > s.Stride {
		panic("ref: the norm's vectors do not fit into a row")
	}
	if len(x)%s.Stride != 0 {
		panic("ref: norm: not a whole number of rows")
	}
	return len(x) / s.Stride
}
