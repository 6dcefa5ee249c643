package ref

import (
	"math"

	"exp/kernels"
)

// Attention sets out [M,H·D] to attention within packed sequences: rows
// offsets[j] to offsets[j+1] are sequence j's own, and the first of sequences
// groups[g] to groups[g+1] is the prefix of the others. For query row i and head h,
// over the rows t ≤ i of its sequence, prefix included, counted from the sequence's
// start, and with a window only those with i-t < Window, or if Full over all rows t, and with
// Ahead over those up to i + Ahead[i]:
//
//	z[t]   = (chain over d of q[d]·k[t,d]) · Scale; with a cap, Cap·Tanh(z[t]/Cap)
//	m      = max z
//	e[t]   = Exp(z[t] - m)
//	l      = lane sum of e[t]
//	out[d] = (chain over t of e[t]·v[t,d]) · (1/l)
//
// qkv is [M,Stride], offsets [S+1] from 0 to M, groups [G+1] from 0 to S, or empty;
// stats [M,H,2] holds m and 1/l. Scale is rounded to T first. The maximum starts from
// -Inf and skips NaN, which reaches the result through e. Vaswani et al.,
// arXiv:1706.03762 eq. 1; shared key/value heads: Ainslie et al., arXiv:2305.13245.
func Attention[T Float](out, stats, qkv []T, offsets, groups []int32, s kernels.AttentionShape) {
	M := attentionRows(qkv, s)
	if len(out) != M*s.H*s.D || len(stats) != M*s.H*2 {
		panic("ref: Attention: length mismatch")
	}
	list := shapedSequences(offsets, groups, M, s)
	e := make([]T, M)
	for _, seq := range list {
		for n := seq.prefix; n < seq.len(); n++ {
			i := seq.row(n)
			for h := 0; h < s.H; h++ {
				q := head(qkv, i, h, s)
				from, last := firstSeen(n, s), seq.lastSeen(n, s)
				z := e[:last+1]
				for t := from; t <= last; t++ {
					z[t] = cappedScore(T(chain(q, key(qkv, seq.row(t), h, s), 0)*T(s.Scale)), s.Cap)
				}
				m, inv := expSum(z, from)
				at := i*s.H + h
				stats[2*at], stats[2*at+1] = m, inv
				o := out[at*s.D : (at+1)*s.D]
				clear(o)
				for t := from; t <= last; t++ {
					accumulate(o, z[t], value(qkv, seq.row(t), h, s))
				}
				for d := range o {
					o[d] *= inv
				}
			}
		}
	}
}

// firstSeen returns the first position that a query at position n sees.
func firstSeen(n int, s kernels.AttentionShape) int {
	if s.Window > 0 {
		return max(0, n+1-s.Window)
	}
	return 0
}

// lastSeen returns the last position that a query at position n, behind the prefix, sees.
func (q sequence) lastSeen(n int, s kernels.AttentionShape) int {
	switch {
	case s.Full:
		return q.len() - 1
	case !s.Ahead.Empty():
		return n + int(ints(s.Ahead)[q.row(n)])
	}
	return n
}

// seenFrom returns the first position behind the prefix that sees position t.
func (q sequence) seenFrom(t int, s kernels.AttentionShape) int {
	n := max(t, q.prefix)
	for n > q.prefix && q.lastSeen(n-1, s) >= t {
		n--
	}
	return n
}

// seenBefore returns one past the last of T positions that sees position t.
func seenBefore(t, T int, s kernels.AttentionShape) int {
	if s.Window > 0 {
		return min(T, t+s.Window)
	}
	return T
}

// capped returns cap·Tanh(z/cap) and the Tanh, or z and 0 without a cap. The division
// is a product with 1/cap, rounded to T.
func capped[T Float](z T, cap float64) (capped, tanh T) {
	if cap == 0 {
		return z, 0
	}
	tanh = Tanh(T(z * T(1/cap)))
	return T(T(cap) * tanh), tanh
}

// cappedScore returns the first result of capped.
func cappedScore[T Float](z T, cap float64) T {
	z, _ = capped(z, cap)
	return z
}

// expSum replaces z[t], t ≥ from, by e[t] = Exp(z[t]-m), m the largest of them, and the
// others by 0. It returns m (+0 for a zero) and 1/l, l the lane sum of e.
func expSum[T Float](z []T, from int) (m, inv T) {
	clear(z[:from])
	m = maxOf(z[from:]) + 0
	for t := from; t < len(z); t++ {
		z[t] = Exp(z[t] - m)
	}
	return m, 1 / LaneSum(z)
}

// maxOf returns the largest element of z, skipping NaN, or -Inf if none is left.
func maxOf[T Float](z []T) T {
	m := T(math.Inf(-1))
	for _, v := range z {
		if v > m {
			m = v
		}
	}
	return m
}

