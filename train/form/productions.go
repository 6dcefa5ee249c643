package form

import (
	"errors"
	"strings"
)

// grammarOf returns the texts of a grammar in GBNF.
func grammarOf(g *grammar, text string) (expr, error) {
	x, err := readGBNF(text)
	if err != nil {
		return nil, err
	}
	w := gbnfWriter{g: g}
	e := w.use(x.named["root"])
	for len(w.left) > 0 && !g.large {
		d := w.left[len(w.left)-1]
		w.left = w.left[:len(w.left)-1]
		r := g.rules[d.number]
		w.expr(d.body)(g, r.in, r.out)
	}
	if g.large {
		return nil, errors.New("the grammar is too large: its parts are repeated too often; " +
			"make a rule of a part that is repeated, so that it counts once")
	}
	return e, nil
}

// gbnfWriter writes rules as an automaton's.
type gbnfWriter struct {
	g    *grammar
	left []*definition // that are called and not written
}

// use calls a rule.
func (w *gbnfWriter) use(d *definition) expr {
	if d.number < 0 {
		d.number, w.left = w.g.define(d.name), append(w.left, d)
	}
	return use(d.number)
}

// expr returns the texts of a part.
func (w *gbnfWriter) expr(t *term) expr {
	switch t.op {
	case aLiteral:
		return text(t.text)
	case aName:
		return w.use(t.rule)
	case aRepeat:
		switch e := w.expr(t.subs[0]); {
		case t.most >= 0:
			return repeat(e, t.least, t.most)
		case t.least == 0:
			return star(e)
		default:
			return seq(repeat(e, t.least-1, t.least-1), plus(e))
		}
	}
	var list []expr
	for i := 0; i < len(t.chars); i += 2 {
		list = append(list, char(t.chars[i], t.chars[i+1]))
	}
	for _, sub := range t.subs {
		list = append(list, w.expr(sub))
	}
	if t.op == aSequence {
		return seq(list...)
	}
	return alt(list...)
}

// check finds the rules that parts name. It returns an error for a grammar that has no texts, or that cannot be read
// from the left.
func (x *gbnfReader) check() error {
	for _, d := range x.rules {
		if err := x.link(d, d.body); err != nil {
			return err
		}
	}
	if x.named["root"] == nil {
		return errors.New("the grammar has no rule root, which stands for a whole text: add root ::= parts")
	}
	x.settle(func(t *term) bool { return t.op == aLiteral || t.op == aClass },
		func(d *definition) *bool { return &d.finite })
	for _, d := range x.rules {
		if !d.finite {
			return x.fail(d.at, "no text is a whole %s: each way to write it has a part that needs %[1]s again, or "+
				"another rule without an end; add an alternative without such a part", d.name)
		}
	}
	x.settle(func(t *term) bool { return t.op == aLiteral && t.text == "" },
		func(d *definition) *bool { return &d.nullable })
	return x.recursion()
}

// link finds the rules that a part of d names.
func (x *gbnfReader) link(d *definition, t *term) error {
	t.of = d
	if t.op == aName {
		if t.rule = x.named[t.text]; t.rule == nil {
			return x.fail(t.at, "the rule %s is not defined: add %[1]s ::= parts, or write \"%[1]s\" for the text "+
				"itself", t.text)
		}
		t.rule.users = append(t.rule.users, t)
	}
	for _, sub := range t.subs {
		sub.up = t
		if err := x.link(d, sub); err != nil {
			return err
		}
	}
	return nil
}

// settle finds the rules for which something holds. It holds for some single parts, a sequence for all of whose parts
// it does, a choice for one of whose parts it does, and for what may come no times. Each part is found once, and from
// it the one that it is in: so the time grows with the length of the grammar alone.
func (x *gbnfReader) settle(single func(t *term) bool, of func(d *definition) *bool) {
	var left []*term // for which it holds
	var begin func(t *term)
	begin = func(t *term) {
		t.held = 0
		if single(t) || t.op == aSequence && len(t.subs) == 0 || t.op == aRepeat && t.least == 0 {
			left = append(left, t)
		}
		for _, sub := range t.subs {
			begin(sub)
		}
	}
	for _, d := range x.rules {
		begin(d.body)
	}
	for len(left) > 0 {
		t := left[len(left)-1]
		left = left[:len(left)-1]
		up := t.up
		switch {
		case up == nil:
			*of(t.of) = true
			left = append(left, t.of.users...)
			continue
		case up.op == aRepeat && up.least == 0:
			continue // which begins with it
		}
		up.held++
		if up.op == aSequence && up.held == len(up.subs) || up.op != aSequence && up.held == 1 {
			left = append(left, up)
		}
	}
}

// firsts visits the names at the beginning of a part's texts, and reports whether the part is nullable. behind says
// that something nullable stands before.
func (t *term) firsts(behind bool, visit func(t *term, behind bool)) (nullable bool) {
	switch t.op {
	case aName:
		visit(t, behind)
		return t.rule.nullable
	case aSequence:
		for _, sub := range t.subs {
			if !sub.firsts(behind, visit) {
				return false
			}
			behind = true
		}
		return true
	case aChoice:
		for _, sub := range t.subs {
			nullable = sub.firsts(behind, visit) || nullable
		}
		return nullable
	case aRepeat:
		return t.most == 0 || t.subs[0].firsts(behind, visit) || t.least == 0
	}
	return t.op == aLiteral && t.text == ""
}

// lead is a rule at the beginning of another's texts.
type lead struct {
	to     *definition
	at     int
	behind bool // something nullable
}

// recursion returns an error for a rule that begins with itself.
func (x *gbnfReader) recursion() error {
	const open, done = 1, 2
	marks := map[*definition]int{}
	var path []lead
	var visit func(l lead) error
	visit = func(l lead) error {
		switch path = append(path, l); marks[l.to] {
		case open:
			return x.circle(path)
		case 0:
			marks[l.to] = open
			var next []lead
			l.to.body.firsts(false, func(t *term, behind bool) { next = append(next, lead{t.rule, t.at, behind}) })
			for _, n := range next {
				if err := visit(n); err != nil {
					return err
				}
			}
			marks[l.to] = done
		}
		path = path[:len(path)-1]
		return nil
	}
	for _, d := range x.rules {
		if err := visit(lead{to: d}); err != nil {
			return err
		}
	}
	return nil
}

// circle returns the error for a path that ends at a rule which is on it.
func (x *gbnfReader) circle(path []lead) error {
	last := path[len(path)-1]
	from := len(path) - 2
	for path[from].to != last.to {
		from--
	}
	names, behind := []string{last.to.name}, ""
	for _, l := range path[from+1:] {
		names = append(names, l.to.name)
		if l.behind {
			behind = ", behind parts that may be empty"
		}
	}
	return x.fail(path[from+1].at, "%s begins with itself%s (%s), so that it cannot be read from the left; write "+
		"what is repeated behind it: list ::= item (\",\" item)* instead of list ::= list \",\" item | item",
		last.to.name, behind, strings.Join(names, " → "))
}
