package ref

import (
	"math"

	"exp/kernels"
)

// Round returns x rounded to BF16: the nearest value with 8 bits of precision,
// ties to even. Subnormals become zero of their sign, and a NaN stays one.
func Round(x float32) float32 { return math.Float32frombits(uint32(roundBits(x)) << 16) }

// roundBits returns the upper half of Round(x).
func roundBits(x float32) uint16 {
	u := math.Float32bits(x)
	switch {
	case x != x:
		return uint16(u>>16) | 0x40
	case u&0x7f800000 == 0:
		return uint16(u>>16) & 0x8000
	}
	return uint16((u + 0x7fff + u>>16&1) >> 16)
}

// widen sets dst to src, exactly.
func widen(dst []float32, src []uint16) {
	for i, v := range src {
		dst[i] = math.Float32frombits(uint32(v) << 16)
	}
}

// narrow sets dst to src, rounded.
func narrow(dst []uint16, src []float32) {
	for i, v := range src {
		dst[i] = roundBits(v)
	}
}

// roundAll rounds every element of x to BF16.
func roundAll(x []float32) {
	for i, v := range x {
		x[i] = Round(v)
	}
}

// TileSum returns acc plus the tile sum of a[i]·b[i], both rounded to BF16 first.
// In each step of kernels.TileTerms terms, the even ones make a chain from 0, the
// odd ones another, and their sum is added to acc:
//
//	acc = acc + (chain of a[2j]·b[2j] + chain of a[2j+1]·b[2j+1])
//
// Every result below 2⁻¹²⁶ becomes zero of its sign, after it is rounded to 24 bits
// whatever its exponent (fusedFlushed). A last step with fewer terms has the sums of
// these alone: terms that it lacks would not even turn -0 into +0. The TDPBF16PS instruction
// computes the same (Intel 64 and IA-32 Architectures Software Developer's Manual,
// volume 2).
func TileSum(a, b []float32, acc float32) float32 {
	for len(a) > 0 {
		n := min(len(a), kernels.TileTerms)
		var lane [2]float32
		for i, v := range a[:n] {
			x, y := Round(v), Round(b[i])
			p := float32(x * y) // exact, unless it is subnormal or too large
			if e := math.Float32bits(p) >> 23 & 0xff; e == 0 || e == 0xff {
				lane[i%2] = fusedFlushed(x, y, lane[i%2])
			} else {
				lane[i%2] = flush(p + lane[i%2])
			}
		}
		acc = flush(flush(acc) + flush(lane[0]+lane[1]))
		a, b = a[n:], b[n:]
	}
	return acc
}

// leastKept is the least number that 24 bits round to 2⁻¹²⁶. The fewer bits of a subnormal round 2⁻¹²⁶ - 2⁻¹⁵⁰
// there, too.
const leastKept = 0x1.ffffffp-127

// fusedFlushed returns a·b + c of BF16 factors, rounded once, or zero of its sign if it is below 2⁻¹²⁶ when rounded
// to 24 bits. So processors flush: x86 finds a result tiny after rounding it "as if the exponent range were
// unbounded" (Intel's manual, volume 1, §4.9.1.5). Near 2⁻¹²⁶ the float64 sum is exact.
func fusedFlushed(a, b, c float32) float32 {
	y := FMA(a, b, c)
	if s := float64(float64(a)*float64(b)) + float64(c); math.Abs(s) < leastKept {
		return math.Float32frombits(math.Float32bits(y) & (1 << 31))
	}
	return y
}

// flush returns x, or zero of its sign if x is subnormal.
func flush(x float32) float32 {
	if u := math.Float32bits(x); u&0x7f800000 == 0 {
		return math.Float32frombits(u & 0x80000000)
	}
	return x
}

// factors says how a class with BF16 operands adds products.
type factors struct {
	name  string // of the backend
	class string
	terms int // of a step
	sum   func(a, b []float32, acc float32) float32
	// dots are many sums.
	dots dots[float32]
	// attend is one row of attention: wholeRow or byKeys.
	attend func(f factors, o, z []float32, from int, v []float32) (m, inv float32)
	embed  bool // Embed rounds weights too
}

// column copies column j of x [rows,width] to dst [rows] and returns it.
func column(dst, x []float32, width, j int) []float32 {
	for i := range dst {
		dst[i] = x[i*width+j]
	}
	return dst
}

// columns returns the columns of x [rows,width] as rows.
func columns(x []float32, rows, width int) []float32 {
	y := make([]float32, len(x))
	for j := range width {
		column(y[j*rows:(j+1)*rows], x, width, j)
	}
	return y
}

