package checkpoint

import (
	"fmt"
	"strings"

	"exp/train/checkpoint/extent"
)

// This file has AWQ (arXiv:2306.00978) in AutoAWQ's version GEMM. A folder has, for a module with In inputs and Out
// outputs in G groups of inputs,
//
//	….qweight [In,Out/8] I32   integers of 4 bits of a row, eight in a word
//	….qzeros  [G,Out/8]  I32   zero points, likewise
//	….scales  [G,Out]
//
// and means weight[o,i] = (q[i,o] - zero[g,o]) · scale[g,o], multiplied in the type of the scales (dequantize_gemm of
// AutoAWQ and GPTQModel). From its lowest bit on, a word has the integers of outputs 0, 2, 4, 6, 1, 3, 5 and 7.

const awqMethod = "awq"

// readAWQ reads the settings of AWQ and returns what is not supported.
func (q *quantizer) readAWQ(in *settings) (why string) {
	q.format, q.groupSize, q.bits = "gemm", 128, 4
	in.maybe("format", &q.format)
	in.maybe("version", &q.format)
	q.format = strings.ToLower(q.format)
	in.maybe("w_bit", &q.bits) // of quant_config.json, which some folders repeat
	in.maybe("bits", &q.bits)
	in.maybe("q_group_size", &q.groupSize)
	in.maybe("group_size", &q.groupSize)
	switch {
	case len(in.problems) > 0:
		return strings.Join(in.problems, "; ")
	case q.format != "gemm":
		return fmt.Sprintf("version of AWQ is %q; only gemm is supported", q.format)
	case q.bits != 4:
		return fmt.Sprintf("bits of AWQ are %d; only 4 are supported", q.bits)
	case q.groupSize == 0 || q.groupSize < -1:
		return fmt.Sprintf("group_size is %d; it must be positive, or -1 for one group", q.groupSize)
	}
	return ""
}

// widenAWQ returns the weight of a module in AWQ.
func (q *quantizer) widenAWQ(m *quantizedModule) (place, error) {
	const inWord = 8
	words, err := m.need(wordsEnd, 2, I32)
	if err != nil {
		return words, err
	}
	scales, err := m.need(".scales", 2, scaleTypes()...)
	if err != nil {
		return words, err
	}
	zeros, err := m.need(".qzeros", 2, I32)
	if err != nil {
		return words, err
	}
	in, across, groups := words.Shape[0], words.Shape[1], scales.Shape[0]
	out := across * inWord
	if scales.Shape[1] != out {
		return words, m.fits(scales, words, groups, out)
	}
	if err := m.fits(zeros, scales, groups, across); err != nil {
		return words, err
	}
	size, err := q.groupOf(m, scales, groups, in, false)
	if err != nil {
		return words, err
	}
	order := []int{0, 4, 1, 5, 2, 6, 3, 7} // where the integers of outputs 0 to 7 are
	integers := func(p place, n int) extent.Extent {
		return extent.Unpack(transposed(p.data, n, across, 4),
			extent.Packing{Bits: 4, Rows: out, Cols: n, Order: order})
	}
	width := int64(scales.DType.bits() / 8)
	return q.weight(m, out, in, extent.Scaling{
		Codes: integers(words, in), Cols: in, Levels: 16, Values: q.integers(0, false),
		Scales: transposed(scales.data, groups, out, width), ScaleType: string(scales.DType),
		Groups: groups, GroupCols: size,
		Zeros: integers(zeros, groups), ZeroValues: q.integers(0, false)})
}
