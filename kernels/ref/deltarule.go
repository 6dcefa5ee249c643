package ref

import (
	"math"

	"exp/kernels"
)

// DeltaRule sets out [M,Out] from mixed rows u [M,Mixed] and gates [M,Gates], see
// kernels.Recurrence. states is [slots,State], or empty without slots.
func DeltaRule[T Float](out, u, gates, states []T, offsets, groups, slots []int32, s kernels.DeltaShape) {
	M := mixedRows(u, gates, s)
	if len(out) != M*s.Out() {
		panic("ref: DeltaRule: length mismatch")
	}
	all := runsOf(offsets, groups, slots, M)
	each := s.KeyDim * s.ValueDim
	for j, seq := range all.list {
		slot, first := all.slot(j)
		for h := range s.Values {
			S := make([]T, each)
			if slot >= 0 {
				if S = states[slot*s.State()+h*each:][:each]; first {
					clear(S)
				}
			}
			for t := range seq.prefix { // its rows are computed again
				newDeltaRow(u, gates, seq.row(t), h, s).step(S, nil, s)
			}
			for t := seq.prefix; t < seq.len(); t++ {
				m := seq.row(t)
				newDeltaRow(u, gates, m, h, s).step(S, out[m*s.Out()+h*s.ValueDim:][:s.ValueDim], s)
			}
		}
	}
}

// deltaRow is what a row of a value head computes with.
type deltaRow[T Float] struct {
	q, k, v    []T // queries and keys scaled
	keep, w    T
	skip       T // of a scan
	scan       bool
	rq, rk     T // 1 / the lengths of query and key
	at, atK    int
	query, key []T // unscaled
}

// newDeltaRow returns row m of value head h.
func newDeltaRow[T Float](u, gates []T, m, h int, s kernels.DeltaShape) deltaRow[T] {
	row := u[m*s.Mixed():][:s.Mixed()]
	kh := h / (s.Values / s.Keys)
	gate := gates[m*s.Gates():][:s.Gates()]
	x := deltaRow[T]{at: s.Query() + kh*s.KeyDim, atK: s.Key() + kh*s.KeyDim,
		v: row[s.Value()+h*s.ValueDim:][:s.ValueDim], keep: gate[h], w: gate[s.Values+h], scan: s.Scan}
	x.query, x.key = row[x.at:][:s.KeyDim], row[x.atK:][:s.KeyDim]
	if s.Scan {
		x.q, x.k, x.skip = x.query, x.key, gate[2*s.Values+h]
		return x
	}
	x.rq = 1 / sqrt(LaneDot(x.query, x.query)+T(kernels.DeltaEps))
	x.rk = 1 / sqrt(LaneDot(x.key, x.key)+T(kernels.DeltaEps))
	scale := keyScale[T](s)
	for i := range s.KeyDim {
		x.q, x.k = append(x.q, T(x.query[i]*x.rq)*scale), append(x.k, x.key[i]*x.rk)
	}
	return x
}

// keyScale returns the factor of queries of length 1.
func keyScale[T Float](s kernels.DeltaShape) T { return T(1 / math.Sqrt(float64(s.KeyDim))) }

// predicted sets p[j] to the chain over i of k[i]·S[i,j], or to 0 in a scan.
func (x deltaRow[T]) predicted(p, S []T) {
	clear(p)
	if x.scan {
		return
	}
	for i, k := range x.k {
		accumulate(p, k, S[i*len(p):(i+1)*len(p)])
	}
}

// step updates S and sets out, unless it is nil, to what the row reads of it.
func (x deltaRow[T]) step(S, out []T, s kernels.DeltaShape) {
	n := s.ValueDim
	d := make([]T, n)
	x.predicted(d, S)
	for j, p := range d {
		d[j] = x.w * (x.v[j] - T(x.keep*p))
	}
	clear(out)
	for i := range s.KeyDim {
		row := S[i*n : (i+1)*n]
		for j := range row {
			row[j] *= x.keep
		}
		accumulate(row, x.k[i], d)
		if out != nil {
			accumulate(out, x.q[i], row)
		}
	}
	if x.scan && out != nil {
		accumulate(out, x.skip, x.v)
	}
}

// DeltaRuleBackward sets du [M,Mixed] and dgates [M,Gates], see kernels.Recurrence.
func DeltaRuleBackward[T Float](du, dgates, dout, u, gates []T, offsets, groups []int32, s kernels.DeltaShape) {
	M := mixedRows(u, gates, s)
	if len(du) != len(u) || len(dgates) != len(gates) || len(dout) != M*s.Out() {
		panic("ref: DeltaRuleBackward: length mismatch")
	}
	b := deltaBackward[T]{du, dgates, dout, u, gates, s}
	clear(du)
	list := sequences(offsets, groups, M)
	if len(groups) == 0 {
		groups = make([]int32, len(list)+1)
		for j := range groups {
			groups[j] = int32(j)
		}
	}
	each := s.KeyDim * s.ValueDim
	for g := 1; g < len(groups); g++ {
		if groups[g-1] == groups[g] {
			continue
		}
		prefix, rest := list[groups[g-1]], list[groups[g-1]+1:groups[g]]
		for h := range s.Values {
			before := b.states(make([]T, each), prefix, h)
			end := before[len(before)-1]
			dEnd := make([]T, each)
			for _, seq := range rest {
				own := sequence{firstRow: seq.firstRow, own: seq.own}
				dS := make([]T, each)
				b.rows(dS, b.states(end, own, h), own, h)
				addTo(dEnd, dS)
			}
			b.rows(dEnd, before, prefix, h)
		}
	}
	b.unscale(M)
}

