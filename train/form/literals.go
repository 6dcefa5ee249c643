package form

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// literal reads a text between quotes.
func (x *gbnfReader) literal() (*term, error) {
	t := &term{op: aLiteral, at: x.at}
	x.at++
	var b strings.Builder
	for !x.take(`"`) {
		if x.lineEnds() {
			return nil, x.fail(t.at, `the literal does not end in its line: close it with ", and write \n for a `+
				`line's end`)
		}
		r, err := x.char()
		if err != nil {
			return nil, err
		}
		b.WriteRune(r)
	}
	t.text = b.String()
	return t, nil
}

// class reads a set of characters.
func (x *gbnfReader) class() (*term, error) {
	t := &term{op: aClass, at: x.at}
	x.at++
	not := x.take("^")
	for !x.take("]") {
		if x.lineEnds() {
			return nil, x.fail(t.at, `the class does not end in its line: close it with ], and write \n for a `+
				`line's end`)
		}
		at := x.at
		lo, err := x.char()
		if err != nil {
			return nil, err
		}
		hi := lo
		if dash := x.at; x.take("-") {
			switch {
			case x.sees("]") || x.lineEnds():
				x.at = dash
			default:
				if hi, err = x.char(); err != nil {
					return nil, err
				}
			}
		}
		if lo > hi {
			return nil, x.fail(at, "%s has its later character first", x.text[at:x.at])
		}
		t.chars = append(t.chars, lo, hi)
	}
	if len(t.chars) == 0 {
		return nil, x.fail(t.at, `the class has no characters: write . for any, and \] for ]`)
	}
	if not {
		if t.chars = complement(t.chars); len(t.chars) == 0 {
			return nil, x.fail(t.at, "the class leaves no character: leave ^ out, or some characters")
		}
	}
	return t, nil
}

// complement returns the characters that are in none of some pairs.
func complement(pairs []rune) (list []rune) {
	var sorted [][2]rune
	for i := 0; i < len(pairs); i += 2 {
		sorted = append(sorted, [2]rune{pairs[i], pairs[i+1]})
	}
	slices.SortFunc(sorted, func(a, b [2]rune) int { return int(a[0] - b[0]) })
	next := rune(0)
	for _, p := range append(sorted, [2]rune{utf8.MaxRune + 1, utf8.MaxRune + 1}) {
		if next < p[0] {
			list = append(list, next, p[0]-1)
		}
		next = max(next, p[1]+1)
	}
	return list
}

// char reads a character of a literal or a class, which may be an escape.
func (x *gbnfReader) char() (rune, error) {
	at := x.at
	r, n := utf8.DecodeRuneInString(x.text[at:])
	if x.at += n; r != '\\' {
		return r, nil
	}
	digits := 0
	switch {
	case x.take("n"):
		return '\n', nil
	case x.take("r"):
		return '\r', nil
	case x.take("t"):
		return '\t', nil
	case x.sees(`\"[]^-`):
		x.at++
		return rune(x.text[x.at-1]), nil
	case x.take("x"):
		digits = 2
	case x.take("u"):
		digits = 4
	case x.take("U"):
		digits = 8
	}
	if digits > 0 && x.at+digits <= len(x.text) {
		code, err := strconv.ParseUint(x.text[x.at:x.at+digits], 16, 32)
		switch end := x.at + digits; {
		case err == nil && utf8.ValidRune(rune(code)):
			x.at = end
			return rune(code), nil
		case err == nil:
			return 0, x.fail(at, "%s is the code of no character: those go to 10FFFF, without D800 to DFFF",
				x.text[at:end])
		}
	}
	return 0, x.fail(at, `\ begins no escape: those are \n, \r, \t, \\, \", \[, \], \^, \-, and \x41, \u0041, `+
		`\U00000041 with 2, 4 and 8 digits of a character's code`)
}
