package picture

import (
	"bytes"
	"errors"
	"image/color"
	"image/gif"
)

func sizeGIF(data []byte) (width, height int, err error) {
	return sizeOf(gif.DecodeConfig(bytes.NewReader(data)))
}

// decodeGIF decodes the first image. As in Pillow, it lies on a canvas of its transparent colour or of colour 0, and
// transparent pixels have the colour that the palette gives them (package gif makes it black).
func decodeGIF(data []byte) (bitmap, error) {
	width, height, err := sizeGIF(data)
	if err != nil {
		return bitmap{}, err
	}
	m, err := gif.Decode(bytes.NewReader(data))
	if err != nil {
		return bitmap{}, err
	}
	palette, background, err := firstPalette(data)
	if err != nil {
		return bitmap{}, err
	}
	r := m.Bounds()
	canvas := bytes.Repeat([]byte{background}, width*height)
	index, ok := m.(interface{ ColorIndexAt(x, y int) uint8 })
	if !ok {
		return bitmap{}, errors.New("an image without a palette")
	}
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			canvas[y*width+x] = index.ColorIndexAt(x, y)
		}
	}
	out := newBitmap(width, height)
	out.paint(canvas, width, palette)
	return out, nil
}

// firstPalette returns the palette of a GIF's first image, and its transparent index or 0 (GIF89a, sections 17 to 23).
func firstPalette(data []byte) (color.Palette, uint8, error) {
	short := errors.New("the file is cut off")
	if len(data) < 13 {
		return nil, 0, short
	}
	global, at := colors(data, 13, data[10])
	background := uint8(0)
	for at < len(data) {
		switch data[at] {
		case 0x2c: // an image
			if len(data) < at+10 {
				return nil, 0, short
			}
			if local, _ := colors(data, at+10, data[at+9]); local != nil {
				return local, background, nil
			}
			return global, background, nil
		case 0x21: // an extension
			if at+7 < len(data) && data[at+1] == 0xf9 && data[at+3]&1 != 0 {
				background = data[at+6]
			}
			for at += 2; at < len(data) && data[at] != 0; {
				at += 1 + int(data[at])
			}
			at++
		default:
			return nil, 0, errors.New("no image in the file")
		}
	}
	return nil, 0, short
}

// colors returns the palette at a place, if flags say that there is one, and the place after it.
func colors(data []byte, at int, flags uint8) (color.Palette, int) {
	if flags&0x80 == 0 {
		return nil, at
	}
	n := 2 << (flags & 7)
	if len(data) < at+3*n {
		return nil, len(data)
	}
	p := make(color.Palette, n)
	for i := range p {
		c := data[at+3*i:]
		p[i] = color.RGBA{c[0], c[1], c[2], 255}
	}
	return p, at + 3*n
}
