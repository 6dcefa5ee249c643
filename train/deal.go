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

// gather completes x [N,width]; rank r has computed the places from ends[r-1] (0 for rank 0) to ends[r].
func (p *passes) gather(x kernels.Buffer, ends []int, width int) {
	if !p.many() {
		return
	}
	wide := make([]int, len(ends))
	for r, end := range ends {
		wide[r] = end * width
	}
	ranks.Must(ranks.Gather(p.group, x, wide))
}

// deal divides rows lo to hi among the ranks, at the ends of bundles and with about the same
// number of tokens each. It returns the row where each rank's part ends.
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

// dealt calls f for this rank's part of rows lo to hi, like each with the workspace for
// inference, and then gathers the parts of the other ranks into the arrays [N] in out. It
// skips nil arrays.
func (p *passes) dealt(b *batch, lo, hi int, f func(r0, r1 int), out ...*[]float32) {
	ends := p.dealtTo(b, lo, hi, f)
	for _, x := range out {
		if *x != nil {
			p.gather(kernels.Host(*x), ends, 1)
		}
	}
}

// dealtTo is dealt without the gathering. It returns the place where each rank's part ends.
func (p *passes) dealtTo(b *batch, lo, hi int, f func(r0, r1 int)) []int {
	if !p.many() {
		p.each(b, lo, hi, p.infer, f)
		return nil
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
	return ends
}
