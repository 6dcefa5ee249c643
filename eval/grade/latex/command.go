package latex

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"exp/eval/grade/formula"
	"exp/eval/grade/pattern"
	"exp/eval/grade/wording"
)

// backslash reads a command.
func (l *lexer) backslash() error {
	l.i++
	if l.i == len(l.s) {
		return nil // cut off
	}
	c := l.s[l.i]
	if !wording.IsLetter(c) {
		l.i++
		switch c {
		case '|': // a norm
			l.emit(tokOp, "|")
		case '{', '}':
			if c == '{' {
				l.brackets++
			} else if c == '}' {
				l.brackets--
			}
			l.emit(tokOp, "\\"+string(c))
		case '\\':
			l.emit(tokOp, "\\\\")
			l.i += len(rowSkip.FindString(l.s[l.i:]))
		case '%':
			l.emit(tokOp, "%")
		case '$':
			l.emit(tokText, "$")
		case ' ', ',', ';', ':', '!', '>', '(', ')', '[', ']', '\n', '-', '/', '"', '\'':
			l.spaced = l.spaced || c != '!'
		case '_', '#', '&':
			return fmt.Errorf("unexpected \\%c", c)
		default:
			return fmt.Errorf("unexpected \\%c", c)
		}
		return nil
	}
	start := l.i
	for l.i < len(l.s) && wording.IsLetter(l.s[l.i]) {
		l.i++
	}
	return l.command(l.s[start:l.i])
}

// rowSkip matches the star and the height after the end of a row: \\[2mm].
var rowSkip = pattern.New(`^\*?` +
	`(?: *\[ *-?(?:[0-9]*\.?[0-9]+ *(?:pt|mm|cm|in|ex|em|mu|pc|bp|sp|dd)|\\[a-z]+) *\])?`)

// command handles a named command. Most are in the table latexNames.
func (l *lexer) command(name string) error {
	if slices.Contains(layoutCommands, name) {
		l.spaced = true
		return nil
	}
	switch name {
	case "vec", "overrightarrow", "overleftarrow":
		l.arrow()
		return nil
	case "mathbf", "boldsymbol", "bm", "hat", "bold", "mathbfit":
		l.vectors = l.vectors || l.marksVector()
		l.spaced = true
		return nil
	case "times":
		if l.vectors {
			l.emit(tokOp, "×")
			return nil
		}
	case "phantom", "hphantom", "vphantom", "hspace", "vspace", "color", "textcolor", "colorbox", "raisebox", "label",
		"tag":
		if l.i < len(l.s) && l.s[l.i] == '*' {
			l.i++
		}
		l.group() // nothing to read
		l.spaced = true
		return nil
	case "pmod":
		l.modulus("mod")
		return nil
	case "bmod", "mod": // a remainder: 18 \bmod 7 is 4
		l.modulus("modulo ")
		return nil
	case "left", "right", "bigl", "bigr", "Bigl", "Bigr", "big", "Big", "bigg", "Bigg", "biggl", "biggr", "Biggl",
		"Biggr", "middle":
		return l.delimiter(name)
	case "text", "textbf", "textit", "textrm", "mbox", "hbox", "mathrm", "rm", "operatorname", "mathit", "textsf",
		"texttt", "emph", "textnormal":
		return l.textCommand(name)
	case "begin", "end":
		return l.boundary(name == "begin")
	case "mathbb", "Bbb":
		g, _ := l.group()
		switch g {
		case "R":
			if l.halfLine() {
				return nil
			}
			l.emit(tokSym, formula.Reals)
		default:
			l.emit(tokSym, "𝔹"+g)
		}
		return nil
	case "not":
		rest := strings.TrimLeft(l.s[l.i:], " ")
		if after, ok := strings.CutPrefix(rest, "="); ok {
			l.i = len(l.s) - len(after)
			l.emit(tokOp, "!=")
			return nil
		}
		return fmt.Errorf("unknown command \\not")
	case "angle", "measuredangle", "triangle":
		l.figure(name)
		return nil
	case "circ":
		l.emit(tokOp, "°")
		return nil
	}
	return l.named(name)
}

// halfLine reads the sign after ℝ in ℝ⁺ and ℝ_{<0} as an interval; false without such a sign.
func (l *lexer) halfLine() bool {
	m := signOfReals.FindStringSubmatch(l.s[l.i:])
	if m == nil {
		return false
	}
	l.i += len(m[0])
	ends := []token{{kind: tokNum, text: "0"}, {kind: tokOp, text: ","}, {kind: tokSym, text: formula.Infinity}}
	open, closing := "(", ")"
	if m[1] == "-" || m[1] == "<" || m[1] == "\\lt" {
		ends = []token{{kind: tokOp, text: "-"}, {kind: tokSym, text: formula.Infinity}, {kind: tokOp, text: ","},
			{kind: tokNum, text: "0"}}
	}
	l.emit(tokOp, open)
	for _, t := range ends {
		l.emit(t.kind, t.text)
	}
	l.emit(tokOp, closing)
	return true
}

