package latex

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"exp/eval/grade/pattern"
	"exp/eval/grade/wording"
)

// kind is the kind of a token.
type kind uint8

const (
	tokEnd    kind = iota
	tokNum         // text: digits, with at most one point; thousands separators are gone
	tokSym         // text: name of a variable or constant
	tokFunc        // text: name of a function
	tokOp          // text: operator, bracket or separator, see lexer.command
	tokText        // text: words
	tokBegin       // text: environment
	tokFinish      // text: environment
)

// token is one word of LaTeX or plain mathematics.
type token struct {
	kind   kind
	text   string
	spaced bool // preceded by white space
}

// lexer splits an answer into tokens. Layout commands (\left, \,, \displaystyle, $) produce no token.
type lexer struct {
	s         string
	i         int
	thousands bool // 1,234 is one number outside brackets
	brackets  int
	arguments []bool // per open brace: whether it holds a TeX argument
	spaced    bool
	vectors   bool // a vector was marked as one
	tokens    []token
}

// maxTokens bounds one answer.
const maxTokens = 4000

// tokenize fails if a text is certainly not mathematics.
func tokenize(s string, thousands bool) ([]token, error) {
	l := lexer{s: s, thousands: thousands, tokens: make([]token, 0, 8+len(s)/2)}
	for l.i < len(l.s) {
		if err := l.next(); err != nil {
			return nil, err
		}
		if len(l.tokens) > maxTokens {
			return nil, fmt.Errorf("more than %d words", maxTokens)
		}
	}
	return l.tokens, nil
}

func (l *lexer) emit(k kind, text string) {
	l.tokens = append(l.tokens, token{k, text, l.spaced})
	l.spaced = false
}

func (l *lexer) next() error {
	c := l.s[l.i]
	rest := l.s[l.i:]
	switch {
	case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '~':
		l.i++
		l.spaced = true
	case c == '$':
		l.i++
		if l.i < len(l.s) && wording.IsDigit(l.s[l.i]) && !strings.Contains(l.s[l.i:], "$") {
			l.emit(tokText, "$") // an amount of money
		}
	case wording.IsDigit(c) || c == '.' && len(rest) > 1 && wording.IsDigit(rest[1]):
		l.number()
	case wording.IsLetter(c):
		l.word()
	case c == '\\':
		return l.backslash()
	case strings.HasPrefix(rest, "**"):
		l.i += 2
		l.emit(tokOp, "^")
	case c < utf8.RuneSelf:
		return l.punctuation(c)
	default:
		r, n := utf8.DecodeRuneInString(rest)
		if unicode.IsSpace(r) {
			l.i += n
			l.spaced = true
			return nil
		}
		if t, ok := symbolRunes[r]; ok {
			l.i += n
			l.emit(t.kind, t.text)
			return nil
		}
		if r == '∠' || r == '△' {
			l.i += n
			l.figure(map[rune]string{'∠': "angle", '△': "triangle"}[r])
			return nil
		}
		if strings.ContainsRune("⁻⁺ⁿ", r) {
			return l.signedScript()
		}
		if l.raised(r) {
			l.i += n
			return nil
		}
		if unicode.IsLetter(r) {
			l.foreignWord()
			return nil
		}
		return fmt.Errorf("unknown character %q", r)
	}
	return nil
}

