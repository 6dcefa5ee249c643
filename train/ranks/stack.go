package ranks

import "exp/kernels"

// stack sums the vectors of a rank's slices in the tree's order as they come, as a binary
// counter does. Each vector arrives in grads; room holds the nodes that wait for a sibling.
type stack struct {
	be    kernels.Backend
	grads kernels.Buffer
	room  []kernels.Buffer
	free  []kernels.Buffer // buffers of room that hold no node

	nodes []node
	data  []kernels.Buffer // by node; the zero Buffer if absent
}

// waiting returns the most nodes that wait at once while slices lo to hi arrive: the room that
// a stack needs.
func waiting(lo, hi int) int {
	most := 0
	for i := lo + 1; i < hi; i++ {
		most = max(most, len(owned(lo, i)))
	}
	return most
}

// clear forgets all nodes.
func (s *stack) clear() {
	s.free = append(s.free[:0], s.room...)
	s.nodes, s.data = s.nodes[:0], s.data[:0]
}

// push takes slice i, whose vector is in grads if it is present. More says that further
// slices will arrive: then grads is free again.
func (s *stack) push(i int, present, more bool) {
	var x kernels.Buffer
	if present {
		x = s.grads
	}
	s.nodes, s.data = append(s.nodes, node{0, i}), append(s.data, x)
	for k := len(s.nodes) - 1; k > 0; k-- {
		a, b := s.nodes[k-1], s.nodes[k]
		if a.level != b.level || a.index%2 != 0 || b.index != a.index+1 {
			break
		}
		s.data[k-1] = s.add(s.data[k-1], s.data[k], more)
		s.nodes, s.data = s.nodes[:k], s.data[:k]
		s.nodes[k-1] = node{a.level + 1, a.index / 2}
	}
	if top := len(s.data) - 1; more && s.data[top] == s.grads && present {
		last := len(s.free) - 1
		s.data[top], s.free = s.free[last], s.free[:last]
		s.be.Copy(s.data[top], s.grads)
	}
}

// add returns the sum of two children. Where grads is the right one, the last sum is left
// there; earlier ones are left in room, which saves a copy. A sum's bits do not depend on
// the order of its terms.
func (s *stack) add(left, right kernels.Buffer, more bool) kernels.Buffer {
	switch {
	case left.Empty():
		return right
	case right.Empty():
		return left
	case right == s.grads && !more:
		s.be.Add(right, left)
		s.free = append(s.free, left)
		return right
	}
	s.be.Add(left, right)
	if right != s.grads {
		s.free = append(s.free, right)
	}
	return left
}
