package checkpoint

import (
	"encoding/binary"
	"math"
	"testing"
)

func TestDTypeFloat32s(t *testing.T) {
	le := binary.LittleEndian
	tests := []struct {
		dtype DType
		raw   []byte
		want  float32
	}{
		{F32, le.AppendUint32(nil, math.Float32bits(1.5)), 1.5},
		{F64, le.AppendUint64(nil, math.Float64bits(1+0x1p-24+0x1p-50)), 1 + 0x1p-23}, // above half an ulp
		{F16, le.AppendUint16(nil, 0xc100), -2.5},                                     // 1 10000 01…: -2·1.25
		{BF16, le.AppendUint16(nil, 0x4049), 3.140625},                                // 0 10000000 1001001: 2·(1+73/128)
	}
	for _, tt := range tests {
		dst := make([]float32, 1)
		if tt.dtype.float32s(dst, tt.raw); dst[0] != tt.want {
			t.Errorf("%s %x = %g, want %g", tt.dtype, tt.raw, dst[0], tt.want)
		}
		if got, want := tt.dtype.bits(), 8*len(tt.raw); got != want {
			t.Errorf("%s has %d bits, want %d", tt.dtype, got, want)
		}
	}
}

// Every bfloat16 is the upper half of its float32, in lists of every length.
func TestBF16IsWidenedExactly(t *testing.T) {
	raw := make([]byte, 2<<16)
	for h := range 1 << 16 {
		binary.LittleEndian.PutUint16(raw[2*h:], uint16(h))
	}
	for _, n := range []int{1 << 16, 7, 4, 3, 1, 0} {
		dst := make([]float32, n)
		BF16.float32s(dst, raw)
		for h, f := range dst {
			if got, want := math.Float32bits(f), uint32(h)<<16; got != want {
				t.Fatalf("%#04x of %d = %#08x, want %#08x", h, n, got, want)
			}
		}
	}
}
