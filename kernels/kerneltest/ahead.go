package kerneltest

import (
	"fmt"
	"slices"

	"exp/kernels"
)

// aheadChecks are of rows that see rows behind them (kernels.AttentionShape.Ahead).
func aheadChecks() []check {
	return []check{
		{"AheadAttention/shapes", on(aheadBatches, checkAttentionShapes)},
		{"AheadAttention/sequences", on(aheadBatches, checkAttentionSequences)},
		{"AheadAttention/infinite", on(func(short bool) []packed { return smallAheadBatches(short)[3:] },
			checkAttentionInfinite)},
		{"AheadAttention/tiny", on(smallAheadBatches, checkAttentionTiny)},
		{"AheadAttention/backward", on(aheadBatches, checkAttentionBackward)},
		{"AheadAttention/steps", checkAheadSteps},
		{"AheadAttention/none", checkNoAhead},
		{"AheadAttention/rows", func(s *subject) error {
			return s.checkPagedRows(cachesOf(aheadBatches(s.short), true))
		}},
		{"AheadAttention/prefill", checkAheadPrefill},
	}
}

// block is rows of a sequence that see each other: n from position `from` on.
type block struct{ sequence, from, n int }

// aheadBatches have blocks of rows at the beginnings and ends of sequences, next to each other, around the lanes and
// around blocks of queries and of keys, in prefixes and behind them, with windows that are shorter and longer.
func aheadBatches(short bool) []packed {
	list := append(smallAheadBatches(short), scaledScores([]packed{
		withBlocks(packed{kernels.AttentionShape{H: 2, K: 1, D: 8}, []int{65, 97}, nil},
			block{0, 18, 32}, block{1, 1, 70}, block{1, 71, 25})})...)
	if !short {
		list = append(list, scaledScores([]packed{
			withBlocks(packed{kernels.AttentionShape{H: 1, K: 1, D: 16, Window: 97}, []int{200, 67}, nil},
				block{0, 60, 110}, block{1, 0, 67}),
			withBlocks(packed{kernels.AttentionShape{H: 3, K: 1, D: 33, Window: 40, Cap: 50}, []int{37, 20, 11, 131},
				[]int32{0, 4}}, block{0, 2, 30}, block{3, 10, 110})})...)
	}
	return list
}

// smallAheadBatches are the first of aheadBatches. Tiny sums in longer sequences are flushedBatches'.
func smallAheadBatches(bool) []packed {
	return scaledScores([]packed{
		withBlocks(packed{kernels.AttentionShape{H: 1, K: 1, D: 2}, []int{1, 3, 5, 9}, nil},
			block{1, 0, 3}, block{2, 1, 4}, block{3, 2, 3}, block{3, 5, 4}),
		withBlocks(packed{kernels.AttentionShape{H: 3, K: 1, D: 5}, []int{15, 1, 16, 17, 0, 31}, nil},
			block{0, 3, 8}, block{2, 0, 16}, block{5, 14, 17}),
		withBlocks(packed{kernels.AttentionShape{H: 4, K: 2, D: 16, Window: 5}, []int{33, 1, 61}, nil},
			block{0, 4, 9}, block{2, 30, 5}, block{2, 35, 20}),
		withBlocks(packed{kernels.AttentionShape{H: 2, K: 2, D: 33, Window: 16, Cap: 20}, []int{17, 50}, nil},
			block{1, 20, 14}),
		withBlocks(packed{kernels.AttentionShape{H: 2, K: 1, D: 5}, []int{5, 3, 0, 1, 0, 4, 2, 7},
			[]int32{0, 4, 6, 7, 8}}, block{0, 1, 3}, block{1, 0, 2}, block{5, 1, 3}, block{7, 0, 7}),
		withBlocks(packed{kernels.AttentionShape{H: 4, K: 2, D: 16, Window: 17}, []int{16, 1, 16, 9, 32, 32, 1},
			[]int32{0, 4, 7}}, block{0, 4, 12}, block{2, 3, 10}, block{5, 1, 31}),
	})
}

// withBlocks returns p with blocks of rows. Its shape has them in the host's memory.
func withBlocks(p packed, blocks ...block) packed {
	ahead := make([]int32, p.rows())
	for _, b := range blocks {
		for i := range b.n {
			ahead[int(p.offsets()[b.sequence])+b.from+i] = int32(b.n - 1 - i)
		}
	}
	p.shape.Ahead = kernels.Host(ahead)
	return p
}

