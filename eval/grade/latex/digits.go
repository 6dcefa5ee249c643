package latex

import (
	"strconv"
	"strings"

	"exp/eval/grade/pattern"
	"exp/eval/grade/wording"
)

// thousand lists the separators of groups of three digits. A comma counts only if l.thousands is set.
var thousand = []string{"{,}", ",\\! ", ",\\!", "\\,", "\\!", "\\ ", "\\;", "\\:", "~", "_", "'", ","}

// number reads digits with thousands separators and a decimal point. An exponent (1e5, 1.5E-3) stays in the
// text.
func (l *lexer) number() {
	if l.prefixed() {
		return
	}
	start := l.i
	if m := pointsAndComma.FindString(l.s[start:]); m != "" && l.thousands && l.brackets == 0 {
		l.i += len(strings.TrimRight(m, " "))
		l.emit(tokNum, strings.ReplaceAll(strings.ReplaceAll(strings.TrimRight(m, " "), ".", ""), ",", "."))
		return
	}
	for l.i < len(l.s) && wording.IsDigit(l.s[l.i]) {
		l.i++
	}
	text := l.s[start:l.i]
	if len(text) <= 3 && text != "" && text[0] != '0' && !l.afterSubscript() {
		text = l.grouped(start, text)
	}
	if l.i+1 < len(l.s) && l.s[l.i] == '.' && (wording.IsDigit(l.s[l.i+1]) || l.endsNumber() || l.repeats(l.i+1)) {
		from := l.i
		l.i++
		for l.i < len(l.s) && wording.IsDigit(l.s[l.i]) {
			l.i++
		}
		text += l.s[from:l.i]
	}
	if m := decimalComma.FindStringSubmatch(l.s[l.i:]); m != nil && !strings.Contains(text, ".") &&
		wording.AllDigits(text) && (len(m[1]) != 3 || len(text) > 3 || text == "0") {
		l.i += len(m[0])
		text += "." + m[1]
	}
	text += l.exponent()
	if l.repeating(text) || l.cycle(text) {
		return
	}
	l.emit(tokNum, text)
}

// decimalComma matches a comma that LaTeX sets without a space, as before decimals: 3{,}14.
var decimalComma = pattern.New(`^\{,\}([0-9]+)`)

// pointsAndComma matches a number with points between its thousands and a comma before its decimals: 1.234,5.
var pointsAndComma = pattern.New(`^[1-9][0-9]{0,2}(?:\.[0-9]{3})+,[0-9]{1,2}(?: |$)`)

// afterSubscript reports whether what comes next is a subscript: the base of \log_2 125.
func (l *lexer) afterSubscript() bool {
	n := len(l.tokens)
	return n > 0 && l.tokens[n-1].kind == tokOp && l.tokens[n-1].text == "_"
}

// grouped reads the further groups of digits: 12,345,678, also 12,34,567 and 1.234.567.
func (l *lexer) grouped(start int, text string) string {
	if digits, n := otherGroups(l.s[start:]); n > 0 && l.brackets == 0 && l.thousands {
		l.i = start + n
		return digits
	}
	for {
		n := l.separator()
		if n == 0 {
			return text
		}
		text += l.s[l.i+n : l.i+n+3]
		l.i += n + 3
	}
}

// otherGroups reads 12,34,567 (groups of two before the last three digits) and 1.234.567 (at least two points)
// at the start of s.
func otherGroups(s string) (digits string, n int) {
	lead := len(s) - len(strings.TrimLeft(s, "0123456789"))
	if lead >= len(s) || s[lead] != ',' && s[lead] != '.' {
		return "", 0
	}
	sep, size := s[lead], 3
	if sep == ',' {
		size = 2
	}
	groups := 0
	digits, n = s[:lead], lead
	for n+1+size <= len(s) && s[n] == sep && wording.AllDigits(s[n+1:n+1+size]) &&
		(n+1+size == len(s) || !wording.IsDigit(s[n+1+size])) {
		digits += s[n+1 : n+1+size]
		n += 1 + size
		groups++
	}
	if sep == ',' { // the last group has three digits
		if lead > 2 || groups == 0 || n+4 > len(s) || s[n] != ',' || !wording.AllDigits(s[n+1:n+4]) {
			return "", 0
		}
		digits += s[n+1 : n+4]
		n += 4
	} else if groups < 2 {
		return "", 0
	}
	if n < len(s) && (wording.IsDigit(s[n]) || s[n] == sep && n+1 < len(s) && wording.IsDigit(s[n+1])) {
		return "", 0
	}
	return digits, n
}

// prefixed reads 0b1101, 0o17 and 0x1A as digits with a base.
func (l *lexer) prefixed() bool {
	rest := l.s[l.i:]
	if len(rest) < 3 || rest[0] != '0' || !strings.ContainsRune("bBoOxX", rune(rest[1])) {
		return false
	}
	n := 2
	for n < len(rest) && (wording.IsDigit(rest[n]) || 'a' <= rest[n]|0x20 && rest[n]|0x20 <= 'f') {
		n++
	}
	if _, err := strconv.ParseInt(rest[:n], 0, 64); err != nil || n < len(rest) && wording.IsLetter(rest[n]) ||
		n > 2+15 {
		return false
	}
	l.i += n
	l.emit(tokNum, rest[:n])
	return true
}

