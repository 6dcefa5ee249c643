package figure

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot/vg"
)

// lineChart is a figure of lines with bands, ready to be drawn.
type lineChart struct {
	title     string
	x, y      Axis
	xTicks    []tick  // nil: round values
	padX      float64 // share of x added at both ends
	names     []string
	looks     []look
	tracks    []track
	reference *Reference // nil: none
	start     *track     // of the weights before training, drawn in grey; nil: none
	bands     []bool     // which tracks have theirs drawn; nil: all
	focusNote string     // the caption's sentence about bands
}

// startName labels the values before training.
const startName = "start"

// startLook is the style of the values before training.
func startLook() look {
	return look{color: plainColor, ink: readable(plainColor), dash: []vg.Length{4, 3}, shape: star}
}

// focus keeps the bands of a few arms where there are many, and returns the caption's
// sentence about it.
func (c *lineChart) focus(h Head) string {
	if len(c.names) <= mostBands || h.Focus == nil {
		return ""
	}
	c.bands = make([]bool, len(c.names))
	var kept []string
	for i, name := range c.names {
		if slices.Contains(h.Focus, name) && slices.ContainsFunc(c.tracks[i].lo, drawable) {
			c.bands[i], kept = true, append(kept, clean(name))
		}
	}
	if kept == nil {
		return ""
	}
	return "Bands only of " + strings.Join(kept, ", ") + ": more would hide the lines"
}

// shown reports whether point i of t can be drawn.
func (c lineChart) shown(t track, i int) bool { return c.x.shows(t.x[i]) && c.y.shows(t.y[i]) }

// first and last are the first and last points of t that are shown, -1 if none is.
func (c lineChart) first(t track) int {
	for i := range t.x {
		if c.shown(t, i) {
			return i
		}
	}
	return -1
}

func (c lineChart) last(t track) int {
	for i := len(t.x) - 1; i >= 0; i-- {
		if c.shown(t, i) {
			return i
		}
	}
	return -1
}

func (c lineChart) empty() bool {
	for _, t := range c.tracks {
		if c.last(t) >= 0 {
			return false
		}
	}
	return true
}

// scales returns scales that fit everything drawn.
func (c lineChart) scales() (x, y scale) {
	var ex, ey extent
	for n, t := range c.tracks {
		for i := range t.x {
			if c.shown(t, i) {
				ex.add(c.x, t.x[i])
				ey.add(c.y, t.y[i])
				if c.banded(n) {
					ey.addInterval(c.y, t.lo[i], t.hi[i])
				}
				if t.raw != nil {
					ey.add(c.y, t.raw[i])
				}
			}
		}
	}
	if c.reference != nil {
		ey.add(c.y, c.reference.Value)
		if c.reference.First {
			ex.add(c.x, 0)
		}
	}
	if c.start != nil {
		ey.add(c.y, c.start.y...)
	}
	x, y = newScale(c.x, ex, c.padX), newScale(c.y, ey, 0.04)
	x.whole, x.ticks = !ex.broken, c.xTicks
	return x, y
}

// endLabels returns the labels of the arms with a line, then of the reference.
func (c lineChart) endLabels() []endLabel {
	var labels []endLabel
	right := math.Inf(-1)
	for i, t := range c.tracks {
		n := c.last(t)
		if n < 0 {
			continue
		}
		right = math.Max(right, t.x[n])
		k := ink{size: textSize, color: c.looks[i].ink, bold: true}
		labels = append(labels, endLabel{name: clean(c.names[i]), ink: k, x: t.x[n], y: t.y[n]})
	}
	if t := c.start; t != nil {
		if n := c.last(*t); n >= 0 {
			plain := ink{size: textSize, color: plainColor}
			labels = append(labels, endLabel{name: startName, ink: plain, x: t.x[n], y: t.y[n]})
		}
	}
	if r := c.reference; r != nil && c.y.shows(r.Value) {
		k := ink{size: textSize, color: plainColor}
		labels = append(labels, endLabel{name: clean(r.Name), ink: k, x: right, y: r.Value})
	}
	return labels
}

