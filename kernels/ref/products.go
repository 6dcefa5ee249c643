package ref

import (
	"math"

	"exp/kernels"
)

// dots continues the sums in out [M,N] by those over k of a [M,K] and b [N,K]: chains, tile sums or matrix sums.
// Where nothing special can happen, it takes a shorter way to the same bits than these do one by one.
type dots[T Float] func(out, a, b []T, M, N, K int)

// chains are products by chains. Four at a time need not wait for each other.
func chains[T Float](out, a, b []T, M, N, K int) {
	for m := range M {
		x, sums := a[m*K:(m+1)*K], out[m*N:(m+1)*N]
		n := 0
		for ; n+4 <= N; n += 4 {
			fourChains((*[4]T)(sums[n:]), x, b[n*K:(n+4)*K])
		}
		for ; n < N; n++ {
			sums[n] = chain(x, b[n*K:(n+1)*K], sums[n])
		}
	}
}

// fourChains continues four chains of a [K] with the rows of b [4,K].
func fourChains[T Float](out *[4]T, a, b []T) {
	K := len(a)
	b0, b1, b2, b3 := b[:K], b[K:2*K], b[2*K:3*K], b[3*K:4*K]
	s0, s1, s2, s3 := out[0], out[1], out[2], out[3]
	for k, v := range a {
		y0, ok0 := quickFMA(v, b0[k], s0)
		y1, ok1 := quickFMA(v, b1[k], s1)
		y2, ok2 := quickFMA(v, b2[k], s2)
		y3, ok3 := quickFMA(v, b3[k], s3)
		if !(ok0 && ok1 && ok2 && ok3) {
			y0, y1, y2, y3 = FMA(v, b0[k], s0), FMA(v, b1[k], s1), FMA(v, b2[k], s2), FMA(v, b3[k], s3)
		}
		s0, s1, s2, s3 = y0, y1, y2, y3
	}
	*out = [4]T{s0, s1, s2, s3}
}

// span bounds the exponents of numbers that are not zero.
type span struct{ least, most int }

// special is an exponent of infinities and NaNs, far from all others.
const special = 10000

// rounded returns x [n,K] rounded to BF16, and the spans of its rows.
func rounded(x []float32, n, K int) ([]float32, []span) {
	y, spans := make([]float32, len(x)), make([]span, n)
	for i := range spans {
		s := span{special, -special / 2}
		for k, v := range x[i*K : (i+1)*K] {
			v = Round(v)
			y[i*K+k] = v
			if v != 0 {
				e := exponent(v)
				if v-v != 0 {
					e = special
				}
				s = span{min(s.least, e), max(s.most, e)}
			}
		}
		spans[i] = s
	}
	return y, spans
}

// tileProducts are products by tile sums.
func tileProducts(out, a, b []float32, M, N, K int) {
	a, as := rounded(a, M, K)
	b, bs := rounded(b, N, K)
	for m := range M {
		x, sums := a[m*K:(m+1)*K], out[m*N:(m+1)*N]
		for n := 0; n < N; n += 2 {
			if n+1 < N && tame(as[m], bs[n]) && tame(as[m], bs[n+1]) {
				sums[n], sums[n+1] = twoTileSums(x, b[n*K:(n+1)*K], b[(n+1)*K:(n+2)*K], sums[n], sums[n+1])
				continue
			}
			for i := n; i < min(n+2, N); i++ {
				sums[i] = TileSum(x, b[i*K:(i+1)*K], sums[i])
			}
		}
	}
}

// tame reports whether a step of a tile sum has neither subnormal results nor infinite ones. Factors of rows have 8
// bits, so products are multiples of 2^(least-14), and so is each sum of them that float32 rounds; and they are below
// 2^(most+2), of which a chain adds 16.
func tame(a, b span) bool { return a.least+b.least > -100 && a.most+b.most < 100 }

// twoTileSums are TileSum of a with b and c, whose steps are tame.
func twoTileSums(a, b, c []float32, accB, accC float32) (float32, float32) {
	for len(a) > 0 {
		n := min(len(a), kernels.TileTerms)
		var b0, b1, c0, c1 float32
		x, y, z := a[:n], b[:n], c[:n]
		for len(x) > 1 && len(y) > 1 && len(z) > 1 {
			b0 += float32(x[0] * y[0])
			b1 += float32(x[1] * y[1])
			c0 += float32(x[0] * z[0])
			c1 += float32(x[1] * z[1])
			x, y, z = x[2:], y[2:], z[2:]
		}
		if len(x) > 0 {
			b0 += float32(x[0] * y[0])
			c0 += float32(x[0] * z[0])
		}
		accB = flush(flush(accB) + float32(b0+b1))
		accC = flush(flush(accC) + float32(c0+c1))
		a, b, c = a[n:], b[n:], c[n:]
	}
	return accB, accC
}

// matrixFactor is a factor of a matrix sum: its value, exact, and its exponent, which is -special for a zero.
type matrixFactor struct {
	value    float64
	exponent int
}

// matrixFactors returns rounded x.
func matrixFactors(x []float32) []matrixFactor {
	list := make([]matrixFactor, len(x))
	for i, v := range x {
		list[i] = matrixFactor{float64(v), -special}
		if v != 0 {
			list[i].exponent = exponent(v)
		}
	}
	return list
}

// matrixProducts are products by matrix sums.
func matrixProducts(out, a, b []float32, M, N, K int) {
	a, as := rounded(a, M, K)
	b, bs := rounded(b, N, K)
	fa, fb := matrixFactors(a), matrixFactors(b)
	for m := range M {
		for n := range N {
			sum := &out[m*N+n]
			if as[m].most == special || bs[n].most == special || *sum-*sum != 0 {
				*sum = MatrixSum(a[m*K:(m+1)*K], b[n*K:(n+1)*K], *sum)
			} else {
				*sum = finiteMatrixSum(fa[m*K:(m+1)*K], fb[n*K:(n+1)*K], *sum)
			}
		}
	}
}

// finiteMatrixSum is MatrixSum of factors none of which is an infinity or a NaN.
func finiteMatrixSum(a, b []matrixFactor, acc float32) float32 {
	for len(a) > 0 && acc-acc == 0 { // an infinity and a NaN stay
		n := min(len(a), kernels.MatrixTerms)
		var terms [kernels.MatrixTerms]float64
		top := matrixLeast
		if acc != 0 {
			top = max(top, exponent(acc))
		}
		for i, x := range a[:n] {
			y := &b[i]
			terms[i] = x.value * y.value
			top = max(top, x.exponent+y.exponent)
		}
		units := math.Float64frombits(uint64(1023+matrixPlaces-top) << 52)
		sum := int64(float64(acc) * units)
		for _, p := range terms[:n] {
			sum += int64(p * units)
		}
		acc = cutToFloat(sum, top-matrixPlaces)
		a, b = a[n:], b[n:]
	}
	return acc
}
