package reports

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// markdown renders a page in GitHub's dialect. It shows the figures as PNG or SVG, if figures
// has one of them, and links to the files of every format.
func (p page) markdown(figures []string) []byte {
	m := &markdownWriter{figures: figures}
	m.printf("# %s\n\n", escapeMD(p.Title))
	if p.Subtitle != "" {
		m.printf("%s\n\n", escapeMD(p.Subtitle))
	}
	for _, f := range p.Facts {
		m.printf("- **%s**: %s\n", escapeMD(f.Label), m.line(f.Value))
	}
	m.printf("\n")
	for i, s := range p.Sections {
		if i > 0 {
			m.printf(" · ")
		}
		m.printf("[%s](#%s)", escapeMD(s.Title), anchor(s.Title))
	}
	m.printf("\n")
	for _, s := range p.Sections {
		m.printf("\n## %s\n", escapeMD(s.Title))
		for _, b := range s.Blocks {
			m.printf("\n")
			m.block(b)
		}
	}
	return []byte(m.String())
}

// anchor returns the id that GitHub gives a heading.
func anchor(title string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(title) {
		switch {
		case r == ' ':
			b.WriteByte('-')
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_':
			b.WriteRune(r)
		}
	}
	return b.String()
}

type markdownWriter struct {
	strings.Builder
	figures []string
}

func (m *markdownWriter) printf(format string, args ...any) { fmt.Fprintf(&m.Builder, format, args...) }

func (m *markdownWriter) block(b block) {
	switch b := b.(type) {
	case paragraph:
		m.printf("%s\n", m.opening(b.Text))
	case heading:
		m.printf("### %s\n", escapeMD(b.Text))
	case bullets:
		for _, l := range b {
			m.printf("- %s\n", m.opening(l))
		}
	case callout:
		kind := "NOTE"
		if b.Warning {
			kind = "WARNING"
		}
		m.printf("> [!%s]\n> ", kind)
		if b.Title != "" {
			m.printf("**%s** ", escapeMD(b.Title))
		}
		m.printf("%s\n", m.line(b.Text))
	case *grid:
		m.grid(b)
	case gallery:
		for i, f := range b {
			if i > 0 {
				m.printf("\n")
			}
			m.figure(f)
		}
	case listing:
		m.fence(b.Text)
	case folded:
		m.printf("<details>\n<summary>%s</summary>\n", escapeMD(b.Summary))
		for _, inner := range b.Blocks {
			m.printf("\n")
			m.block(inner)
		}
		m.printf("\n</details>\n")
	case problem:
		m.problem(b)
	default:
		panic(fmt.Sprintf("reports: no block %T", b))
	}
}

func (m *markdownWriter) figure(f numbered) {
	if shown := preferred(m.figures); shown != "" {
		m.printf("![%s](%s)\n\n", escapeMD(f.Alt), f.file(shown))
	}
	m.printf("**Figure %d.** %s", f.N, escapeMD(f.caption()))
	m.printf(" %s\n", m.line(f.links(m.figures)))
}

// preferred returns the format to show: png if present, since GitHub substitutes the fonts of
// an SVG. No page shows a PDF: "" if there is nothing else, and links remain.
func preferred(formats []string) string {
	for _, f := range [...]string{"png", "svg"} {
		if slices.Contains(formats, f) {
			return f
		}
	}
	return ""
}

func (m *markdownWriter) grid(g *grid) {
	if g.Caption != "" {
		m.printf("**%s**\n\n", escapeMD(g.Caption))
	}
	for _, c := range g.Columns {
		title := escapeMD(c.Title)
		if title == "" {
			title = " "
		}
		m.printf("| %s ", title)
	}
	m.printf("|\n")
	for _, c := range g.Columns {
		if c.Right {
			m.printf("|---:")
		} else {
			m.printf("|---")
		}
	}
	m.printf("|\n")
	for _, r := range g.Rows {
		if r.Head {
			m.printf("| **%s** %s|\n", m.cell(r.Cells[0]), strings.Repeat("| ", len(g.Columns)-1))
			continue
		}
		for _, c := range r.Cells {
			m.printf("| %s ", m.cell(c))
		}
		m.printf("|\n")
	}
	if len(g.Note) > 0 {
		m.printf("\n%s\n", m.line(g.Note))
	}
}

