package figure

import (
	"image/color"
	"math"

	"gonum.org/v1/plot/vg"
)

// Sizes are in points, 1/72 inch. Text of 10 points in a figure of 6.4 inches is
// still 5 points when the figure is set in one column of a two-column page.
const (
	pageWidth  = 6.4 * vg.Inch
	pageHeight = 4.0 * vg.Inch

	// pngDPI gives two pixels per CSS pixel of a figure shown at its own size.
	pngDPI = 192

	titleSize = 12.0
	labelSize = 11.0
	textSize  = 10.0 // ticks, legends, labels of lines
	smallSize = 9.0  // values inside the figure

	margin    = 8.0 // around everything
	gap       = 5.0 // between neighbours
	tickLen   = 3.5
	rowHeight = 15.0 // of a legend
	pageRows  = 6    // of a legend on a page of pageHeight

	lineWidth  = 1.9
	faintWidth = 0.9
	barWidth   = 1.2 // of error bars
	axisWidth  = 0.8
	gridWidth  = 0.6
	markRadius = 3.2
)

// Greys of everything but data.
var (
	inkColor   = color.NRGBA{0x1a, 0x1a, 0x1a, 0xff}
	axisColor  = color.NRGBA{0x55, 0x55, 0x55, 0xff}
	gridColor  = color.NRGBA{0xe4, 0xe4, 0xe4, 0xff}
	plainColor = color.NRGBA{0x70, 0x70, 0x70, 0xff} // reference lines and their labels
	fillColor  = color.NRGBA{0xc8, 0xc8, 0xc8, 0xff} // references: targets, first steps
)

// palette comes from Okabe and Ito (2008, jfly.uni-koeln.de/color); it stays
// apart for readers with any common colour blindness, without its yellow, which is
// too light for a line on white. The order keeps the first four apart in greyscale
// too: L* is about 46, 71, 58 and 0.
var palette = [...]color.NRGBA{
	{0x00, 0x72, 0xb2, 0xff}, // blue
	{0xe6, 0x9f, 0x00, 0xff}, // orange
	{0x00, 0x9e, 0x73, 0xff}, // bluish green
	{0x00, 0x00, 0x00, 0xff}, // black
	{0xd5, 0x5e, 0x00, 0xff}, // vermillion
	{0xcc, 0x79, 0xa7, 0xff}, // reddish purple
	{0x56, 0xb4, 0xe9, 0xff}, // sky blue
	{0x85, 0x73, 0x18, 0xff}, // olive, from here on for studies of many arms
	{0x6a, 0x4f, 0xc4, 0xff}, // violet
	{0x88, 0x22, 0x55, 0xff}, // wine
	{0x66, 0xa6, 0x1e, 0xff}, // leaf green
	{0x8c, 0x56, 0x4b, 0xff}, // brown
	{0xe7, 0x29, 0x8a, 0xff}, // pink
}

// colorAt returns the colour of the place-th arm. After the palette come darker and lighter
// versions of it, so that no two of the first 39 arms share a colour.
func colorAt(place int) color.NRGBA {
	c := palette[place%len(palette)]
	switch round := place / len(palette) % 3; {
	case round == 1 && luminance(c) == 0:
		return color.NRGBA{0x50, 0x50, 0x50, 0xff}
	case round == 1:
		return color.NRGBA{c.R / 2, c.G / 2, c.B / 2, 0xff}
	case round == 2:
		return tint(c, 0.55)
	}
	return c
}

// phasePalette holds the colours of phases: light, so that black text can be read on them,
// and apart from each other. The first nine are from Tol's light scheme
// (personal.sron.nl/~pault).
var phasePalette = [...]color.NRGBA{
	{0x77, 0xaa, 0xdd, 0xff}, // light blue
	{0xee, 0xdd, 0x88, 0xff}, // light yellow
	{0x44, 0xbb, 0x99, 0xff}, // mint
	{0xff, 0xaa, 0xbb, 0xff}, // pink
	{0xee, 0x88, 0x66, 0xff}, // orange
	{0xbb, 0xcc, 0x33, 0xff}, // pear
	{0x99, 0xdd, 0xff, 0xff}, // light cyan
	{0xaa, 0xaa, 0x00, 0xff}, // olive
	{0xdd, 0xdd, 0xdd, 0xff}, // pale grey
	{0xc3, 0xa6, 0xdc, 0xff}, // lavender
	{0xc8, 0x9b, 0x6a, 0xff}, // tan
	{0x9a, 0xa8, 0xb5, 0xff}, // slate
	{0xd4, 0xee, 0xc0, 0xff}, // pale green
	{0xe8, 0x6f, 0xa8, 0xff}, // rose
}

// dashes and shapes have lengths that differ from the palette's, so that colour and
// shape together name many arms.
var dashes = [...][]vg.Length{
	nil,
	{7, 2.5},
	{2, 2},
	{8, 2.5, 2, 2.5},
}

var shapes = [...]shape{disc, square, triangle, diamond, wedge, cross}

// hatch tells bars apart in greyscale.
type hatch int

const (
	plain hatch = iota
	rising
	falling
)

// look is the style of an arm in every figure of a report.
type look struct {
	color color.NRGBA // of lines and fills
	ink   color.NRGBA // of text: the colour, darkened until it can be read on white
	dash  []vg.Length
	shape shape
	hatch hatch // of bars
}

func lookAt(place int) look {
	c := colorAt(place)
	return look{
		color: c,
		ink:   readable(c),
		dash:  dashes[place%len(dashes)],
		shape: shapes[place%len(shapes)],
		hatch: hatch(place % 3),
	}
}

// looks returns the look of each arm: by its place in order, and after all of
// order for arms that are not there.
func looks(order, arms []string) []look {
	place := make(map[string]int, len(order)+len(arms))
	for _, names := range [...][]string{order, arms} {
		for _, name := range names {
			if _, known := place[name]; !known {
				place[name] = len(place)
			}
		}
	}
	out := make([]look, len(arms))
	for i, name := range arms {
		out[i] = lookAt(place[name])
	}
	return out
}

// faded returns c with its opacity set to share, in [0,1].
func faded(c color.NRGBA, share float64) color.NRGBA {
	c.A = uint8(math.Round(255 * share))
	return c
}

// tint returns c mixed with white: c where share is 1.
func tint(c color.NRGBA, share float64) color.NRGBA {
	mix := func(v uint8) uint8 { return uint8(math.Round(255 - share*float64(255-v))) }
	return color.NRGBA{mix(c.R), mix(c.G), mix(c.B), 0xff}
}

// readable darkens c until its contrast with white is 4.5 : 1 (WCAG 2.2, 1.4.3).
func readable(c color.NRGBA) color.NRGBA {
	for 1.05/(luminance(c)+0.05) < 4.5 {
		c.R, c.G, c.B = c.R-c.R/16, c.G-c.G/16, c.B-c.B/16
	}
	return c
}

// luminance is WCAG's relative luminance of an opaque colour, in [0,1].
func luminance(c color.NRGBA) float64 {
	linear := func(v uint8) float64 {
		s := float64(v) / 255
		if s <= 0.04045 {
			return s / 12.92
		}
		return math.Pow((s+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(c.R) + 0.7152*linear(c.G) + 0.0722*linear(c.B)
}
