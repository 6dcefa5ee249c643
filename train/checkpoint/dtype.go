package checkpoint

import (
	"encoding/binary"
	"fmt"
	"math"

	"exp/kernels"
	"exp/train/checkpoint/extent"
)

// DType is the element type of a tensor in a file, as safetensors spells it.
type DType string

// The types that this program uses. Files may hold others (U8, I64, F8_E4M3, …), which pass
// through as raw bytes.
const (
	F32  DType = "F32"
	F64  DType = "F64"
	F16  DType = "F16"  // IEEE binary16
	BF16 DType = "BF16" // the upper half of an F32
	I32  DType = "I32"
)

// bits returns the size of an element, 0 for a type unknown to the format.
func (t DType) bits() int {
	switch t {
	case "F4":
		return 4
	case "F6_E2M3", "F6_E3M2":
		return 6
	case "BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ":
		return 8
	case "I16", "U16", F16, BF16:
		return 16
	case I32, "U32", F32:
		return 32
	case "I64", "U64", F64, "C64":
		return 64
	}
	return 0
}

// dtypeOf returns the stored type that keeps every bit of a buffer's elements.
func dtypeOf(t kernels.DType) DType {
	switch t {
	case kernels.F32:
		return F32
	case kernels.F64:
		return F64
	case kernels.I32:
		return I32
	}
	panic("checkpoint: unknown dtype")
}

// convertible reports whether float32s can decode t.
func (t DType) convertible() bool { return t == F32 || t == F64 || t == F16 || t == BF16 }

// float32s sets dst to the little-endian elements of raw. F16 and BF16 are exact;
// F64 is rounded to nearest.
func (t DType) float32s(dst []float32, raw []byte) {
	le := binary.LittleEndian
	switch t {
	case F32:
		for i := range dst {
			dst[i] = math.Float32frombits(le.Uint32(raw[4*i:]))
		}
	case F64:
		for i := range dst {
			dst[i] = float32(math.Float64frombits(le.Uint64(raw[8*i:])))
		}
	case F16:
		for i := range dst {
			dst[i] = extent.Half(le.Uint16(raw[2*i:]))
		}
	case BF16:
		whole := len(dst) / 4 * 4 // four at a time: loading spends its time here
		for i := 0; i < whole; i += 4 {
			v, d := le.Uint64(raw[2*i:2*i+8]), dst[i:i+4:i+4]
			d[0], d[1] = math.Float32frombits(uint32(v)<<16), math.Float32frombits(uint32(v)&0xffff0000)
			d[2], d[3] = math.Float32frombits(uint32(v>>32)<<16), math.Float32frombits(uint32(v>>32)&0xffff0000)
		}
		for i := whole; i < len(dst); i++ {
			dst[i] = math.Float32frombits(uint32(le.Uint16(raw[2*i:])) << 16)
		}
	default:
		panic("checkpoint: no conversion to float32")
	}
}

// encodeFloats sets raw to the little-endian elements of src as type t. It returns an error
// for the first element out of t's range.
func (t DType) encodeFloats(raw []byte, src []float32) error {
	le := binary.LittleEndian
	for i, f := range src {
		switch t {
		case F32:
			le.PutUint32(raw[4*i:], math.Float32bits(f))
		case BF16:
			le.PutUint16(raw[2*i:], extent.BF16(f))
		case F16:
			h, ok := extent.F16(f)
			if !ok {
				return fmt.Errorf("%g is beyond F16; write BF16 or F32", f)
			}
			le.PutUint16(raw[2*i:], h)
		default:
			panic("checkpoint: no conversion from float32")
		}
	}
	return nil
}
