package figure

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot/vg"
)

// Live is a curve for a page that stays open: an SVG that takes any width without scaling
// its text, and has classes instead of colours, which a style sheet sets for light and
// dark. SVG has no style attributes, so it obeys a strict content security policy.
//
// The panel is as wide as the SVG; labels hang out on the left, where the style sheet
// leaves LiveLeft pixels. Classes: plot is the SVG; cN is the colour of an arm and dN its
// dash; line, point, raw, band, range, grid, axis and reference are paths.
type Live struct {
	SVG  []byte
	Alt  string
	Note string // says whose bands are drawn where they are not all
	Data any    // what was drawn, as in Figure
}

const (
	// LiveLeft is the space for labels left of a live curve, in pixels.
	LiveLeft = 54
	// LiveColors is the number of colours, c0, c1, …; further arms repeat them with the
	// next dash of LiveDashes.
	LiveColors, LiveDashes = 9, 4
)

// Size of a live curve. Inside the panel, x runs from 0 to liveX and y from 0 to liveY.
const (
	liveX, liveY = 1000.0, 1000.0
	liveTop      = 8  // pixels over the panel
	liveBottom   = 22 // pixels under it, for labels
	liveTicks    = 5
)

// Live draws the curve height pixels high. It draws what Draw draws, and for an arm of one
// seed the range of each point too (Series.Min, Series.Max). It returns Draw's errors.
func (f Curve) Live(height int) (Live, error) {
	f = f.uncut()
	c, err := f.chart()
	if err != nil {
		return Live{}, err
	}
	data := f.data(c)
	c.cutBands()
	x, y := c.scales()
	for _, a := range f.Arms {
		if low, high := a.extremes(); low != nil {
			e := extent{}
			e.add(f.Y, append([]float64{y.lo, y.hi}, append(low, high...)...)...)
			y = newScale(f.Y, e, 0)
		}
	}
	x.from, x.to, y.from, y.to = 0, liveX, liveY, 0
	l := liveChart{lineChart: c, f: f, height: height}
	l.x, l.y = x.withTicks(liveTicks), y.withTicks(liveTicks)
	alt := clean(c.alt("Line chart"))
	return Live{SVG: l.svg(alt), Alt: alt, Note: c.focusNote, Data: data}, nil
}

// cutBands ends bands at 0 if no line is below: an interval that goes further says nothing about a
// length or a norm, and would flatten the lines.
func (c *lineChart) cutBands() {
	for _, t := range c.tracks {
		if slices.ContainsFunc(t.y, negative) || slices.ContainsFunc(t.raw, negative) {
			return
		}
	}
	for i := range c.tracks {
		lo := slices.Clone(c.tracks[i].lo)
		for k, v := range lo {
			lo[k] = max(v, 0) // NaN stays
		}
		c.tracks[i].lo = lo
	}
}

func negative(v float64) bool { return v < 0 }

// extremes returns the ranges of the points of an arm's only seed; nil if it has several
// seeds or no ranges.
func (a Arm) extremes() (low, high []float64) {
	if len(a.Seeds) != 1 {
		return nil, nil
	}
	return a.Seeds[0].Min, a.Seeds[0].Max
}

// liveChart writes the SVG of a curve.
type liveChart struct {
	lineChart
	f      Curve
	x, y   scale
	height int
	b      bytes.Buffer
}

func (l *liveChart) svg(alt string) []byte {
	panel := l.height - liveTop - liveBottom
	fmt.Fprintf(&l.b, `<svg class="plot" role="img" width="100%%" height="%d" aria-label="%s" data-x="%s %s" data-y="%s %s"`,
		l.height, html.EscapeString(alt), exact(l.x.lo), exact(l.x.hi), exact(l.y.lo), exact(l.y.hi))
	fmt.Fprintf(&l.b, ` data-log="%t">`, l.y.axis.Log)
	l.b.WriteString(`<g class="ticks" text-anchor="end">`)
	for _, t := range l.y.ticks {
		at := liveTop + float64(l.y.at(t.at))/liveY*float64(panel)
		fmt.Fprintf(&l.b, `<text x="-8" y="%s">%s</text>`, short(at+4), html.EscapeString(t.label))
	}
	fmt.Fprintf(&l.b, `</g><svg y="%d" width="100%%" height="%d" viewBox="0 0 %g %g" preserveAspectRatio="none">`,
		liveTop, panel, liveX, liveY)
	for _, t := range l.y.ticks {
		at := short(float64(l.y.at(t.at)))
		fmt.Fprintf(&l.b, `<path class="grid" d="M0 %sH%g"/>`, at, liveX)
	}
	l.lines()
	fmt.Fprintf(&l.b, `<path class="axis" d="M0 %gH%g"/></svg>`, liveY, liveX)
	fmt.Fprintf(&l.b, `<svg class="ticks" y="%d" width="100%%" height="%d" overflow="visible">`, liveTop+panel,
		liveBottom)
	for _, t := range l.x.ticks {
		fmt.Fprintf(&l.b, `<text x="%s%%" y="16" text-anchor="middle">%s</text>`,
			short(float64(l.x.at(t.at))/liveX*100), html.EscapeString(t.label))
	}
	l.b.WriteString(`</svg></svg>`)
	return l.b.Bytes()
}

