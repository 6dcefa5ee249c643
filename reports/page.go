package reports

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"exp/reports/figure"
)

// page is the content of index.html and report.md, free of markup.
type page struct {
	Title    string
	Subtitle string
	Facts    []fact
	Sections []section
}

// fact is a line in the page's head.
type fact struct {
	Label string
	Value line
}

type section struct {
	ID     string // anchor: lower-case letters and hyphens
	Title  string
	Blocks []block
}

// block is a paragraph, heading, bullets, callout, *grid, gallery, listing, problem or folded.
type block any

// line is text on one line.
type line []span

// span is a piece of a line.
type span struct {
	Text  string
	Style style
	Place int // of an arm, where Style is armName
	Link  string
}

type style string

const (
	plain   style = ""
	strong  style = "strong"
	muted   style = "muted"
	mono    style = "mono"
	good    style = "good" // the words say so too
	bad     style = "bad"
	armName style = "arm" // with the mark of the arm's colour
)

func text(format string, args ...any) line {
	return line{{Text: fmt.Sprintf(format, args...)}}
}

func styled(s style, t string) span { return span{Text: t, Style: s} }

func (l line) with(more ...span) line { return append(l[:len(l):len(l)], more...) }

// String returns the text without styles.
func (l line) String() string {
	var b strings.Builder
	for _, s := range l {
		b.WriteString(s.Text)
	}
	return b.String()
}

type paragraph struct{ Text line }

// heading is a heading within a section.
type heading struct{ Text string }

// armColors are the arms' colours in figures, by place; page.css uses them for names in
// text. Places beyond the last start over.
var armColors = [...]string{"#0072b2", "#e69f00", "#009e73", "#000000", "#d55e00", "#cc79a7", "#56b4e9",
	"#857318", "#6a4fc4", "#882255", "#66a61e", "#8c564b", "#e7298a"}

type bullets []line

// callout is a highlighted paragraph.
type callout struct {
	Warning bool
	Title   string
	Text    line
}

// grid is a table.
type grid struct {
	Caption string
	Columns []column
	Rows    []row
	Note    line // below the table
}

type column struct {
	Title string
	Right bool // numbers
}

// row is a row of cells. A head row spans the table with its first cell.
type row struct {
	Cells []line
	Head  bool
}

// add appends a row; it must have a cell per column.
func (g *grid) add(cells ...line) {
	if len(cells) != len(g.Columns) {
		panic("reports: a row and its columns differ in length")
	}
	g.Rows = append(g.Rows, row{Cells: cells})
}

// mostCells is the size of the largest table that a page does not fold.
const mostCells = 85

// long reports whether a table takes much of a page. nil does not.
func (g *grid) long() bool { return g != nil && len(g.Rows)*len(g.Columns) > mostCells }

// orFolded returns the table, folded if it is long.
func (g *grid) orFolded() block {
	if g.long() {
		return folded{g.Caption, []block{g}}
	}
	return g
}

func left(title string) column  { return column{Title: title} }
func right(title string) column { return column{Title: title, Right: true} }

// gallery is figures side by side.
type gallery []numbered

// numbered is a figure with its place in the report.
type numbered struct {
	figure.Figure
	N int
}

// caption returns the text below the figure, without the units, which the axes show.
func (f numbered) caption() string {
	c := f.Figure.Caption
	c.Units = ""
	return c.String()
}

// file returns the figure's path in the bundle.
func (f numbered) file(ext string) string { return fmt.Sprintf("figures/%02d-%s.%s", f.N, f.Name, ext) }

// links returns links to the figure's files.
func (f numbered) links(formats []string) line {
	var l line
	for i, ext := range formats {
		if i > 0 {
			l = l.with(span{Text: " "})
		}
		l = l.with(span{Text: strings.ToUpper(ext), Link: f.file(ext)})
	}
	return l
}

// listing is preformatted text, such as commands.
type listing struct{ Text string }

// folded holds blocks that are shown on demand.
type folded struct {
	Summary string
	Blocks  []block
}

// problem is a problem with the arms' answers.
type problem struct {
	Title  line
	Prompt string
	Images []embedded // that the prompt shows, and are not too large
	Arms   []answers
}

// answers are an arm's completions of a problem.
type answers struct {
	Arm    span
	Right  string // "11 of 16 right"
	Groups []answerGroup
	More   string // says how many are not shown; may be empty
}

// answerGroup is a set of completions with the same text.
type answerGroup struct {
	Count   int
	Verdict string // "right", "wrong", "not graded"
	Text    string
}

// Visible makes a policy's text safe to display: it escapes bytes that are not UTF-8,
// control characters and bidirectional controls. Line breaks and tabs stay.
func Visible(s string) string {
	var b strings.Builder
	for i, w := 0, 0; i < len(s); i += w {
		var r rune
		r, w = utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && w == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
