package form

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// GBNF is llama.cpp's notation of context-free grammars. It is read as there, with these differences. A rule may go on
// in a line that begins with |, and names may have _, as in XGrammar. A rule has one definition, literals and classes
// end in their line, and classes are not empty: llama.cpp takes the last definition, and reads on. What is repeated
// may be empty. Tokens (<[7]>) are not supported.

// term is a part of a grammar's rule.
type term struct {
	op          termOp
	at          int     // where it stands in the grammar's text
	text        string  // of a literal: what it stands for; of a name: the rule's
	chars       []rune  // of a class: pairs, from one character to another, which may overlap
	subs        []*term // of a sequence, of a choice; the one that is repeated
	least, most int     // times; most < 0: any number
	rule        *definition

	up   *term       // of which it is a part; nil: it is the body of a rule
	of   *definition // whose part it is
	held int         // parts for which holds is known
}

type termOp int

const (
	aLiteral termOp = iota
	aClass
	aName
	aSequence
	aChoice
	aRepeat
)

// definition is a rule of a grammar.
type definition struct {
	name  string
	at    int
	body  *term
	users []*term // that name it

	finite, nullable bool  // it has a text, the empty one
	number           int32 // in the automaton; -1: not there
}

// gbnfReader reads a grammar.
type gbnfReader struct {
	text  string
	at    int
	open  []int // where groups that are open begin
	rules []*definition
	named map[string]*definition
}

// mostGroups bounds how deep groups nest, and mostRules the rules of a grammar, which may all be open at once.
const (
	mostGroups = 100
	mostRules  = 10_000
)

// readGBNF reads a grammar and checks it.
func readGBNF(text string) (*gbnfReader, error) {
	x := &gbnfReader{text: text, named: map[string]*definition{}}
	for i, r := range text {
		if _, n := utf8.DecodeRuneInString(text[i:]); r == utf8.RuneError && n == 1 {
			return nil, x.fail(i, "the grammar is not UTF-8")
		}
	}
	x.space(true)
	for x.at < len(text) {
		if err := x.definition(); err != nil {
			return nil, err
		}
	}
	return x, x.check()
}

// fail returns an error at a place.
func (x *gbnfReader) fail(at int, format string, args ...any) error {
	before := x.text[:at]
	line := strings.Count(before, "\n") + 1
	column := utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
	return fmt.Errorf("line %d, column %d: %s", line, column, fmt.Sprintf(format, args...))
}

// space passes spaces and comments, and ends of lines where a rule goes on.
func (x *gbnfReader) space(lines bool) {
	for ; x.at < len(x.text); x.at++ {
		switch x.text[x.at] {
		case ' ', '\t':
		case '\r', '\n':
			if !lines {
				return
			}
		case '#':
			n := strings.IndexAny(x.text[x.at:], "\r\n")
			if n < 0 {
				n = len(x.text) - x.at
			}
			x.at += n - 1
		default:
			return
		}
	}
}

// take passes a text if it comes next.
func (x *gbnfReader) take(s string) bool {
	if !strings.HasPrefix(x.text[x.at:], s) {
		return false
	}
	x.at += len(s)
	return true
}

// sees reports whether one of some bytes comes next.
func (x *gbnfReader) sees(bytes string) bool {
	return x.at < len(x.text) && strings.IndexByte(bytes, x.text[x.at]) >= 0
}

// lineEnds reports whether the line or the text ends here.
func (x *gbnfReader) lineEnds() bool { return x.at == len(x.text) || x.sees("\r\n") }

// name passes a rule's name; empty: none comes next.
func (x *gbnfReader) name() string {
	from := x.at
	for x.at < len(x.text) {
		b := x.text[x.at]
		if (b < '0' || b > '9') && (b|0x20 < 'a' || b|0x20 > 'z') && b != '-' && b != '_' {
			break
		}
		x.at++
	}
	return x.text[from:x.at]
}

// definition reads a rule.
func (x *gbnfReader) definition() (err error) {
	const goesOn = "a rule goes on in the next line only within ( and ), behind ::= or at |"
	d := &definition{at: x.at, number: -1}
	if d.name = x.name(); d.name == "" {
		return x.fail(d.at, "a rule must begin here, as name ::= parts; %s", goesOn)
	}
	if x.space(false); !x.take("::=") {
		return x.fail(x.at, "::= must follow the rule's name %s; %s", d.name, goesOn)
	}
	if x.named[d.name] != nil {
		return x.fail(d.at, "the rule %s is defined again: join both with |", d.name)
	}
	if len(x.rules) == mostRules {
		return x.fail(d.at, "the grammar has more than %d rules: write some as parts of others", mostRules)
	}
	x.rules, x.named[d.name] = append(x.rules, d), d
	x.space(true)
	if d.body, err = x.choice(); err != nil {
		return err
	}
	if !x.lineEnds() {
		return x.unexpected()
	}
	x.space(true)
	return nil
}

