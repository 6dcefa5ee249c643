package figure

import (
	"math"
	"strings"

	"gonum.org/v1/plot/vg"
)

// panel is one pair of axes on a sheet.
type panel struct {
	*sheet
	x, y scale
}

// at is where the point (x, y) of the data is drawn.
func (p panel) at(x, y float64) vg.Point { return vg.Point{X: p.x.at(x), Y: p.y.at(y)} }

// grid says which grid lines a panel has.
type grid int

const (
	gridNone grid = 0
	gridX    grid = 1 << iota // vertical lines at the ticks of x
	gridY                     // horizontal lines at the ticks of y
)

// frame holds what a panel needs apart from its scales.
type frame struct {
	area  vg.Rectangle // all that belongs to the panel: axes, labels, ticks
	grid  grid
	right vg.Length // space to keep free right of the axes, inside area
	bare  bool      // no labels under x: another panel below shares them
	title []words   // over the axes, left of the label of y
}

// words is text with its ink.
type words struct {
	text string
	ink  ink
}

// Heights and widths of the texts next to the axes.
const (
	tickGap    = 3.0
	underTicks = tickLen + tickGap + textSize*capHeight
	underLabel = gap + 1 + labelSize*0.95
	tickRow    = textSize * 1.15     // between lines of one tick label
	overAxis   = labelSize + gap + 1 // the label of y, over its axis
)

func (s *sheet) tickInk() ink  { return ink{size: textSize, color: inkColor} }
func (s *sheet) labelInk() ink { return ink{size: labelSize, color: inkColor} }

// below is the height that labels and ticks of x take.
func below(x scale, f frame) vg.Length {
	h := vg.Length(tickLen)
	if f.bare {
		return h
	}
	h = underTicks + 2
	for _, t := range x.ticks {
		h = max(h, underTicks+2+vg.Length(strings.Count(t.label, "\n"))*tickRow)
	}
	if x.axis.title() != "" {
		h += underLabel
	}
	return h
}

// tickWidth is the width of a label's longest line.
func (s *sheet) tickWidth(t tick) vg.Length {
	var w vg.Length
	for line := range strings.SplitSeq(t.label, "\n") {
		w = max(w, s.width(s.tickInk(), line))
	}
	return w
}

// beside returns the width of y's labels and ticks.
func (s *sheet) beside(y scale) vg.Length {
	w := vg.Length(tickLen + tickGap)
	for _, t := range y.ticks {
		w = max(w, tickLen+tickGap+s.tickWidth(t))
	}
	return w
}

// fitY places y in the height that f leaves, with ticks unless it has some.
func fitY(x, y scale, f frame) scale {
	y.from, y.to = f.area.Min.Y+below(x, f), f.area.Max.Y
	if y.axis.title() != "" || f.title != nil {
		y.to -= overAxis
	}
	if y.ticks == nil {
		y = y.withTicks(int(max(3, (y.to-y.from)/36)))
	}
	return y
}

// fitX places x in the width that f and y leave, with as many ticks as their
// labels allow, unless it has some.
func (s *sheet) fitX(x, y scale, f frame) scale {
	x.from, x.to = f.area.Min.X+s.beside(y), f.area.Max.X-f.right
	if x.ticks != nil {
		return x
	}
	for n := int(max(4, (x.to-x.from)/52)); ; n-- {
		x = x.withTicks(n)
		if n == 1 || s.apart(x) {
			return x
		}
	}
}

// apart reports whether the tick labels of x keep a distance.
func (s *sheet) apart(x scale) bool {
	end := vg.Length(math.Inf(-1))
	for _, t := range x.ticks {
		half := s.tickWidth(t) / 2
		if x.at(t.at)-half < end+6 {
			return false
		}
		end = x.at(t.at) + half
	}
	return true
}

// panel draws grid and axes and returns them. Data are drawn on top of it.
func (s *sheet) panel(x, y scale, f frame) panel {
	y = fitY(x, y, f)
	x = s.fitX(x, y, f)
	if n := len(x.ticks); n > 0 && f.right == 0 { // the last label may stick out
		t := x.ticks[n-1]
		if over := x.at(t.at) + s.tickWidth(t)/2 - f.area.Max.X - margin + 2; over > 0 {
			x.to -= over
		}
	}
	p := panel{sheet: s, x: x, y: y}
	p.gridLines(f.grid)
	p.xAxis(f)
	p.yAxis(f)
	return p
}

