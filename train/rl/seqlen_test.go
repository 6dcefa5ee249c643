package rl

import (
	"cmp"
	"container/heap"
	"slices"
)

// GreedyPartition is Partition by a simpler rule, verl's greedy_partition: each item, in
// the order they come, goes to the part with the least sum, the first of equals. With
// equal, which panics unless parts divides their number, a part with fewer items goes
// first. Parts are in no order.
func GreedyPartition(weight []int, parts int, equal bool) [][]int {
	if parts < 1 || equal && len(weight)%parts != 0 {
		panic("rl: parts must divide the items")
	}
	out, sum := make([][]int, parts), make([]int, parts)
	for i, w := range weight {
		least := 0
		for k := range out {
			fewer := 0
			if equal {
				fewer = cmp.Compare(len(out[k]), len(out[least]))
			}
			if fewer < 0 || fewer == 0 && sum[k] < sum[least] {
				least = k
			}
		}
		out[least], sum[least] = append(out[least], i), sum[least]+w
	}
	return out
}

// GroupPartition is Partition of groups that stay together, each part with the same
// number of groups: for parts that compute a problem's prompt once for all its
// completions. group [len(weight)] numbers each item's. It panics if parts does not
// divide the number of groups.
func GroupPartition(weight, group []int, parts int) [][]int {
	sameLen(len(weight), len(group))
	members := groupMembers(group)
	sums := make([]int, len(members))
	for g, items := range members {
		for _, i := range items {
			sums[g] += weight[i]
		}
	}
	out := Partition(sums, parts, true)
	for k, groups := range out {
		var items []int
		for _, g := range groups {
			items = append(items, members[g]...)
		}
		out[k] = items
	}
	return out
}

// MicroBatchSizes say how many micro-batches MicroBatches makes.
type MicroBatchSizes struct {
	Tokens   int // that one should have at most; above 0
	Least    int // micro-batches at least, to keep ranks in step
	Multiple int // their number is a multiple of this; 0 is 1
}

// MicroBatches spreads sequences of these lengths over micro-batches of about equal
// work (Workload), as verl's rearrange_micro_batches: as few as the tokens allow on
// average; a single one may exceed them. With centered, the ones with the most work
// come in the middle, where a pipeline is full; otherwise in the order of Partition.
//
// Training here uses rollout.MicroBatches instead, which exceeds no limit and keeps the
// order of rows: gradients are summed in it.
func MicroBatches(length []int, s MicroBatchSizes, centered bool) [][]int {
	total := 0
	work := make([]int, len(length))
	for i, n := range length {
		total += n
		work[i] = Workload(n)
	}
	n := max(min(len(length), ceilDiv(total, s.Tokens)), s.Least)
	parts := Partition(work, roundUp(n, max(1, s.Multiple)), false)
	if !centered {
		return parts
	}
	sum := func(p []int) (s int) {
		for _, i := range p {
			s += work[i]
		}
		return s
	}
	slices.SortStableFunc(parts, func(a, b []int) int { return cmp.Or(cmp.Compare(sum(b), sum(a)), slices.Compare(b, a)) })
	var even, odd [][]int
	for i, p := range parts {
		if i%2 == 0 {
			even = append(even, p)
		} else {
			odd = append(odd, p)
		}
	}
	slices.Reverse(even)
	return append(even, odd...)
}

// ceilDiv returns a/b, rounded up.
func ceilDiv(a, b int) int { return (a + b - 1) / b }

// roundUp returns the least multiple of b that is not below a.
func roundUp(a, b int) int { return int(ceilDiv(a, b) * b) }

// Partition spreads items with these weights over parts so that the sums are close:
// largest differencing by Karmarkar and Karp (1982), as verl does to give its ranks
// equal work. With equal, all parts have the same number of items. A part's items are
// in ascending order; the part with the largest sum comes first. It panics if parts is
// not positive, or with equal does not divide their number.
//
// It is for work that runs side by side. Micro-batches (rollout.MicroBatches) keep the
// order of their rows, because gradients are summed in it; they are packed, not padded,
// and run one after the other, so balance would win nothing.
func Partition(weight []int, parts int, equal bool) [][]int {
	if parts < 1 || equal && len(weight)%parts != 0 {
		panic("rl: parts must divide the items")
	}
	order := make([]int, len(weight))
	for i := range order {
		order[i] = i
	}
	if parts == 1 {
		return [][]int{order} // what follows comes to that
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

func (h *divisions) Push(x any) { h.list = append(h.list, x.(division)) }

func (h *divisions) Pop() any {
	last := h.list[len(h.list)-1]
	h.list = h.list[:len(h.list)-1]
	return last
}
