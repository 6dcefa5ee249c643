package picture

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"strings"

	"golang.org/x/image/bmp"

	"exp/train/picture/jpeg"
)

// bitmap holds RGB pixels.
type bitmap struct {
	width, height int
	pix           []uint8 // [height][width][3]
}

func newBitmap(width, height int) bitmap {
	return bitmap{width, height, make([]uint8, 3*width*height)}
}

// row returns the pixels [width][3] of row y.
func (m bitmap) row(y int) []uint8 { return m.pix[3*m.width*y:][:3*m.width] }

// format is a file format that is read.
type format struct {
	name   string
	begins func(data []byte) bool
	size   func(data []byte) (width, height int, err error)
	decode func(data []byte) (bitmap, error)
	notes  func(data []byte) (exif, xmp []byte) // may say which side is up; nil: never
}

func formats() []format {
	return []format{
		{"PNG", starts("\x89PNG\r\n\x1a\n"), sizePNG, decodePNG, notesPNG},
		{"JPEG", starts("\xff\xd8\xff"), jpeg.Size, decodeJPEG, notesJPEG},
		{"WebP", isWebP, sizeWebP, decodeWebP, notesWebP},
		{"GIF", starts("GIF8"), sizeGIF, decodeGIF, nil},
		{"BMP", isBMP, sizeBMP, decodeBMP, nil},
	}
}

func starts(with string) func([]byte) bool {
	return func(data []byte) bool { return bytes.HasPrefix(data, []byte(with)) }
}

// isBMP reports whether data begins as a BMP file does, whose reserved bytes are 0: a text may begin with BM, too.
func isBMP(data []byte) bool {
	return len(data) >= 10 && string(data[:2]) == "BM" && string(data[6:10]) == "\x00\x00\x00\x00"
}

// Format names the format of a file by its first bytes: "png", "jpeg", "webp", "gif" or "bmp"; "" if Patches reads no
// such file.
func Format(encoded []byte) string {
	f, err := formatOf(encoded)
	if err != nil {
		return ""
	}
	return strings.ToLower(f.name)
}

// formatOf returns the format of a file.
func formatOf(encoded []byte) (format, error) {
	if len(encoded) == 0 {
		return format{}, errors.New("an empty file is not an image")
	}
	for _, f := range formats() {
		if f.begins(encoded) {
			return f, nil
		}
	}
	return format{}, fmt.Errorf("not a PNG, JPEG, WebP, GIF or BMP image: it begins with %q",
		encoded[:min(len(encoded), 12)])
}

// Size returns the width and the height in pixels of an image file, turned upright, from its header. It refuses sizes
// that no image may have here.
func Size(encoded []byte) (width, height int, err error) {
	f, err := formatOf(encoded)
	if err != nil {
		return 0, 0, err
	}
	width, height, err = f.checkedSize(encoded)
	if err == nil && f.turn(encoded).swaps() {
		width, height = height, width
	}
	return width, height, err
}

// checkedSize returns the size of an image before it is turned.
func (f format) checkedSize(encoded []byte) (width, height int, err error) {
	width, height, err = f.size(encoded)
	if err != nil {
		return 0, 0, f.error(err)
	}
	if width < 1 || height < 1 || height > mostPixels/width {
		return 0, 0, fmt.Errorf("%s image of %d×%d pixels: it must have between 1 and %d million", f.name, width,
			height, mostPixels/1_000_000)
	}
	return width, height, nil
}

// decode decodes an image file to upright RGB.
func decode(encoded []byte) (bitmap, error) {
	f, err := formatOf(encoded)
	if err != nil {
		return bitmap{}, err
	}
	width, height, err := f.checkedSize(encoded)
	if err != nil {
		return bitmap{}, err
	}
	m, err := f.decode(encoded)
	if err != nil {
		return bitmap{}, f.error(err)
	}
	if m.width != width || m.height != height {
		return bitmap{}, fmt.Errorf("%s image: its header says %d×%d pixels, its data %d×%d", f.name, width, height,
			m.width, m.height)
	}
	return f.turn(encoded).apply(m), nil
}

