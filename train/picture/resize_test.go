package picture

import (
	"bytes"
	"testing"
)

// grey returns a row of grey pixels.
func grey(values ...uint8) bitmap {
	m := newBitmap(len(values), 1)
	for i, v := range values {
		copy(m.pix[3*i:], []uint8{v, v, v})
	}
	return m
}

// column turns a row into a column.
func column(m bitmap) bitmap { return bitmap{m.height, m.width, m.pix} }

func TestResizeByHand(t *testing.T) {
	for _, tt := range []struct {
		name     string
		from, to bitmap
	}{
		{"mean of two", grey(10, 21), grey(16)},
		{"one repeated", grey(77), grey(77, 77, 77)},
		// Output 0 lies at input 0.25: k(0.25) = 0.8671875 of input 0, k(1.25) = -0.0703125 of input 1, over their sum:
		// 91.18. Output 1 lies at 0.75: k(0.25) of input 0, k(0.75) = 0.2265625 of input 1: 120.71.
		{"doubled", grey(100, 200), grey(91, 121, 179, 209)},
		{"clamped", grey(0, 255), grey(0, 53, 202, 255)},
		// Output 0 lies amid inputs 0 and 1 with a filter twice as wide: k(1/4) of both, k(3/4) of input 2 and k(5/4) of 3
		// (0.8671875, 0.2265625, -0.0703125, of 1.890625): 49.6 and 83.0.
		{"halved", grey(0, 80, 120, 40), grey(50, 83)},
	} {
		if got := tt.from.resize(tt.to.width, 1); !bytes.Equal(got.pix, tt.to.pix) {
			t.Errorf("%s: got %v, want %v", tt.name, got.pix, tt.to.pix)
		}
		if got := column(tt.from).resize(1, tt.to.width); !bytes.Equal(got.pix, tt.to.pix) {
			t.Errorf("%s in columns: got %v, want %v", tt.name, got.pix, tt.to.pix)
		}
	}
}

// Lanczos' filter, doubled: output 0 lies at input 0.25: sinc(1/4)·sinc(1/12) = 0.89007 of input 0, sinc(5/4)·sinc(5/12)
// = -0.13287 of input 1, over their sum: 82.45. Output 1 lies at 0.75: 0.89007 of input 0, sinc(3/4)·sinc(1/4) =
// 0.27019 of input 1: 123.29. The middle of a pixel has weight 1, and pixels three away have none.
func TestLanczosByHand(t *testing.T) {
	got := grey(100, 200).resizeWith(lanczosFilter(), 4, 1)
	if want := grey(82, 123, 177, 218); !bytes.Equal(got.pix, want.pix) {
		t.Errorf("got %v, want %v", got.pix, want.pix)
	}
	if lanczos(0) != 1 || lanczos(3) != 0 || lanczos(-3.5) != 0 {
		t.Error("weights of 0, 3 and -3.5: ", lanczos(0), lanczos(3), lanczos(-3.5))
	}
}

// Weights have the most bits that an int16 holds, and no more than 22 (torch's PRECISION_BITS).
func TestBitsOfWeights(t *testing.T) {
	for in, want := range map[int]int{
		2:       14, // the largest weight is 1, and 2^15 is more than an int16 holds
		200_000: 22, // the largest is about 10^-5
	} {
		a := newAxis(bicubicFilter(), in, 2)
		most := int32(0)
		for _, k := range a.k {
			most = max(most, k)
		}
		if a.shift != want || most >= 1<<15 {
			t.Errorf("%d to 2: %d bits, the largest weight is %d", in, a.shift, most)
		}
	}
}

// An image of one colour keeps it whatever the sizes: the weights of a sample add up to 1, near enough.
func FuzzResizeKeepsColour(f *testing.F) {
	f.Add(uint16(3), uint16(5), uint8(255))
	f.Add(uint16(1000), uint16(28), uint8(1))
	f.Fuzz(func(t *testing.T, in, out uint16, v uint8) {
		if in == 0 || out == 0 || in > 2000 || out > 2000 {
			t.Skip()
		}
		for name, f := range map[string]filter{"bicubic": bicubicFilter(), "lanczos": lanczosFilter()} {
			m := grey(bytes.Repeat([]byte{v}, int(in))...).resizeWith(f, int(out), 1)
			for i, got := range m.pix {
				if got != v {
					t.Fatalf("%s, %d to %d: sample %d is %d, want %d", name, in, out, i, got, v)
				}
			}
		}
	})
}
