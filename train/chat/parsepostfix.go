package chat

import "strings"

// strings parses adjacent string literals as one.
func (p *parser) strings() expr {
	first := p.next()
	if p.cur().kind != tokString {
		return &constExpr{position(first.pos), Str(first.text)}
	}
	var b strings.Builder
	b.WriteString(first.text)
	for p.cur().kind == tokString {
		b.WriteString(p.next().text)
	}
	return &constExpr{position(first.pos), Str(b.String())}
}

// commas parses items up to the closing operator, with commas between them and perhaps one after the last.
func (p *parser) commas(closing string, item func() error) error {
	for n := 0; !p.cur().is(closing); n++ {
		if n > 0 {
			if err := p.expectOp(","); err != nil {
				return err
			}
			if p.cur().is(closing) {
				break
			}
		}
		if err := item(); err != nil {
			return err
		}
	}
	return p.expectOp(closing)
}

func (p *parser) list() (expr, error) {
	x := &listExpr{position: position(p.next().pos)}
	return x, p.commas("]", func() error {
		e, err := p.expression(true)
		x.items = append(x.items, e)
		return err
	})
}

func (p *parser) dict() (expr, error) {
	x := &dictExpr{position: position(p.next().pos)}
	return x, p.commas("}", func() error {
		k, err := p.expression(true)
		if err != nil {
			return err
		}
		if err := p.expectOp(":"); err != nil {
			return err
		}
		v, err := p.expression(true)
		x.keys, x.vals = append(x.keys, k), append(x.vals, v)
		return err
	})
}

func chainLimit(n, pos int) error {
	if n > maxChain {
		return &syntaxError{pos, "too many attributes, calls or filters in one expression",
			limitErr("chain longer than %d", maxChain)}
	}
	return nil
}

// links parses what follows x, as long as next knows how to parse a token after it.
func (p *parser) links(x expr, next func(t token) func(expr) (expr, error)) (expr, error) {
	for n := 0; ; n++ {
		t := p.cur()
		if err := chainLimit(n, t.pos); err != nil {
			return nil, err
		}
		parse := next(t)
		if parse == nil {
			return x, nil
		}
		var err error
		if x, err = parse(x); err != nil {
			return nil, err
		}
	}
}

// postfix parses .name, [key] and calls after x.
func (p *parser) postfix(x expr) (expr, error) {
	return p.links(x, func(t token) func(expr) (expr, error) {
		switch {
		case t.is("."):
			return p.attribute
		case t.is("["):
			return p.subscript
		case t.is("("):
			return p.call
		}
		return nil
	})
}

func (p *parser) attribute(x expr) (expr, error) {
	pos := position(p.next().pos)
	t := p.next()
	switch t.kind {
	case tokName:
		return &attrExpr{pos, x, t.text}, nil
	case tokInt:
		return &itemExpr{pos, x, &constExpr{position(t.pos), t.value}}, nil
	}
	return nil, syntaxErr(t.pos, "expected a name or a number after '.', got %v", t)
}

func (p *parser) subscript(x expr) (expr, error) {
	pos := position(p.next().pos)
	var keys []expr
	for !p.cur().is("]") {
		if len(keys) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
		}
		k, err := p.sliceOrKey()
		if err != nil {
			return nil, err
		}
		keys = append(keys, k)
	}
	p.next()
	if len(keys) == 1 {
		return &itemExpr{pos, x, keys[0]}, nil
	}
	for _, k := range keys {
		if _, ok := k.(*sliceExpr); ok {
			return nil, syntaxErr(k.offset(), "a slice cannot be a part of a tuple")
		}
	}
	return &itemExpr{pos, x, &tupleExpr{pos, keys}}, nil
}

func (p *parser) sliceOrKey() (expr, error) {
	s := &sliceExpr{position: position(p.cur().pos)}
	var err error
	if !p.cur().is(":") {
		if s.start, err = p.expression(true); err != nil || !p.cur().is(":") {
			return s.start, err
		}
	}
	p.next()
	for _, part := range []*expr{&s.stop, &s.step} {
		if t := p.cur(); !t.is(":") && !t.is("]") && !t.is(",") {
			if *part, err = p.expression(true); err != nil {
				return nil, err
			}
		}
		if part == &s.stop && !p.skipOp(":") {
			break
		}
	}
	return s, nil
}

