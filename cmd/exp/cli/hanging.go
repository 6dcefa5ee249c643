package cli

import (
	"bytes"
	"io"
	"slices"
	"strings"

	"exp/cmd/exp/term"
)

// WriteHanging writes the output of do. On a terminal, long lines wrap and continue at
// column indent.
func (o *Output) WriteHanging(w io.Writer, indent int, do func(w io.Writer) error) error {
	if !o.Stream.TTY {
		return do(w)
	}
	var text bytes.Buffer
	if err := do(&text); err != nil {
		return err
	}
	_, err := io.WriteString(w, hang(text.String(), o.Stream.Width(), indent))
	return err
}

// hang wraps the lines that are wider than width, except commands, which people copy.
func hang(text string, width, indent int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		short := strings.TrimSuffix(line, "\n")
		if term.Width(short) <= width || len(short) <= indent || !wordsFit(short[indent:], width-indent) ||
			!strings.HasPrefix(short, "  ") || short[indent-1] != ' ' || isCommand(short[indent:]) {
			b.WriteString(line)
			continue
		}
		b.WriteString(short[:indent])
		b.WriteString(strings.Join(term.Wrap(short[indent:], width-indent), "\n"+strings.Repeat(" ", indent)))
		b.WriteString(line[len(short):])
	}
	return b.String()
}

// isCommand reports whether a text is a command of ours or of the shell.
func isCommand(text string) bool {
	word, _, _ := strings.Cut(text, " ")
	return slices.Contains([]string{"exp", "mkdir", "tar"}, word)
}
