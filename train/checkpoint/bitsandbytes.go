package checkpoint

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"exp/train/checkpoint/extent"
)

// This file has bitsandbytes. A folder has, for a weight [Out,In] of N elements in blocks of consecutive ones,
//
//	….weight                                 [N/2,1] U8    codes of 4 bits, the first of two in the upper half
//	….weight.quant_state.bitsandbytes__nf4           U8    JSON: quant_type, blocksize, dtype, shape, nested_…
//	….weight.quant_map                       [16]    F32   what codes stand for: one of the tables below
//	….weight.absmax                          [blocks]      a scale for each block, or with nested_absmax its code
//	….weight.nested_absmax                           F32   a scale for each block of such codes
//	….weight.nested_quant_map                [256]   F32   what those codes stand for
//
// and means value(code) · scale in float32, rounded to dtype (dequantize_4bit). A nested scale is value(code) ·
// nested_absmax + nested_offset, each operation in float32 (dequantize_blockwise). In LLM.int8 a folder has
//
//	….weight [Out,In] I8   ….SCB [Out] F32   ….weight_format, which must be 0: rows
//
// and means q·SCB·(1/127), each product in float32 (int8_vectorwise_dequant), rounded to the model's type.

const bitsMethod = "bitsandbytes"

const stateEnd = ".weight.quant_state.bitsandbytes__"

// readBits reads the settings of bitsandbytes and returns what is not supported.
func (q *quantizer) readBits(in *settings) (why string) {
	kind := "fp4"
	in.maybe("bnb_4bit_quant_type", &kind)
	four := in.flag("load_in_4bit", false)
	q.eight = in.flag("load_in_8bit", false)
	switch {
	case len(in.problems) > 0:
		return strings.Join(in.problems, "; ")
	case four == q.eight:
		return "one of load_in_4bit and load_in_8bit of bitsandbytes must be true"
	case four && fourBitValues(kind) == nil:
		return fmt.Sprintf("bnb_4bit_quant_type is %q; supported are nf4 and fp4", kind)
	}
	return ""
}

// fourBitValues returns what codes of 4 bits stand for, nil for an unknown kind (kernels of bitsandbytes: nf4_lut and
// fp4_lut).
func fourBitValues(kind string) []float32 {
	switch kind {
	case "nf4":
		return []float32{-1, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
			-0.18477343022823334, -0.09105003625154495, 0, 0.07958029955625534, 0.16093020141124725,
			0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1}
	case "fp4":
		list := []float32{0, 0.005208333333, 0.66666667, 1, 0.33333333, 0.5, 0.16666667, 0.25}
		for _, v := range slices.Clone(list) {
			list = append(list, -v)
		}
		return list
	}
	return nil
}

// quantState is what a tensor of bitsandbytes says about a weight.
type quantState struct {
	Kind        string  `json:"quant_type"`
	Block       int     `json:"blocksize"`
	DType       string  `json:"dtype"`
	Shape       []int   `json:"shape"`
	NestedBlock int     `json:"nested_blocksize"`
	Offset      float64 `json:"nested_offset"`
	NestedDType string  `json:"nested_dtype"`
}

// maxQuantState bounds the text of a quantState.
const maxQuantState = 1 << 16

// state returns the quantState of a module.
func (m *quantizedModule) state(p place) (s quantState, as DType, err error) {
	m.used = append(m.used, p.Name)
	if err := m.check(p, 1, "U8"); err != nil {
		return s, "", err
	}
	if p.Len() > maxQuantState {
		return s, "", m.fault(p, "has %d bytes, more than any quant_state of bitsandbytes", p.Len())
	}
	raw := make([]byte, p.Len())
	if _, err := p.data.ReadAt(raw, 0); err != nil {
		return s, "", ofTensor(p.stored, err)
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return s, "", m.fault(p, "is not the JSON of a quant_state: %s", jsonWords(err))
	}
	as = typeNamed(s.DType)
	nested := s.NestedBlock != 0
	switch {
	case fourBitValues(s.Kind) == nil:
		err = m.fault(p, "has quant_type %q; supported are nf4 and fp4", s.Kind)
	case s.Block < 2 || s.Block%2 != 0 || s.Block > 1<<20:
		err = m.fault(p, "has blocks of %d elements", s.Block)
	case nested && (s.NestedBlock < 1 || s.NestedBlock > 1<<20 || s.NestedDType != "float32"):
		err = m.fault(p, "has nested scales in %s and blocks of %d", s.NestedDType, s.NestedBlock)
	case as == "":
		err = m.fault(p, "has dtype %q; supported are float16, bfloat16 and float32", s.DType)
	case len(s.Shape) != 2 || s.Shape[0] < 1 || s.Shape[1] < 1:
		err = m.fault(p, "has shape %v and should be a matrix", s.Shape)
	}
	return s, as, err
}

