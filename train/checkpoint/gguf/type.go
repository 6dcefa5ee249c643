package gguf

import (
	"encoding/binary"
	"fmt"
	"math"

	"exp/train/checkpoint/extent"
)

// Type is how a tensor's elements are stored, by the format's number.
type Type uint32

const (
	F32  Type = 0
	F16  Type = 1
	Q8   Type = 8 // Q8_0: blocks of 32 elements of a row, a scale in binary16 and 8 bits for each
	BF16 Type = 30
)

// Block is the number of elements of a row that Q8 stores together.
const Block = 32

// block is the bytes of a block of Q8.
const block = 2 + Block

// Fits reports whether rows of so many elements can have the type.
func (t Type) Fits(cols int) bool { return t != Q8 || cols%Block == 0 }

// Bytes returns the bytes of a tensor.
func (t Type) Bytes(shape []int) int64 {
	n := int64(1)
	for _, d := range shape {
		n *= int64(d)
	}
	switch t {
	case F32:
		return 4 * n
	case Q8:
		return n / Block * block
	}
	return 2 * n
}

// Append appends elements, whole blocks, to dst. Values are rounded to nearest; one beyond a type's range is an error.
func (t Type) Append(dst []byte, x []float32) ([]byte, error) {
	le := binary.LittleEndian
	switch t {
	case F32:
		for _, f := range x {
			dst = le.AppendUint32(dst, math.Float32bits(f))
		}
	case BF16:
		for _, f := range x {
			dst = le.AppendUint16(dst, extent.BF16(f))
		}
	case F16:
		for _, f := range x {
			h, ok := extent.F16(f)
			if !ok {
				return dst, fmt.Errorf("%g is beyond F16; write bf16 or f32", f)
			}
			dst = le.AppendUint16(dst, h)
		}
	case Q8:
		for ; len(x) > 0; x = x[Block:] {
			var err error
			if dst, err = appendBlock(dst, x[:Block]); err != nil {
				return dst, err
			}
		}
	default:
		panic(fmt.Sprintf("gguf: type %d", t))
	}
	return dst, nil
}

// appendBlock appends a block of Q8: with d the greatest absolute value over 127, each element is round(x/d), halves
// away from 0, as llama.cpp's reference has it.
func appendBlock(dst []byte, x []float32) ([]byte, error) {
	var most float32
	for _, f := range x {
		if f-f != 0 { // infinite or NaN
			return dst, fmt.Errorf("%g has no 8-bit number", f)
		}
		most = max(most, float32(math.Abs(float64(f))))
	}
	d := most / 127
	h, ok := extent.F16(d)
	if !ok {
		return dst, fmt.Errorf("%g is beyond Q8_0; write bf16 or f32", most)
	}
	dst = binary.LittleEndian.AppendUint16(dst, h)
	var by float32
	if d > 0 {
		by = 1 / d
	}
	for _, f := range x {
		dst = append(dst, byte(int8(math.Round(float64(f*by)))))
	}
	return dst, nil
}
