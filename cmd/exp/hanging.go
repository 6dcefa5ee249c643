package main

import (
	"bytes"
	"io"
	"strings"

	"exp/cmd/exp/term"
)

// writeHanging writes what do writes; on a terminal, lines that are too long for it go on
// below, from column indent. The first indent columns of a long line stay as they are.
func (o *output) writeHanging(w io.Writer, indent int, do func(w io.Writer) error) error {
	if !o.stream.TTY {
		return do(w)
	}
	var text bytes.Buffer
	if err := do(&text); err != nil {
		return err
	}
	_, err := io.WriteString(w, hang(text.String(), o.stream.Width(), indent))
	return err
}

// hang cuts the lines of a text that are wider than width.
func hang(text string, width, indent int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		short := strings.TrimSuffix(line, "\n")
		if term.Width(short) <= width || len(short) <= indent || !wordsFit(short[indent:], width-indent) || !strings.HasPrefix(short, "  ") || short[indent-1] != ' ' {
			b.WriteString(line)
			continue
		}
		b.WriteString(short[:indent])
		b.WriteString(strings.Join(term.Wrap(short[indent:], width-indent), "\n"+strings.Repeat(" ", indent)))
		b.WriteString(line[len(short):])
	}
	return b.String()
}
