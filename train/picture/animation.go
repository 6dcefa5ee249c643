package picture

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"slices"
)

// usualDelay is how long a GIF shows an image that says no delay, in hundredths of a second, as browsers do.
const usualDelay = 10

// animation holds the images of a GIF, each on the whole canvas when it is asked for. It is the video whose frames all
// last as long as the largest time that divides all delays, in which an image stays for as many frames as its delay
// has of these times. The canvas is Pillow's.
type animation struct {
	images []*image.Paletted
	said   []graphics
	lasts  []int // frames of each image
	canvas bitmap
	drawn  int // images on the canvas

	behind func() // clears what the last image leaves, before the next; nil: nothing
}

// graphics are what a GIF says before an image.
type graphics struct {
	delay       int // hundredths of a second
	transparent int // index that leaves the canvas as it is; -1: none
	disposal    int // what becomes of the image before the next
	background  int // index
	palette     color.Palette
}

// What becomes of an image, in the file's numbers.
const (
	toBackground = 2
	toPrevious   = 3
)

// graphicsOf returns what a GIF says before each of its images (GIF89a, sections 17 to 23).
func graphicsOf(data []byte) (list []graphics, err error) {
	short := errors.New("GIF image: the file is cut off")
	if len(data) < 13 {
		return nil, short
	}
	global, at := colors(data, 13, data[10])
	next := graphics{transparent: -1, background: int(data[11])}
	skip := func() {
		for at < len(data) && data[at] != 0 {
			at += 1 + int(data[at])
		}
		at++
	}
	for at < len(data) && data[at] != 0x3b {
		switch data[at] {
		case 0x2c: // an image
			if len(data) < at+10 {
				return nil, short
			}
			next.palette, at = colors(data, at+10, data[at+9])
			if next.palette == nil {
				next.palette = global
			}
			if next.palette == nil {
				return nil, errors.New("GIF image: an image without a palette")
			}
			if next.delay == 0 {
				next.delay = usualDelay
			}
			list = append(list, next)
			next.delay, next.transparent = 0, -1
			at++
			skip()
		case 0x21: // an extension
			if at+7 < len(data) && data[at+1] == 0xf9 {
				next.delay = int(data[at+4]) | int(data[at+5])<<8
				if data[at+3]&1 != 0 {
					next.transparent = int(data[at+6])
				}
				if how := int(data[at+3]) >> 2 & 7; how != 0 { // as Pillow: 0 is what the image before has
					next.disposal = how
				}
			}
			at += 2
			skip()
		default:
			return nil, errors.New("GIF image: neither an image nor an extension follows")
		}
	}
	if at > len(data) {
		return nil, short
	}
	return list, nil
}

// divisor returns the largest time that divides all delays, and all of them in it.
func divisor(list []graphics) (unit, sum int) {
	for _, g := range list {
		a, b := g.delay, unit
		for b != 0 {
			a, b = b, a%b
		}
		unit, sum = a, sum+g.delay
	}
	return unit, sum / max(1, unit)
}

// gifClip describes the video that a GIF is.
func gifClip(data []byte) (c Clip, err error) {
	if !bytes.HasPrefix(data, []byte("GIF8")) {
		return c, errors.New("not a GIF animation")
	}
	if c.Width, c.Height, err = Size(data); err != nil {
		return c, err
	}
	list, err := graphicsOf(data)
	if err != nil {
		return c, err
	}
	if err := checkFrames(len(list), 0); err != nil {
		return c, fmt.Errorf("GIF: %w", err)
	}
	unit, frames := divisor(list)
	c.Frames, c.Rate = frames, 100/float64(unit)
	return c, checkFrames(frames, c.Rate)
}

// decodeAnimation decodes all images of a GIF.
func decodeAnimation(data []byte) (*animation, error) {
	list, err := graphicsOf(data)
	if err != nil {
		return nil, err
	}
	g, err := gif.DecodeAll(bytes.NewReader(data))
	if err != nil {
		return nil, format{name: "GIF"}.error(err)
	}
	if len(g.Image) != len(list) || len(list) == 0 {
		return nil, fmt.Errorf("GIF image: %d images where its blocks say %d", len(g.Image), len(list))
	}
	x := &animation{images: g.Image, said: list, canvas: newBitmap(g.Config.Width, g.Config.Height)}
	unit, _ := divisor(list)
	for _, y := range list {
		x.lasts = append(x.lasts, y.delay/unit)
	}
	return x, nil
}

// at returns the canvas of frame i.
func (x *animation) at(i int) bitmap {
	image := 0
	for i >= x.lasts[image] {
		i -= x.lasts[image]
		image++
	}
	if x.drawn > image+1 {
		x.drawn = 0
	}
	for ; x.drawn <= image; x.drawn++ {
		x.draw(x.drawn)
	}
	return bitmap{x.canvas.width, x.canvas.height, slices.Clone(x.canvas.pix)}
}

// draw puts an image on the canvas, which shows those before. The first lies on its transparent colour or colour 0,
// and its own transparent pixels have the colour that the palette gives them.
func (x *animation) draw(n int) {
	m, y := x.images[n], x.said[n]
	r := m.Bounds()
	whole := image.Rect(0, 0, x.canvas.width, x.canvas.height)
	switch {
	case n == 0:
		x.fill(whole, y.color(max(0, y.transparent)))
	case x.behind != nil:
		x.behind()
	}
	x.behind = nil
	switch {
	case y.disposal == toBackground && y.transparent >= 0:
		x.behind = func() { x.fill(r, y.color(y.transparent)) }
	case y.disposal == toBackground:
		x.behind = func() { x.fill(r, y.color(y.background)) }
	case y.disposal == toPrevious && n > 0:
		before := slices.Clone(x.canvas.pix)
		x.behind = func() { copy(x.canvas.pix, before) }
	case y.disposal == toPrevious && y.transparent >= 0:
		x.behind = func() { x.fill(r, y.color(y.transparent)) }
	}
	for at := r.Min.Y; at < r.Max.Y; at++ {
		row := x.canvas.row(at)
		for across := r.Min.X; across < r.Max.X; across++ {
			index := int(m.ColorIndexAt(across, at))
			if index != y.transparent {
				c := y.color(index)
				copy(row[3*across:], c[:])
			}
		}
	}
}

// fill gives pixels of the canvas one colour.
func (x *animation) fill(r image.Rectangle, c [3]uint8) {
	for at := r.Min.Y; at < r.Max.Y; at++ {
		row := x.canvas.row(at)
		for across := r.Min.X; across < r.Max.X; across++ {
			copy(row[3*across:], c[:])
		}
	}
}

// color returns a colour of the palette, the first for those that it lacks.
func (g *graphics) color(index int) [3]uint8 {
	if index >= len(g.palette) {
		index = 0
	}
	c, _ := g.palette[index].(color.RGBA)
	return [3]uint8{c.R, c.G, c.B}
}