// error says that a file of format f cannot be read.
func (f format) error(err error) error {
	text := err.Error()
	for _, prefix := range []string{"png: ", "jpeg: ", "gif: ", "bmp: ", "webp: ", "vp8: ", "vp8l: ", "riff: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	if strings.HasSuffix(text, "EOF") {
		text = "the file is cut off"
	}
	return fmt.Errorf("%s image: %s", f.name, text)
}

func decodeJPEG(data []byte) (bitmap, error) {
	m, err := jpeg.Decode(data)
	return bitmap{m.Width, m.Height, m.Pix}, err
}

// sizePNG refuses 16-bit grey: Pillow clips its values to 255, not to their high bytes, so most become white.
func sizePNG(data []byte) (width, height int, err error) {
	c, err := png.DecodeConfig(bytes.NewReader(data))
	if err == nil && data[24] == 16 && data[25] == 0 {
		err = errors.New("16-bit grey is not supported; convert it to 8 bits")
	}
	return c.Width, c.Height, err
}

func sizeBMP(data []byte) (width, height int, err error) {
	return sizeOf(bmp.DecodeConfig(bytes.NewReader(data)))
}

func sizeOf(c image.Config, err error) (width, height int, _ error) { return c.Width, c.Height, err }

func decodePNG(data []byte) (bitmap, error) {
	m, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return bitmap{}, err
	}
	return plain(m)
}

func decodeBMP(data []byte) (bitmap, error) {
	m, err := bmp.Decode(bytes.NewReader(data))
	if err != nil {
		return bitmap{}, err
	}
	return plain(m)
}

// plain returns the colours of an image as Pillow's convert("RGB") has them: transparency is dropped, and the high
// bytes of 16-bit colours count.
func plain(m image.Image) (bitmap, error) {
	r := m.Bounds()
	out := newBitmap(r.Dx(), r.Dy())
	switch m := m.(type) {
	case *image.Gray:
		out.fill(m.Pix, m.Stride, 1, 0, 0, 0)
	case *image.RGBA: // the decoders make it of opaque images only
		out.fill(m.Pix, m.Stride, 4, 0, 1, 2)
	case *image.NRGBA:
		out.fill(m.Pix, m.Stride, 4, 0, 1, 2)
	case *image.RGBA64: // of opaque images, too
		out.fill(m.Pix, m.Stride, 8, 0, 2, 4)
	case *image.NRGBA64:
		out.fill(m.Pix, m.Stride, 8, 0, 2, 4)
	case *image.Paletted:
		out.paint(m.Pix, m.Stride, m.Palette)
	default:
		return bitmap{}, fmt.Errorf("pixels of type %T are not supported", m)
	}
	return out, nil
}

// fill sets the pixels from others whose step bytes have red, green and blue at r, g and b.
func (m bitmap) fill(pix []uint8, stride, step, r, g, b int) {
	for y := range m.height {
		src, dst := pix[y*stride:], m.row(y)
		for x := range m.width {
			p, q := src[x*step:][:step], dst[3*x:][:3]
			q[0], q[1], q[2] = p[r], p[g], p[b]
		}
	}
}

// paint sets the pixels from indices of a palette.
func (m bitmap) paint(pix []uint8, stride int, palette color.Palette) {
	var table [256][3]uint8
	for i, c := range palette {
		switch c := c.(type) {
		case color.RGBA:
			table[i] = [3]uint8{c.R, c.G, c.B}
		case color.NRGBA:
			table[i] = [3]uint8{c.R, c.G, c.B}
		}
	}
	for y := range m.height {
		src, dst := pix[y*stride:], m.row(y)
		for x := range m.width {
			copy(dst[3*x:], table[src[x]][:])
		}
	}
}