// accumulate sets acc[d] = fma(a, x[d], acc[d]). Four at a time take half the time.
func accumulate[T Float](acc []T, a T, x []T) {
	acc = acc[:len(x)]
	for len(x) >= 4 && len(acc) >= 4 {
		y0, ok0 := quickFMA(a, x[0], acc[0])
		y1, ok1 := quickFMA(a, x[1], acc[1])
		y2, ok2 := quickFMA(a, x[2], acc[2])
		y3, ok3 := quickFMA(a, x[3], acc[3])
		if !(ok0 && ok1 && ok2 && ok3) {
			y0, y1, y2, y3 = FMA(a, x[0], acc[0]), FMA(a, x[1], acc[1]), FMA(a, x[2], acc[2]), FMA(a, x[3], acc[3])
		}
		acc[0], acc[1], acc[2], acc[3] = y0, y1, y2, y3
		acc, x = acc[4:], x[4:]
	}
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
//	dz[t] = ((p[t]·(dp[t] - delta))·(1 - y·y)) · Scale   with a cap, y its Tanh
//
// the gradients are
//
//	dq[d]   = chain over t ascending of dz[t]·k[t,d]
//	dk[t,d] = chain of dz[t]·q[d]
//	dv[t,d] = chain of p[t]·dout[d]
//
// the last two over the sequences that see t, within a sequence the query heads that
// share t's head, within a head the query rows that see t, all ascending.
func AttentionBackward[T Float](dqkv, dout, out, stats, qkv []T, offsets, groups []int32, s kernels.AttentionShape) {
	M := attentionRows(qkv, s)
	if len(dqkv) != len(qkv) || len(dout) != M*s.H*s.D || len(out) != len(dout) || len(stats) != M*s.H*2 {
		panic("ref: AttentionBackward: length mismatch")
	}
	list := shapedSequences(offsets, groups, M, s)
	clear(dqkv)
	for _, seq := range list {
		for h := 0; h < s.H; h++ {
			for n := seq.prefix; n < seq.len(); n++ {
				i := seq.row(n)
				at := i*s.H + h
				largest, inv := stats[2*at], stats[2*at+1]
				do := dout[at*s.D : (at+1)*s.D]
				delta := LaneDot(do, out[at*s.D:(at+1)*s.D])
				q, dq := head(qkv, i, h, s), head(dqkv, i, h, s)
				for m := firstSeen(n, s); m <= seq.lastSeen(n, s); m++ {
					t := seq.row(m)
					k, v := key(qkv, t, h, s), value(qkv, t, h, s)
					z, y := capped(T(chain(q, k, 0)*T(s.Scale)), s.Cap)
					p := T(Exp(z-largest) * inv)
					dz := scoreGradient(T(p*(chain(do, v, 0)-delta)), y, s)
					accumulate(dq, dz, k)
					accumulate(key(dqkv, t, h, s), dz, q)
					accumulate(value(dqkv, t, h, s), p, do)
				}
			}
		}
	}
}

// scoreGradient returns the gradient of q·k, given dz, the gradient of the score, and y,
// the Tanh of its cap.
func scoreGradient[T Float](dz, y T, s kernels.AttentionShape) T {
	if s.Cap > 0 {
		dz = T(dz * (1 - T(y*y)))
	}
	return dz * T(s.Scale)
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

// attentionRows returns M.
func attentionRows[T Float](qkv []T, s kernels.AttentionShape) int {
	checkAttention(s)
	M := len(qkv) / s.Stride()
	if len(qkv) != M*s.Stride() {
		panic("ref: attention: not a whole number of rows")
	}
	return M
}

// sequence locates the rows of a sequence: its prefix's, if it has one, then its own.
type sequence struct {
	prefixRow, prefix int // first row and row count
	firstRow, own     int
}

func (q sequence) len() int { return q.prefix + q.own }

// row returns the row index of the sequence's position t.
func (q sequence) row(t int) int {
	if t < q.prefix {
		return q.prefixRow + t
	}
	return q.firstRow + t - q.prefix
}

// sequences returns the sequences of M rows. It panics unless offsets ascend from 0
// to M and groups, unless empty, from 0 to the number of sequences.
func sequences(offsets, groups []int32, M int) []sequence {
	checkAscending("sequences do not cover the rows", "sequences are not in order", offsets, M)
	list := make([]sequence, len(offsets)-1)
	for j := range list {
		list[j] = sequence{firstRow: int(offsets[j]), own: int(offsets[j+1] - offsets[j])}
	}
	if len(groups) == 0 {
		return list
	}
	checkAscending("groups do not cover the sequences", "groups are not in order", groups, len(list))
	for g := 1; g < len(groups); g++ {
		for j := int(groups[g-1]) + 1; j < int(groups[g]); j++ {
			first := list[groups[g-1]]
			list[j].prefixRow, list[j].prefix = first.firstRow, first.own
		}
	}
	return list
}

// shapedSequences returns the sequences of M rows that see what s says. It panics if they cannot.
func shapedSequences(offsets, groups []int32, M int, s kernels.AttentionShape) []sequence {
	s.CheckFull(len(groups))
	list := sequences(offsets, groups, M)
	kernels.CheckAhead(ints(s.Ahead), offsets)
	return list
}

// checkAscending panics unless x ascends from 0 to n.
func checkAscending(cover, order string, x []int32, n int) {
	if len(x) == 0 || x[0] != 0 || int(x[len(x)-1]) != n {
		panic("ref: " + cover)
	}
	for j := 1; j < len(x); j++ {
		if x[j] < x[j-1] {
			panic("ref: " + order)
		}
	}
}
