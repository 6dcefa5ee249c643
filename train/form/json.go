package form

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// jsonRules are the parts of a grammar that JSON values have in common. White space between the parts of a value is
// none, a space, or a line's end with up to mostIndent spaces or tabs. Numbers are short enough for an int64 or a
// float64.
type jsonRules struct {
	value, object, array, string, number, integer expr
	char                                          expr // of a string
	space                                         expr
}

const (
	mostIndent   = 32
	mostDigits   = 18 // of an integer, or after a point: any such integer is an int64
	mostExponent = 2  // digits: with mostDigits, any such number is a float64
)

// jsonOf returns the JSON rules of a grammar.
func jsonOf(g *grammar) *jsonRules {
	if g.json != nil {
		return g.json
	}
	x := &jsonRules{space: alt(empty, text(" "),
		seq(text("\n"), repeat(alt(text(" "), text("\t")), 0, mostIndent)))}
	g.json = x
	sign := optional(text("-"))
	whole := alt(text("0"), seq(digits(1, 9), repeat(digit, 0, mostDigits-1)))
	x.integer = g.shared("integer", seq(sign, whole))
	x.number = g.shared("number", seq(sign, whole,
		optional(seq(text("."), repeat(digit, 1, mostDigits))),
		optional(seq(alt(text("e"), text("E")), optional(alt(text("+"), text("-"))), repeat(digit, 1, mostExponent)))))
	x.char = g.shared("character", alt(plainChar(0, utf8.MaxRune), escapes()))
	x.string = g.shared("string", seq(text(`"`), star(x.char), text(`"`)))
	value, object, array := g.define("value"), g.define("object"), g.define("array")
	x.value, x.object, x.array = use(value), use(object), use(array)
	define := func(r int32, e expr) { e(g, g.rules[r].in, g.rules[r].out) }
	define(value, alt(x.object, x.array, x.string, x.number, text("true"), text("false"), text("null")))
	define(object, x.list("{", "}", seq(x.string, x.colon(), x.value), 0, -1))
	define(array, x.list("[", "]", x.value, 0, -1))
	return x
}

func (x *jsonRules) colon() expr { return seq(text(":"), x.space) }
func (x *jsonRules) comma() expr { return seq(text(","), x.space) }

// list stands for least to most items between brackets; most < 0: any number from least.
func (x *jsonRules) list(open, end string, item expr, least, most int) expr {
	if most == 0 {
		return text(open + end)
	}
	more := -1
	if most > 0 {
		more = most - 1
	}
	items := seq(x.space, item, repeat(seq(x.comma(), item), max(0, least-1), more), x.space)
	if least == 0 {
		items = optional(items)
	}
	return seq(text(open), items, text(end))
}

// plainChar stands for characters from lo to hi that a string has as they are.
func plainChar(lo, hi rune) expr {
	var list []expr
	for _, part := range [][2]rune{{' ', '"' - 1}, {'"' + 1, '\\' - 1}, {'\\' + 1, utf8.MaxRune}} {
		if from, to := max(lo, part[0]), min(hi, part[1]); from <= to {
			list = append(list, char(from, to))
		}
	}
	return alt(list...)
}

// stringChar stands for characters from lo to hi in a string, each in one spelling: escaped only if it must be.
func stringChar(lo, hi rune) expr {
	list := []expr{plainChar(lo, hi)}
	for r := lo; r <= min(hi, '\\'); r++ {
		if r < ' ' || r == '"' || r == '\\' {
			list = append(list, text(escaped(r)))
		}
	}
	return alt(list...)
}

// short are the characters with short escapes, and the letters of those.
const short, letters = "\"\\\b\f\n\r\t", `"\bfnrt`

func escaped(r rune) string {
	if i := strings.IndexRune(short, r); i >= 0 {
		return `\` + letters[i:i+1]
	}
	return fmt.Sprintf(`\u%04x`, r)
}

// escapes stands for all escapes of JSON, of whole characters only.
func escapes() expr {
	var list []expr
	for _, c := range letters + "/" {
		list = append(list, char(c, c))
	}
	d := alt(text("d"), text("D"))
	unit := alt(
		seq(alt(digit, char('a', 'c'), char('A', 'C'), char('e', 'f'), char('E', 'F')), hex, hex, hex),
		seq(d, digits(0, 7), hex, hex),
		seq(d, alt(digits(8, 9), char('a', 'b'), char('A', 'B')), hex, hex, text(`\u`), d,
			alt(char('c', 'f'), char('C', 'F')), hex, hex))
	return seq(text(`\`), alt(alt(list...), seq(text("u"), unit)))
}

// quoted stands for a string with one value.
func quoted(s string) expr {
	var list []expr
	for _, r := range s {
		list = append(list, stringChar(r, r))
	}
	return seq(text(`"`), seq(list...), text(`"`))
}

// stringExcept stands for strings in one spelling that differ from all names.
func stringExcept(names []string) expr { return seq(text(`"`), restExcept(names)) }

// restExcept stands for the rest of a string that differs from all of some rests, with the quote that closes it.
func restExcept(rests []string) expr {
	list, after := []expr{text(`"`)}, map[rune][]string{}
	for _, rest := range rests {
		if rest == "" {
			list[0] = never
			continue
		}
		r, n := utf8.DecodeRuneInString(rest)
		after[r] = append(after[r], rest[n:])
	}
	lo := rune(0)
	free := seq(star(stringChar(0, utf8.MaxRune)), text(`"`))
	for _, r := range sortedKeys(after) {
		list = append(list, seq(stringChar(r, r), restExcept(after[r])))
		if lo < r {
			list = append(list, seq(stringChar(lo, r-1), free))
		}
		lo = r + 1
	}
	return alt(append(list, seq(stringChar(lo, utf8.MaxRune), free))...)
}
