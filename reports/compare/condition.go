package compare

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Condition is a question to a result, for scripts: "delta(math500) < -0.01 and
// p < 0.05". The grammar, with "not" before "and" before "or":
//
//	condition = and {"or" and}
//	and       = not {"and" not}
//	not       = "not" not | "(" condition ")" | value op NUMBER
//	op        = "<" | "<=" | ">" | ">=" | "=" | "!="
//	value     = FIELD ["(" SUITE ["," METRIC] ")"]
//
// FIELD is one of delta, lo, hi (of the interval of delta), se, p, p_holm, mde and
// effect. SUITE is the suite's name with or without the task; METRIC is pass@1 if
// left out. A field without parentheses means the suite and the metric that were
// named last before it; at the beginning the only suite, and pass@1.
//
// Condition is immutable.
type Condition struct {
	text string
	root node
}

// ConditionError is a condition that cannot be read, or asks for what a result does
// not have.
type ConditionError struct {
	Text string // the condition
	Col  int    // where, in runes from 0
	Msg  string
	Help string // what would be right; may be empty
}

// Error shows the condition with a caret under the place.
func (e *ConditionError) Error() string {
	line := strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, e.Text)
	return fmt.Sprintf("condition, column %d: %s\n  %s\n  %s^", e.Col+1, e.Msg, line, strings.Repeat(" ", e.Col))
}

// Hint says what would be right.
func (e *ConditionError) Hint() string { return e.Help }

// ExitCode is that of bad usage.
func (e *ConditionError) ExitCode() int { return 2 }

// node is a part of a condition.
type node struct {
	op       string // "or", "and", "not", or a comparison
	children []node
	value    operand
	number   float64
}

// operand is a field of a pair.
type operand struct {
	field, suite, metric string // suite "": the only one
	col                  int
}

// fields are what a condition can ask of a pair; nil is not known.
func fields() map[string]func(p *Pair) *float64 {
	end := func(of func(iv *Interval) float64) func(p *Pair) *float64 {
		return func(p *Pair) *float64 {
			if p.Interval == nil {
				return nil
			}
			v := of(p.Interval)
			return &v
		}
	}
	return map[string]func(p *Pair) *float64{
		"delta": func(p *Pair) *float64 { return p.Delta }, "se": func(p *Pair) *float64 { return p.SE },
		"lo": end(func(iv *Interval) float64 { return iv.Lo }), "hi": end(func(iv *Interval) float64 { return iv.Hi }),
		"p": func(p *Pair) *float64 { return p.P }, "p_holm": func(p *Pair) *float64 { return p.PHolm },
		"mde": func(p *Pair) *float64 { return p.MDE }, "effect": func(p *Pair) *float64 { return p.Effect },
	}
}

// ParseCondition reads a condition. The error is a *ConditionError.
func ParseCondition(text string) (*Condition, error) {
	p := &conditionParser{text: text, metric: "pass@1"}
	if err := p.lex(); err != nil {
		return nil, err
	}
	root, err := p.or()
	if err != nil {
		return nil, err
	}
	if t := p.peek(); t.text != "" {
		return nil, p.fail(t, fmt.Sprintf("%q is one too many", t.text), "join conditions with and, or")
	}
	return &Condition{text: text, root: root}, nil
}

// String is the condition as it was written.
func (c *Condition) String() string { return c.text }

// Holds reports whether the condition holds for any pair of arms, and for which
// pairs, as [2]int of positions in r.Arms. What a condition asks for must be there:
// an unknown suite or metric, or a number that is not known, is a *ConditionError.
func (c *Condition) Holds(r *Result) (pairs [][2]int, err error) {
	for i, p := range r.pairs() {
		ok, err := c.eval(&c.root, r, i)
		if err != nil {
			return nil, err
		}
		if ok {
			pairs = append(pairs, p)
		}
	}
	return pairs, nil
}

// pairs lists the arms of each pair, in the order of Metric.Pairs.
func (r *Result) pairs() [][2]int {
	for i := range r.Suites {
		if len(r.Suites[i].Metrics) == 0 {
			continue
		}
		var list [][2]int
		for _, p := range r.Suites[i].Metrics[0].Pairs {
			list = append(list, [2]int{p.A, p.B})
		}
		return list
	}
	return nil
}

// eval evaluates both sides of every "and" and "or", so that a mistake in a
// condition shows whatever the numbers are.
func (c *Condition) eval(n *node, r *Result, pair int) (bool, error) {
	switch n.op {
	case "not":
		v, err := c.eval(&n.children[0], r, pair)
		return !v, err
	case "and", "or":
		result := n.op == "and"
		for i := range n.children {
			v, err := c.eval(&n.children[i], r, pair)
			if err != nil {
				return false, err
			}
			if v != (n.op == "and") {
				result = v
			}
		}
		return result, nil
	}
	v, err := c.valueOf(n.value, r, pair)
	if err != nil {
		return false, err
	}
	switch n.op {
	case "<":
		return v < n.number, nil
	case "<=":
		return v <= n.number, nil
	case ">":
		return v > n.number, nil
	case ">=":
		return v >= n.number, nil
	case "!=":
		return v != n.number, nil
	}
	return v == n.number, nil
}

