package cli

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"exp/cmd/exp/term"
)

// Page writes a document for people, in the width and colour of stdout: headings,
// facts, tables and text.
type Page struct {
	Out     *Output
	w       *bufio.Writer
	Layout  term.Layout
	started bool
}

// NewPage begins a page on w. Close ends it.
func (o *Output) NewPage(w io.Writer) *Page {
	return &Page{Out: o, w: bufio.NewWriter(w), Layout: o.Stream.Layout()}
}

// Heading begins a part.
func (p *Page) Heading(text string) {
	if p.started {
		fmt.Fprintln(p.w)
	}
	p.started = true
	fmt.Fprintln(p.w, term.Strong.Paint(text, p.Layout.Color))
}

// Line prints one line, indented and not cut.
func (p *Page) Line(format string, args ...any) {
	p.started = true
	fmt.Fprintf(p.w, "  %s\n", term.Clean(fmt.Sprintf(format, args...)))
}

// Paragraph prints a text, wrapped on a terminal and one line elsewhere.
func (p *Page) Paragraph(text string) {
	p.started = true
	for _, line := range p.wrapped(term.Clean(text), 0) {
		fmt.Fprintln(p.w, line)
	}
}

// Fact is a name and a text about it.
type Fact struct{ Name, Text string }

// Facts prints names and texts in two columns. A fact without text is left out.
func (p *Page) Facts(list ...Fact) {
	p.started = true
	width := 0
	for _, f := range list {
		if f.Text != "" {
			width = max(width, term.Width(f.Name))
		}
	}
	for _, f := range list {
		if f.Text == "" {
			continue
		}
		for i, line := range p.wrapped(term.Clean(f.Text), width+4) {
			name := f.Name
			if i > 0 {
				name = ""
			}
			fmt.Fprintf(p.w, "  %s  %s\n", term.Faint.Paint(term.Pad(name, width, false), p.Layout.Color), line)
		}
	}
}

// wrapped breaks a text that begins at a column of a terminal into lines that fit. It
// leaves one line if the output is not a terminal, or if a word is too long, such as a
// path that people copy.
func (p *Page) wrapped(text string, column int) []string {
	room := p.Layout.Width - column
	if p.Layout.Width == 0 || term.Width(text) <= room || !wordsFit(text, room) {
		return []string{text}
	}
	return term.Wrap(text, room)
}

// wordsFit reports whether every word of a text fits into a line.
func wordsFit(text string, room int) bool {
	return !slices.ContainsFunc(strings.Fields(text), func(word string) bool { return term.Width(word) > room })
}

// Table prints a table, indented. Its columns need no Key.
func (p *Page) Table(columns []Column, rows [][]any) error {
	p.started = true
	if err := p.w.Flush(); err != nil {
		return err
	}
	var text strings.Builder
	inner := *p.Out
	inner.W, inner.Fields, inner.Header = &text, nil, true
	if inner.Stream.TTY {
		inner.Stream = inner.Stream.Sized(func() (int, int) { return p.Out.Stream.Width() - 2, p.Out.Stream.Height() })
	}
	var remark string
	inner.note = func(format string, args ...any) { remark = fmt.Sprintf(format, args...) }
	if err := inner.PrintAligned(Table{Columns: columns, Rows: rows}); err != nil {
		return err
	}
	for line := range strings.Lines(text.String()) {
		if _, err := p.w.WriteString("  " + line); err != nil {
			return err
		}
	}
	for _, line := range p.wrapped(term.Clean(remark), 2) {
		if line != "" {
			fmt.Fprintf(p.w, "  %s\n", term.Faint.Paint(line, p.Layout.Color))
		}
	}
	return nil
}

// Text prints lines, cleaned and indented.
func (p *Page) Text(indent, text string) {
	p.started = true
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		fmt.Fprintf(p.w, "%s\n", strings.TrimRight(indent+term.Clean(line), " "))
	}
}

// ProseWidth is the width of indented prose.
func (p *Page) ProseWidth() int {
	if p.Layout.Width == 0 {
		return helpMaxWidth
	}
	return min(p.Layout.Width-2, helpMaxWidth)
}

// Write prints text as it is.
func (p *Page) Write(text []byte) (int, error) {
	p.started = true
	return p.w.Write(text)
}

// Close writes the buffered text.
func (p *Page) Close() error { return p.w.Flush() }

// Prose prints a paragraph, indented and wrapped.
func (p *Page) Prose(width int, text string) {
	if text == "" {
		return
	}
	p.started = true
	for _, line := range term.Wrap(text, width) {
		fmt.Fprintf(p.w, "  %s\n", line)
	}
}
