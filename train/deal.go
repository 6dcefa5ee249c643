package train

import (
	"exp/kernels"
	"exp/train/ranks"
)

// many reports whether other ranks compute too.
func (p *passes) many() bool { return p.group.Size() > 1 }

// mine returns this rank's part of a range that ends cuts by rank.
func (p *passes) mine(ends []int) (lo, hi int) {
	if r := p.group.Rank(); r > 0 {
		lo = ends[r-1]
	}
	return lo, ends[p.group.Rank()]
}

// gather completes x, of which each rank has the part that ends at its place in ends.
func (p *passes) gather(x []float32, ends []int) {
	if p.many() {
		ranks.Must(ranks.Gather(p.group, kernels.Host(x), ends))
	}
}

// deal cuts rows lo to hi for the ranks, at the ends of bundles and with about as many tokens
// each. It returns the row at which each rank's part ends.
func (p *passes) deal(b *batch, lo, hi int) []int {
	size := p.group.Size()
	ends := make([]int, size)
	all := b.bundles(lo, hi, p.bundle)
	total := 0
	for _, u := range all {
		total += u.tokens
	}
	at, done := lo, 0
	next := 0
	for r := range ends {
		for next < len(all) && done+all[next].tokens/2 < total*(r+1)/size {
			at, done = all[next].end, done+all[next].tokens
			next++
		}
		ends[r] = at
	}
	ends[size-1] = hi
	return ends
}

// dealt calls f for this rank's part of rows lo to hi, as each does with the workspace of
// inference, and completes the arrays [N] in out, whose tokens are those of the rows; nil
// ones are left out.
func (p *passes) dealt(b *batch, lo, hi int, f func(r0, r1 int), out ...*[]float32) {
	if !p.many() {
		p.each(b, lo, hi, p.infer, f)
		return
	}
	ends := p.deal(b, lo, hi)
	from := lo
	if r := p.group.Rank(); r > 0 {
		from = ends[r-1]
	}
	p.each(b, from, ends[p.group.Rank()], p.infer, f)
	for i, row := range ends {
		ends[i] = b.rows[row] - b.rows[lo]
	}
	for _, x := range out {
		if *x != nil {
			p.gather(*x, ends)
		}
	}
}
