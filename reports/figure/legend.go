package figure

import (
	"gonum.org/v1/plot/vg"
)

// entry is one line of a legend: a swatch of a width, with a name behind it.
type entry struct {
	name   string
	width  vg.Length
	swatch func(s *sheet, box vg.Rectangle)
}

// Widths of swatches, and the space between two columns of entries.
const (
	lineSwatch = 28.0
	boxSwatch  = 18.0
	markSwatch = 10.0
	entryGap   = 16.0
)

// lineEntry is the legend entry of an arm that is drawn as a line with markers.
func lineEntry(name string, k look) entry {
	return entry{name, lineSwatch, func(s *sheet, box vg.Rectangle) {
		mid := (box.Min.Y + box.Max.Y) / 2
		s.line(k.stroke(), vg.Point{X: box.Min.X, Y: mid}, vg.Point{X: box.Max.X, Y: mid})
		s.mark(k.shape, vg.Point{X: (box.Min.X + box.Max.X) / 2, Y: mid}, markRadius, k.color)
	}}
}

// markEntry is the legend entry of an arm that is drawn as a marker.
func markEntry(name string, k look) entry {
	return entry{name, markSwatch, func(s *sheet, box vg.Rectangle) {
		at := vg.Point{X: (box.Min.X + box.Max.X) / 2, Y: (box.Min.Y + box.Max.Y) / 2}
		s.mark(k.shape, at, 1.3*markRadius, k.color)
	}}
}

// strokeEntry is the legend entry of a plain line.
func strokeEntry(name string, st stroke) entry {
	return entry{name, lineSwatch, func(s *sheet, box vg.Rectangle) {
		mid := (box.Min.Y + box.Max.Y) / 2
		s.line(st, vg.Point{X: box.Min.X, Y: mid}, vg.Point{X: box.Max.X, Y: mid})
	}}
}

// boxEntry is the legend entry of a filled area.
func boxEntry(name string, draw func(s *sheet, box vg.Rectangle)) entry {
	return entry{name, boxSwatch, draw}
}

// legendRows is how many rows entries take.
func (s *sheet) legendRows(entries []entry) int {
	if len(entries) == 0 {
		return 0
	}
	columns := len(s.legendColumns(entries))
	return (len(entries) + columns - 1) / columns
}

// legendColumns returns the widths of the legend's columns, filled row by row: as many
// columns as fit the sheet.
func (s *sheet) legendColumns(entries []entry) []vg.Length {
	width := s.w - 2*margin
	for n := len(entries); n > 1; n-- {
		columns := make([]vg.Length, n)
		total := vg.Length(n-1) * entryGap
		for i, e := range entries {
			need := e.width + gap + s.width(s.tickInk(), clean(e.name))
			if over := need - columns[i%n]; over > 0 {
				columns[i%n] += over
				total += over
			}
		}
		if total <= width {
			return columns
		}
	}
	return []vg.Length{width}
}

// legend draws entries in rows below top and returns the height it took: it stands
// above the axes and covers no data.
func (s *sheet) legend(entries []entry, top vg.Length) vg.Length {
	if len(entries) == 0 {
		return 0
	}
	width := s.w - 2*margin
	for i := range entries {
		entries[i].name = s.clip(s.tickInk(), clean(entries[i].name), width-entries[i].width-gap)
	}
	columns := s.legendColumns(entries)
	x, mid := vg.Length(margin), top-rowHeight/2
	for i, e := range entries {
		e.swatch(s, vg.Rectangle{
			Min: vg.Point{X: x, Y: mid - 4},
			Max: vg.Point{X: x + e.width, Y: mid + 4},
		})
		s.label(s.tickInk(), vg.Point{X: x + e.width + gap, Y: mid}, left, e.name)
		x += columns[i%len(columns)] + entryGap
		if (i+1)%len(columns) == 0 && i+1 < len(entries) {
			x, mid = margin, mid-rowHeight
		}
	}
	return top - mid + rowHeight/2 + gap
}

// heading draws the title at the top, unless the sheet has none, and returns where the rest
// begins.
func (s *sheet) heading(title string) (top vg.Length) {
	title = clean(title)
	top = s.h - margin
	if s.untitled {
		return top
	}
	k := ink{size: titleSize, color: inkColor, bold: true}
	for _, line := range s.wrap(k, title, s.w-2*margin, 2) {
		s.text(k, vg.Point{X: margin, Y: top - titleSize*capHeight - 1}, left, line)
		top -= titleSize * 1.25
	}
	return top - gap
}

// under returns the rectangle that is left under top, within the margins.
func (s *sheet) under(top vg.Length) vg.Rectangle {
	return vg.Rectangle{
		Min: vg.Point{X: margin, Y: margin},
		Max: vg.Point{X: s.w - margin, Y: top},
	}
}

func (k look) stroke() stroke { return stroke{width: lineWidth, color: k.color, dash: k.dash} }
