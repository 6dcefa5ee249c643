package ref

import (
	"math"

	"exp/kernels"
)

// Attention sets out [M,H·D] to causal attention within packed sequences:
// sequence j is rows offsets[j] to offsets[j+1]. For query row i and head h, over
// the rows t ≤ i of its sequence, counted from the sequence's start:
//
//	z[t]   = (chain over d of q[d]·k[t,d]) · Scale
//	m      = max z
//	e[t]   = Exp(z[t] - m)
//	l      = lane sum of e[t]
//	out[d] = (chain over t of e[t]·v[t,d]) · (1/l)
//
// qkv is [M,Stride], offsets [S+1] from 0 to M; stats [M,H,2] holds m and 1/l.
// Scale is rounded to T first. The maximum starts from -Inf and skips NaN, which
// reaches the result through e. Vaswani et al., arXiv:1706.03762 eq. 1; shared
// key/value heads: Ainslie et al., arXiv:2305.13245.
func Attention[T Float](out, stats, qkv []T, offsets []int32, s kernels.AttentionShape) {
	M := attentionRows(qkv, offsets, s)
	if len(out) != M*s.H*s.D || len(stats) != M*s.H*2 {
		panic("ref: Attention: length mismatch")
	}
	e := make([]T, M)
	for j := 1; j < len(offsets); j++ {
		lo, hi := int(offsets[j-1]), int(offsets[j])
		for i := lo; i < hi; i++ {
			for h := 0; h < s.H; h++ {
				q := head(qkv, i, h, s)
				z := e[:i-lo+1]
				for t := range z {
					z[t] = T(chain(q, key(qkv, lo+t, h, s), 0) * T(s.Scale))
				}
				m, inv := expSum(z)
				at := i*s.H + h
				stats[2*at], stats[2*at+1] = m, inv
				o := out[at*s.D : (at+1)*s.D]
				clear(o)
				for t, p := range z {
					accumulate(o, p, value(qkv, lo+t, h, s))
				}
				for d := range o {
					o[d] *= inv
				}
			}
		}
	}
}

// expSum replaces z by e[t] = Exp(z[t]-m), m = max z, and returns m and 1/l with
// l the lane sum of e.
func expSum[T Float](z []T) (m, inv T) {
	m = maxOf(z)
	for t := range z {
		z[t] = Exp(z[t] - m)
	}
	return m, 1 / LaneSum(z)
}

// maxOf returns the largest element of z, -Inf if there is none. NaN are skipped.
func maxOf[T Float](z []T) T {
	m := T(math.Inf(-1))
	for _, v := range z {
		if v > m {
			m = v
		}
	}
	return m
}

// accumulate sets acc[d] = fma(a, x[d], acc[d]).
func accumulate[T Float](acc []T, a T, x []T) {
	for d, v := range x {
		acc[d] = FMA(a, v, acc[d])
	}
}

// AttentionBackward sets dqkv [M,Stride]. With z and m, 1/l (in stats) as in
// Attention, and
//
//	delta = lane sum of dout[d]·out[d]
//	p[t]  = Exp(z[t] - m)·(1/l)
//	dp[t] = chain over d of dout[d]·v[t,d]
//	dz[t] = (p[t]·(dp[t] - delta)) · Scale
//
// it is
//
//	dq[d]   = chain over t ascending of dz[t]·k[t,d]
//	dk[t,d] = chain of dz[t]·q[d]
//	dv[t,d] = chain of p[t]·dout[d]
//
// the last two over the query heads of the group ascending, within a head the
// query rows ascending.
func AttentionBackward[T Float](dqkv, dout, out, stats, qkv []T, offsets []int32, s kernels.AttentionShape) {
	M := attentionRows(qkv, offsets, s)
	if len(dqkv) != len(qkv) || len(dout) != M*s.H*s.D || len(out) != len(dout) || len(stats) != M*s.H*2 {
		panic("ref: AttentionBackward: length mismatch")
	}
	clear(dqkv)
	for j := 1; j < len(offsets); j++ {
		lo, hi := int(offsets[j-1]), int(offsets[j])
		for h := 0; h < s.H; h++ {
			for i := lo; i < hi; i++ {
				at := i*s.H + h
				m, inv := stats[2*at], stats[2*at+1]
				do := dout[at*s.D : (at+1)*s.D]
				delta := LaneDot(do, out[at*s.D:(at+1)*s.D])
				q, dq := head(qkv, i, h, s), head(dqkv, i, h, s)
				for t := lo; t <= i; t++ {
					k, v := key(qkv, t, h, s), value(qkv, t, h, s)
					z := T(chain(q, k, 0) * T(s.Scale))
					p := T(Exp(z-m) * inv)
					dz := T(p*(chain(do, v, 0)-delta)) * T(s.Scale)
					accumulate(dq, dz, k)
					accumulate(key(dqkv, t, h, s), dz, q)
					accumulate(value(dqkv, t, h, s), p, do)
				}
			}
		}
	}
}

// head returns query head h of row m of qkv.
func head[T Float](qkv []T, m, h int, s kernels.AttentionShape) []T {
	return qkv[m*s.Stride()+h*s.D:][:s.D]
}

// key returns the key of row m of qkv that query head h reads.
func key[T Float](qkv []T, m, h int, s kernels.AttentionShape) []T {
	return qkv[m*s.Stride()+(s.H+kvHead(h, s))*s.D:][:s.D]
}

// value returns the value of row m of qkv that query head h reads.
func value[T Float](qkv []T, m, h int, s kernels.AttentionShape) []T {
	return qkv[m*s.Stride()+(s.H+s.K+kvHead(h, s))*s.D:][:s.D]
}

// kvHead returns the key/value head that query head h reads.
func kvHead(h int, s kernels.AttentionShape) int { return h / (s.H / s.K) }

// attentionRows returns M and panics unless offsets ascend from 0 to M.
func attentionRows[T Float](qkv []T, offsets []int32, s kernels.AttentionShape) int {
	checkAttention(s)
	M := len(qkv) / s.Stride()
	if len(qkv) != M*s.Stride() {
		panic("ref: attention: not a whole number of rows")
	}
	if len(offsets) == 0 || offsets[0] != 0 || int(offsets[len(offsets)-1]) != M {
		panic("ref: sequences do not cover the rows")
	}
	for j := 1; j < len(offsets); j++ {
		if offsets[j] < offsets[j-1] {
			panic("ref: sequences are not in order")
		}
	}
	return M
}