// lines draws areas first, then the reference, then raw values, then lines, so that no
// area hides a line.
func (l *liveChart) lines() {
	for i, t := range l.tracks {
		place := l.place(i)
		if l.banded(i) {
			l.path("band "+place, l.area(t.x, t.lo, t.hi))
		}
		if low, high := l.f.Arms[i].extremes(); low != nil {
			l.path("range "+place, l.area(t.x, low, high))
		}
	}
	if r := l.reference; r != nil && l.y.axis.shows(r.Value) {
		l.path("reference", fmt.Sprintf("M0 %sH%g", short(float64(l.y.at(r.Value))), liveX))
	}
	for i, t := range l.tracks {
		if t.raw != nil {
			l.path("raw "+l.place(i), l.line(t.x, t.raw))
		}
	}
	for i, t := range l.tracks {
		l.path("line "+l.place(i), l.line(t.x, t.y))
		l.path("point "+l.place(i), l.lone(t.x, t.y))
	}
}

// place is the classes of an arm's colour and dash.
func (l *liveChart) place(arm int) string {
	names := make(map[string]int)
	for _, list := range [...][]string{l.f.Order, l.names} {
		for _, name := range list {
			if _, known := names[name]; !known {
				names[name] = len(names)
			}
		}
	}
	n := names[l.names[arm]]
	return fmt.Sprintf("c%d d%d", n%LiveColors, n/LiveColors%LiveDashes)
}

func (l *liveChart) path(class, d string) {
	if d != "" {
		fmt.Fprintf(&l.b, `<path class="%s" d="%s"/>`, class, d)
	}
}

// line joins the points, broken where y is not shown.
func (l *liveChart) line(x, y []float64) string {
	var d penPath
	for _, r := range runs(x, l.x.axis, hidden(l.y.axis, y)) {
		for i := r.from; i < r.to && r.to-r.from > 1; i++ {
			d.add(i == r.from, l.x.at(x[i]), l.y.at(y[i]))
		}
	}
	return string(d.text)
}

// lone returns the runs of one point, which join nothing: the style sheet makes them wide.
func (l *liveChart) lone(x, y []float64) string {
	var d penPath
	for _, r := range runs(x, l.x.axis, hidden(l.y.axis, y)) {
		if r.to-r.from == 1 {
			d.add(true, l.x.at(x[r.from]), l.y.at(y[r.from]))
			d.text = append(d.text, "h0"...)
		}
	}
	return string(d.text)
}

// area encloses the points between lo and hi, in one piece per run of points that have
// both.
func (l *liveChart) area(x, lo, hi []float64) string {
	var d penPath
	hi = hidden(l.y.axis, hi)
	for _, r := range runs(x, l.x.axis, lo, hi) {
		for i := r.from; i < r.to; i++ {
			d.add(i == r.from, l.x.at(x[i]), l.y.at(math.Min(hi[i], l.y.hi)))
		}
		for i := r.to - 1; i >= r.from; i-- {
			d.add(false, l.x.at(x[i]), l.y.at(math.Max(lo[i], l.y.lo)))
		}
		d.text = append(d.text, 'Z')
	}
	return string(d.text)
}

// penPath writes the data of a path: the first point, then steps between points, which
// take half the bytes of points. Places are rounded to a tenth, and steps lead from one
// rounded place to the next, so errors do not add up.
type penPath struct {
	text []byte
	x, y int64 // tenths
}

func (p *penPath) add(first bool, atX, atY vg.Length) {
	x, y := int64(math.Round(10*float64(atX))), int64(math.Round(10*float64(atY)))
	if first {
		p.text = append(p.text, 'M')
		p.pair(x, y)
	} else {
		p.text = append(p.text, 'l')
		p.pair(x-p.x, y-p.y)
	}
	p.x, p.y = x, y
}

// pair writes two numbers of tenths.
func (p *penPath) pair(x, y int64) {
	p.text = strconv.AppendFloat(p.text, float64(x)/10, 'f', -1, 64)
	if y >= 0 { // a minus sign separates too
		p.text = append(p.text, ' ')
	}
	p.text = strconv.AppendFloat(p.text, float64(y)/10, 'f', -1, 64)
}

// hidden replaces values that an axis does not show by NaN.
func hidden(a Axis, y []float64) []float64 {
	out := make([]float64, len(y))
	for i, v := range y {
		if out[i] = v; !a.shows(v) {
			out[i] = math.NaN()
		}
	}
	return out
}

// short writes a coordinate with one decimal.
func short(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }

func exact(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
