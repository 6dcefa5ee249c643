package picture

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/png"
	"strings"
	"testing"
)

// header returns a PNG file's header of a size.
func header(w, h uint32) []byte {
	data := []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")
	data = binary.BigEndian.AppendUint32(data, w)
	data = binary.BigEndian.AppendUint32(data, h)
	data = append(data, 8, 2, 0, 0, 0)
	return binary.BigEndian.AppendUint32(data, crc32.ChecksumIEEE(data[12:]))
}

func TestDecodeRefuses(t *testing.T) {
	var deep bytes.Buffer
	if err := png.Encode(&deep, image.NewGray16(image.Rect(0, 0, 3, 3))); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "an empty file"},
		{"text", []byte("hello, world"), `not a PNG, JPEG, WebP, GIF or BMP image: it begins with "hello, world"`},
		{"bomb", header(100_000, 100_000), "PNG image of 100000×100000 pixels: it must have between 1 and 100 million"},
		{"header alone", header(10, 10), "PNG image: the file is cut off"},
		{"16-bit grey", deep.Bytes(), "16-bit grey is not supported"},
		{"start of a JPEG", []byte("\xff\xd8\xff"), "JPEG image: the file is cut off"},
		{"start of a WebP", []byte("RIFF\x00\x00\x00\x00WEBP"), "WebP image: the file is cut off"},
		{"moving WebP", []byte("RIFF\x00\x00\x00\x00WEBPANIM\x00\x00\x00\x00"), "animations are not supported"},
	} {
		if _, err := NewSettings().Patches(tt.data); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one with %q", tt.name, err, tt.want)
		}
	}
}

// A chunk of odd length before the frame has a byte more (RIFF).
func TestWebPWithAnOddChunk(t *testing.T) {
	for _, f := range readGolden(t).Files {
		if !isWebP(f.Data) || string(f.Data[12:16]) != "VP8 " {
			continue
		}
		want, err := decode(f.Data)
		if err != nil {
			t.Fatal(err)
		}
		data := append([]byte(nil), f.Data[:12]...)
		data = append(append(data, "NOTE\x03\x00\x00\x00abc\x00"...), f.Data[12:]...)
		got, err := decode(data)
		if err != nil || !bytes.Equal(got.pix, want.pix) {
			t.Fatalf("%s behind a chunk of 3 bytes: %v, or other pixels", f.Name, err)
		}
		return
	}
	t.Fatal("no WebP file of one chunk")
}

// Half a file is an error that names the format.
func TestCutFilesAreRefused(t *testing.T) {
	for _, f := range readGolden(t).Files {
		_, err := decode(f.Data[:len(f.Data)/2])
		if err == nil || !strings.Contains(err.Error(), " image: ") {
			t.Errorf("half of %s: error %v", f.Name, err)
		}
	}
}

// Nothing panics, and what decodes has the size that Size says.
func FuzzDecode(f *testing.F) {
	for _, x := range readGolden(f).Files {
		if len(x.Data) < 2000 {
			f.Add(x.Data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		width, height, err := Size(data)
		if err == nil && width*height > 1<<20 {
			t.Skip()
		}
		m, failed := decode(data)
		switch {
		case err != nil && failed == nil:
			t.Errorf("decodes, but its size is unknown: %v", err)
		case failed == nil && (m.width != width || m.height != height || len(m.pix) != 3*width*height):
			t.Errorf("%d×%d pixels, Size says %d×%d", m.width, m.height, width, height)
		}
	})
}

// Format recognises files, and takes no text for one, not even a text that begins like a BMP.
func TestFormat(t *testing.T) {
	for data, want := range map[string]string{"\x89PNG\r\n\x1a\n": "png", "\xff\xd8\xff\xe0": "jpeg", "GIF89a": "gif",
		"RIFF\x10\x00\x00\x00WEBPVP8 ": "webp", "BM\x10\x00\x00\x00\x00\x00\x00\x00": "bmp",
		"BMimages/3.bmp": "", "shapes/3.png": "", "": "", "BM": ""} {
		if got := Format([]byte(data)); got != want {
			t.Errorf("%q is %q, want %q", data, got, want)
		}
	}
}
