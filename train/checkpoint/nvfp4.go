package checkpoint

import (
	"encoding/binary"
	"math"

	"exp/train/checkpoint/extent"
)

// This file has format nvfp4-pack-quantized of compressed-tensors. A folder has, for a weight [Out,In],
//
//	….weight_packed       [Out,In/2]  U8       codes in E2M1, the first of two in the lower half
//	….weight_scale        [Out,In/16] F8_E4M3  a scale for each 16 inputs
//	….weight_global_scale [1]         F32      by which scales are divided
//
// and means value(code) · (scale / global scale), each operation in float32, rounded to BF16 (dequantize of
// compressed_tensors.quantization.lifecycle.forward, for a weight in BF16).

// fp4Values are what codes of E2M1 stand for.
func fp4Values() *extent.Values {
	v := &extent.Values{Name: "e2m1"}
	for i, x := range []float32{0, 0.5, 1, 1.5, 2, 3, 4, 6} {
		v.Of[i], v.Of[8+i] = x, -x
	}
	return v
}

// widenFP4 returns the weight of a module in nvfp4-pack-quantized, in BF16.
func (q *quantizer) widenFP4(m *quantizedModule) (place, error) {
	codes, err := m.need(packedEnd, 2, "U8")
	if err != nil {
		return codes, err
	}
	scales, err := m.need(".weight_scale", 2, e4m3)
	if err != nil {
		return codes, err
	}
	whole, err := m.need(".weight_global_scale", 1, F32)
	if err != nil {
		return codes, err
	}
	out, in := codes.Shape[0], 2*codes.Shape[1]
	if in%fp4Group != 0 {
		return codes, m.fault(codes, "is %s: its rows are not groups of %d elements", codes.kind(), fp4Group)
	}
	if err := m.fits(scales, codes, out, in/fp4Group); err != nil {
		return codes, err
	}
	if err := m.fits(whole, codes, 1); err != nil {
		return codes, err
	}
	var raw [4]byte
	if _, err := whole.data.ReadAt(raw[:], 0); err != nil {
		return codes, ofTensor(whole.stored, err)
	}
	divisor := math.Float32frombits(binary.LittleEndian.Uint32(raw[:]))
	if !(divisor > 0) || math.IsInf(float64(divisor), 0) {
		return codes, m.fault(whole, "is %g; scales are divided by it", divisor)
	}
	m.dropActivations()
	q = &quantizer{method: q.method, as: BF16}
	return q.weight(m, out, in, extent.Scaling{
		Codes: extent.Unpack(codes.data, extent.Packing{Bits: 4, Rows: out, Cols: in, RowBytes: codes.Shape[1]}),
		Cols:  in, Levels: 16, Values: fp4Values(), Scales: scales.data, ScaleType: string(e4m3), Divisor: divisor,
		Groups: in / fp4Group, GroupCols: fp4Group})
}

// fp4Group is how many elements share a scale in nvfp4-pack-quantized.
const fp4Group = 16