func (p *parser) call(x expr) (expr, error) {
	pos := position(p.cur().pos)
	args, err := p.callArgs()
	return &callExpr{pos, x, args}, err
}

func (p *parser) callArgs() (a callArgs, err error) {
	open := p.next()
	bad := func() error { return syntaxErr(open.pos, "the arguments of the call are out of order") }
	err = p.commas(")", func() (err error) {
		t := p.cur()
		switch {
		case t.is("*"):
			if a.star != nil || a.stars != nil {
				return bad()
			}
			p.next()
			a.star, err = p.expression(true)
		case t.is("**"):
			if a.stars != nil {
				return bad()
			}
			p.next()
			a.stars, err = p.expression(true)
		case t.kind == tokName && p.look().is("="):
			if a.stars != nil {
				return bad()
			}
			p.next()
			p.next()
			for _, name := range a.names {
				if name == t.text {
					return syntaxErr(t.pos, "the argument '%s' occurs twice", name)
				}
			}
			var x expr
			x, err = p.expression(true)
			a.names, a.kw = append(a.names, t.text), append(a.kw, x)
		default:
			if a.star != nil || a.stars != nil || len(a.names) > 0 {
				return bad()
			}
			var x expr
			x, err = p.expression(true)
			a.pos = append(a.pos, x)
		}
		return err
	})
	return a, err
}

// filtered parses filters, tests and calls after x.
func (p *parser) filtered(x expr) (expr, error) {
	return p.links(x, func(t token) func(expr) (expr, error) {
		switch {
		case t.is("|"):
			return func(x expr) (expr, error) { return p.filters(x, false) }
		case t.isName("is"):
			return p.test
		case t.is("("):
			return p.call
		}
		return nil
	})
}

// dotted parses the name of a filter or a test.
func (p *parser) dotted() (token, error) {
	t, err := p.expectName()
	if err != nil {
		return t, err
	}
	for p.skipOp(".") {
		part, err := p.expectName()
		if err != nil {
			return t, err
		}
		t.text += "." + part.text
	}
	return t, nil
}

// filters parses |name(args)|name…; inline, the first one has no |.
func (p *parser) filters(x expr, inline bool) (*filterExpr, error) {
	var last *filterExpr
	for n := 0; inline || p.cur().is("|"); n++ {
		if err := chainLimit(n, p.cur().pos); err != nil {
			return nil, err
		}
		if !inline {
			p.next()
		}
		inline = false
		name, err := p.dotted()
		if err != nil {
			return nil, err
		}
		f := &filterExpr{position: position(name.pos), x: x, name: name.text}
		if p.cur().is("(") {
			if f.args, err = p.callArgs(); err != nil {
				return nil, err
			}
		}
		x, last = f, f
	}
	return last, nil
}

func (p *parser) test(x expr) (expr, error) {
	pos := position(p.next().pos)
	negated := p.skipName("not")
	name, err := p.dotted()
	if err != nil {
		return nil, err
	}
	t := &testExpr{position: pos, x: x, name: name.text}
	c := p.cur()
	switch {
	case c.is("("):
		if t.args, err = p.callArgs(); err != nil {
			return nil, err
		}
	case c.kind == tokString || c.kind == tokInt || c.kind == tokFloat || c.is("[") || c.is("{") ||
		c.kind == tokName && c.text != "else" && c.text != "or" && c.text != "and":
		if c.isName("is") {
			return nil, syntaxErr(c.pos, "tests cannot be chained with is")
		}
		arg, err := p.primary(false)
		if err != nil {
			return nil, err
		}
		if arg, err = p.postfix(arg); err != nil {
			return nil, err
		}
		t.args.pos = []expr{arg}
	}
	if negated {
		return &notExpr{pos, t}, nil
	}
	return t, nil
}