func (m *markdownWriter) problem(p problem) {
	m.printf("### %s\n\n", m.line(p.Title))
	m.fence(p.Prompt)
	for _, a := range p.Arms {
		m.printf("\n**%s**, %s\n\n", escapeMD(a.Arm.Text), escapeMD(a.Right))
		m.printf("| n | verdict | completion |\n|---:|---|---|\n")
		for _, g := range a.Groups {
			m.printf("| %d | %s | %s |\n", g.Count, g.Verdict, strings.ReplaceAll(codeSpan(g.Text), "|", `\|`))
		}
		if a.More != "" {
			m.printf("\n%s\n", escapeMD(a.More))
		}
	}
}

// fence writes text as a code block with a fence longer than any inside.
func (m *markdownWriter) fence(text string) {
	mark := strings.Repeat("`", max(3, longestTicks(text)+1))
	m.printf("%s\n%s\n%s\n", mark, strings.TrimSuffix(text, "\n"), mark)
}

func (m *markdownWriter) line(l line) string {
	var b strings.Builder
	for _, s := range l {
		if s.Text == "" {
			continue
		}
		t := escapeMD(s.Text)
		switch {
		case s.Link != "":
			t = "[" + t + "](" + s.Link + ")"
		case s.Style == strong || s.Style == good || s.Style == bad:
			t = emphasis(t)
		case s.Style == mono:
			t = codeSpan(s.Text)
		}
		b.WriteString(t)
	}
	return b.String()
}

// opening escapes a line that begins a block, where some characters would start a
// heading, a quote or a list.
func (m *markdownWriter) opening(l line) string {
	t := m.line(l)
	if t != "" && strings.ContainsAny(t[:1], "#>+-") {
		return `\` + t
	}
	return t
}

// emphasis makes text bold, keeping spaces at its ends outside the marks.
func emphasis(t string) string {
	inner := strings.TrimSpace(t)
	if inner == "" {
		return t
	}
	at := strings.Index(t, inner)
	return t[:at] + "**" + inner + "**" + t[at+len(inner):]
}

// cell escapes a line for a table cell, which a bar would end.
func (m *markdownWriter) cell(l line) string { return strings.ReplaceAll(m.line(l), "|", `\|`) }

// codeSpan returns text as code on one line, with line breaks shown as ⏎.
func codeSpan(t string) string {
	t = strings.ReplaceAll(strings.ReplaceAll(t, "\n", "⏎"), "\t", " ")
	if strings.TrimSpace(t) == "" {
		return "*(empty)*"
	}
	n := longestTicks(t)
	if n == 0 {
		return "`" + t + "`"
	}
	mark := strings.Repeat("`", n+1)
	return mark + " " + t + " " + mark
}

func longestTicks(t string) int {
	most, run := 0, 0
	for _, r := range t {
		if r != '`' {
			run = 0
			continue
		}
		run++
		most = max(most, run)
	}
	return most
}

// escapeMD escapes markup in text. It leaves underscores inside words, which GitHub's
// dialect does not read as markup.
func escapeMD(t string) string {
	t = strings.ReplaceAll(t, "\n", " ")
	var b strings.Builder
	for i, r := range t {
		switch r {
		case '\\', '`', '*', '<', '[', ']', '~':
			b.WriteByte('\\')
		case '_':
			before, _ := utf8.DecodeLastRuneInString(t[:i])
			after, _ := utf8.DecodeRuneInString(t[i+1:])
			if !wordRune(before) || !wordRune(after) {
				b.WriteByte('\\')
			}
		}
		b.WriteRune(r)
	}
	return b.String()
}

func wordRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}
