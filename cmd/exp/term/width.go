package term

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// Width returns the number of terminal columns that s takes: two for East Asian
// wide characters and emoji, none for combining marks. s holds no escapes.
func Width(s string) int {
	if isASCII(s) {
		return len(s)
	}
	return uniseg.StringWidth(s)
}

// Cut returns s if it fits in width columns, else its longest prefix that fits
// together with mark, and mark ("…"). It never splits a grapheme. A mark that does
// not fit itself is left out.
func Cut(s string, width int, mark string) string {
	if Width(s) <= width {
		return s
	}
	if Width(mark) > width {
		mark = ""
	}
	head, _ := split(s, width-Width(mark))
	return head + mark
}

// Wrap breaks s into lines of at most width columns, at spaces where there are
// any, and at its newlines. A word longer than a line is split. It returns at
// least one line; width below 1 counts as 1.
func Wrap(s string, width int) []string {
	width = max(width, 1)
	var lines []string
	for paragraph := range strings.SplitSeq(s, "\n") {
		lines = append(lines, wrapParagraph(paragraph, width)...)
	}
	return lines
}

// Hang is Wrap for a line with a margin, and perhaps a word and two spaces or more before its
// text: "  score  grading the completions". The lines after the first begin below the text.
func Hang(line string, width int) []string {
	if Width(line) <= width {
		return []string{line}
	}
	text := strings.TrimLeft(line, " ")
	if _, after, gap := strings.Cut(text, "  "); gap {
		if after = strings.TrimLeft(after, " "); Width(line)-Width(after) <= width/2 {
			text = after
		}
	}
	head := line[:len(line)-len(text)]
	lines := Wrap(text, width-Width(head))
	lines[0] = head + lines[0]
	for i := range lines[1:] {
		lines[i+1] = strings.Repeat(" ", Width(head)) + lines[i+1]
	}
	return lines
}

// Reflow wraps a text whose lines have a margin of two spaces. Lines that go on with a paragraph, or below
// the text of an entry ("  score  grading the"), are joined first, since they were broken for another width.
// Lines with a wider margin, such as examples, stay lines.
func Reflow(text string, width int) []string {
	const margin = 2
	var out []string
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		indent, column := indents(line)
		if indent == margin {
			for i+1 < len(lines) {
				at, text := indents(lines[i+1])
				if at != column || text != at { // an empty line, another entry
					break
				}
				line += " " + strings.TrimLeft(lines[i+1], " ")
				i++
			}
		}
		out = append(out, Hang(line, width)...)
	}
	return out
}

// indents returns the width of a line's margin, and the column where its text begins: the margin, or what
// follows the word of an entry. An empty line has none, -1.
func indents(line string) (margin, text int) {
	rest := strings.TrimLeft(line, " ")
	if rest == "" {
		return -1, -1
	}
	margin = len(line) - len(rest)
	if _, after, gap := strings.Cut(rest, "  "); gap {
		return margin, Width(line) - Width(strings.TrimLeft(after, " "))
	}
	return margin, margin
}

func wrapParagraph(s string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(s) {
		switch {
		case line == "":
			line = word
		case Width(line)+1+Width(word) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
		for Width(line) > width {
			head, tail := split(line, width)
			if tail == "" { // one character that is wider than the line
				break
			}
			lines = append(lines, head)
			line = tail
		}
	}
	return append(lines, line)
}

// split cuts s after as many whole characters as fit in width columns, at least
// one where s has any, so that a caller's loop always ends.
func split(s string, width int) (head, tail string) {
	used, at, state := 0, 0, -1
	for rest := s; rest != ""; {
		var cluster string
		var w int
		cluster, rest, w, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if used+w > width && (at > 0 || width <= 0) {
			break
		}
		used += w
		at += len(cluster)
	}
	return s[:at], s[at:]
}

// Pad returns s with spaces added to fill width columns, on the left if right
// (alignment) is true.
func Pad(s string, width int, right bool) string {
	space := strings.Repeat(" ", max(width-Width(s), 0))
	if right {
		return space + s
	}
	return s + space
}

// Clean makes text from outside (model output, file names) safe to print: every
// control character becomes one space, so nothing can move the cursor, set a
// title or end a row; bytes that are not UTF-8 become U+FFFD. Characters that
// re-order text (bidirectional overrides) are dropped.
func Clean(s string) string {
	return clean(s, false)
}

// CleanLines is Clean, but keeps newlines.
func CleanLines(s string) string {
	return clean(s, true)
}

func clean(s string, keepNewlines bool) string {
	ok := true
	for i := 0; i < len(s) && ok; i++ {
		ok = ' ' <= s[i] && s[i] < 0x7f
	}
	if ok {
		return s
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' && keepNewlines:
			return r
		case unicode.IsControl(r), r == '\u2028', r == '\u2029':
			return ' '
		case unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, string(utf8.RuneError)))
}

func isASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}