// raised reads a superscript or subscript digit, and one-character fractions.
func (l *lexer) raised(r rune) bool {
	if k := strings.IndexRune("⁰¹²³⁴⁵⁶⁷⁸⁹", r); k >= 0 {
		return l.script("^", strings.Count("⁰¹²³⁴⁵⁶⁷⁸⁹"[:k], "")-1)
	}
	if k := strings.IndexRune("₀₁₂₃₄₅₆₇₈₉", r); k >= 0 {
		return l.script("_", strings.Count("₀₁₂₃₄₅₆₇₈₉"[:k], "")-1)
	}
	f, ok := map[rune][2]string{'½': {"1", "2"}, '⅓': {"1", "3"}, '⅔': {"2", "3"}, '¼': {"1", "4"}, '¾': {"3", "4"},
		'⅕': {"1", "5"}, '⅖': {"2", "5"}, '⅗': {"3", "5"}, '⅘': {"4", "5"},
		'⅙': {"1", "6"}, '⅚': {"5", "6"}, '⅛': {"1", "8"}, '⅜': {"3", "8"}, '⅝': {"5", "8"}, '⅞': {"7", "8"},
		'⅐': {"1", "7"}, '⅑': {"1", "9"}, '⅒': {"1", "10"}}[r]
	if !ok {
		return false
	}
	l.emit(tokOp, "frac")
	for _, part := range f {
		l.emit(tokOp, "{")
		l.emit(tokNum, part)
		l.emit(tokOp, "}")
	}
	return true
}

// script reads a digit of an exponent or subscript; adjacent digits are one number.
func (l *lexer) script(op string, digit int) bool {
	n := len(l.tokens)
	if n >= 2 && l.tokens[n-2].text == op && l.tokens[n-2].kind == tokOp && l.tokens[n-1].kind == tokNum &&
		!l.spaced && !wording.IsDigit(l.s[l.i-1]) {
		l.tokens[n-1].text += string(rune('0' + digit))
		return true
	}
	l.emit(tokOp, op)
	l.emit(tokNum, string(rune('0'+digit)))
	return true
}

// superscripts maps raised characters to plain ones.
var superscripts = strings.NewReplacer("⁻", "-", "⁺", "+", "ⁿ", "n", "⁰", "0", "¹", "1", "²", "2", "³", "3", "⁴", "4",
	"⁵", "5", "⁶", "6", "⁷", "7", "⁸", "8", "⁹", "9")

// signedScript reads a raised sign or n with the raised digits after it: x⁻¹, 2ⁿ⁺¹.
func (l *lexer) signedScript() error {
	end := l.i
	for end < len(l.s) {
		r, n := utf8.DecodeRuneInString(l.s[end:])
		if !strings.ContainsRune("⁻⁺ⁿ⁰¹²³⁴⁵⁶⁷⁸⁹", r) {
			break
		}
		end += n
	}
	script := superscripts.Replace(l.s[l.i:end])
	l.i = end
	l.emit(tokOp, "^")
	l.emit(tokOp, "{")
	if err := l.formula(script); err != nil {
		return err
	}
	l.emit(tokOp, "}")
	return nil
}

// foreignWord reads a run of letters outside ASCII as text.
func (l *lexer) foreignWord() {
	start := l.i
	for l.i < len(l.s) {
		r, n := utf8.DecodeRuneInString(l.s[l.i:])
		if !unicode.IsLetter(r) {
			break
		}
		l.i += n
	}
	l.emit(tokText, l.s[start:l.i])
}

// punctuation reads operators of one or two ASCII characters.
func (l *lexer) punctuation(c byte) error {
	for _, two := range [...]string{"<=", ">=", "!=", "==", "+-", "->", ":="} {
		if strings.HasPrefix(l.s[l.i:], two) {
			if two == "!=" && l.i > 0 && wording.IsDigit(l.s[l.i-1]) {
				break // 5!=120
			}
			l.i += 2
			switch two {
			case "==", ":=":
				two = "="
			case "+-":
				two = "±"
			}
			l.emit(tokOp, two)
			return nil
		}
	}
	switch c {
	case '(', '[':
		l.brackets++
	case ')', ']':
		l.brackets--
	case '{', '}':
		l.brace(c)
	}
	switch c {
	case '+', '-', '*', '/', '^', '_', '!', '%', '(', ')', '[', ']', '{', '}', '|', ',', ';', ':', '=', '<',
		'>', '&', '\'':
		l.i++
		l.emit(tokOp, string(c))
		return nil
	case '.', '"', '`':
		l.i++
		rest := strings.TrimLeft(l.s[l.i:], " .$*`\"\n)")
		if rest == "" || c != '.' || strings.HasPrefix(rest, "\\end") || strings.HasPrefix(rest, "\\right") {
			return nil
		}
	case '#', '@':
	}
	return fmt.Errorf("unexpected %q", c)
}

