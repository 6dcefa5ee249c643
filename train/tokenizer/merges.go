package tokenizer

// merges maps pairs of ids to the rank and the id of their merge, rank << 32 | merged id.
type merges struct{ *pairs[uint64] }

// heapFrom is the shortest piece where a heap beats scanning all pairs for the lowest rank.
const heapFrom = 96

func newMerges(n int) *merges { return &merges{newPairs[uint64](n)} }

// set gives a pair its rank and its merge; the last call for a pair wins.
func (m *merges) set(a, b int32, rank uint32, id int32) {
	m.pairs.set(pairKey(a, b), uint64(rank)<<32|uint64(uint32(id)))
}

// get returns rank << 32 | merged id, or noPair.
func (m *merges) get(a, b int32) uint64 {
	if v, ok := m.pairs.get(pairKey(a, b)); ok {
		return v
	}
	return noPair
}

// apply merges the lowest-ranked pair, the leftmost among equals, until no pair has a rank.
// It changes ids and returns the remainder.
func (m *merges) apply(ids []int32, s *mergeScratch) []int32 {
	if len(ids) < 2 {
		return ids
	}
	if len(ids) >= heapFrom {
		return m.applyHeap(ids)
	}
	pairs := s.pairs[:0] // of ids[i] and ids[i+1]
	for i := 0; i+1 < len(ids); i++ {
		pairs = append(pairs, m.get(ids[i], ids[i+1]))
	}
	s.pairs = pairs
	for len(pairs) > 0 {
		best, at := uint64(noPair), -1
		for i, p := range pairs {
			if p>>32 < best>>32 {
				best, at = p, i
			}
		}
		if at < 0 {
			break
		}
		ids[at] = int32(uint32(best))
		ids = append(ids[:at+1], ids[at+2:]...)
		pairs = append(pairs[:at], pairs[at+1:]...)
		if at > 0 {
			pairs[at-1] = m.get(ids[at-1], ids[at])
		}
		if at < len(pairs) {
			pairs[at] = m.get(ids[at], ids[at+1])
		}
	}
	return ids
}

// mergeScratch is the working memory of apply.
type mergeScratch struct{ pairs []uint64 }

// candidate is a pair that may be merged: its position and the merged id. It is stale if
// the pair at the position has another merge by now.
type candidate struct {
	rank uint32
	at   int32
	id   int32
}

func (c candidate) before(d candidate) bool {
	return c.rank < d.rank || c.rank == d.rank && c.at < d.at
}

// candidates is a binary heap with the next pair to merge at its root.
type candidates []candidate

func (q *candidates) push(c candidate) {
	h := append(*q, c)
	i := len(h) - 1
	for i > 0 && c.before(h[(i-1)/2]) {
		h[i] = h[(i-1)/2]
		i = (i - 1) / 2
	}
	h[i] = c
	*q = h
}

func (q *candidates) pop() candidate {
	h := *q
	top := h[0]
	h[0] = h[len(h)-1]
	h = h[:len(h)-1]
	if len(h) > 0 {
		h.down(0)
	}
	*q = h
	return top
}

// down sinks the element at i to its place.
func (q candidates) down(i int) {
	c := q[i]
	for {
		child := 2*i + 1
		if child >= len(q) {
			break
		}
		if child+1 < len(q) && q[child+1].before(q[child]) {
			child++
		}
		if !q[child].before(c) {
			break
		}
		q[i] = q[child]
		i = child
	}
	q[i] = c
}

// applyHeap is apply in n log n steps: the ids form a linked list, the pairs a heap.
func (m *merges) applyHeap(ids []int32) []int32 {
	n := len(ids)
	next, prev := make([]int32, n), make([]int32, n)
	gone := make([]bool, n)
	queue := make(candidates, 0, n)
	offer := func(at int32) {
		if v := m.get(ids[at], ids[next[at]]); v != noPair {
			queue = append(queue, candidate{uint32(v >> 32), at, int32(uint32(v))})
		}
	}
	for i := range n {
		next[i], prev[i] = int32(i+1), int32(i-1)
	}
	for i := range int32(n - 1) {
		offer(i)
	}
	for i := len(queue)/2 - 1; i >= 0; i-- {
		queue.down(i)
	}
	for len(queue) > 0 {
		c := queue.pop()
		if gone[c.at] || next[c.at] == int32(n) {
			continue
		}
		right := next[c.at]
		if v := m.get(ids[c.at], ids[right]); v == noPair || int32(uint32(v)) != c.id {
			continue
		}
		ids[c.at], gone[right] = c.id, true
		next[c.at] = next[right]
		if next[right] < int32(n) {
			prev[next[right]] = c.at
		}
		if p := prev[c.at]; p >= 0 {
			if v := m.get(ids[p], ids[c.at]); v != noPair {
				queue.push(candidate{uint32(v >> 32), p, int32(uint32(v))})
			}
		}
		if q := next[c.at]; q < int32(n) {
			if v := m.get(ids[c.at], ids[q]); v != noPair {
				queue.push(candidate{uint32(v >> 32), c.at, int32(uint32(v))})
			}
		}
	}
	left := ids[:0]
	for i := range n {
		if !gone[i] {
			left = append(left, ids[i])
		}
	}
	return left
}