// deltaBackward holds the arguments of DeltaRuleBackward.
type deltaBackward[T Float] struct {
	du, dgates, dout, u, gates []T
	s                          kernels.DeltaShape
}

// states returns the states of value head h before each of a sequence's own rows, and at its end.
func (b deltaBackward[T]) states(from []T, seq sequence, h int) (list [][]T) {
	for t := range seq.own {
		list = append(list, from)
		from = append([]T(nil), from...)
		newDeltaRow(b.u, b.gates, seq.row(t), h, b.s).step(from, nil, b.s)
	}
	return append(list, from)
}

// rows takes a sequence's own rows backwards from dS, which becomes the gradient of the state
// before them.
func (b deltaBackward[T]) rows(dS []T, states [][]T, seq sequence, h int) {
	s := b.s
	n := s.ValueDim
	p, d, dv, dp, dd := make([]T, n), make([]T, n), make([]T, n), make([]T, n), make([]T, n)
	terms, kept := make([]T, n), make([]T, n)
	for t := seq.own - 1; t >= 0; t-- {
		m := seq.row(t)
		x, P, S := newDeltaRow(b.u, b.gates, m, h, s), states[t], states[t+1]
		dout, drow := b.dout[m*s.Out()+h*n:][:n], b.du[m*s.Mixed():][:s.Mixed()]
		x.predicted(p, P)
		clear(dd)
		for i := range s.KeyDim {
			accumulate(dS[i*n:(i+1)*n], x.q[i], dout)
			accumulate(dd, x.k[i], dS[i*n:(i+1)*n])
			drow[x.at+i] = addColumns(drow[x.at+i], products(terms, S[i*n:(i+1)*n], dout))
		}
		var dw T
		for j := range n {
			e := x.v[j] - T(x.keep*p[j])
			d[j] = x.w * e
			dv[j], dp[j] = x.w*dd[j], 0
			if s.Scan {
				dv[j] = FMA(x.skip, dout[j], dv[j])
			} else {
				dp[j] = -T(x.keep * dv[j])
			}
			terms[j] = dd[j] * e
			drow[s.Value()+h*n+j] = dv[j]
		}
		dw = addColumns(dw, terms)
		clear(kept)
		for i := range s.KeyDim {
			Pi, dSi := P[i*n:(i+1)*n], dS[i*n:(i+1)*n]
			for j := range n {
				terms[j] = FMA(Pi[j], dp[j], T(dSi[j]*d[j]))
				kept[j] = FMA(dSi[j], Pi[j], kept[j])
				dSi[j] = FMA(x.k[i], dp[j], T(x.keep*dSi[j]))
			}
			drow[x.atK+i] = addColumns(drow[x.atK+i], terms)
		}
		for j := range n {
			terms[j] = FMA(-dv[j], p[j], kept[j])
		}
		dgate := b.dgates[m*s.Gates():][:s.Gates()]
		dgate[h], dgate[s.Values+h] = addColumns(0, terms), dw
		if s.Scan {
			dgate[2*s.Values+h] = addColumns(0, products(terms, dout, x.v))
		}
	}
}

// products sets dst[j] = a[j]·b[j] and returns it.
func products[T Float](dst, a, b []T) []T {
	for j := range dst {
		dst[j] = a[j] * b[j]
	}
	return dst
}

// addColumns adds to acc, for each kernels.Lanes terms in order, their lane sum.
func addColumns[T Float](acc T, terms []T) T {
	for len(terms) > 0 {
		n := min(len(terms), kernels.Lanes)
		acc += LaneSum(terms[:n])
		terms = terms[n:]
	}
	return acc
}

// unscale turns gradients of scaled queries and keys into gradients of the mixed rows.
func (b deltaBackward[T]) unscale(M int) {
	s := b.s
	if s.Scan {
		return
	}
	for m := range M {
		row, drow := b.u[m*s.Mixed():][:s.Mixed()], b.du[m*s.Mixed():][:s.Mixed()]
		for v := range 2 * s.Keys {
			x, d := row[v*s.KeyDim:][:s.KeyDim], drow[v*s.KeyDim:][:s.KeyDim]
			r, c := 1/sqrt(LaneDot(x, x)+T(kernels.DeltaEps)), T(1)
			if v < s.Keys {
				c = keyScale[T](s)
			}
			f := -T(LaneDot(d, x) * T(T(r*r)*r))
			for i := range d {
				d[i] = FMA(f, x[i], T(d[i]*r)) * c
			}
		}
	}
}

// mixedRows returns M.
func mixedRows[T Float](u, gates []T, s kernels.DeltaShape) int {
	deltaRows[T](nil, s)
	M := len(u) / s.Mixed()
	if len(u) != M*s.Mixed() || len(gates) != M*s.Gates() {
		panic("ref: delta rule: length mismatch")
	}
	return M
}