func (p panel) gridLines(g grid) {
	st := stroke{width: gridWidth, color: gridColor}
	for _, t := range p.y.ticks {
		if g&gridY != 0 {
			y := p.y.at(t.at)
			p.line(st, vg.Point{X: p.x.from, Y: y}, vg.Point{X: p.x.to, Y: y})
		}
	}
	for _, t := range p.x.ticks {
		if g&gridX != 0 {
			x := p.x.at(t.at)
			p.line(st, vg.Point{X: x, Y: p.y.from}, vg.Point{X: x, Y: p.y.to})
		}
	}
}

func (p panel) xAxis(f frame) {
	st := stroke{width: axisWidth, color: axisColor}
	y := p.y.from
	p.line(st, vg.Point{X: p.x.from, Y: y}, vg.Point{X: p.x.to, Y: y})
	for _, t := range p.x.ticks {
		x := p.x.at(t.at)
		p.line(st, vg.Point{X: x, Y: y}, vg.Point{X: x, Y: y - tickLen})
		if !f.bare {
			for i, line := range strings.Split(t.label, "\n") {
				p.text(p.tickInk(), vg.Point{X: x, Y: y - underTicks - vg.Length(i)*tickRow}, center, line)
			}
		}
	}
	if title := p.x.axis.title(); title != "" && !f.bare {
		room := f.area.Max.X - f.area.Min.X
		title = p.axisTitle(p.x.axis, room)
		half := p.width(p.labelInk(), title) / 2
		mid := (p.x.from + p.x.to) / 2
		mid = min(max(mid, f.area.Min.X+half), f.area.Max.X-half)
		p.text(p.labelInk(), vg.Point{X: mid, Y: y - below(p.x, f) + 2}, center, title)
	}
}

func (p panel) yAxis(f frame) {
	st := stroke{width: axisWidth, color: axisColor}
	x := p.x.from
	p.line(st, vg.Point{X: x, Y: p.y.from}, vg.Point{X: x, Y: p.y.to})
	for _, t := range p.y.ticks {
		y := p.y.at(t.at)
		p.line(st, vg.Point{X: x, Y: y}, vg.Point{X: x - tickLen, Y: y})
		lines := strings.Split(t.label, "\n")
		y += vg.Length(len(lines)-1) * tickRow / 2
		for i, line := range lines {
			p.label(p.tickInk(), vg.Point{X: x - tickLen - tickGap, Y: y - vg.Length(i)*tickRow}, right, line)
		}
	}
	p.overAxes(f)
}

// overAxes writes the label of y, flat over its axis: it is quicker to read than
// one on its side, and long ones fit. A title of the panel comes first, and the
// label then stands at the right.
func (p panel) overAxes(f frame) {
	at := vg.Point{X: f.area.Min.X, Y: p.y.to + gap + 3}
	for _, w := range f.title {
		text := p.clip(w.ink, w.text, f.area.Max.X-at.X)
		p.text(w.ink, at, left, text)
		at.X += p.width(w.ink, text) + 2*gap
	}
	if f.title == nil {
		p.text(p.labelInk(), at, left, p.axisTitle(p.y.axis, f.area.Max.X-at.X))
		return
	}
	label, k := p.y.axis.title(), ink{size: smallSize, color: plainColor}
	if p.width(k, label) < f.area.Max.X-at.X { // the caption has it anyway
		p.text(k, vg.Point{X: f.area.Max.X, Y: at.Y}, right, label)
	}
}

// axisTitle returns the title of an axis in the room there is: without its unit, which the
// caption has, if both do not fit.
func (s *sheet) axisTitle(a Axis, room vg.Length) string {
	full, k := a.title(), s.labelInk()
	choices := []string{full, clean(a.Label)}
	if s.untitled && a.Untitled != "" {
		named := a
		named.Label = a.Untitled
		choices = []string{named.title(), full, clean(a.Untitled), clean(a.Label)}
	}
	for _, text := range choices {
		if text != "" && s.width(k, text) <= room {
			return text
		}
	}
	return s.clip(k, full, room)
}
