package kernels

import "testing"

// Known answers of the authors' Random123 library (kat_vectors, philox4x32-10).
func TestPhiloxKnownAnswers(t *testing.T) {
	tests := []struct {
		key  [2]uint32
		ctr  [4]uint32
		want [4]uint32
	}{
		{[2]uint32{0, 0}, [4]uint32{0, 0, 0, 0},
			[4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{[2]uint32{0xffffffff, 0xffffffff}, [4]uint32{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
			[4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{[2]uint32{0xa4093822, 0x299f31d0}, [4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	}
	for _, tt := range tests {
		if got := Philox(tt.key, tt.ctr); got != tt.want {
			t.Errorf("Philox(%x, %x) = %x, want %x", tt.key, tt.ctr, got, tt.want)
		}
	}
}

func TestUniform24(t *testing.T) {
	if got := Uniform24(0); got != 0 {
		t.Errorf("Uniform24(0) = %v, want 0", got)
	}
	if got := Uniform24(0xffffffff); got >= 1 || got != 1-1.0/(1<<24) {
		t.Errorf("Uniform24(max) = %v, want 1-2^-24", got)
	}
}

func TestBufferViews(t *testing.T) {
	b := Host([]float32{0, 1, 2, 3, 4})
	v := b.Slice(1, 4).Slice(1, 3)
	if got := Elems[float32](v); len(got) != 2 || got[0] != 2 || got[1] != 3 {
		t.Errorf("view = %v, want [2 3]", got)
	}
	if e := b.Slice(2, 2); !e.Empty() || e.DType() != F32 {
		t.Errorf("empty view = %+v", e)
	}
	for name, f := range map[string]func(){
		"slice past the end": func() { b.Slice(0, 6) },
		"wrong type":         func() { Elems[int32](b) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}
