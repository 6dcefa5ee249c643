package checkpoint

import (
	"fmt"
	"slices"
	"strings"

	"exp/train/checkpoint/extent"
	"exp/train/model"
)

// This file has GPTQ (arXiv:2210.17323) as AutoGPTQ and GPTQModel write it. A folder has, for a module with In inputs
// and Out outputs in G groups of inputs,
//
//	….qweight [In·bits/32,Out] I32   integers of a column one after the other, from the lowest bit of a word on
//	….qzeros  [G,Out·bits/32]  I32   zero points, likewise along a row; less 1 in checkpoint_format gptq
//	….scales  [G,Out]
//	….g_idx   [In]             I32   the group of each input, in any order (desc_act)
//
// and means weight[o,i] = (q[i,o] - zero[g,o]) · scale[g,o], multiplied in the type of the scales (GPTQModel's
// TorchLinear, dequantize_weight; transformers runs GPTQModel). Zero points are made as GPTQModel does it
// (convert_gptq_v1_to_v2_format_module): for 2, 4 and 8 bits, 1 is added within whole words, so that a zero point
// stored as all ones carries into the next; for 3 bits each wraps around.

const gptqMethod = "gptq"

// wordsEnd ends the names of the packed integers of GPTQ and AWQ.
const wordsEnd = ".qweight"

// readGPTQ reads the settings of GPTQ and returns what is not supported.
func (q *quantizer) readGPTQ(in *settings) (why string) {
	q.format, q.groupSize = gptqMethod, 128
	in.agree("checkpoint_format", "format")
	in.maybe("format", &q.format)
	in.maybe("checkpoint_format", &q.format)
	q.format = strings.ToLower(q.format)
	q.lessOne = q.format == gptqMethod
	in.need("bits", &q.bits, 0)
	in.maybe("group_size", &q.groupSize)
	q.unordered = in.flag("desc_act", false)
	q.byModule = in.inner("dynamic") != nil
	words := "int32"
	in.maybe("pack_dtype", &words)
	switch {
	case len(in.problems) > 0:
		return strings.Join(in.problems, "; ")
	case q.format != gptqMethod && q.format != "gptq_v2" || in.flag("is_marlin_format", false):
		return fmt.Sprintf("checkpoint_format of GPTQ is %q; only gptq and gptq_v2 are supported", q.format)
	case !slices.Contains(gptqBits(), q.bits):
		return fmt.Sprintf("bits of GPTQ are %d; supported are 2, 3, 4 and 8", q.bits)
	case q.groupSize == 0 || q.groupSize < -1:
		return fmt.Sprintf("group_size is %d; it must be positive, or -1 for one group", q.groupSize)
	case words != "int32":
		return fmt.Sprintf("pack_dtype is %q; only int32 is supported", words)
	case in.has("rotation"):
		return "rotation: models whose inputs are rotated are not supported"
	}
	return ""
}

func gptqBits() []int { return []int{2, 3, 4, 8} }

// widenGPTQ returns the weight of a module in GPTQ.
func (q *quantizer) widenGPTQ(m *quantizedModule) (place, error) {
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
	index, listed := m.find(".g_idx")
	if listed {
		if err := m.check(index, 1, I32); err != nil {
			return words, err
		}
	}
	bits, err := q.bitsOf(m, words, scales, zeros)
	if err != nil {
		return words, err
	}
	rows, out, groups := words.Shape[0], words.Shape[1], scales.Shape[0]
	in := rows * 32 / bits
	if listed && (index.Len()*bits+31)/32 == rows {
		in = index.Len()
	}
	switch {
	case listed && index.Len() != in:
		return words, m.fits(index, words, in)
	case scales.Shape[1] != out:
		return words, m.fits(scales, words, groups, out)
	}
	size, err := q.groupOf(m, scales, groups, in, listed)
	if err != nil {
		return words, err
	}
	plus := 0
	if q.lessOne {
		plus = 1
	}
	width := int64(scales.DType.bits() / 8)
	return q.weight(m, out, in, extent.Scaling{
		Codes: extent.Unpack(transposed(words.data, rows, out, 4),
			extent.Packing{Bits: bits, Rows: out, Cols: in, RowBytes: 4 * rows}),
		Cols: in, Levels: 1 << bits, Values: q.integers(0, false),
		Scales: transposed(scales.data, groups, out, width), ScaleType: string(scales.DType),
		Groups: groups, GroupCols: size, Index: index.data,
		Zeros: transposed(extent.Unpack(zeros.data, extent.Packing{Bits: bits, Rows: groups, Cols: out,
			RowBytes: 4 * zeros.Shape[1], Plus: plus}), groups, out, 1),
		ZeroValues: q.integers(0, false)})
}

// bitsOf returns the bits of a module's integers: those of config.json or, if it has rules for modules, those that the
// shape of the zero points fits.
func (q *quantizer) bitsOf(m *quantizedModule, words, scales, zeros place) (int, error) {
	tried := []int{q.bits}
	if q.byModule {
		tried = append(tried, gptqBits()...)
	}
	for _, bits := range tried {
		if slices.Equal(zeros.Shape, []int{scales.Shape[0], (scales.Shape[1]*bits + 31) / 32}) &&
			(bits != 3 || words.Shape[0]%3 == 0) {
			return bits, nil
		}
	}
	return 0, m.fault(zeros, "is %s, but %s is %s: not the zero points of %d bits that config.json says", zeros.kind(),
		scales.stored, scales.kind(), q.bits)
}

// groupOf returns how many inputs a group has, 0 if a list says it for each. It checks the number of groups.
func (q *quantizer) groupOf(m *quantizedModule, scales place, groups, in int, listed bool) (int, error) {
	size := q.groupSize
	if size == -1 {
		size = in
	}
	right := (in+size-1)/size == groups
	switch {
	case listed && (right || q.byModule):
		return 0, nil
	case !listed && q.unordered:
		return 0, m.fault(m.first, "is in groups out of order (desc_act), but %s.g_idx, which lists them, is "+
			"missing", m.layer)
	case !right && q.byModule && in%groups == 0:
		return in / groups, nil
	case !right:
		return 0, m.fault(scales, "has %s, but %d inputs in groups of %d (group_size of config.json) have %d",
			count(groups, "group"), in, size, (in+size-1)/size)
	}
	return size, nil
}

// dropZeroBiases drops biases of modules that the model of config.json does not have, if they are zero: AutoGPTQ wrote
// such for every module.
func (t *Tensors) dropZeroBiases(config []byte, layers []string) error {
	has := map[string]bool{}
	for _, layer := range layers {
		p, ok := t.where[layer+".bias"]
		if !ok || len(p.Shape) != 1 || !p.DType.convertible() {
			continue
		}
		if len(has) == 0 {
			c, err := ParseConfig(configFile, config)
			if err != nil {
				return nil // nobody knows what it has
			}
			layout, _ := model.Layout(c, model.Heads{LM: true})
			for _, x := range layout {
				has[x.Name] = true
			}
		}
		if has[p.Name] {
			continue
		}
		raw := make([]byte, p.Bytes())
		if _, err := p.data.ReadAt(raw, 0); err != nil && len(raw) > 0 {
			return ofTensor(p.stored, err)
		}
		values := make([]float32, p.Len())
		p.DType.float32s(values, raw)
		if !slices.ContainsFunc(values, func(v float32) bool { return v != 0 }) {
			delete(t.where, p.Name)
		}
	}
	return nil
}
