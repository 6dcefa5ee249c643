package checkpoint

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	"exp/train/checkpoint/extent"
)

// This file has compressed-tensors, the format of LLM Compressor. A folder has, for a weight [Out,In] with G groups of
// inputs, in format pack-quantized,
//
//	….weight_packed     [Out,In·bits/32] I32   integers of a row, less their lowest value, from a word's lowest bit
//	….weight_scale      [Out,G]                G is 1 with one scale for each row; [1] with one for the whole
//	….weight_zero_point [Out·bits/32,G]  I32   zero points of a column, likewise; or [Out,G] I8 as they are; or none
//	….weight_g_idx      [In]             I32   the group of each input, if not in order; -1 means in order
//	….weight_shape      [2]                    Out and In
//
// and in int-quantized, or naive-quantized with integers, ….weight [Out,In] I8 with a scale and a zero point as above.
// They mean weight[o,i] = (q[o,i] - zero[o,g]) · scale[o,g], multiplied in the type of the scales (dequantize of
// compressed_tensors.quantization.lifecycle.forward). Weights in FP8 (float-quantized) are read as others in FP8, see
// fp8.go. What is quantized while the model computes, such as activations in 8 bits, stays as it is here.

const compressedMethod = "compressed-tensors"

// compressedFormats are the formats that are read, of a folder or of a group of modules.
func compressedFormats() []string {
	return []string{packFormat, "int-quantized", naiveFormat, floatFormat, fp4Format}
}

const (
	packFormat  = "pack-quantized"
	floatFormat = "float-quantized"
	fp4Format   = "nvfp4-pack-quantized"
	naiveFormat = "naive-quantized" // either of them
)

// readCompressed reads the settings of compressed-tensors and returns what is not supported.
func (q *quantizer) readCompressed(in *settings) (why string) {
	in.maybe("format", &q.format)
	groups := in.inner("config_groups").orEmpty()
	for _, name := range sortedKeys(groups.values) {
		group := groups.inner(name)
		if group == nil {
			return fmt.Sprintf("config_groups of compressed-tensors: %s is %s, which names no settings", name,
				shortened(groups.values[name]))
		}
		kind, bits, own := "int", 8, q.format
		w := group.inner("weights")
		if w == nil {
			continue // activations alone
		}
		group.maybe("format", &own)
		w.maybe("type", &kind)
		w.maybe("num_bits", &bits)
		q.modules = q.modules || kind == "int" || own == fp4Format
		switch {
		case len(group.problems)+len(w.problems) > 0:
			return strings.Join(append(group.problems, w.problems...), "; ")
		case !slices.Contains(compressedFormats(), own):
			return fmt.Sprintf("format of compressed-tensors is %q; supported are %s", own,
				strings.Join(compressedFormats(), ", "))
		case !compressedBits(own, kind, bits):
			return fmt.Sprintf("compressed-tensors has weights of type %s and %d bits in format %s, which are not "+
				"supported", kind, bits, own)
		}
	}
	if sparse := in.inner("sparsity_config"); sparse != nil {
		if f := "dense"; sparse.maybe("format", &f) && f != "dense" {
			return fmt.Sprintf("sparsity_config of compressed-tensors has format %q: sparse weights are not "+
				"supported", f)
		}
	}
	if in.inner("transform_config") != nil {
		return "transform_config of compressed-tensors: rotated weights and activations are not supported"
	}
	return ""
}

// computedNotes returns notes on what other programs quantize while the model computes.
func (r *settings) computedNotes() []string {
	in, method := r.inner(quantization).orEmpty(), ""
	if in.maybe("quant_method", &method); method != compressedMethod {
		return nil
	}
	var list []string
	groups := in.inner("config_groups").orEmpty()
	for _, name := range sortedKeys(groups.values) {
		if group := groups.inner(name).orEmpty(); group.has("input_activations") && list == nil {
			list = append(list, "config.json has activations quantized while the model computes (input_activations), "+
				"as vLLM does it: here they are not")
		}
	}
	if in.has("kv_cache_scheme") {
		list = append(list, "config.json has keys and values quantized in the cache (kv_cache_scheme), as vLLM does "+
			"it: here they are not")
	}
	return list
}

// dropCacheScales drops scales of keys and values, if config.json has them quantized in the cache.
func (t *Tensors) dropCacheScales(r *settings) {
	if !r.inner(quantization).orEmpty().has("kv_cache_scheme") {
		return
	}
	for name := range maps.Clone(t.where) {
		for _, what := range []string{"q", "k", "v"} {
			for _, end := range []string{"_scale", "_zero_point"} {
				if strings.HasSuffix(name, ".self_attn."+what+end) {
					delete(t.where, name)
				}
			}
		}
	}
}

// widenCompressed returns the weight of a module in compressed-tensors.
func (q *quantizer) widenCompressed(m *quantizedModule) (place, error) {
	switch {
	case !strings.HasSuffix(m.first.Name, packedEnd):
	case m.first.DType == "U8":
		return q.widenFP4(m)
	default:
		return q.widenPacked(m)
	}
	codes, err := m.need(".weight", 2, "I8")
	if err != nil {
		return codes, err
	}
	s := extent.Scaling{Codes: codes.data, Cols: codes.Shape[1], Values: q.integers(0, true)}
	return q.scaledCompressed(m, codes, 8, codes.Shape[0], s)
}

const packedEnd = ".weight_packed"

