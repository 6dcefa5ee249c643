package train

import (
	"cmp"
	"slices"

	"exp/train/ranks"
	"exp/train/rl"
)

// sliced is a mini-batch whose rows are in the order of its slices. The gradient of a slice
// is summed in the order of its rows, and the slices in a binary tree (package ranks), so
// the sum is the same whichever ranks compute the slices.
type sliced struct {
	*batch
	ends []int // [slices] the row where each slice ends
}

// slice returns rows lo to hi cut into n slices. Bundles of at most limit tokens go to
// slices whole: those with the most work first, each to the slice with the least work so
// far, the first of equals. Within a slice they keep their order.
func (b *batch) slice(lo, hi, n, limit int) *sliced {
	all := b.bundles(lo, hi, limit)
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(all[j].tokens, all[i].tokens) })
	work, of := make([]int, n), make([]int, len(all))
	for _, i := range order {
		of[i] = least(work)
		work[of[i]] += rl.Workload(all[i].tokens)
	}
	s := &sliced{ends: make([]int, n)}
	index := make([]int, 0, hi-lo)
	for k := range n {
		row := lo
		for i, u := range all {
			for ; row < u.end; row++ {
				if of[i] == k {
					index = append(index, row)
				}
			}
		}
		s.ends[k] = len(index)
	}
	s.batch = b.chosen(index)
	return s
}

// least returns the index of the smallest number, the first of equals.
func least(x []int) int {
	at := 0
	for i := range x {
		if x[i] < x[at] {
			at = i
		}
	}
	return at
}

// start returns the first row of slice i.
func (s *sliced) start(i int) int {
	if i == 0 {
		return 0
	}
	return s.ends[i-1]
}

// present says of each slice whether it has rows.
func (s *sliced) present() []bool {
	p := make([]bool, len(s.ends))
	for i := range p {
		p[i] = s.start(i) < s.ends[i]
	}
	return p
}

// rankEnds returns the row where the slices of each of size ranks end.
func (s *sliced) rankEnds(size int) []int {
	ends := make([]int, size)
	for r := range ends {
		_, hi := ranks.Range(len(s.ends), size, r)
		ends[r] = s.start(hi)
	}
	return ends
}

// tokenEnds is rankEnds in tokens.
func (s *sliced) tokenEnds(size int) []int {
	ends := s.rankEnds(size)
	for r, row := range ends {
		ends[r] = s.rows[row]
	}
	return ends
}