// repeats reports whether the digits at s[i:] begin with a cycle in brackets or under dots: the (3) of 0.(3).
func (l *lexer) repeats(i int) bool {
	_, n := cycleAt(l.s[i:])
	return n > 0
}

// cycleAt reads (12), \overline{12}, \bar 1 or \dot{1}42\dot{8} and returns its digits and length.
func cycleAt(s string) (digits string, n int) {
	if strings.HasPrefix(s, "(") {
		if k := strings.IndexByte(s, ')'); k > 1 && k < 40 && wording.AllDigits(s[1:k]) {
			return s[1:k], k + 1
		}
		return "", 0
	}
	for _, bar := range [...]string{"\\overline", "\\bar"} {
		if after, ok := strings.CutPrefix(s, bar); ok {
			return marked(after, len(bar))
		}
	}
	after, ok := strings.CutPrefix(s, "\\dot")
	if !ok {
		return "", 0
	}
	first, n := marked(after, len("\\dot"))
	if n == 0 {
		return "", 0
	}
	k := n
	for k < len(s) && wording.IsDigit(s[k]) {
		k++
	}
	if after, ok = strings.CutPrefix(s[k:], "\\dot"); ok {
		if last, m := marked(after, k+len("\\dot")); m > 0 {
			return first + s[n:k] + last, m
		}
	}
	return first, n
}

// marked reads {12} or one digit; before is the length of the command.
func marked(s string, before int) (digits string, n int) {
	t := strings.TrimLeft(s, " ")
	before += len(s) - len(t)
	if t != "" && wording.IsDigit(t[0]) {
		return t[:1], before + 1
	}
	if strings.HasPrefix(t, "{") {
		if k := strings.IndexByte(t, '}'); k > 1 && k < 61 && wording.AllDigits(t[1:k]) {
			return t[1:k], before + k + 1
		}
	}
	return "", 0
}

// cycle reads what repeats after a decimal.
func (l *lexer) cycle(text string) bool {
	if !strings.ContainsRune(text, '.') || strings.ContainsAny(text, "eE") {
		return false
	}
	digits, n := cycleAt(l.s[l.i:])
	if n == 0 || strings.HasPrefix(l.s[l.i:], "(") && len(text) > 12 {
		return false
	}
	l.i += n
	l.emitCycle(text, digits)
	return true
}

func (l *lexer) emitCycle(text, digits string) {
	l.emit(tokNum, text)
	l.emit(tokOp, "overline")
	l.emit(tokOp, "{")
	l.emit(tokNum, digits)
	l.emit(tokOp, "}")
}

// repeating reads 0.1666... as 0.1\overline{6}: dots after a decimal repeat the digits that occur at least
// twice at its end. Dots after other decimals are not read.
func (l *lexer) repeating(text string) bool {
	rest := strings.TrimLeft(l.s[l.i:], " ")
	dots := ""
	for _, d := range [...]string{"...", "…", "\\ldots", "\\dots", "\\cdots"} {
		if strings.HasPrefix(rest, d) {
			dots = d
		}
	}
	k := strings.IndexByte(text, '.')
	if dots == "" || k < 0 || strings.ContainsAny(text, "eE") {
		return false
	}
	for n := 1; n <= 6 && 2*n <= len(text)-k-1; n++ {
		cycle := text[len(text)-n:]
		if text[len(text)-2*n:len(text)-n] != cycle {
			continue
		}
		l.i = len(l.s) - len(rest) + len(dots)
		l.emitCycle(text[:len(text)-2*n], cycle)
		return true
	}
	return false
}

// endsNumber tells a trailing point as in "3." and "3. " from a full stop; the number is the same either
// way.
func (l *lexer) endsNumber() bool {
	return l.i+1 < len(l.s) && strings.ContainsRune("+-*/)^\\", rune(l.s[l.i+1]))
}

// separator returns the length of a thousands separator before exactly three digits, else 0.
func (l *lexer) separator() int {
	rest := l.s[l.i:]
	for _, sep := range thousand {
		after, ok := strings.CutPrefix(rest, sep)
		if !ok || sep == "," && (!l.thousands || l.brackets > 0) {
			continue
		}
		if len(after) >= 3 && wording.IsDigit(after[0]) && wording.IsDigit(after[1]) && wording.IsDigit(after[2]) &&
			(len(after) == 3 || !wording.IsDigit(after[3])) {
			return len(sep)
		}
	}
	// 12 345 678: a space counts if it is plain and the answer is just the number.
	if l.brackets == 0 && len(rest) >= 4 && rest[0] == ' ' && wording.IsDigit(rest[1]) && wording.IsDigit(rest[2]) &&
		wording.IsDigit(rest[3]) && (len(rest) == 4 || !wording.IsDigit(rest[4]) && rest[4] != '/') {
		return 1
	}
	return 0
}

// exponent reads e5, E-3 or E+10 after digits, but not the e of 2e, which is a product.
func (l *lexer) exponent() string {
	rest := l.s[l.i:]
	if len(rest) < 2 || rest[0] != 'e' && rest[0] != 'E' {
		return ""
	}
	n := 1
	if rest[n] == '-' || rest[n] == '+' {
		n++
	}
	first := n
	for n < len(rest) && wording.IsDigit(rest[n]) {
		n++
	}
	if n == first || n < len(rest) && wording.IsLetter(rest[n]) || n-first > 6 {
		return ""
	}
	l.i += n
	return rest[:n]
}
