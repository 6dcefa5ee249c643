package term

import (
	"bufio"
	"io"
	"slices"
	"strings"
)

// Column describes a column of a Table.
type Column struct {
	Title string
	Right bool // aligned to the right: numbers
	Rank  int  // 0: never narrower than its text, 1 with Wrap; else the highest rank gives way first
	Min   int  // columns that it keeps when it gives way; 0 means 6
	Wrap  bool // gives way by breaking lines instead of cutting
	Drop  int  // not 0: left out where the table is too wide, before any column gives way; the highest first
}

// Cell is one value of a table. Its text is cleaned when it is printed.
type Cell struct {
	Text  string
	Style Style
}

// Table is aligned text. The zero value is an empty table.
type Table struct {
	Columns  []Column
	Rows     [][]Cell // each [len(Columns)]; missing cells are empty
	NoHeader bool
}

// Layout says how a table may look.
type Layout struct {
	Width   int // columns that it must fit, 0 for any width (a pipe)
	Color   bool
	Unicode bool
}

// Layout returns what a table on s may use: the width of a terminal, any width
// on a pipe.
func (s Stream) Layout() Layout {
	l := Layout{Color: s.Color, Unicode: s.Unicode}
	if s.TTY {
		l.Width = s.Width()
	}
	return l
}

const (
	tableGap        = 2 // columns between two columns
	defaultMinWidth = 6
)

// Write prints the table. Where it is wider than the layout, columns that may be
// dropped are left out, one after another; then columns with a rank give way, the
// highest rank first and of one rank the widest first, none below its minimum; a
// table that still does not fit is printed as wide as it is. Lines carry no
// trailing spaces.
func (t *Table) Write(w io.Writer, l Layout) error {
	t, _ = t.Narrowed(l)
	widths := t.naturalWidths()
	if l.Width > 0 {
		t.fit(widths, l.Width)
	}
	p := tablePrinter{
		out: bufio.NewWriter(w), columns: t.Columns, widths: widths, layout: l,
		lines: make([][]string, len(t.Columns)), single: make([]string, len(t.Columns)),
	}
	if !t.NoHeader {
		head := make([]Cell, len(t.Columns))
		for i, c := range t.Columns {
			head[i] = Cell{c.Title, Strong}
		}
		p.row(head)
	}
	for _, row := range t.Rows {
		p.row(row)
	}
	return p.out.Flush()
}

func (t *Table) naturalWidths() []int {
	widths := make([]int, len(t.Columns))
	for i, c := range t.Columns {
		if !t.NoHeader {
			widths[i] = Width(Clean(c.Title))
		}
	}
	for _, row := range t.Rows {
		for i := range min(len(row), len(widths)) {
			widths[i] = max(widths[i], Width(Clean(row[i].Text)))
		}
	}
	return widths
}

// Narrowed returns the table without the columns that Write leaves out for it to fit, and their titles.
func (t *Table) Narrowed(l Layout) (less *Table, leftOut []string) {
	if l.Width <= 0 {
		return t, nil
	}
	widths := t.naturalWidths()
	var keep []int // indices of columns
	for i := range widths {
		keep = append(keep, i)
	}
	for excess(widths, l.Width) > 0 {
		at := 0
		for i := range keep {
			if t.Columns[keep[i]].Drop > t.Columns[keep[at]].Drop {
				at = i
			}
		}
		if len(keep) == 0 || t.Columns[keep[at]].Drop == 0 {
			break
		}
		widths, keep = slices.Delete(widths, at, at+1), slices.Delete(keep, at, at+1)
	}
	if len(keep) == len(t.Columns) {
		return t, nil
	}
	for i, c := range t.Columns {
		if !slices.Contains(keep, i) {
			leftOut = append(leftOut, c.Title)
		}
	}
	return t.only(keep), leftOut
}

// only returns the table with the columns at the given indices.
func (t *Table) only(keep []int) *Table {
	less := &Table{NoHeader: t.NoHeader}
	for _, i := range keep {
		less.Columns = append(less.Columns, t.Columns[i])
	}
	for _, row := range t.Rows {
		var cells []Cell
		for _, i := range keep {
			if i < len(row) {
				cells = append(cells, row[i])
			}
		}
		less.Rows = append(less.Rows, cells)
	}
	return less
}

// excess is how much wider than width columns of these widths are.
func excess(widths []int, width int) int {
	n := tableGap*(len(widths)-1) - width
	for _, w := range widths {
		n += w
	}
	return n
}

// fit shrinks widths until the table fits or no column can shrink further.
func (t *Table) fit(widths []int, width int) {
	for n := excess(widths, width); n > 0; n-- {
		i := t.nextToShrink(widths)
		if i < 0 {
			return
		}
		widths[i]--
	}
}

// nextToShrink returns the column to shrink next, or -1.
func (t *Table) nextToShrink(widths []int) int {
	best := -1
	for i, c := range t.Columns {
		if c.rank() <= 0 || widths[i] <= c.min() {
			continue
		}
		if best < 0 || c.rank() > t.Columns[best].rank() ||
			c.rank() == t.Columns[best].rank() && widths[i] > widths[best] {
			best = i
		}
	}
	return best
}

func (c Column) rank() int {
	if c.Wrap {
		return max(c.Rank, 1)
	}
	return c.Rank
}

func (c Column) min() int {
	if c.Min > 0 {
		return c.Min
	}
	return defaultMinWidth
}

// tablePrinter prints the rows of a table whose widths are settled.
type tablePrinter struct {
	out     *bufio.Writer
	columns []Column
	widths  []int
	layout  Layout
	lines   [][]string // of each cell of the row that is printed; kept for the next
	single  []string   // lines of a cell that takes one
}

// row prints one row, on several lines where a wrapped cell needs them.
func (p *tablePrinter) row(row []Cell) {
	mark := "…"
	if !p.layout.Unicode {
		mark = "~"
	}
	height := 1
	for i, c := range p.columns {
		if i >= len(row) {
			p.lines[i] = nil
			continue
		}
		text := Clean(row[i].Text)
		if Width(text) > p.widths[i] {
			if c.Wrap {
				p.lines[i] = Wrap(text, p.widths[i])
				height = max(height, len(p.lines[i]))
				continue
			}
			text = Cut(text, p.widths[i], mark)
		}
		p.single[i] = text
		p.lines[i] = p.single[i : i+1]
	}
	for y := range height {
		p.line(row, y)
	}
}

// line prints line y of the cells of a row.
func (p *tablePrinter) line(row []Cell, y int) {
	gap := 0 // spaces owed before the next text; never written at the end
	for i, c := range p.columns {
		text := ""
		if y < len(p.lines[i]) {
			text = p.lines[i][y]
		}
		space := p.widths[i] - Width(text)
		if text == "" {
			gap += space + tableGap
			continue
		}
		if c.Right {
			gap += space
			space = 0
		}
		p.out.WriteString(strings.Repeat(" ", gap))
		p.out.WriteString(row[i].Style.Paint(text, p.layout.Color))
		gap = space + tableGap
	}
	p.out.WriteByte('\n')
}

// Widest returns the largest number of columns that any of the texts takes.
func Widest(texts ...string) int {
	if len(texts) == 0 {
		return 0
	}
	return Width(slices.MaxFunc(texts, func(a, b string) int { return Width(a) - Width(b) }))
}