// unexpected returns the error for a character that may not stand where it does.
func (x *gbnfReader) unexpected() error {
	r, _ := utf8.DecodeRuneInString(x.text[x.at:])
	if n := len(x.open); n > 0 && (x.at == len(x.text) || r == ':') {
		return x.fail(x.open[n-1], "( has no ) behind it")
	}
	switch r {
	case ')':
		return x.fail(x.at, ") has no ( before it")
	case ':':
		return x.fail(x.at, "a rule begins within another one, which goes on behind ::= and behind |; "+
			`write "" for an empty text`)
	case '\'':
		return x.fail(x.at, `literals stand between double quotes: write "text"`)
	case '<', '!':
		return x.fail(x.at, "tokens are not supported: write their text as a literal")
	case '/':
		return x.fail(x.at, "regular expressions are not supported: write a class, such as [0-9]+, or a group")
	}
	return x.fail(x.at, `%q begins no part of a rule: those are a "literal", a class [a-z], any character ., `+
		`a rule's name and a (group)`, r)
}

// choice reads sequences with | between.
func (x *gbnfReader) choice() (*term, error) {
	all := &term{op: aChoice, at: x.at}
	for {
		s, err := x.sequence()
		if err != nil {
			return nil, err
		}
		all.subs = append(all.subs, s)
		end := x.at
		if x.space(true); !x.take("|") {
			x.at = end
			break
		}
		x.space(true)
	}
	if len(all.subs) == 1 {
		return all.subs[0], nil
	}
	return all, nil
}

// sequence reads parts that follow each other, each with how often it comes.
func (x *gbnfReader) sequence() (*term, error) {
	all := &term{op: aSequence, at: x.at}
	for {
		last := len(all.subs) - 1
		switch repeats := x.sees("*+?{"); {
		case repeats && last < 0:
			return nil, x.fail(x.at, "%c has nothing before it to repeat", x.text[x.at])
		case repeats:
			t, err := x.repeat(all.subs[last])
			if err != nil {
				return nil, err
			}
			all.subs[last] = t
		case x.lineEnds() || x.sees("|)"):
			return all, nil
		default:
			t, err := x.part()
			if err != nil {
				return nil, err
			}
			all.subs = append(all.subs, t)
		}
		x.space(len(x.open) > 0)
	}
}

// repeat reads how often a part comes.
func (x *gbnfReader) repeat(t *term) (*term, error) {
	at, lines := x.at, len(x.open) > 0
	x.at++
	r := &term{op: aRepeat, at: t.at, subs: []*term{t}, most: -1}
	switch x.text[at] {
	case '?':
		r.most = 1
		return r, nil
	case '+':
		r.least = 1
		return r, nil
	case '*':
		return r, nil
	}
	var ok bool
	x.space(lines)
	r.least, ok = x.count()
	x.space(lines)
	switch {
	case !ok:
	case !x.take(","):
		r.most = r.least
	default:
		if x.space(lines); !x.sees("}") {
			r.most, ok = x.count()
			x.space(lines)
		}
	}
	switch {
	case !ok || !x.take("}"):
		return nil, x.fail(at, "{ does not count: write {3}, {2,} or {2,5}, with numbers up to %d", mostNodes)
	case r.most >= 0 && r.most < r.least:
		return nil, x.fail(at, "{%d,%d} has its larger number first", r.least, r.most)
	}
	return r, nil
}

// count reads a number of times.
func (x *gbnfReader) count() (n int, ok bool) {
	from := x.at
	for x.sees("0123456789") {
		x.at++
	}
	n, err := strconv.Atoi(x.text[from:x.at])
	return n, err == nil && n <= mostNodes
}

// part reads a part.
func (x *gbnfReader) part() (*term, error) {
	at := x.at
	switch {
	case x.sees(`"`):
		return x.literal()
	case x.sees("["):
		return x.class()
	case x.take("."):
		return &term{op: aClass, at: at, chars: []rune{0, utf8.MaxRune}}, nil
	case x.take("("):
		if x.open = append(x.open, at); len(x.open) > mostGroups {
			return nil, x.fail(at, "groups nest deeper than %d: make a rule of some", mostGroups)
		}
		x.space(true)
		t, err := x.choice()
		if err != nil {
			return nil, err
		}
		if x.space(true); !x.take(")") {
			return nil, x.unexpected()
		}
		x.open = x.open[:len(x.open)-1]
		return t, nil
	}
	if name := x.name(); name != "" {
		return &term{op: aName, at: at, text: name}, nil
	}
	return nil, x.unexpected()
}
