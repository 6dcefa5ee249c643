package ranks

import (
	"math/bits"

	"exp/kernels"
)

// MaxSlices bounds the slices of a mini-batch, and so the ranks of a run.
const MaxSlices = 4096

// Valid reports whether a tree can have n slices: a power of two up to MaxSlices.
func Valid(n int) bool { return n >= 1 && n <= MaxSlices && n&(n-1) == 0 }

// node is a node of the tree over slices: (level, index) covers slices index<<level to
// (index+1)<<level and is the sum of its two children, the left one first. A child without
// rows is absent; a node with one present child is that child.
type node struct{ level, index int }

// Range returns the slices of a rank: lo to hi.
func Range(slices, size, rank int) (lo, hi int) {
	return rank * slices / size, (rank + 1) * slices / size
}

// owned returns the largest whole nodes that cover slices lo to hi, in order.
func owned(lo, hi int) []node {
	var out []node
	for lo < hi {
		level := bits.Len(uint(hi-lo)) - 1
		if lo > 0 {
			level = min(level, bits.TrailingZeros(uint(lo)))
		}
		out = append(out, node{level, lo >> level})
		lo += 1 << level
	}
	return out
}

// present reports whether a slice of the node has rows.
func (n node) present(slice []bool) bool {
	for _, p := range slice[n.index<<n.level : (n.index+1)<<n.level] {
		if p {
			return true
		}
	}
	return false
}

// join sums the nodes in have to the root of a tree over slices; the zero Buffer stands for
// an absent node. It overwrites the buffers in have.
func join(be kernels.Backend, slices int, have map[node]kernels.Buffer) kernels.Buffer {
	var sum func(n node) kernels.Buffer
	sum = func(n node) kernels.Buffer {
		if x, ok := have[n]; ok || n.level == 0 {
			return x
		}
		left, right := sum(node{n.level - 1, 2 * n.index}), sum(node{n.level - 1, 2*n.index + 1})
		switch {
		case left.Empty():
			return right
		case !right.Empty():
			be.Add(left, right)
		}
		return left
	}
	return sum(node{bits.Len(uint(slices)) - 1, 0})
}