// ahead returns how many rows behind it row m sees.
func (p packed) ahead(m int) int {
	if p.shape.Ahead.Empty() {
		return 0
	}
	return int(kernels.Elems[int32](p.shape.Ahead)[m])
}

// aheadOf returns what rows see, for a batch of these rows alone.
func (p packed) aheadOf(rows []int) (b kernels.Buffer) {
	if p.shape.Ahead.Empty() {
		return b
	}
	return kernels.Host(pick(kernels.Elems[int32](p.shape.Ahead), 1, rows))
}

// shapeOn returns the shape of the batch for a call.
func (p packed) shapeOn(c *call) kernels.AttentionShape {
	a := p.shape
	if !a.Ahead.Empty() {
		a.Ahead = c.ints("ahead", kernels.Elems[int32](a.Ahead))
	}
	return a
}

// parts returns where chunks of rows may begin and end: not within blocks.
func (p packed) parts() (list []int) {
	list = []int{0}
	for m := range p.rows() {
		if p.ahead(m) == 0 {
			list = append(list, m+1)
		}
	}
	return list
}

// checkAheadSteps checks a sum of zeros that tells in class "cpu/bf16" which steps it has. The gradient of value 40 is
// -1.5·2^-126 after the first head's step of queries 32 to 63, and -0 after query 64, the flushed -0.3·2^-126. All
// products of the second head are negative and subnormal, so they keep a -0. But a block of rows begins before
// query 32 and sees key 32, which is in the step of key 40: so the sum has a step of zeros first, and ends as +0.
func checkAheadSteps(s *subject) error {
	const rows, least = 96, 0x1p-126 // whole steps
	p := withBlocks(packed{kernels.AttentionShape{H: 2, K: 1, D: 4, Scale: 0.5}, []int{rows}, nil}, block{0, 20, 16})
	qkv, dout := make([]float32, rows*p.shape.Stride()), make([]float32, rows*8) // queries weigh all keys alike
	for m := range rows {
		for d := range 4 {
			dout[m*8+4+d] = -least
		}
	}
	for d := range 4 {
		dout[40*8+d], dout[64*8+d] = -1.5*least*41, 1.2*least*65
	}
	fwd, err := s.reference(func(c *call) { p.attend(c, qkv) })
	if err != nil {
		return err
	}
	return s.compare("AttentionBackward", func(c *call) { p.back(c, qkv, dout, fwd) })
}

// checkNoAhead checks that rows which see none behind them, but might, have the bits of rows that may not.
func checkNoAhead(s *subject) error {
	for i, p := range packedBatches(true) {
		if i%3 > 0 {
			continue // every third one has groups, windows and caps among them
		}
		qkv, dout := p.qkv(), newStream("dout"+p.String()).floats(p.rows()*p.shape.H*p.shape.D)
		blocks := withBlocks(p)
		var both [2][]result
		for i, x := range []packed{p, blocks} {
			fwd, err := run(s.b, func(c *call) { x.attend(c, qkv) })
			if err != nil {
				return err
			}
			back, err := run(s.b, func(c *call) { x.back(c, qkv, dout, fwd) })
			if err != nil {
				return err
			}
			both[i] = append(fwd, back...)
		}
		if err := same(both[1], both[0], exactly); err != nil {
			return fmt.Errorf("%v without blocks of rows is not as usual: %w", p, err)
		}
	}
	return nil
}

// checkAheadPrefill checks that Attention over whole sequences and chunks of rows that are appended and attended one
// after another, without a cut within a block, give the same bits.
func checkAheadPrefill(s *subject) error {
	for _, k := range cachesOf(aheadBatches(s.short), true) {
		whole, err := run(s.b, func(c *call) { k.attend(c, k.qkv) })
		if err != nil {
			return err
		}
		parts := k.parts()
		for _, cuts := range [][]int{parts, {0, parts[len(parts)/2], k.rows()}, {0, k.rows()}} {
			got, err := run(s.b, func(c *call) { k.decodeParts(c, slices.Compact(cuts)) })
			if err != nil {
				return err
			}
			if err := same(got, whole[:2], exactly); err != nil {
				return fmt.Errorf("%v in %d chunks is not Attention: %w", k, len(cuts)-1, err)
			}
		}
	}
	return nil
}
