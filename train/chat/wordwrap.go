package chat

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// wordwrapFilter wraps each line of a text as Python's textwrap.wrap does, and joins all lines with a text.
func wordwrapFilter(st *state, v Value, args []Value) (Value, error) {
	s, err := textArgument("wordwrap", v)
	if err != nil {
		return nil, err
	}
	w := wrapper{long: args[1] == nil || isTrue(args[1]), hyphens: args[3] == nil || isTrue(args[3])}
	if w.width, err = indexOf(optional(args[0], Int(79))); err != nil {
		return nil, err
	}
	join := "\n"
	if _, none := optional(args[2], None{}).(None); !none {
		if join, err = textArgument("wordwrap", args[2]); err != nil {
			return nil, err
		}
	}
	lines := splitLines(s, false)
	if w.width <= 0 && len(lines) > 0 {
		return nil, valueErr("wordwrap: the width %d is not positive", w.width)
	}
	if err := st.chargeSlow(len(s)); err != nil {
		return nil, err
	}
	for i, line := range lines {
		if lines[i], err = st.joinTexts(w.wrap([]rune(line)), join); err != nil {
			return nil, err
		}
	}
	text, err := st.joinTexts(lines, join)
	return alike(v, text), err
}

// wrapper breaks a line: at white space, after hyphens within words if hyphens, and words longer than a line if long.
type wrapper struct {
	width         int
	long, hyphens bool
}

func (w wrapper) wrap(line []rune) []string {
	var lines []string
	chunks := w.chunks(line)
	for len(chunks) > 0 {
		if len(lines) > 0 && blank(chunks[0]) {
			chunks = chunks[1:]
		}
		var taken [][]rune
		size := 0
		for len(chunks) > 0 && size+len(chunks[0]) <= w.width {
			taken = append(taken, chunks[0])
			size += len(chunks[0])
			chunks = chunks[1:]
		}
		if len(chunks) > 0 && len(chunks[0]) > w.width {
			switch {
			case w.long:
				n := w.breakAt(chunks[0], w.width-size)
				taken = append(taken, chunks[0][:n])
				chunks[0] = chunks[0][n:]
			case len(taken) == 0:
				taken, chunks = chunks[:1], chunks[1:]
			}
		}
		if len(taken) > 0 && blank(taken[len(taken)-1]) {
			taken = taken[:len(taken)-1]
		}
		if len(taken) > 0 {
			var b strings.Builder
			for _, c := range taken {
				b.WriteString(string(c))
			}
			lines = append(lines, b.String())
		}
	}
	return lines
}

func blank(chunk []rune) bool { return strings.TrimFunc(string(chunk), isSpace) == "" }

// breakAt returns how much of a word longer than a line goes to a line with room left.
func (w wrapper) breakAt(word []rune, room int) int {
	if !w.hyphens {
		return room
	}
	for i := room - 1; i > 0; i-- {
		if word[i] == '-' {
			if strings.Trim(string(word[:i]), "-") != "" {
				return i + 1
			}
			break
		}
	}
	return room
}

// chunks cuts a line into pieces that are broken only if longer than a line: white space and words, or parts of
// words.
func (w wrapper) chunks(line []rune) [][]rune {
	var chunks [][]rune
	for i, j := 0, 0; i < len(line); i = j {
		j = i + 1
		switch dashes := longDash(line, i); {
		case isBlankRune(line[i]):
			for j < len(line) && isBlankRune(line[j]) {
				j++
			}
		case !w.hyphens:
			for j < len(line) && !isBlankRune(line[j]) {
				j++
			}
		case dashes > 0:
			j = i + dashes
		default:
			j = wordEnd(line, i)
		}
		chunks = append(chunks, line[i:j])
	}
	return chunks
}

// wordEnd returns where the word or part of a word that begins at i ends.
func wordEnd(line []rune, i int) int {
	for j := i + 1; ; j++ {
		switch {
		case j == len(line) || isBlankRune(line[j]) || longDash(line, j) > 0:
			return j
		case line[j] == '-' && hyphenates(line, j):
			return j + 1
		}
	}
}

// hyphenates reports whether the hyphen at j is between parts of a word, such as co-operate or e-mail-like.
func hyphenates(line []rune, j int) bool {
	letter := func(i int) bool {
		return i >= 0 && i < len(line) && isWordRune(line[i]) && !unicode.IsDigit(line[i])
	}
	hyphen := func(i int) bool { return i >= 0 && i < len(line) && line[i] == '-' }
	before := letter(j-1) && letter(j-2) || letter(j-3) && hyphen(j-2) && letter(j-1)
	after := letter(j+1) && (letter(j+2) || hyphen(j+2) && letter(j+3))
	return before && after
}

// longDash returns the length of a dash of two or more hyphens at i between words, or 0.
func longDash(line []rune, i int) int {
	n := i
	for n < len(line) && line[n] == '-' {
		n++
	}
	if n-i < 2 || i == 0 || !besideDash(line[i-1]) || n == len(line) || !isWordRune(line[n]) {
		return 0
	}
	return n - i
}

// besideDash reports whether a word before a dash may end in r.
func besideDash(r rune) bool {
	return isWordRune(r) || r < utf8.RuneSelf && strings.ContainsRune("!\"'&.,?", r)
}

func isBlankRune(r rune) bool { return r < utf8.RuneSelf && strings.ContainsRune("\t\n\v\f\r ", r) }
