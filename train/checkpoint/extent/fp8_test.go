package extent

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestE4M3(t *testing.T) {
	for b, want := range map[byte]float32{0: 0, 1: 1. / 512, 7: 7. / 512, 8: 1. / 64, 0x38: 1, 0x3c: 1.5, 0x7e: 448, 0xb8: -1, 0xfe: -448} {
		if got := e4m3[b]; got != want {
			t.Errorf("element %#x is %g, want %g", b, got, want)
		}
	}
	if !math.Signbit(float64(e4m3[0x80])) || e4m3[0x80] != 0 {
		t.Errorf("element 0x80 is %g, want -0", e4m3[0x80])
	}
	for b, v := range e4m3 {
		if (v != v) != (b&127 == 127) {
			t.Errorf("element %#x is %g", b, v)
		}
		if b > 0 && b < 127 && !(v > e4m3[b-1]) {
			t.Errorf("element %#x is %g, after %g", b, v, e4m3[b-1])
		}
	}
}

// Elements and scales that lie anywhere make the matrix, whatever part of it is read.
func TestFP8(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	content := randomBytes(r, 900)
	for i := range content {
		if i%4 == 3 {
			content[i] = content[i]&0x80 | 0x3f // float32s and bf16s of moderate size
		}
	}
	file := fileOf(t, content)
	for _, kind := range []string{"F32", "BF16", "F8_E8M0"} {
		size := map[string]int{"F32": 4, "BF16": 2, "F8_E8M0": 1}[kind]
		for range 300 {
			rows, cols := 1+r.IntN(12), 1+r.IntN(12)
			s := Scales{Type: kind, Rows: 1 + r.IntN(rows), Cols: 1 + r.IntN(cols)}
			down, across := (rows+s.Rows-1)/s.Rows, (cols+s.Cols-1)/s.Cols
			at, of := r.IntN(len(content)-rows*cols+1), size*r.IntN((len(content)-down*across*size)/size+1)
			s.Data = Range(file, int64(of), int64(down*across*size))
			e := FP8(Concat(Range(file, int64(at), 1), Range(file, int64(at+1), int64(rows*cols-1))), rows, cols, s)

			var want []byte
			for i := range rows * cols {
				block := (i/cols/s.Rows*across + i%cols/s.Cols) * size
				raw, scale := content[of+block:], float32(0)
				switch kind {
				case "F32":
					scale = math.Float32frombits(binary.LittleEndian.Uint32(raw))
				case "BF16":
					scale = math.Float32frombits(uint32(binary.LittleEndian.Uint16(raw)) << 16)
				default:
					if scale = float32(math.Pow(2, float64(raw[0])-127)); raw[0] == 255 {
						scale = float32(math.NaN())
					}
				}
				want = binary.LittleEndian.AppendUint16(want, BF16(e4m3[content[at+i]]*scale))
			}
			lo := r.IntN(len(want))
			got := make([]byte, 1+r.IntN(len(want)-lo))
			if _, err := e.ReadAt(got, int64(lo)); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want[lo:lo+len(got)]) {
				t.Fatalf("%d x %d, %+v: bytes %d to %d are %x, want %x", rows, cols, s, lo, lo+len(got), got,
					want[lo:lo+len(got)])
			}
			if f, _ := e.First(); f != file {
				t.Error("the file of the first byte is not found")
			}
		}
	}
}

// Large blocks are looked up in tables, with the same results.
func TestFP8LargeBlocks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const rows, cols = 100, 150
	elements, scales := randomBytes(r, rows*cols), randomBytes(r, 3*4)
	for i := range scales {
		scales[i] = 120 + scales[i]%16
	}
	s := Scales{Data: Range(fileOf(t, scales), 0, 12), Type: "F8_E8M0", Rows: 40, Cols: 40}
	e := FP8(Range(fileOf(t, elements), 0, rows*cols), rows, cols, s)
	got := make([]byte, 2*rows*cols)
	if _, err := e.ReadAt(got, 0); err != nil {
		t.Fatal(err)
	}
	for i, b := range elements {
		want := BF16(e4m3[b] * e8m0(scales[i/cols/40*4+i%cols/40]))
		if u := binary.LittleEndian.Uint16(got[2*i:]); u != want {
			t.Fatalf("element %d is %#x, want %#x", i, u, want)
		}
	}
}

// BenchmarkFP8 reads a matrix in the blocks of published models.
func BenchmarkFP8(b *testing.B) {
	const rows, cols = 512, 4096
	elements, scales := make([]byte, rows*cols), make([]byte, rows*cols/128/128*4)
	s := Scales{Data: Range(fileOf(b, scales), 0, int64(len(scales))), Type: "F32", Rows: 128, Cols: 128}
	e := FP8(Range(fileOf(b, elements), 0, rows*cols), rows, cols, s)
	got := make([]byte, 2*rows*cols)
	b.SetBytes(rows * cols)
	for b.Loop() {
		if _, err := e.ReadAt(got, 0); err != nil {
			b.Fatal(err)
		}
	}
}

// Long reads take several steps.
func TestFP8InSteps(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	const rows, cols = 3, scratchBytes/4 + 5
	elements, scales := randomBytes(r, rows*cols), randomBytes(r, rows)
	s := Scales{Data: Range(fileOf(t, scales), 0, rows), Type: "F8_E8M0", Rows: 1, Cols: cols}
	e := FP8(Range(fileOf(t, elements), 0, rows*cols), rows, cols, s)
	got := make([]byte, 2*rows*cols-3)
	if _, err := e.ReadAt(got, 1); err != nil {
		t.Fatal(err)
	}
	for i := 1; i < rows*cols-1; i++ {
		want := BF16(e4m3[elements[i]] * e8m0(scales[i/cols]))
		if u := binary.LittleEndian.Uint16(got[2*i-1:]); u != want {
			t.Fatalf("element %d is %#x, want %#x", i, u, want)
		}
	}
}

func TestFP8Panics(t *testing.T) {
	file := fileOf(t, make([]byte, 64))
	for _, s := range []Scales{{Range(file, 0, 4), "F32", 2, 1}, {Range(file, 0, 4), "I32", 2, 2}, {Range(file, 0, 4), "F32", 0, 2}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%v does not panic", fmt.Sprint(s))
				}
			}()
			FP8(Range(file, 0, 4), 2, 2, s)
		}()
	}
}
