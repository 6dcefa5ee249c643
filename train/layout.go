package train

import (
	"cmp"
	"slices"

	"exp/kernels"
	"exp/train/model"
	"exp/train/ranks"
)

// piece is a range of an arena, elements lo to hi, that a rank holds from element at on.
type piece struct {
	lo, hi int
	rank   int // of all
	at     int
}

// held says which ranks hold an arena.
type held struct {
	owners []piece // every element once, in order
	all    []piece // with all copies
}

// layout says which parts of a learner's arenas the ranks hold.
type layout struct {
	params held // of parameters
	shards held // of moments and of the summed gradient
}

// layoutOf returns the layout of a model in training on size ranks. So many neighbours share products;
// each cuts its arena into the shards of those that share mini-batches with it.
func layoutOf(m *model.Model, size, tensor int) (l layout) {
	for t := range tensor {
		spans := m.Spans(t)
		last := spans[len(spans)-1]
		ends, from := ranks.Shards(last.At+last.Hi-last.Lo, size/tensor), 0
		for d, end := range ends {
			rank := int(d*tensor) + t
			for _, s := range spans {
				own := t == 0 || !s.Whole
				l.params.add(piece{s.Lo, s.Hi, rank, s.At}, own && d == 0)
				if lo, hi := max(s.At, from), min(s.At+s.Hi-s.Lo, end); lo < hi {
					l.shards.add(piece{s.Lo + lo - s.At, s.Lo + hi - s.At, rank, lo - from}, own)
				}
			}
			from = end
		}
	}
	for _, list := range [][]piece{l.params.owners, l.shards.owners} {
		slices.SortFunc(list, func(a, b piece) int { return cmp.Compare(a.lo, b.lo) })
	}
	return l
}

func (h *held) add(p piece, owner bool) {
	h.all = append(h.all, p)
	if owner {
		h.owners = append(h.owners, p)
	}
}

// placed returns the layout of a part of the elements, in which place counts those before one. Each rank holds one
// run of elements, as where ranks share no products.
func (h held) placed(place func(n int) int) (x held) {
	change := func(list []piece) (out []piece) {
		for _, p := range list {
			lo, hi, from := place(p.lo), place(p.hi), place(p.lo-p.at)
			if lo < hi {
				out = append(out, piece{lo, hi, p.rank, lo - from})
			}
		}
		return out
	}
	return held{owners: change(h.owners), all: change(h.all)}
}

// within returns the part of p in elements lo to hi; ok is false if it is empty.
func (p piece) within(lo, hi int) (x piece, ok bool) {
	x = piece{max(lo, p.lo), min(hi, p.hi), p.rank, 0}
	x.at = p.at + x.lo - p.lo
	return x, x.lo < x.hi
}

// slice returns the piece in the buffer of the rank that holds it.
func (p piece) slice(own kernels.Buffer) kernels.Buffer { return own.Slice(p.at, p.at+p.hi-p.lo) }