func (c *Condition) valueOf(o operand, r *Result, pair int) (float64, error) {
	var names []string
	var suite *Suite
	meant := 0
	for i := range r.Suites {
		names = append(names, r.Suites[i].Name)
		if o.suite == "" || suiteIs(r.Suites[i].Name, o.suite) {
			suite = &r.Suites[i]
			meant++
		}
	}
	fail := func(msg, help string) (float64, error) {
		return 0, &ConditionError{Text: c.text, Col: o.col, Msg: msg, Help: help}
	}
	switch {
	case meant > 1:
		return fail("which suite?", fmt.Sprintf("write %s(SUITE), with one of %s", o.field, strings.Join(names, ", ")))
	case suite == nil:
		return fail(fmt.Sprintf("there is no suite %q", o.suite), "there are "+strings.Join(names, ", "))
	}
	m := suite.Metric(o.metric)
	if m == nil {
		var known []string
		for i := range suite.Metrics {
			known = append(known, suite.Metrics[i].Name)
		}
		return fail(fmt.Sprintf("%s has no metric %q", suite.Name, o.metric), "there are "+strings.Join(known, ", "))
	}
	v := fields()[o.field](&m.Pairs[pair])
	if v == nil {
		help := ""
		if !m.Tested {
			help = "p values are computed for the tested metrics: name it with --metric"
		}
		return fail(fmt.Sprintf("%s of %s on %s is not known", o.field, o.metric, suite.Name), help)
	}
	return *v, nil
}

// lexeme is a word or a symbol; the last one of a text is empty.
type lexeme struct {
	text string
	col  int // in runes from 0
}

type conditionParser struct {
	text          string
	list          []lexeme
	at            int
	suite, metric string // named last
}

// lex cuts the text into words and the symbols ( ) , < <= > >= = !=.
func (p *conditionParser) lex() error {
	text, col := p.text, 0
	for text != "" {
		size := 1
		switch c := text[0]; {
		case c == ' ' || c == '\t' || c == '\n':
			text, col = text[1:], col+1
			continue
		case strings.HasPrefix(text, "<=") || strings.HasPrefix(text, ">=") || strings.HasPrefix(text, "!="):
			size = 2
		case strings.IndexByte("(),<>=", c) >= 0:
		case c == '!':
			return p.fail(lexeme{text, col}, "! alone means nothing", "write not, or !=")
		default:
			size = strings.IndexAny(text, " \t\n(),<>=!")
			if size < 0 {
				size = len(text)
			}
		}
		p.list = append(p.list, lexeme{text[:size], col})
		col += utf8.RuneCountInString(text[:size])
		text = text[size:]
	}
	p.list = append(p.list, lexeme{"", col})
	return nil
}

func (p *conditionParser) peek() lexeme { return p.list[p.at] }

func (p *conditionParser) next() lexeme {
	t := p.list[p.at]
	if t.text != "" {
		p.at++
	}
	return t
}

// accept takes the next lexeme if it is text.
func (p *conditionParser) accept(text string) bool {
	if p.peek().text != text {
		return false
	}
	p.at++
	return true
}

func (p *conditionParser) fail(t lexeme, msg, help string) error {
	return &ConditionError{Text: p.text, Col: t.col, Msg: msg, Help: help}
}

func (p *conditionParser) or() (node, error) { return p.chain("or", p.and) }

func (p *conditionParser) and() (node, error) { return p.chain("and", p.not) }

// chain reads operands joined by a word.
func (p *conditionParser) chain(word string, operand func() (node, error)) (node, error) {
	first, err := operand()
	if err != nil || p.peek().text != word {
		return first, err
	}
	n := node{op: word, children: []node{first}}
	for p.accept(word) {
		child, err := operand()
		if err != nil {
			return n, err
		}
		n.children = append(n.children, child)
	}
	return n, nil
}

func (p *conditionParser) not() (node, error) {
	switch {
	case p.accept("not"):
		child, err := p.not()
		return node{op: "not", children: []node{child}}, err
	case p.accept("("):
		n, err := p.or()
		if err != nil {
			return n, err
		}
		if !p.accept(")") {
			return n, p.fail(p.peek(), "a parenthesis is not closed", "")
		}
		return n, nil
	}
	return p.comparison()
}

func (p *conditionParser) comparison() (node, error) {
	value, err := p.operand()
	if err != nil {
		return node{}, err
	}
	op := p.next()
	if !slices.Contains([]string{"<", "<=", ">", ">=", "=", "!="}, op.text) {
		return node{}, p.fail(op, "expected a comparison", "one of < <= > >= = !=")
	}
	t := p.next()
	number, err := strconv.ParseFloat(t.text, 64)
	if err != nil || number != number {
		return node{}, p.fail(t, fmt.Sprintf("expected a number after %q", op.text), "")
	}
	return node{op: op.text, value: value, number: number}, nil
}

func (p *conditionParser) operand() (operand, error) {
	t := p.next()
	if fields()[t.text] == nil {
		msg := fmt.Sprintf("%q is nothing that a comparison has", t.text)
		if t.text == "" {
			msg = "a condition is missing"
		}
		return operand{}, p.fail(t, msg, "there are "+strings.Join(sortedKeys(fields()), ", "))
	}
	if p.accept("(") {
		name := p.next()
		if name.text == "" || strings.Contains("(),<>=!=", name.text) {
			return operand{}, p.fail(name, "expected the name of a suite", "")
		}
		p.suite, p.metric = name.text, "pass@1"
		if p.accept(",") {
			m := p.next()
			if m.text == "" || strings.Contains("(),<>=!=", m.text) {
				return operand{}, p.fail(m, "expected the name of a metric", "")
			}
			p.metric = m.text
		}
		if !p.accept(")") {
			return operand{}, p.fail(p.peek(), "a parenthesis is not closed", "write delta(SUITE) or delta(SUITE, METRIC)")
		}
	}
	return operand{field: t.text, suite: p.suite, metric: p.metric, col: t.col}, nil
}