// widenPacked returns the weight of a module in pack-quantized.
func (q *quantizer) widenPacked(m *quantizedModule) (place, error) {
	words, err := m.need(packedEnd, 2, I32)
	if err != nil {
		return words, err
	}
	out, in, err := m.shape(words)
	if err != nil {
		return words, err
	}
	for _, bits := range []int{4, 8, 2} {
		inWord := 32 / bits
		if (in+inWord-1)/inWord != words.Shape[1] {
			continue
		}
		half := 1 << (bits - 1)
		return q.scaledCompressed(m, words, bits, out, extent.Scaling{
			Codes: extent.Unpack(words.data,
				extent.Packing{Bits: bits, Rows: out, Cols: in, RowBytes: 4 * words.Shape[1]}),
			Cols: in, Levels: 1 << bits, Values: q.integers(half, false)})
	}
	return words, m.fault(words, "is %s, but %s.weight_shape says %d × %d: not integers of 2, 4 or 8 bits",
		words.kind(), m.layer, out, in)
}

// shape returns the shape of a weight whose integers are packed.
func (m *quantizedModule) shape(words place) (out, in int, err error) {
	p, err := m.need(".weight_shape", 1, "I64", I32)
	if err != nil {
		return 0, 0, err
	}
	if p.Len() != 2 {
		return 0, 0, m.fault(p, "has %s, not the two of a shape", count(p.Len(), "number"))
	}
	raw := make([]byte, p.Bytes())
	if _, err := p.data.ReadAt(raw, 0); err != nil {
		return 0, 0, ofTensor(p.stored, err)
	}
	var shape [2]int64
	for i := range shape {
		if shape[i] = int64(int32(binary.LittleEndian.Uint32(raw[4*i:]))); p.DType != I32 {
			shape[i] = int64(binary.LittleEndian.Uint64(raw[8*i:]))
		}
	}
	if most := int64(words.Shape[1]) * 16; shape[0] != int64(words.Shape[0]) || shape[1] < 1 || shape[1] > most {
		return 0, 0, m.fault(p, "is %v, but %s is %s", shape, words.stored, words.kind())
	}
	return int(shape[0]), int(shape[1]), nil
}

// scaledCompressed returns a weight with so many rows of codes of some bits, with its scales and zero points.
func (q *quantizer) scaledCompressed(m *quantizedModule, codes place, bits, out int, s extent.Scaling) (
	place, error) {
	scales, ok := m.find(".weight_scale")
	if !ok {
		return codes, m.missing(".weight_scale")
	}
	if err := m.check(scales, len(scales.Shape), scaleTypes()...); err != nil {
		return codes, err
	}
	width := int64(scales.DType.bits() / 8)
	whole := scales.Len() == 1
	s.Groups = 1
	switch {
	case whole:
		s.Scales = extent.Strided(scales.data, 0, width, extent.Loop{N: int64(out)})
	case len(scales.Shape) == 2 && scales.Shape[0] == out && s.Cols%scales.Shape[1] == 0:
		s.Groups, s.Scales = scales.Shape[1], scales.data
	default:
		return codes, m.fault(scales, "is %s, but the weight is %d × %d: neither one scale, nor one for each row, "+
			"or for each group of equal size in it", scales.kind(), out, s.Cols)
	}
	s.GroupCols, s.ScaleType = s.Cols/s.Groups, string(scales.DType)
	if index, ok := m.find(".weight_g_idx"); ok {
		if err := m.check(index, 1, I32); err != nil {
			return codes, err
		}
		if index.Len() != s.Cols {
			return codes, m.fits(index, codes, s.Cols)
		}
		s.Index = index.data
	}
	if err := q.zeroPoints(m, bits, out, whole, &s); err != nil {
		return codes, err
	}
	m.dropActivations()
	return q.weight(m, out, s.Cols, s)
}

// dropActivations drops the tensors that only products of quantized numbers use.
func (m *quantizedModule) dropActivations() {
	for _, end := range activationEnds() {
		m.find(end)
	}
}

// activationEnds are how names of tensors end that only products of quantized numbers use.
func activationEnds() []string {
	return []string{".input_scale", ".input_zero_point", ".input_global_scale", ".output_scale", ".output_zero_point"}
}

// zeroPoints sets the zero points of a weight, if it has any.
func (q *quantizer) zeroPoints(m *quantizedModule, bits, out int, whole bool, s *extent.Scaling) error {
	zeros, ok := m.find(".weight_zero_point")
	if !ok {
		return nil
	}
	inWord := 32 / bits
	switch {
	case zeros.DType == I32 && slices.Equal(zeros.Shape, []int{(out + inWord - 1) / inWord, s.Groups}):
		s.Zeros = extent.Unpack(zeros.data, extent.Packing{Bits: bits, Rows: out, Cols: s.Groups})
		s.ZeroValues = q.integers(1<<(bits-1), false)
	case zeros.DType == "I8" && slices.Equal(zeros.Shape, []int{out, s.Groups}):
		s.Zeros, s.ZeroValues = zeros.data, q.integers(0, true)
	case zeros.DType == "I8" && whole && zeros.Len() == 1:
		s.Zeros = extent.Strided(zeros.data, 0, 1, extent.Loop{N: int64(out)})
		s.ZeroValues = q.integers(0, true)
	default:
		return m.fault(zeros, "is %s: neither packed nor plain zero points of %d × %d groups", zeros.kind(), out,
			s.Groups)
	}
	return m.check(zeros, len(zeros.Shape), I32, "I8")
}

// compressedBits reports whether weights of a type and so many bits are read in a format.
func compressedBits(format, kind string, bits int) bool {
	switch {
	case format == fp4Format:
		return kind == "float" && bits == 4
	case format == packFormat && kind == "int":
		return bits == 2 || bits == 4 || bits == 8
	}
	return bits == 8 && (kind == "int" || kind == "float" && format != packFormat)
}
