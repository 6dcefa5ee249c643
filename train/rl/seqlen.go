package rl

import (
	"cmp"
	"container/heap"
	"slices"
)

// Workload is verl's estimate of the work of a sequence of n tokens, 24576·n + n²: a
// dense layer's share and attention's, of a 7B model.
func Workload(n int) int { return int(n * (24576 + n)) }

// Partition spreads items with these weights over parts so that the sums are close:
// largest differencing by Karmarkar and Karp (1982), as verl does to give its ranks
// equal work. With equal, all parts have the same number of items. A part's items are
// in ascending order; the part with the largest sum comes first. It panics if parts is
// not positive, or with equal does not divide their number.
//
// It is for what runs side by side. Micro-batches (rollout.MicroBatches) keep the order
// of their rows, in which gradients are summed; they are packed, not padded, and run
// one after the other, so balance would win nothing.
func Partition(weight []int, parts int, equal bool) [][]int {
	if parts < 1 || equal && len(weight)%parts != 0 {
		panic("rl: parts must divide the items")
	}
	order := make([]int, len(weight))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(weight[a], weight[b]) })
	width := 1
	if equal {
		width = parts
	}
	var h divisions
	for at := 0; at < len(order); at += width {
		s := make(division, parts)
		for k, i := range order[at : at+width] {
			s[k] = share{sum: weight[i], items: []int{i}}
		}
		s.sort(weight)
		h.list = append(h.list, s)
	}
	if h.list == nil {
		return make([][]int, parts)
	}
	h.weight = weight
	heap.Init(&h)
	for h.Len() > 1 {
		a, b := heap.Pop(&h).(division), heap.Pop(&h).(division)
		for k := range a {
			other := b[parts-1-k]
			a[k].sum += other.sum
			a[k].items = append(a[k].items, other.items...)
		}
		a.sort(weight)
		heap.Push(&h, a)
	}
	out := make([][]int, parts)
	for k, s := range h.list[0] {
		out[k] = s.items
		slices.Sort(out[k])
	}
	return out
}

// share is a part while it grows; a division is one share for each part, the largest
// first.
type share struct {
	sum   int
	items []int
}

type division []share

// compare orders shares by sum, then number, then items, as verl breaks ties.
func (a share) compare(b share, weight []int) int {
	if c := cmp.Or(cmp.Compare(a.sum, b.sum), cmp.Compare(len(a.items), len(b.items))); c != 0 {
		return c
	}
	return slices.CompareFunc(a.items, b.items, func(i, j int) int { return cmp.Or(cmp.Compare(i, j), cmp.Compare(weight[i], weight[j])) })
}

func (s division) sort(weight []int) {
	slices.SortStableFunc(s, func(a, b share) int { return b.compare(a, weight) })
}

func (s division) width() int { return s[0].sum - s[len(s)-1].sum }

// divisions is a heap; the widest is taken first.
type divisions struct {
	list   []division
	weight []int
}

func (h *divisions) Len() int { return len(h.list) }
func (h *divisions) Less(i, j int) bool {
	a, b := h.list[i], h.list[j]
	if x, y := a.width(), b.width(); x != y {
		return x > y
	}
	return a[0].compare(b[0], h.weight) > 0
}
func (h *divisions) Swap(i, j int) { h.list[i], h.list[j] = h.list[j], h.list[i] }
func (h *divisions) Push(x any)    { h.list = append(h.list, x.(division)) }
func (h *divisions) Pop() any {
	last := h.list[len(h.list)-1]
	h.list = h.list[:len(h.list)-1]
	return last
}

// LengthMetrics are verl's global_seqlen metrics of sequences of these lengths, in
// tokens: sums of as many of them as a part has, in their order, and of the parts.
func LengthMetrics(length []int, parts [][]int) []Metric {
	size := max(1, len(length)/max(1, len(parts)))
	var chunks, balanced []int
	total := 0
	for at := 0; at < len(length); at += size {
		sum := 0
		for _, n := range length[at:min(at+size, len(length))] {
			sum += n
		}
		chunks, total = append(chunks, sum), total+sum
	}
	for _, p := range parts {
		sum := 0
		for _, i := range p {
			sum += length[i]
		}
		balanced = append(balanced, sum)
	}
	if chunks == nil || balanced == nil {
		return nil
	}
	const prefix = "global_seqlen/"
	lo, hi := slices.Min(chunks), slices.Max(chunks)
	return []Metric{{prefix + "min", float64(lo)}, {prefix + "max", float64(hi)}, {prefix + "minmax_diff", float64(hi - lo)},
		{prefix + "balanced_min", float64(slices.Min(balanced))}, {prefix + "balanced_max", float64(slices.Max(balanced))},
		{prefix + "mean", float64(total) / float64(len(parts))}}
}