// matMul sets out [M,N] to the sums over k of x [M,K] and w [N,K], from bias [N] or from 0.
func (f factors) matMul(out, x, w, bias []float32, M, N, K int) {
	startAt(out, bias, M, N)
	f.dots(out, x, w, M, N, K)
}

// matMulDX sets dx [M,K] to the sums over n of dout [M,N] and w [N,K].
func (f factors) matMulDX(dx, dout, w []float32, M, N, K int) {
	clear(dx)
	f.dots(dx, dout, columns(w, N, K), M, K, N)
}

// matMulDW continues the sums in dw [N,K] over the rows m of each block of
// dout [M,N] and x [M,K], and adds to dbias as MatMulDW does.
func (f factors) matMulDW(dw, dbias, dout, x []float32, blocks []int32, M, N, K int) {
	checkBlocks(blocks, M)
	for b := 1; b < len(blocks); b++ {
		lo, hi := int(blocks[b-1]), int(blocks[b])
		f.dots(dw, columns(dout[lo*N:hi*N], hi-lo, N), columns(x[lo*K:hi*K], hi-lo, K), N, K, hi-lo)
		if len(dbias) != 0 {
			addColumnSums(dbias, dout[lo*N:hi*N])
		}
	}
}

// attention is Attention with f's sums.
func (f factors) attention(out, stats, qkv []float32, offsets, groups []int32, s kernels.AttentionShape) {
	M := attentionRows(qkv, s)
	list := shapedSequences(offsets, groups, M, s)
	z, v := make([]float32, M), make([]float32, M*s.D)
	for _, seq := range list {
		for own := seq.prefix; own < seq.len(); own++ {
			n, i := seq.lastSeen(own, s)+1, seq.row(own)
			for h := 0; h < s.H; h++ {
				q := head(qkv, i, h, s)
				from := firstSeen(own, s)
				for t := from; t < n; t++ {
					z[t] = cappedScore(f.sum(q, key(qkv, seq.row(t), h, s), 0)*float32(s.Scale), s.Cap)
					copy(v[t*s.D:], value(qkv, seq.row(t), h, s))
				}
				at := i*s.H + h
				stats[2*at], stats[2*at+1] = f.attend(f, out[at*s.D:(at+1)*s.D], z[:n], from, v)
			}
		}
	}
}

// wholeRow sets o [D] to the sum of values v [len(z),D] whose weights come from scores z, those from `from` on. z
// becomes the powers. It returns the largest score and 1/l, as Attention does.
func wholeRow(f factors, o, z []float32, from int, v []float32) (m, inv float32) {
	m, inv = expSum(z, from)
	clear(v[:from*len(o)])
	vd := make([]float32, len(z))
	for d := range o {
		o[d] = f.sum(z, column(vd, v, len(o), d), 0) * inv
	}
	return m, inv
}

// byKeys is wholeRow with a maximum that rises. For each kernels.MatrixKeys keys, counted from the sequence's start,
// if the row sees one, from m = the least finite number, o = 0 and lanes of 0:
//
//	top  = max z, -Inf without any, skipping NaN
//	o, lanes = o·r, lanes·r, r = Exp(m - top), and then m = top   if top > m + kernels.MatrixRise
//	e[t] = Exp(z[t] - m), which is added to lane t mod Lanes; 0 for keys that the row does not see
//	o[d] = the matrix sum of e[t]·v[t,d] from the first of the keys on, continued from o[d]
//
// In the end l is the fold of the lanes, and o[d] = o[d]·(1/l) + 0, where -0 becomes 0.
func byKeys(f factors, o, z []float32, from int, v []float32) (m, inv float32) {
	var lane [kernels.Lanes]float32
	vd := make([]float32, len(z))
	clear(o)
	clear(v[:from*len(o)])
	m = -math.MaxFloat32
	for lo := from / kernels.MatrixKeys * kernels.MatrixKeys; lo < len(z); lo += kernels.MatrixKeys {
		first, hi := max(lo, from), min(lo+kernels.MatrixKeys, len(z))
		if top := maxOf(z[first:hi]); top > m+kernels.MatrixRise {
			r := Exp(m - top)
			for j := range lane {
				lane[j] *= r
			}
			for d := range o {
				o[d] *= r
			}
			m = top
		}
		clear(z[lo:first])
		for t := first; t < hi; t++ {
			z[t] = Exp(z[t] - m)
			lane[t%kernels.Lanes] += z[t]
		}
		for d := range o {
			o[d] = f.sum(z[lo:hi], column(vd[lo:hi], v[lo*len(o):], len(o), d), o[d])
		}
	}
	inv = 1 / foldLanes(&lane)
	for d := range o {
		o[d] = float32(o[d]*inv) + 0
	}
	return m + 0, inv
}

