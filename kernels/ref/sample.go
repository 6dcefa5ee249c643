package ref

import (
	"math"

	"exp/kernels"
)

// Sample draws a token for each row of h [R,C] from the softmax of its logits at
// p.Temperature, adjusted, masked and filtered by p. It sets ids, and logProb, entropy and lse [R] as
// LogProb does for the drawn token, under the softmax as it was before. u [R] in [0,1)
// decides the draws; see Pick. At temperature 0 the scores are at temperature 1.
func Sample[T Float](ids []int32, logProb, entropy, lse, h, w, u []T, C int, p kernels.Sampling) {
	samples(chains[T], ids, logProb, entropy, lse, h, w, u, C, p)
}

func samples[T Float](multiply dots[T], ids []int32, logProb, entropy, lse, h, w, u []T, C int, p kernels.Sampling) {
	R, V := scoreDims(entropy, lse, h, w, C)
	if len(ids) != R || len(u) != R || len(logProb) != R {
		panic("ref: Sample: length mismatch")
	}
	checkSampling(p)
	it := T(1)
	if p.Temperature > 0 {
		it = inverse[T](p.Temperature)
	}
	l, adjusted := newLogits(h, w, len(ids), V, C, multiply, p.Cap), newLogits(nil, w, 0, V, C, multiply, 0)
	kept, order := make([]T, V), make([]int32, V)
	for r := range ids {
		l.compute(r, it)
		drawn := l
		if !p.Adjust.IDs.Empty() || !p.Mask.Empty() {
			drawn = adjusted
			copy(drawn.z, l.z)
			Adjust(drawn.z, p.Adjust.Rows(r, r+1, R), it)
			Restrict(drawn.z, p.Rows(r, r+1, R).Mask)
			drawn.exponentials()
		}
		copy(kept, drawn.e)
		id := Pick(drawn.z, kept, drawn.s, u[r], p, order)
		ids[r] = int32(id)
		logProb[r], entropy[r], lse[r] = l.scores(id)
	}
}

// Adjust changes a row's logits z [V], which were multiplied by invTemp, as kernels.Adjustments says. a has one row.
func Adjust[T Float](z []T, a kernels.Adjustments, invTemp T) {
	before, factor, after := floats[T](a.Before), floats[T](a.Factor), floats[T](a.After)
	for k, id := range ints(a.IDs) {
		if id < 0 {
			continue
		}
		x := FMA(before[k], invTemp, z[id])
		if x > 0 {
			x /= factor[k]
		} else {
			x = T(x * factor[k])
		}
		z[id] = FMA(-after[k], invTemp, x)
	}
}

// Restrict makes a row's logits z [V] of tokens that may not be drawn -Inf, as kernels.Sampling.Mask says. mask has
// one row; an empty one allows all.
func Restrict[T Float](z []T, mask kernels.Buffer) {
	if mask.Empty() {
		return
	}
	for i, word := range ints(mask) {
		if word == -1 {
			continue // most masks are of few tokens, or of nearly all
		}
		part := z[32*i : min(32*i+32, len(z))]
		for b := range part {
			if uint32(word)>>b&1 == 0 {
				part[b] = T(math.Inf(-1))
			}
		}
	}
}

// Pick draws one of V tokens from a row's logits z [V], e[v] = Exp(z[v]-max z)
// and their lane sum s, by u in [0,1). It sets e to 0 for the tokens that p filters
// out; order [V] is scratch, used only with TopK or TopP.
//
// With tokens ordered by z descending, then id ascending, TopK keeps the first k;
// TopP the shortest prefix whose sum of e, added in this order in float64, is
// ≥ TopP·s; MinP the tokens with e ≥ MinP, compared in float64. A token is kept if
// every filter keeps it; each filter sees the whole distribution. Draw chooses among
// the kept tokens.
//
// At temperature 0 it returns the first token in that order. If s is NaN it
// returns 0.
func Pick[T Float](z, e []T, s, u T, p kernels.Sampling, order []int32) int {
	if s != s {
		return 0
	}
	if p.Temperature == 0 {
		return argMax(z)
	}
	if p.TopK > 0 || p.TopP < 1 {
		keepPrefix(z, e, s, p, order)
	}
	for v := range e {
		if float64(e[v]) < p.MinP {
			e[v] = 0
		}
	}
	return Draw(e, u)
}

