package jpeg

import (
	"bytes"
	"image"
	"image/color"
	stdjpeg "image/jpeg"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// The integer transform is within one level of the formula of T.81 A.3.3.
func TestIDCT(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var coefs [64]int16
		var quant [64]uint16
		for i := range quant {
			quant[i] = uint16(1 + rng.IntN(20))
			if rng.IntN(4) == 0 {
				coefs[i] = int16(rng.IntN(41)-20) / int16(1+i/16)
			}
		}
		var got [64]uint8
		idct(got[:], 8, coefs[:], &quant)
		for y := range 8 {
			for x := range 8 {
				want := min(max(slowIDCT(coefs, quant, x, y)+128, 0), 255)
				if math.Abs(float64(got[8*y+x])-want) > 1 {
					t.Fatalf("sample (%d, %d) is %d, want %g", x, y, got[8*y+x], want)
				}
			}
		}
	}
}

func slowIDCT(coefs [64]int16, quant [64]uint16, x, y int) float64 {
	sum := 0.0
	for v := range 8 {
		for u := range 8 {
			c := float64(coefs[8*v+u]) * float64(quant[8*v+u]) / 4
			if u == 0 {
				c /= math.Sqrt2
			}
			if v == 0 {
				c /= math.Sqrt2
			}
			sum += c * math.Cos(float64((2*x+1)*u)*math.Pi/16) * math.Cos(float64((2*y+1)*v)*math.Pi/16)
		}
	}
	return sum
}

func TestTriangles(t *testing.T) {
	got := make([]uint8, 6)
	triangle(got, []uint8{0, 100, 30})
	// (3·0+0+1)/4, (0+100+2)/4, (300+0+1)/4, (300+30+2)/4, (90+100+1)/4, (90+30+2)/4
	if want := []uint8{0, 25, 75, 83, 47, 30}; !slices.Equal(got, want) {
		t.Errorf("a row: got %v, want %v", got, want)
	}
	triangles(got, []uint8{0, 100, 30}, []uint8{40, 100, 30})
	// Columns are 40, 400, 120: (3·40+40+8)/16, (120+400+7)/16, (1200+40+8)/16, (1200+120+7)/16, (360+400+8)/16, …
	if want := []uint8{10, 32, 78, 82, 48, 30}; !slices.Equal(got, want) {
		t.Errorf("two rows: got %v, want %v", got, want)
	}
}

func TestFromYCC(t *testing.T) {
	for _, tt := range [][6]uint8{
		{128, 128, 128, 128, 128, 128},
		{76, 85, 255, 254, 0, 0},     // red: 76 + 1.402·127 = 254.05
		{29, 255, 107, 0, 0, 254},    // blue: 29 + 1.772·127 = 254.04; green: 29 - 43.7 + 15 = 0.29
		{100, 140, 90, 47, 123, 121}, // 100 - 53.28, 100 - 4.13 + 27.14, 100 + 21.26
	} {
		if r, g, b := fromYCC(tt[0], tt[1], tt[2]); [3]uint8{r, g, b} != [3]uint8(tt[3:]) {
			t.Errorf("%v: got %d, %d, %d, want %v", tt[:3], r, g, b, tt[3:])
		}
	}
}

// photo encodes an image of gradients with image/jpeg, 4:2:0.
func photo(t testing.TB, w, h int) []byte {
	t.Helper()
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			m.Set(x, y, color.RGBA{uint8(x * 3), uint8(y * 5), uint8(x + y), 255})
		}
	}
	var b bytes.Buffer
	if err := stdjpeg.Encode(&b, m, &stdjpeg.Options{Quality: 95}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// image/jpeg decodes the same brightness to a level or two.
func TestDecodeAgreesWithImageJPEG(t *testing.T) {
	data := photo(t, 45, 31)
	got, err := Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	want, err := stdjpeg.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	for y := range 31 {
		for x := range 45 {
			p := got.Pix[3*(45*y+x):]
			l := 0.299*float64(p[0]) + 0.587*float64(p[1]) + 0.114*float64(p[2])
			if w := float64(want.(*image.YCbCr).YCbCrAt(x, y).Y); math.Abs(l-w) > 2.5 {
				t.Errorf("pixel (%d, %d) has brightness %g, of image/jpeg %g", x, y, l, w)
			}
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	good := photo(t, 20, 20)
	frame := bytes.Index(good, []byte{0xff, sof0})
	scan := bytes.Index(good, []byte{0xff, sos})
	table := bytes.Index(good, []byte{0xff, dht})
	with := func(at int, b ...byte) []byte {
		return slices.Concat(good[:at], b, good[at+len(b):])
	}
	for _, tt := range []struct {
		name string
		data []byte
		want string
	}{
		{"nothing", nil, "no start-of-image marker"},
		{"no frame", []byte{0xff, soi, 0xff, eoi}, "no frame header"},
		{"no scan", append(bytes.Clone(good[:scan]), 0xff, eoi), "a colour component has no data"},
		{"cut header", good[:frame+5], "the file is cut off"},
		{"cut data", good[:len(good)-30], "the file is cut off or corrupt: data for"},
		{"no end", good[:scan], "the file is cut off: no end-of-image marker"},
		{"lossless", with(frame+1, 0xc3), "lossless"},
		{"arithmetic", with(frame+1, 0xc9), "arithmetic coding is not supported"},
		{"12 bits", with(frame+4, 12), "12 bits a sample"},
		{"no height", with(frame+5, 0, 0), "a size of 20×0 pixels"},
		{"two components", with(frame+9, 2), "a frame header of 15 bytes"},
		{"sampling of 0", with(frame+11, 0x02), "sampling 0×2"},
		{"fractional sampling", with(frame+11, 0x32, 0, 2, 0x21), "sampling 2×1 of 3×2 is not supported"},
		{"too many blocks", with(frame+11, 0x44), "18 blocks in an MCU"},
		{"no such table", with(scan+6, 0x33), "its Huffman table is missing"},
		{"no such component", with(scan+5, 9), "a scan of component 9"},
		{"twice a component", with(scan+7, 1), "component 1 is twice in a scan"},
		{"codes", with(table+5, 3), "too many codes"},
	} {
		if _, err := Decode(tt.data); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one with %q", tt.name, err, tt.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(photo(f, 20, 13))
	f.Fuzz(func(t *testing.T, data []byte) {
		w, h, err := Size(data)
		if err == nil && w*h > 1<<20 {
			t.Skip()
		}
		m, failed := Decode(data)
		if failed == nil && (err != nil || m.Width != w || m.Height != h || len(m.Pix) != 3*w*h) {
			t.Errorf("%d×%d pixels, Size says %d×%d, %v", m.Width, m.Height, w, h, err)
		}
	})
}