// attentionBackward is AttentionBackward with f's sums.
func (f factors) attentionBackward(dqkv, dout, out, stats, qkv []float32, offsets, groups []int32,
	s kernels.AttentionShape) {
	M := attentionRows(qkv, s)
	list := shapedSequences(offsets, groups, M, s)
	clear(dqkv)
	for _, seq := range list {
		P, T, own := seq.prefix, seq.len(), seq.own
		p, dz := make([]float32, own*T), make([]float32, own*T) // [query,key], 0 for unseen keys
		a, b := make([]float32, T), make([]float32, T)
		for h := 0; h < s.H; h++ {
			clear(p)
			clear(dz)
			for i := range own {
				row := seq.row(P + i)
				at := row*s.H + h
				m, inv := stats[2*at], stats[2*at+1]
				do := dout[at*s.D : (at+1)*s.D]
				delta := LaneDot(do, out[at*s.D:(at+1)*s.D])
				q := head(qkv, row, h, s)
				end := seq.lastSeen(P+i, s) + 1
				for t := firstSeen(P+i, s); t < end; t++ {
					z, y := capped(f.sum(q, key(qkv, seq.row(t), h, s), 0)*float32(s.Scale), s.Cap)
					p[i*T+t] = Exp(z-m) * inv
					dp := f.sum(do, value(qkv, seq.row(t), h, s), 0)
					dz[i*T+t] = scoreGradient(float32(p[i*T+t]*(dp-delta)), y, s)
				}
				dq := head(dqkv, row, h, s)
				for d := range dq {
					for t := range end {
						b[t] = 0
						if t >= firstSeen(P+i, s) {
							b[t] = key(qkv, seq.row(t), h, s)[d]
						}
					}
					dq[d] = f.sum(dz[i*T:i*T+end], b[:end], 0)
				}
			}
			for t := range T {
				dk, dv := key(dqkv, seq.row(t), h, s), value(dqkv, seq.row(t), h, s)
				for d := range s.D {
					// Queries before the first, queries of the prefix, and queries whose windows begin after
					// t count as products 0.
					first, end := seq.seenFrom(t, s), seenBefore(t, T, s)
					lo := seq.seenFrom(t/f.terms*f.terms, s) / f.terms * f.terms
					clear(a)
					clear(b)
					for i := first; i < end; i++ {
						a[i], b[i] = dz[(i-P)*T+t], head(qkv, seq.row(i), h, s)[d]
					}
					dk[d] = f.sum(a[lo:], b[lo:], dk[d])
					for i := first; i < end; i++ {
						a[i], b[i] = p[(i-P)*T+t], dout[(seq.row(i)*s.H+h)*s.D+d]
					}
					dv[d] = f.sum(a[lo:], b[lo:], dv[d])
				}
			}
		}
	}
}

// pagedAttention is PagedAttention with f's sums.
func (f factors) pagedAttention(out, stats, qkv []float32, p Pages[float32], table, seq, pos []int32, tableWidth int,
	s kernels.AttentionShape) {
	pageCount(p, s)
	for m := range seq {
		n := seenInPages(pos, m, s)
		row := table[int(seq[m])*tableWidth:][:tableWidth]
		z, k, v := make([]float32, n), make([]float32, s.D), make([]float32, n*s.D)
		for h := 0; h < s.H; h++ {
			kh := kvHead(h, s)
			from := firstSeen(int(pos[m]), s)
			for t := from; t < n; t++ {
				page, at := int(row[t/p.Size]), t%p.Size
				for d := range k {
					k[d] = p.Keys[((page*s.K+kh)*s.D+d)*p.Size+at]
				}
				z[t] = cappedScore(f.sum(head(qkv, m, h, s), k, 0)*float32(s.Scale), s.Cap)
				copy(v[t*s.D:(t+1)*s.D], p.Values[((page*s.K+kh)*p.Size+at)*s.D:])
			}
			largest, inv := f.attend(f, out[(m*s.H+h)*s.D:][:s.D], z, from, v)
			keepStats(stats, m*s.H+h, largest, inv)
		}
	}
}
