package picture

import (
	"bytes"
	"image"
	"image/color"
	stdjpeg "image/jpeg"
	"slices"
	"testing"
)

// A token's patches follow each other; in a patch, the frames of red come first.
func TestPatchOrder(t *testing.T) {
	s := Settings{Patch: 1, Merge: 2, Frames: 2, Std: [3]float64{1, 1, 1}, Rescale: 1}
	m := newBitmap(4, 4)
	for i := range 16 {
		m.pix[3*i], m.pix[3*i+1], m.pix[3*i+2] = uint8(i), uint8(100+i), uint8(200+i)
	}
	got := s.cut(m)
	if got.Rows != 4 || got.Columns != 4 {
		t.Fatalf("%d×%d patches, want 4×4", got.Rows, got.Columns)
	}
	var want []float32
	for _, i := range []float32{0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15} {
		want = append(want, i, i, 100+i, 100+i, 200+i, 200+i)
	}
	if !slices.Equal(got.Values, want) {
		t.Errorf("got %v, want %v", got.Values, want)
	}

	s.Patch, s.Merge, s.Frames = 2, 1, 1
	got = s.cut(m)
	want = []float32{
		0, 1, 4, 5, 100, 101, 104, 105, 200, 201, 204, 205, 2, 3, 6, 7, 102, 103, 106, 107, 202, 203, 206, 207,
		8, 9, 12, 13, 108, 109, 112, 113, 208, 209, 212, 213, 10, 11, 14, 15, 110, 111, 114, 115, 210, 211, 214, 215,
	}
	if !slices.Equal(got.Values, want) {
		t.Errorf("got %v, want %v", got.Values, want)
	}
}

func TestLevels(t *testing.T) {
	table := settingsOfQwen3().levels()
	for c := range 3 {
		if table[c][0] != -1 || table[c][255] != 1 || table[c][51] != -0.6 {
			t.Errorf("0, 51 and 255 become %g, %g and %g, want -1, -0.6 and 1", table[c][0], table[c][51], table[c][255])
		}
	}
}

func BenchmarkPatches(b *testing.B) {
	s := NewSettings()
	m := pattern(1024, 1024)
	std := image.NewRGBA(image.Rect(0, 0, 1024, 1024))
	for i := range 1024 * 1024 {
		std.Set(i%1024, i/1024, color.RGBA{m.pix[3*i], m.pix[3*i+1], m.pix[3*i+2], 255})
	}
	var file bytes.Buffer
	if err := stdjpeg.Encode(&file, std, nil); err != nil {
		b.Fatal(err)
	}
	b.Run("of=pixels", func(b *testing.B) {
		h, w, err := s.resized(1024, 1024)
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			s.cut(m.resize(w, h))
		}
	})
	b.Run("of=jpeg", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.Patches(file.Bytes()); err != nil {
				b.Fatal(err)
			}
		}
	})
}
