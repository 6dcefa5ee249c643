package main

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"exp/cmd/exp/term"
)

// page writes a document for people: headings, facts and tables, in the width and
// colour of stdout.
type page struct {
	out     *output
	w       *bufio.Writer
	layout  term.Layout
	started bool
}

func (o *output) newPage(w io.Writer) *page {
	return &page{out: o, w: bufio.NewWriter(w), layout: o.stream.Layout()}
}

// heading begins a part.
func (p *page) heading(text string) {
	if p.started {
		fmt.Fprintln(p.w)
	}
	p.started = true
	fmt.Fprintln(p.w, term.Strong.Paint(text, p.layout.Color))
}

// line prints one line, indented; it is not cut.
func (p *page) line(format string, args ...any) {
	p.started = true
	fmt.Fprintf(p.w, "  %s\n", term.Clean(fmt.Sprintf(format, args...)))
}

// fact is a name with what is known about it.
type fact struct{ name, text string }

// facts prints names and texts in two columns, those with a text.
func (p *page) facts(list ...fact) {
	p.started = true
	width := 0
	for _, f := range list {
		if f.text != "" {
			width = max(width, term.Width(f.name))
		}
	}
	for _, f := range list {
		if f.text == "" {
			continue
		}
		for i, line := range p.wrapped(term.Clean(f.text), width+4) {
			name := f.name
			if i > 0 {
				name = ""
			}
			fmt.Fprintf(p.w, "  %s  %s\n", term.Faint.Paint(term.Pad(name, width, false), p.layout.Color), line)
		}
	}
}

// wrapped cuts a text that begins at a column of a terminal into lines that fit. It is
// one line where the output is no terminal, or a path or another long word is in it:
// those are copied.
func (p *page) wrapped(text string, column int) []string {
	room := p.layout.Width - column
	if p.layout.Width == 0 || term.Width(text) <= room || !wordsFit(text, room) {
		return []string{text}
	}
	return term.Wrap(text, room)
}

// wordsFit reports whether every word of a text fits into a line.
func wordsFit(text string, room int) bool {
	return !slices.ContainsFunc(strings.Fields(text), func(word string) bool { return term.Width(word) > room })
}

// table prints a table, indented. Its columns need no Key.
func (p *page) table(columns []column, rows [][]any) error {
	p.started = true
	if err := p.w.Flush(); err != nil {
		return err
	}
	var text strings.Builder
	inner := *p.out
	inner.w, inner.fields, inner.header = &text, nil, true
	if inner.stream.TTY {
		inner.stream = inner.stream.Sized(func() (int, int) { return p.out.stream.Width() - 2, p.out.stream.Height() })
	}
	if err := inner.printAligned(table{Columns: columns, Rows: rows}); err != nil {
		return err
	}
	for line := range strings.Lines(text.String()) {
		if _, err := p.w.WriteString("  " + line); err != nil {
			return err
		}
	}
	return nil
}

// text prints lines as they are, each cleaned and indented.
func (p *page) text(indent, text string) {
	p.started = true
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		fmt.Fprintf(p.w, "%s\n", strings.TrimRight(indent+term.Clean(line), " "))
	}
}

// proseWidth is how many columns indented prose may take.
func (p *page) proseWidth() int {
	if p.layout.Width == 0 {
		return helpMaxWidth
	}
	return min(p.layout.Width-2, helpMaxWidth)
}

func (p *page) close() error { return p.w.Flush() }