// argMax returns the index of the largest element, the first among equals.
func argMax[T Float](z []T) int {
	best := 0
	for v := range z {
		if z[v] > z[best] {
			best = v
		}
	}
	return best
}

// keepPrefix sets e to 0 for all tokens past the prefix that TopK and TopP keep.
// It pops the prefix from a heap, so that a short one costs O(V).
func keepPrefix[T Float](z, e []T, s T, p kernels.Sampling, order []int32) {
	heap := heapOf(z, order)
	var mass float64
	for n := 1; len(heap) > 0; n++ {
		mass += float64(e[heap[0]])
		heap = popTop(heap, z)
		if n == p.TopK || p.TopP < 1 && mass >= p.TopP*float64(s) {
			break
		}
	}
	for _, v := range heap {
		e[v] = 0
	}
}

// PickTop sets ids to the tokens with the largest z [V], by z descending, then id ascending, or to 0, 1, … if s is
// NaN. order [V] is scratch.
func PickTop[T Float](ids []int32, z []T, s T, order []int32) {
	if s != s {
		for k := range ids {
			ids[k] = int32(k)
		}
		return
	}
	heap := heapOf(z, order)
	for k := range ids {
		ids[k] = heap[0]
		heap = popTop(heap, z)
	}
}

// heapOf makes a heap of all tokens in order [V], by z descending, then id ascending.
func heapOf[T Float](z []T, order []int32) []int32 {
	heap := order[:len(z)]
	for v := range heap {
		heap[v] = int32(v)
	}
	for i := len(heap)/2 - 1; i >= 0; i-- {
		siftDown(heap, z, i)
	}
	return heap
}

// popTop removes the first token of a heap.
func popTop[T Float](heap []int32, z []T) []int32 {
	last := len(heap) - 1
	heap[0] = heap[last]
	heap = heap[:last]
	siftDown(heap, z, 0)
	return heap
}

// siftDown restores the heap below i: a parent comes before its children, by z
// descending, then id ascending.
func siftDown[T Float](heap []int32, z []T, i int) {
	before := func(a, b int32) bool { return z[a] > z[b] || z[a] == z[b] && a < b }
	for {
		c := 2*i + 1
		if c >= len(heap) {
			return
		}
		if c+1 < len(heap) && before(heap[c+1], heap[c]) {
			c++
		}
		if !before(heap[c], heap[i]) {
			return
		}
		heap[i], heap[c] = heap[c], heap[i]
		i = c
	}
}

// Draw returns the token that u in [0,1) selects from the weights e ≥ 0. It sums e
// in float64: lane sums over blocks of kernels.SampleBlock ids, then over the blocks
// in order. With x = u·total, the token is in the first block
// at whose end the running sum exceeds x; within it weights are added in order to
// the sum before the block, and the first id that makes it exceed x is drawn, or
// the block's last id with e > 0 if rounding leaves none. An id with e = 0 is
// never drawn. If no sum exceeds x (total is 0 or not finite) it returns 0.
func Draw[T Float](e []T, u T) int {
	var total float64
	for lo := 0; lo < len(e); lo += kernels.SampleBlock {
		total += laneSum64(sampleBlock(e, lo))
	}
	x := float64(u) * total
	var sum float64
	for lo := 0; lo < len(e); lo += kernels.SampleBlock {
		block := sampleBlock(e, lo)
		end := sum + laneSum64(block)
		if end > x {
			return lo + drawWithin(block, sum, x)
		}
		sum = end
	}
	return 0
}

// drawWithin returns the first index at which sum plus the elements of block up
// to it exceeds x, or the last positive element.
func drawWithin[T Float](block []T, sum, x float64) int {
	last := 0
	for i, e := range block {
		if e > 0 {
			last = i
		}
		sum += float64(e)
		if sum > x {
			return i
		}
	}
	return last
}

func sampleBlock[T Float](e []T, lo int) []T {
	return e[lo:min(lo+kernels.SampleBlock, len(e))]
}

// laneSum64 is LaneSum with float64 lanes.
func laneSum64[T Float](x []T) float64 {
	var lane [kernels.Lanes]float64
	for i, v := range x {
		lane[i%kernels.Lanes] += float64(v)
	}
	return foldLanes(&lane)
}

func checkSampling(p kernels.Sampling) {
	if !(p.Temperature >= 0) || p.TopK < 0 || !(p.TopP > 0 && p.TopP <= 1) || !(p.MinP >= 0 && p.MinP <= 1) {
		panic("ref: Sample: a setting is out of range")
	}
}