// signOfReals matches a sign that makes the real numbers half of them.
var signOfReals = pattern.New(`^ *[\^_] *(?:\{ *)?([-+]|[<>]|\\[lg]t) *(?:0 *)?\}?`)

// boundary reads the name of an environment after \begin or \end.
func (l *lexer) boundary(begin bool) error {
	env, ok := l.group()
	if !ok {
		return errors.New("\\begin or \\end without an environment")
	}
	env = strings.TrimSuffix(strings.TrimSpace(env), "*")
	if !begin {
		l.brackets--
		l.emit(tokFinish, env)
		return nil
	}
	if env == "array" || env == "tabular" {
		l.group() // the columns
	}
	l.brackets++
	l.emit(tokBegin, env)
	return nil
}

// named reads a command that stands for one token, with letters stuck to it, or an unknown name.
func (l *lexer) named(name string) error {
	if t, ok := latexNames[name]; ok {
		if t.text == "\\{" {
			l.brackets++
		} else if t.text == "\\}" {
			l.brackets--
		}
		l.emit(t.kind, t.text)
		return nil
	}
	// \pir, \cdotx, \quady and the like are typos that people still read.
	for n := len(name) - 1; n > 1 && len(name)-n <= 3; n-- {
		if slices.Contains(layoutCommands, name[:n]) && n > 3 {
			l.i -= len(name) - n
			l.spaced = true
			return nil
		}
		if t, ok := latexNames[name[:n]]; ok {
			l.i -= len(name) - n
			l.emit(t.kind, t.text)
			return nil
		}
	}
	if rest := strings.TrimLeft(l.s[l.i:], " "); !strings.HasPrefix(rest, "{") && !strings.HasPrefix(rest, "[") {
		l.emit(tokSym, "\\"+name) // a name that we do not know, such as \hbar
		return nil
	}
	return fmt.Errorf("unknown command \\%s", name)
}

// figure reads \angle ABC and \triangle ABC, with the letters of the points, as one name: ∠ABC equals ∠CBA,
// and a triangle's letters may be in any order.
func (l *lexer) figure(name string) {
	rest := strings.TrimLeft(l.s[l.i:], " ")
	n := 0
	for n < len(rest) && n < 3 && 'A' <= rest[n] && rest[n] <= 'Z' {
		n++
	}
	points := []byte(rest[:n])
	l.i = len(l.s) - len(rest) + n
	if name == "triangle" {
		slices.Sort(points)
		l.emit(tokSym, "△"+string(points))
		return
	}
	if n > 1 && points[0] > points[n-1] {
		slices.Reverse(points)
	}
	l.emit(tokSym, "∠"+string(points))
}

// modulus reads \pmod{9} and \bmod 9 as words after a value: name and number.
func (l *lexer) modulus(name string) {
	m, ok := l.group()
	if !ok {
		rest := strings.TrimLeft(l.s[l.i:], " ")
		m = rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
		l.i = len(l.s) - len(rest) + len(m)
	}
	l.emit(tokText, name+strings.TrimSpace(m))
}

// delimiter reads what follows \left and \right. Bars become an opening and a closing sign; the point of
// "\right." is dropped.
func (l *lexer) delimiter(name string) error {
	for l.i < len(l.s) && l.s[l.i] == ' ' {
		l.i++
	}
	if l.i == len(l.s) {
		return nil
	}
	switch l.s[l.i] {
	case '.':
		l.i++
	case '|':
		l.i++
		switch {
		case strings.HasSuffix(name, "l") || name == "left":
			l.emit(tokOp, "|(")
		case strings.HasSuffix(name, "r") || name == "right":
			l.emit(tokOp, "|)")
		default:
			l.emit(tokOp, "|")
		}
	}
	return nil
}

// group reads {…} and returns its content.
func (l *lexer) group() (string, bool) {
	i := l.i
	for i < len(l.s) && l.s[i] == ' ' {
		i++
	}
	if i == len(l.s) || l.s[i] != '{' {
		return "", false
	}
	end := MatchBrace(l.s, i)
	if end < 0 {
		return "", false
	}
	l.i = end + 1
	return l.s[i+1 : end], true
}

// MatchBrace returns the index of the brace that closes the one at s[open], or -1. Escaped braces do not
// count.
func MatchBrace(s string, open int) int {
	depth := 0
	for i := open; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}