// widenBits returns the weight of a module in bitsandbytes.
func (q *quantizer) widenBits(m *quantizedModule) (place, error) {
	if !strings.Contains(m.first.Name, stateEnd) {
		return q.widenEight(m)
	}
	s, as, err := m.state(m.first)
	if err != nil {
		return m.first, err
	}
	codes, ok := m.find(".weight")
	if !ok {
		return codes, m.missing(".weight")
	}
	whole := Tensor{Name: codes.Name, DType: as, Shape: s.Shape}
	if bytes, ok := whole.size(); !ok || codes.Bytes() != (bytes/int64(as.bits()/8)+1)/2 || len(codes.replicas) > 0 {
		return codes, m.fault(codes, "is %s, but %s says that it has %v elements of 4 bits", codes.kind(),
			m.first.stored, s.Shape)
	}
	mapped, err := m.values(".weight.quant_map", 16)
	if err != nil {
		return codes, err
	}
	table := &extent.Values{Name: s.Kind}
	copy(table.Of[:], fourBitValues(s.Kind))
	if mapped.Of != table.Of {
		return codes, m.fault(m.first, "says %s, but quant_map has other values than bitsandbytes' kernels: %v",
			s.Kind, mapped.Of[:16])
	}
	n := whole.Len()
	blocks := (n + s.Block - 1) / s.Block
	scales, kind, err := m.absmax(s, blocks)
	if err != nil {
		return codes, err
	}
	m.first = codes
	q = &quantizer{method: q.method, as: as}
	return q.weight(m, s.Shape[0], s.Shape[1], extent.Scaling{
		Codes: extent.Unpack(codes.data,
			extent.Packing{Bits: 4, Rows: 1, Cols: n, RowBytes: (n + 1) / 2, HighFirst: true}),
		Cols: s.Block, Levels: 16, Values: table, Scales: scales, ScaleType: kind, Groups: 1, GroupCols: s.Block})
}

// values returns a table of what n codes stand for.
func (m *quantizedModule) values(end string, n int) (*extent.Values, error) {
	p, err := m.need(end, 1, F32)
	if err != nil {
		return nil, err
	}
	if p.Len() != n {
		return nil, m.fault(p, "has %s, not %d", count(p.Len(), "value"), n)
	}
	raw := make([]byte, 4*n)
	if _, err := p.data.ReadAt(raw, 0); err != nil {
		return nil, ofTensor(p.stored, err)
	}
	table := &extent.Values{Name: fmt.Sprintf("%x", sha256.Sum256(raw))}
	for i := range n {
		table.Of[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return table, nil
}

// absmax returns the scales of a weight's blocks, and their type.
func (m *quantizedModule) absmax(s quantState, blocks int) (extent.Extent, string, error) {
	own := []DType{F32}
	if s.NestedBlock > 0 {
		own = []DType{"U8"}
	}
	p, err := m.need(".weight.absmax", 1, own...)
	if err == nil && p.Len() != blocks {
		err = m.fault(p, "has %s, but the weight %s", count(p.Len(), "scale"), count(blocks, "block"))
	}
	if err != nil || s.NestedBlock == 0 {
		return p.data, string(F32), err
	}
	table, err := m.values(".weight.nested_quant_map", 256)
	if err != nil {
		return p.data, "", err
	}
	scales, err := m.need(".weight.nested_absmax", 1, F32)
	if err != nil {
		return p.data, "", err
	}
	if want := (blocks + s.NestedBlock - 1) / s.NestedBlock; scales.Len() != want {
		return p.data, "", m.fault(scales, "has %s, but %s %s", count(scales.Len(), "scale"), p.stored,
			count(want, "block"))
	}
	return extent.Scaled(extent.Scaling{Codes: p.data, Cols: s.NestedBlock, Values: table, Scales: scales.data,
		ScaleType: string(F32), Groups: 1, GroupCols: s.NestedBlock, Offset: float32(s.Offset),
		Type: string(F32)}), string(F32), nil
}

// widenEight returns the weight of a module in LLM.int8.
func (q *quantizer) widenEight(m *quantizedModule) (place, error) {
	codes, err := m.need(".weight", 2, "I8")
	if err != nil {
		return codes, err
	}
	scales, err := m.need(".SCB", 1, F32)
	if err != nil {
		return codes, err
	}
	out, in := codes.Shape[0], codes.Shape[1]
	if scales.Len() != out {
		return codes, m.fits(scales, codes, out)
	}
	if format, ok := m.find(".weight_format"); ok {
		var b [1]byte
		if err := m.check(format, len(format.Shape), "U8"); err != nil {
			return codes, err
		}
		if _, err := format.data.ReadAt(b[:], 0); err != nil {
			return codes, ofTensor(format.stored, err)
		}
		if format.Len() != 1 || b[0] != 0 {
			return codes, m.fault(format, "is %d: only 0, rows, is supported", b[0])
		}
	}
	return q.weight(m, out, in, extent.Scaling{Codes: codes.data, Cols: in, Values: q.integers(0, true),
		Scales: scales.data, ScaleType: string(F32), Groups: 1, GroupCols: in, Factor: float32(7.874015718698502e-3)})
}
