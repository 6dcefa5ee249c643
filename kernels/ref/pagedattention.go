package ref

import "exp/kernels"

// Pages is a paged cache of keys and values for one layer, in the layout of
// kernels.Pages.
type Pages[T Float] struct {
	Keys   []T // [pages,K,D,Size]
	Values []T // [pages,K,Size,D]
	Size   int // positions in a page
}

// AppendKV stores the keys and values of every row of qkv [M,Stride]. slots [M]
// holds page·Size + position within the page.
func AppendKV[T Float](p Pages[T], qkv []T, slots []int32, s kernels.AttentionShape) {
	pages := pageCount(p, s)
	if len(qkv) != len(slots)*s.Stride() {
		panic("ref: AppendKV: length mismatch")
	}
	group := s.H / s.K
	for m, slot := range slots {
		page, at := int(slot)/p.Size, int(slot)%p.Size
		if slot < 0 || page >= pages {
			panic("ref: AppendKV: slot out of range")
		}
		for kh := 0; kh < s.K; kh++ {
			k, v := key(qkv, m, kh*group, s), value(qkv, m, kh*group, s)
			for d := 0; d < s.D; d++ {
				p.Keys[((page*s.K+kh)*s.D+d)*p.Size+at] = k[d]
				p.Values[((page*s.K+kh)*p.Size+at)*s.D+d] = v[d]
			}
		}
	}
}

// PagedAttention sets out [M,H·D] as Attention does, for rows whose keys and
// values are in pages: row m of qkv [M,Stride] belongs to sequence seq[m] and
// sees its positions 0 to pos[m] + Ahead[m], or its window; position t is in page
// table[seq[m], t/Size], table [sequences,tableWidth]. Positions that no row sees are
// not read, nor are their table entries. stats [M,H,2] gets m and 1/l, unless it is empty.
func PagedAttention[T Float](out, stats, qkv []T, p Pages[T], table, seq, pos []int32, tableWidth int,
	s kernels.AttentionShape) {
	pages := pageCount(p, s)
	M := len(seq)
	if len(pos) != M || len(qkv) != M*s.Stride() || len(out) != M*s.H*s.D ||
		len(stats) != 0 && len(stats) != M*s.H*2 || tableWidth < 1 || len(table)%tableWidth != 0 {
		panic("ref: PagedAttention: length mismatch")
	}
	var e []T
	for m := 0; m < M; m++ {
		n := seenInPages(pos, m, s)
		if seq[m] < 0 || int(seq[m]) >= len(table)/tableWidth || n < 1 || n > tableWidth*p.Size {
			panic("ref: PagedAttention: sequence or position out of range")
		}
		row, from := table[int(seq[m])*tableWidth:][:tableWidth], firstSeen(int(pos[m]), s)
		for _, page := range row[from/p.Size : (n+p.Size-1)/p.Size] {
			if page < 0 || int(page) >= pages {
				panic("ref: PagedAttention: page out of range")
			}
		}
		if cap(e) < n {
			e = make([]T, n)
		}
		for h := 0; h < s.H; h++ {
			o := out[(m*s.H+h)*s.D:][:s.D]
			largest, inv := attendPages(o, e[:n], head(qkv, m, h, s), p, row, kvHead(h, s), from, s)
			keepStats(stats, m*s.H+h, largest, inv)
		}
	}
}

// seenInPages returns one past the last position that row m sees.
func seenInPages(pos []int32, m int, s kernels.AttentionShape) int {
	n := int(pos[m]) + 1
	if !s.Ahead.Empty() {
		n += int(ints(s.Ahead)[m])
	}
	return n
}

// attendPages computes one head of one row: o [D] from q [D] and positions from up to
// len(z) of the pages in row, and returns m and 1/l. z is scratch.
func attendPages[T Float](o, z, q []T, p Pages[T], row []int32, kh, from int, s kernels.AttentionShape) (m, inv T) {
	for t := from; t < len(z); t++ {
		page, at := int(row[t/p.Size]), t%p.Size
		keys := p.Keys[(page*s.K+kh)*s.D*p.Size:][:s.D*p.Size]
		var acc T
		for d := range q {
			acc = FMA(q[d], keys[d*p.Size+at], acc)
		}
		z[t] = cappedScore(T(acc*T(s.Scale)), s.Cap)
	}
	m, inv = expSum(z, from)
	clear(o)
	for t := from; t < len(z); t++ {
		page, at := int(row[t/p.Size]), t%p.Size
		accumulate(o, z[t], p.Values[((page*s.K+kh)*p.Size+at)*s.D:][:s.D])
	}
	for d := range o {
		o[d] *= inv
	}
	return m, inv
}

// keepStats sets the i-th pair of stats, unless they are empty.
func keepStats[T Float](stats []T, i int, m, inv T) {
	if len(stats) > 0 {
		stats[2*i], stats[2*i+1] = m, inv
	}
}

// CopyPages copies page pairs[2i] to page pairs[2i+1], keys and values, i
// ascending.
func CopyPages[T Float](p Pages[T], pairs []int32, s kernels.AttentionShape) {
	pages := pageCount(p, s)
	if len(pairs)%2 != 0 {
		panic("ref: CopyPages: length mismatch")
	}
	n := s.K * s.D * p.Size
	for i := 0; i < len(pairs); i += 2 {
		from, to := int(pairs[i]), int(pairs[i+1])
		if from < 0 || from >= pages || to < 0 || to >= pages {
			panic("ref: CopyPages: page out of range")
		}
		copy(p.Keys[to*n:(to+1)*n], p.Keys[from*n:(from+1)*n])
		copy(p.Values[to*n:(to+1)*n], p.Values[from*n:(from+1)*n])
	}
}

// pageCount returns the number of pages. It panics if the cache has a partial one.
func pageCount[T Float](p Pages[T], s kernels.AttentionShape) int {
	checkAttention(s)
	if p.Size < 1 || p.Size%kernels.Lanes != 0 {
		panic("ref: page size is not a multiple of the lanes")
	}
	n := s.K * s.D * p.Size
	if len(p.Keys)%n != 0 || len(p.Values) != len(p.Keys) {
		panic("ref: not a whole number of pages")
	}
	return len(p.Keys) / n
}