// draw lays the chart out with labels at the line ends, or with a legend if they would
// collide.
func (c lineChart) draw(s *sheet) {
	top := s.heading(c.title)
	x, y := c.scales()
	labels := c.endLabels()
	fr := frame{area: s.under(top), grid: gridY, right: s.endLabelRoom(labels)}
	trial := fitY(x, y, fr)
	direct := s.placeEndLabels(labels, s.fitX(x, trial, fr), trial)
	if !direct {
		fr.right = 0
		fr.area.Max.Y -= s.legend(c.legend(), top)
	}
	p := s.panel(x, y, fr)
	c.drawLines(p)
	if direct {
		p.drawEndLabels(labels)
	}
}

func (c lineChart) legend() []entry {
	var entries []entry
	for i, t := range c.tracks {
		if c.last(t) >= 0 {
			entries = append(entries, lineEntry(c.names[i], c.looks[i]))
		}
	}
	if c.start != nil {
		entries = append(entries, lineEntry(startName, startLook()))
	}
	if r := c.reference; r != nil {
		entries = append(entries, strokeEntry(r.Name, referenceStroke()))
	}
	return entries
}

func referenceStroke() stroke {
	return stroke{width: barWidth, color: plainColor, dash: []vg.Length{4, 3}}
}

// drawLines draws bands, then the reference, then raw values, then lines, so that
// no band hides a line.
func (c lineChart) drawLines(p panel) {
	for i, t := range c.tracks {
		if !c.banded(i) {
			continue
		}
		// A t interval may exceed the axis: below zero on a logarithmic one, or beyond
		// limit. It is cut there.
		lo, hi := make([]float64, len(t.lo)), make([]float64, len(t.hi))
		for j := range lo {
			lo[j], hi[j] = math.Max(t.lo[j], p.y.lo), math.Min(t.hi[j], p.y.hi)
		}
		p.drawBand(t.x, lo, hi, c.looks[i])
	}
	if r := c.reference; r != nil && c.y.shows(r.Value) {
		y := p.y.at(r.Value)
		p.line(referenceStroke(), vg.Point{X: p.x.from, Y: y}, vg.Point{X: p.x.to, Y: y})
		if r.First && c.x.shows(0) {
			k := startLook()
			p.mark(k.shape, p.at(0, r.Value), markRadius, k.color)
			p.tip(p.at(0, r.Value), clean(r.Name)+" at 0: "+value(r.Value))
		}
	}
	for i, t := range c.tracks {
		if t.raw != nil {
			p.drawLine(t.x, t.raw, stroke{width: faintWidth, color: tint(c.looks[i].color, 0.45)})
		}
	}
	if t := c.start; t != nil {
		p.drawLine(t.x, t.y, startLook().stroke())
		p.drawMarks(t.x, t.y, startLook(), 0, 1, func(i int) string { return c.tip(startName, *t, i) })
	}
	for i, t := range c.tracks {
		p.drawLine(t.x, t.y, c.looks[i].stroke())
		p.drawMarks(t.x, t.y, c.looks[i], i, len(c.tracks), func(n int) string { return c.tip(c.names[i], t, n) })
	}
}

// banded reports whether the band of a track is drawn.
func (c lineChart) banded(i int) bool { return c.bands == nil || c.bands[i] }

// tip is the text of point i: "flowrl at 40: 0.31 [0.29, 0.33]".
func (c lineChart) tip(name string, t track, i int) string {
	e := Estimate{Value: t.y[i], Lo: t.lo[i], Hi: t.hi[i]}
	x := value(t.x[i])
	if t.x[i] == math.Trunc(t.x[i]) && math.Abs(t.x[i]) < 1e15 {
		x = minus(strconv.FormatFloat(t.x[i], 'f', 0, 64))
	}
	return name + " at " + x + ": " + e.text()
}

// alt describes where each line begins and ends.
func (c lineChart) alt(kind string) string {
	var parts []string
	for i, t := range c.tracks {
		if first, last := c.first(t), c.last(t); first >= 0 {
			parts = append(parts, fmt.Sprintf("%s goes from %s to %s", c.names[i], value(t.y[first]),
				value(t.y[last])))
		}
	}
	return fmt.Sprintf("%s of %s against %s: %s.", kind, c.y.title(), c.x.title(), enumerate(parts))
}
