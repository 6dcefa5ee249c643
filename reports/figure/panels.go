package figure

import (
	"gonum.org/v1/plot/vg"
)

// panels is a grid of small multiples: up to four stand below each other, so that
// what has the same x lines up; more stand in two columns.
type panels struct {
	n, columns, rows int
}

const (
	panelHeight = 118.0 // of the axes, with their title
	panelsTop   = 62.0  // heading and legend
	panelsLabel = 34.0  // labels under the lowest row
)

func gridOf(n int) panels {
	columns := 1
	if n > 4 {
		columns = 2
	}
	return panels{n: n, columns: columns, rows: (n + columns - 1) / columns}
}

// height returns the height of the whole figure.
func (g panels) height() vg.Length {
	return max(panelsTop+panelsLabel+vg.Length(g.rows)*panelHeight, 0.75*pageHeight)
}

// frame is where panel i with axis x stands below top. Only the lowest panel of a
// column has labels under x; its axes are as high as the others'.
func (g panels) frame(s *sheet, i int, top vg.Length, x scale) frame {
	label := below(x, frame{}) - below(x, frame{bare: true})
	area := s.under(top)
	const between = 16
	width := (area.Max.X - area.Min.X - between*vg.Length(g.columns-1)) / vg.Length(g.columns)
	height := (area.Max.Y - area.Min.Y - label) / vg.Length(g.rows)
	row, column := i/g.columns, i%g.columns
	f := frame{bare: i+g.columns < g.n}
	f.area.Min.X = area.Min.X + vg.Length(column)*(width+between)
	f.area.Max.X = f.area.Min.X + width
	f.area.Max.Y = area.Max.Y - vg.Length(row)*height
	f.area.Min.Y = f.area.Max.Y - height + gap
	if !f.bare {
		f.area.Min.Y -= label
	}
	return f
}

// firstOnly drops the label of axis a in all panels but the first, where it is
// read first; the panels share their scale.
func (g panels) firstOnly(i int, a Axis) Axis {
	if i > 0 {
		a.Label, a.Unit = "", ""
	}
	return a
}
