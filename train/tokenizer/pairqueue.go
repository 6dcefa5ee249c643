package tokenizer

// countedPair is a pair with its count when queued.
type countedPair struct {
	count int
	key   uint64
}

func (p countedPair) before(q countedPair) bool {
	return p.count > q.count || p.count == q.count && p.key < q.key
}

// pairQueue is a heap with the most frequent pair at its root. It duplicates the code of
// candidates: a generic heap calls before through a table, which makes encoding pieces of a
// megabyte 1.65 times slower.
type pairQueue []countedPair

func (q pairQueue) heapify() {
	for i := len(q)/2 - 1; i >= 0; i-- {
		q.down(i)
	}
}

func (q *pairQueue) push(p countedPair) {
	h := append(*q, p)
	i := len(h) - 1
	for i > 0 && p.before(h[(i-1)/2]) {
		h[i] = h[(i-1)/2]
		i = (i - 1) / 2
	}
	h[i] = p
	*q = h
}

func (q *pairQueue) pop() countedPair {
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

func (q pairQueue) down(i int) {
	p := q[i]
	for {
		child := 2*i + 1
		if child >= len(q) {
			break
		}
		if child+1 < len(q) && q[child+1].before(q[child]) {
			child++
		}
		if !q[child].before(p) {
			break
		}
		q[i] = q[child]
		i = child
	}
	q[i] = p
}
