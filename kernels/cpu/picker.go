package cpu

import (
	"math"
	"slices"

	"exp/kernels"
	"exp/kernels/ref"
)

// picker draws tokens as ref.Pick does. Where top-k or top-p keep few of many tokens it sorts only these, and sums
// only their blocks: with a vocabulary of 150,000 the heap of all that the reference makes costs more than the logits
// (BenchmarkPick).
type picker struct {
	order   []int32   // scratch of ref.Pick
	top     []int32   // the most probable tokens
	e       []float32 // of the blocks that have any
	block   []int32   // their numbers
	mass    []float64 // of the tokens whose logits lie together
	start   []int32   // where they begin in ordered
	ordered []uint64  // the likeliest tokens, by z descending, then id ascending
}

const (
	// firstTokens is the number of tokens that a picker tries for top-p before it looks at the whole row.
	firstTokens = 64
	// perNat is the number of parts of a nat in which logits lie together, and nats how far below the largest.
	perNat, nats = 32, 32
)

// pick is ref.Pick, but leaves e as it is.
func (k *picker) pick(z, e []float32, s, u float32, p kernels.Sampling) int {
	if p.TopK == 0 && p.TopP == 1 || p.Temperature == 0 || s != s {
		return ref.Pick(z, e, s, u, p, nil)
	}
	kept := k.prefix(z, e, s, p)
	if kept == nil {
		k.order = slices.Grow(k.order[:0], len(z))
		return ref.Pick(z, e, s, u, p, k.order[:len(z)])
	}
	return k.draw(e, u, slices.DeleteFunc(kept, func(v int32) bool { return float64(e[v]) < p.MinP }))
}

// prefix returns the tokens that p.TopK and p.TopP keep, by z descending, then id ascending; nil if it found no fast
// way.
func (k *picker) prefix(z, e []float32, s float32, p kernels.Sampling) []int32 {
	n := firstTokens
	if p.TopK > 0 && (p.TopP == 1 || p.TopK < n) {
		n = p.TopK
	}
	if n <= len(z)/16 {
		k.top = slices.Grow(k.top[:0], n)[:n]
		topOf(k.top, z, s)
		if kept := within(k.top, e, s, p); kept != nil {
			return kept
		}
	}
	if p.TopP == 1 {
		return nil
	}
	return within(k.likeliest(z, e, p.TopP*float64(s)), e, s, p)
}

// within returns the first of some tokens in order that p.TopK and p.TopP keep; nil if these keep more.
func within(top []int32, e []float32, s float32, p kernels.Sampling) []int32 {
	var mass float64
	for i, v := range top {
		mass += float64(e[v])
		if i+1 == p.TopK || p.TopP < 1 && mass >= p.TopP*float64(s) {
			return top[:i+1]
		}
	}
	return nil
}

// likeliest returns the tokens with the largest z, in order, whose e sum to about mass or more, if those far below the
// largest are not among them. It counts the tokens and their masses in narrow ranges of z, and sorts within the
// ranges.
func (k *picker) likeliest(z, e []float32, mass float64) []int32 {
	const ranges = perNat * nats
	k.mass, k.start = slices.Grow(k.mass[:0], ranges)[:ranges], slices.Grow(k.start[:0], ranges+1)[:ranges+1]
	clear(k.mass)
	clear(k.start)
	most := z[0]
	for _, x := range z {
		if x > most {
			most = x
		}
	}
	for v, x := range z {
		if below := (most - x) * perNat; below < ranges {
			k.mass[int(below)] += float64(e[v])
			k.start[int(below)+1]++
		}
	}
	var sum float64
	last := 0 // range
	for ; last < ranges-1; last++ {
		const order = 1 + 1e-6 // other orders give other sums
		if sum += k.mass[last]; sum >= mass*order {
			break
		}
	}
	for i := range last + 1 {
		k.start[i+1] += k.start[i]
	}
	n := int(k.start[last+1])
	k.ordered = slices.Grow(k.ordered[:0], n)[:n]
	for v, x := range z {
		if below := (most - x) * perNat; below < float32(last+1) {
			k.ordered[k.start[int(below)]] = uint64(descending(x))<<32 | uint64(v)
			k.start[int(below)]++ // in the end that of the next one
		}
	}
	from := int32(0)
	for _, to := range k.start[:last+1] {
		slices.Sort(k.ordered[from:to])
		from = to
	}
	k.top = slices.Grow(k.top[:0], n)[:n]
	for i, x := range k.ordered {
		k.top[i] = int32(uint32(x))
	}
	return k.top
}

// descending returns a number that falls where x rises; both zeros have one.
func descending(x float32) uint32 {
	if bits := math.Float32bits(x + 0); bits>>31 == 0 {
		return ^(bits | 1<<31)
	} else {
		return bits
	}
}

// draw is ref.Draw where all but the kept tokens have the weight 0. Blocks without any add nothing to its sums, so it
// draws from the others alone. It sorts the kept tokens.
func (k *picker) draw(e []float32, u float32, kept []int32) int {
	if len(kept) > len(e)/kernels.SampleBlock {
		k.e = slices.Grow(k.e[:0], len(e))[:len(e)]
		clear(k.e)
		for _, v := range kept {
			k.e[v] = e[v]
		}
		return ref.Draw(k.e, u)
	}
	slices.Sort(kept)
	k.e, k.block = k.e[:0], k.block[:0]
	for _, v := range kept {
		b := v / kernels.SampleBlock
		if n := len(k.block); n == 0 || k.block[n-1] != b {
			start := len(k.e)
			size := min(kernels.SampleBlock, len(e)-int(b)*kernels.SampleBlock) // the last one may be shorter
			k.e, k.block = slices.Grow(k.e, size)[:start+size], append(k.block, b)
			clear(k.e[start:])
		}
		k.e[len(k.block)*kernels.SampleBlock-kernels.SampleBlock+int(v)%kernels.SampleBlock] = e[v]
	}
	i := ref.Draw(k.e, u)
	if len(k.e) == 0 || k.e[i] == 0 { // no sum exceeds u's share
		return 0
	}
	return int(k.block[i/kernels.SampleBlock])*kernels.SampleBlock + i%kernels.SampleBlock
}