// brace treats a brace as a bracket, where a comma separates values, unless it encloses an argument, as
// in \frac{1,000}{3}.
func (l *lexer) brace(c byte) {
	if c == '{' {
		argument := l.i > 0 && (wording.IsLetter(l.s[l.i-1]) || l.s[l.i-1] == '}')
		l.arguments = append(l.arguments, argument)
		if !argument {
			l.brackets++
		}
		return
	}
	n := len(l.arguments)
	if n > 0 && l.arguments[n-1] {
		l.arguments = l.arguments[:n-1]
		return
	}
	l.arguments = l.arguments[:max(0, n-1)]
	l.brackets--
}

// word reads a run of ASCII letters: a known name, a product of names and variables (pix, xsin), or text.
func (l *lexer) word() {
	start := l.i
	for l.i < len(l.s) && wording.IsLetter(l.s[l.i]) {
		l.i++
	}
	run := l.s[start:l.i]
	switch {
	case run == "in" && l.afterNumber() && strings.Trim(l.s[l.i:], " .$") == "":
		l.emit(tokText, "inches")
		return
	case run == "in" && tailAfterIn(l.s[l.i:]) > 0: // in total
		n := tailAfterIn(l.s[l.i:])
		l.i += n
		l.emit(tokText, "in "+strings.TrimSpace(l.s[l.i-n:l.i]))
		return
	case (run == "x" || run == "X") && l.afterNumber() && l.multiplies(): // 7 x 10^4
		l.emit(tokOp, "*")
		return
	case run == "to" && l.afterNumber(): // 3 to 4
		l.emit(tokOp, ":")
		return
	}
	if l.isWord(start, run) {
		l.emit(tokText, run)
		return
	}
	if t, ok := plainNames[run]; ok {
		l.emit(t.kind, t.text)
		return
	}
	if t, ok := plainNames[strings.ToLower(run)]; ok && len(run) > 1 {
		l.emit(t.kind, t.text)
		return
	}
	parts, single := split(run)
	if len(run) >= 4 && (single > 3 || single == len(run)) {
		l.emit(tokText, run)
		return
	}
	for _, t := range parts {
		l.emit(t.kind, t.text)
	}
}

// powerOfTen matches a power of ten.
var powerOfTen = pattern.New(`^ *10(?:\^|\*\*|[⁻⁰¹²³⁴-⁹])`)

// multiplies reports whether the letter x just read stands for a sign: before a power of ten, or between two spaces
// before a number.
func (l *lexer) multiplies() bool {
	rest := l.s[l.i:]
	return powerOfTen.MatchString(rest) ||
		l.spaced && len(rest) > 1 && rest[0] == ' ' && wording.IsDigit(rest[1])
}

// tailAfterIn returns the length of the "total" after "in", or 0.
func tailAfterIn(s string) int {
	word := strings.TrimSpace(s)
	if word != "" && len(s) < 12 && slices.Contains(wording.Tails, "in "+strings.ToLower(word)) {
		return len(s)
	}
	return 0
}

// split splits a run of letters, longest known names first, and counts the single letters.
func split(run string) (parts []token, single int) {
	for len(run) > 0 {
		n := min(len(run), 7)
		for ; n > 1; n-- {
			if t, ok := plainNames[run[:n]]; ok && t.kind != tokOp && t.kind != tokText {
				parts = append(parts, t)
				break
			}
		}
		if n == 1 {
			parts = append(parts, token{kind: tokSym, text: run[:1]})
			single++
		}
		run = run[n:]
	}
	return parts, single
}
