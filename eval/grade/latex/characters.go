package latex

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"exp/eval/grade/pattern"
)

// PlainCharacters replaces characters by the ASCII ones they stand for: full-width letters and
// punctuation, digits of every script, spaces of every width. It drops characters without width, undoubles
// backslashes of commands, which come from JSON, and restores commands that lost theirs there. Most texts are
// returned unchanged.
func PlainCharacters(s string) string {
	if strings.Contains(s, `\\`) && !strings.Contains(s, `\begin`) {
		s = undouble(s)
	}
	if strings.ContainsAny(s, "\b\f") {
		s = controls.Replace(s)
	}
	if strings.Contains(s, "&lt") || strings.Contains(s, "&le") || strings.Contains(s, "&g") {
		s = entities.Replace(s)
	}
	if isASCII(s) {
		return s
	}
	changed := false
	for _, r := range s {
		if r > 0x7f && plainCharacter(r) != r {
			changed = true
			break
		}
	}
	if !changed {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			b.WriteByte(s[i])
		} else if r = plainCharacter(r); r != 0 {
			b.WriteRune(r)
		}
		i += n
	}
	return b.String()
}

// controls restores commands whose first letter was read as an escape: \b of \boxed, \f of \frac.
var controls = strings.NewReplacer("\boxed", `\boxed`, "\binom", `\binom`, "\begin", `\begin`, "\frac", `\frac`)

// entities restores the signs of relations that HTML escapes.
var entities = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&le;", "≤", "&ge;", "≥", "&leq;", "≤", "&geq;", "≥")

// plainCharacter returns the ASCII character that r stands for, 0 if r has no width, else r.
func plainCharacter(r rune) rune {
	switch {
	case r < 0x80:
		return r
	case r >= 0xff01 && r <= 0xff5e && r != '｜': // <｜end▁of▁sentence｜>
		return r - 0xfee0
	case r == 0x3000 || r != 0x85 && r >= 0x80 && unicode.IsSpace(r) && r != 0x2028 && r != 0x2029:
		return ' '
	case r == 0x2010 || r == 0x2011: // hyphens, which models write for a minus
		return '-'
	case r == '“' || r == '”':
		return '"'
	case r == '✕' || r == '✖' || r == '⨯':
		return '×'
	case r >= 0x1d400 && r < 0x1d6a4: // thirteen alphabets of mathematics: 𝑥
		k := (r - 0x1d400) % 52
		return 'A' + k + k/26*('a'-'Z'-1)
	case r >= 0x1d6a8 && r < 0x1d7ca: // five Greek alphabets of mathematics: 𝜋
		return greekLetters[(r-0x1d6a8)%58]
	case r >= 0x660 && unicode.IsDigit(r):
		return '0' + digitOf(r)
	case r >= 0x200b && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2060 && r <= 0x2069,
		r == 0xfeff, r == 0xad, r == 0xfe0f:
		return 0
	}
	return r
}

// greekLetters are the letters of a Greek alphabet of mathematics in their order.
var greekLetters = []rune("ΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΘΣΤΥΦΧΨΩ∇αβγδεζηθικλμνξοπρςστυφχψω∂εθκφρπ")

// digitOf returns the value of a digit of any script; ten digits follow each other in each.
func digitOf(r rune) rune {
	for _, t := range unicode.Nd.R16 {
		if r <= rune(t.Hi) {
			return (r - rune(t.Lo)) % 10
		}
	}
	for _, t := range unicode.Nd.R32 {
		if r <= rune(t.Hi) {
			return (r - rune(t.Lo)) % 10
		}
	}
	return 0
}

func isASCII(s string) bool {
	for len(s) >= 8 {
		if s[0]|s[1]|s[2]|s[3]|s[4]|s[5]|s[6]|s[7] >= utf8.RuneSelf {
			return false
		}
		s = s[8:]
	}
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

var doubled = pattern.New(`\\\\([A-Za-z]+)`)

// undouble turns \\frac into \frac. Outside environments a double backslash before a command's name can only
// be a backslash that was escaped.
func undouble(s string) string {
	return doubled.ReplaceAllStringFunc(s, func(m string) string {
		if knownCommand(m[2:]) {
			return m[1:]
		}
		return m
	})
}

// knownCommand reports whether a name starts with a command of LaTeX that has more than one letter.
func knownCommand(name string) bool {
	switch name {
	case "boxed", "fbox", "left", "right", "text", "begin", "end", "mathbf", "mathrm", "textbf", "mathbb":
		return true
	}
	if _, ok := latexNames[name]; ok {
		return len(name) > 1
	}
	return false
}
