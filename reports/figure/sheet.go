package figure

import (
	"bytes"
	"fmt"
	"html"
	"image/color"
	"math"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
)

// sheet is the page being drawn on, in points from the lower left corner.
type sheet struct {
	c        canvas
	w, h     vg.Length
	fonts    *font.Cache
	untitled bool // heading draws nothing
	tips     []tip
}

// tip is a text that an SVG shows while the pointer is over a place.
type tip struct {
	box  vg.Rectangle
	text string
}

// tip attaches a text to the surroundings of a point.
func (s *sheet) tip(pt vg.Point, text string) {
	const reach = 7
	s.tipBox(vg.Rectangle{Min: pt.Sub(vg.Point{X: reach, Y: reach}), Max: pt.Add(vg.Point{X: reach, Y: reach})}, text)
}

// tipBox attaches a text to a box.
func (s *sheet) tipBox(box vg.Rectangle, text string) { s.tips = append(s.tips, tip{box, clean(text)}) }

// tipElements writes the tips as SVG: boxes that are not seen, with titles.
func (s *sheet) tipElements() []byte {
	var b bytes.Buffer
	for _, t := range s.tips {
		fmt.Fprintf(&b, `<rect x="%.5g" y="%.5g" width="%.5g" height="%.5g" fill-opacity="0"><title>%s</title></rect>`+"\n",
			t.box.Min.X, s.h-t.box.Max.Y, max(t.box.Max.X-t.box.Min.X, 1), max(t.box.Max.Y-t.box.Min.Y, 1),
			html.EscapeString(t.text))
	}
	return b.Bytes()
}

// canvas is the part of a vg.Canvas that sheets use.
type canvas interface {
	SetLineWidth(w vg.Length)
	SetLineDash(pattern []vg.Length, offset vg.Length)
	SetColor(c color.Color)
	Stroke(p vg.Path)
	Fill(p vg.Path)
	FillString(face font.Face, pt vg.Point, text string)
}

func newSheet(c canvas, w, h vg.Length, fonts *font.Cache) *sheet {
	return &sheet{c: c, w: w, h: h, fonts: fonts}
}

// stroke is how a line is drawn. The zero value draws nothing. Lines have opaque
// colours: long ones are drawn in pieces that overlap.
type stroke struct {
	width vg.Length
	color color.Color
	dash  []vg.Length
}

// line joins pts. Fewer than two draw nothing.
func (s *sheet) line(st stroke, pts ...vg.Point) {
	if len(pts) < 2 || st.width <= 0 {
		return
	}
	s.c.SetLineWidth(st.width)
	s.c.SetColor(st.color)
	// The rasterizer's time grows with the square of the points that share a row of
	// pixels. Pieces share a segment, so that their ends do not show; the offset lets
	// the dashes go on.
	const most = 64 // points of a piece
	var done vg.Length
	for len(pts) > most {
		s.c.SetLineDash(st.dash, done)
		s.c.Stroke(path(pts[:most], false))
		for i := range most - 2 {
			done += distance(pts[i], pts[i+1])
		}
		pts = pts[most-2:]
	}
	s.c.SetLineDash(st.dash, done)
	s.c.Stroke(path(pts, false))
}

func distance(a, b vg.Point) vg.Length {
	return vg.Length(math.Hypot(float64(b.X-a.X), float64(b.Y-a.Y)))
}

// fill fills the polygon pts.
func (s *sheet) fill(c color.Color, pts ...vg.Point) {
	if len(pts) < 3 {
		return
	}
	s.c.SetColor(c)
	s.c.Fill(path(pts, true))
}

func (s *sheet) rect(x0, y0, x1, y1 vg.Length, c color.Color) {
	s.fill(c, vg.Point{X: x0, Y: y0}, vg.Point{X: x1, Y: y0}, vg.Point{X: x1, Y: y1}, vg.Point{X: x0, Y: y1})
}

func path(pts []vg.Point, closed bool) vg.Path {
	p := make(vg.Path, 0, len(pts)+1)
	p.Move(pts[0])
	for _, pt := range pts[1:] {
		p.Line(pt)
	}
	if closed {
		p.Close()
	}
	return p
}

// shape is the outline of a marker: corners on the unit circle, or nearly so.
type shape int

const (
	disc shape = iota
	square
	triangle
	diamond
	wedge // a triangle on its tip
	cross
	star // no arm's
)

// outline returns the corners of a shape of about the same area as a disc of
// radius 1; none for a disc.
func (k shape) outline() [][2]float64 {
	switch k {
	case square:
		return [][2]float64{{-.89, -.89}, {.89, -.89}, {.89, .89}, {-.89, .89}}
	case triangle:
		return [][2]float64{{-1.17, -.75}, {1.17, -.75}, {0, 1.3}}
	case diamond:
		return [][2]float64{{0, -1.3}, {1.15, 0}, {0, 1.3}, {-1.15, 0}}
	case wedge:
		return [][2]float64{{0, -1.3}, {1.17, .75}, {-1.17, .75}}
	case cross:
		const a, b = .42, 1.2
		return [][2]float64{{-a, -b}, {a, -b}, {a, -a}, {b, -a}, {b, a}, {a, a},
			{a, b}, {-a, b}, {-a, a}, {-b, a}, {-b, -a}, {-a, -a}}
	case star:
		return [][2]float64{{0, 1.45}, {-.36, .5}, {-1.38, .45}, {-.59, -.19}, {-.85, -1.17},
			{0, -.62}, {.85, -1.17}, {.59, -.19}, {1.38, .45}, {.36, .5}}
	}
	return nil
}

// mark draws a filled marker of radius r at pt, with a thin white edge to stand
// out from lines and other markers.
func (s *sheet) mark(k shape, pt vg.Point, r vg.Length, c color.Color) {
	var p vg.Path
	if corners := k.outline(); corners == nil {
		p.Move(vg.Point{X: pt.X + r, Y: pt.Y})
		p.Arc(pt, r, 0, 2*math.Pi)
		p.Close()
	} else {
		pts := make([]vg.Point, len(corners))
		for i, at := range corners {
			pts[i] = vg.Point{X: pt.X + r*vg.Length(at[0]), Y: pt.Y + r*vg.Length(at[1])}
		}
		p = path(pts, true)
	}
	s.c.SetColor(c)
	s.c.Fill(p)
	s.c.SetLineWidth(0.5)
	s.c.SetLineDash(nil, 0)
	s.c.SetColor(color.White)
	s.c.Stroke(p)
}

// whisker draws an error bar from a to b, vertical or horizontal, with caps of
// half length half.
func (s *sheet) whisker(a, b vg.Point, half vg.Length, c color.Color) {
	st := stroke{width: barWidth, color: c}
	s.line(st, a, b)
	d := vg.Point{X: half}
	if a.Y == b.Y {
		d = vg.Point{Y: half}
	}
	s.line(st, a.Sub(d), a.Add(d))
	s.line(st, b.Sub(d), b.Add(d))
}
