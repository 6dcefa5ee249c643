package form

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// jsonRules are the parts of a grammar that JSON values have in common. White space between the parts of a value is
// none, a space, or a line's end with up to mostIndent spaces or tabs. Numbers are short enough for an int64 or a
// float64. As literals of Python, values may have Python's spellings, too.
type jsonRules struct {
	value, object, array, string, number, integer expr
	yes, no, null                                 expr // true, false and null
	quotes                                        []quote
	space                                         expr
}

// quote is a way to write texts.
type quote struct {
	mark string                 // before and behind
	any  expr                   // a character in any spelling
	char func(lo, hi rune) expr // a character from lo to hi in one spelling
}

const (
	mostIndent   = 32
	mostDigits   = 18 // of an integer, or after a point: any such integer is an int64
	mostExponent = 2  // digits: with mostDigits, any such number is a float64
)

// jsonOf returns the JSON rules of a grammar.
func jsonOf(g *grammar) *jsonRules {
	if g.json == nil {
		g.json = &jsonRules{yes: text("true"), no: text("false"), null: text("null"), quotes: []quote{
			{`"`, g.shared("character", alt(plainChar(0, utf8.MaxRune), escapes())), stringChar}}}
		g.json.define(g)
	}
	return g.json
}

// pythonOf returns the rules of Python's literals, among which JSON's are.
func pythonOf(g *grammar) *jsonRules {
	if g.python == nil {
		any := g.shared("character", alt(pythonChar(0, utf8.MaxRune), text(`\"`)))
		g.python = &jsonRules{yes: alt(text("True"), text("true")), no: alt(text("False"), text("false")),
			null: alt(text("None"), text("null")), quotes: append(jsonOf(g).quotes, quote{"'", any, pythonChar})}
		g.python.define(g)
	}
	return g.python
}

// define adds the rules.
func (x *jsonRules) define(g *grammar) {
	x.space = alt(empty, text(" "), seq(text("\n"), repeat(alt(text(" "), text("\t")), 0, mostIndent)))
	if g.compact {
		x.space = empty
	}
	sign := optional(text("-"))
	whole := alt(text("0"), seq(digits(1, 9), repeat(digit, 0, mostDigits-1)))
	x.integer = g.shared("integer", seq(sign, whole))
	x.number = g.shared("number", seq(sign, whole,
		optional(seq(text("."), repeat(digit, 1, mostDigits))),
		optional(seq(alt(text("e"), text("E")), optional(alt(text("+"), text("-"))), repeat(digit, 1, mostExponent)))))
	x.string = g.shared("string", x.quoted(func(q quote) expr { return star(q.any) }))
	value, object, array := g.define("value"), g.define("object"), g.define("array")
	x.value, x.object, x.array = use(value), use(object), use(array)
	define := func(r int32, e expr) { e(g, g.rules[r].in, g.rules[r].out) }
	define(value, alt(x.object, x.array, x.string, x.number, x.yes, x.no, x.null))
	define(object, x.list("{", "}", seq(x.string, x.colon(), x.value), 0, -1))
	define(array, x.list("[", "]", x.value, 0, -1))
}

// quoted stands for texts with a body, between each kind of quotes.
func (x *jsonRules) quoted(body func(q quote) expr) expr {
	var list []expr
	for _, q := range x.quotes {
		list = append(list, seq(text(q.mark), body(q), text(q.mark)))
	}
	return alt(list...)
}

// name stands for a text with one value.
func (x *jsonRules) name(s string) expr { return x.quoted(func(q quote) expr { return q.write(s) }) }

// write stands for what a text has between the quotes.
func (q quote) write(s string) expr {
	var list []expr
	for _, r := range s {
		list = append(list, q.char(r, r))
	}
	return seq(list...)
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

// pythonChar stands for characters from lo to hi between Python's single quotes, each in one spelling.
func pythonChar(lo, hi rune) expr {
	var list []expr
	for _, part := range [][2]rune{{' ', '\'' - 1}, {'\'' + 1, '\\' - 1}, {'\\' + 1, utf8.MaxRune}} {
		if from, to := max(lo, part[0]), min(hi, part[1]); from <= to {
			list = append(list, char(from, to))
		}
	}
	for r := lo; r <= min(hi, '\\'); r++ {
		switch i := strings.IndexRune("'\\\n\r\t", r); {
		case i >= 0:
			list = append(list, text(`\`+`'\nrt`[i:i+1]))
		case r < ' ':
			list = append(list, text(fmt.Sprintf(`\x%02x`, r)))
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

// except stands for what texts have between the quotes that differ from all of some.
func (q quote) except(texts []string) expr {
	list, after := []expr{empty}, map[rune][]string{}
	for _, text := range texts {
		if text == "" {
			list[0] = never
			continue
		}
		r, n := utf8.DecodeRuneInString(text)
		after[r] = append(after[r], text[n:])
	}
	lo := rune(0)
	free := star(q.char(0, utf8.MaxRune))
	for _, r := range sortedKeys(after) {
		list = append(list, seq(q.char(r, r), q.except(after[r])))
		if lo < r {
			list = append(list, seq(q.char(lo, r-1), free))
		}
		lo = r + 1
	}
	return alt(append(list, seq(q.char(lo, utf8.MaxRune), free))...)
}
