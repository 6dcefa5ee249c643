package chat

// tupleRules say where a tuple without parentheses ends.
type tupleRules struct {
	cond       bool   // allow inline if
	end        string // this word also ends the tuple
	parens     bool   // allow () as the empty tuple
	simple     bool   // only names and literals: the left side of an assignment
	namespaces bool   // with simple: allow ns.attr
}

// tuple parses an expression, or several separated by commas.
func (p *parser) tuple(r tupleRules) (expr, error) {
	start := p.cur()
	var items []expr
	comma := false
	for {
		if len(items) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
		}
		t := p.cur()
		if t.kind == tokVarEnd || t.kind == tokBlockEnd || t.is(")") || r.end != "" && t.isName(r.end) {
			break
		}
		var x expr
		var err error
		if r.simple {
			x, err = p.primary(r.namespaces)
		} else {
			x, err = p.expression(r.cond)
		}
		if err != nil {
			return nil, err
		}
		items = append(items, x)
		if !p.cur().is(",") {
			break
		}
		comma = true
	}
	if !comma {
		if len(items) > 0 {
			return items[0], nil
		}
		if !r.parens {
			return nil, syntaxErr(p.cur().pos, "expected an expression, got %v", p.cur())
		}
	}
	return &tupleExpr{position(start.pos), items}, nil
}

// target parses the left side of an assignment, up to the word end.
func (p *parser) target(end string) (expr, error) {
	return p.assignable(tupleRules{simple: true, end: end})
}

func (p *parser) namespaceTarget() (expr, error) {
	return p.assignable(tupleRules{simple: true, namespaces: true})
}

func (p *parser) assignable(r tupleRules) (expr, error) {
	x, err := p.tuple(r)
	if err != nil {
		return nil, err
	}
	return x, checkTarget(x)
}

func checkTarget(x expr) error {
	switch x := x.(type) {
	case *nameExpr, *attrTarget:
		return nil
	case *tupleExpr:
		for _, e := range x.items {
			if err := checkTarget(e); err != nil {
				return err
			}
		}
		return nil
	}
	return syntaxErr(x.offset(), "only names can be assigned to")
}

func (p *parser) nameTarget() (*nameExpr, error) {
	t, err := p.expectName()
	if err != nil {
		return nil, err
	}
	switch t.text {
	case "true", "false", "none", "True", "False", "None":
		return nil, syntaxErr(t.pos, "'%s' cannot be assigned to", t.text)
	}
	return &nameExpr{position: position(t.pos), name: t.text}, nil
}

// nest counts one level of an expression; the caller ends it with p.expr--.
func (p *parser) nest() error {
	if p.expr++; p.expr > maxDepth {
		return tooDeep(p.cur().pos)
	}
	return nil
}

func (p *parser) expression(cond bool) (expr, error) {
	if err := p.nest(); err != nil {
		return nil, err
	}
	defer func() { p.expr-- }()
	x, err := p.or()
	for n := 0; err == nil && cond && p.cur().isName("if"); n++ {
		if n > maxDepth {
			return nil, tooDeep(p.cur().pos)
		}
		c := &condExpr{position: position(p.next().pos), then: x}
		if c.test, err = p.or(); err != nil {
			break
		}
		if p.skipName("else") {
			c.els, err = p.expression(true)
		}
		x = c
	}
	return x, err
}

// logic parses operands separated by the word op.
func (p *parser) logic(op string, operand func() (expr, error)) (expr, error) {
	first, err := operand()
	if err != nil || !p.cur().isName(op) {
		return first, err
	}
	x := &logicExpr{position: position(first.offset()), or: op == "or", items: []expr{first}}
	for p.skipName(op) {
		e, err := operand()
		if err != nil {
			return nil, err
		}
		x.items = append(x.items, e)
	}
	return x, nil
}

func (p *parser) or() (expr, error)  { return p.logic("or", p.and) }
func (p *parser) and() (expr, error) { return p.logic("and", p.not) }

func (p *parser) not() (expr, error) {
	t := p.cur()
	if !t.isName("not") {
		return p.compare()
	}
	p.next()
	if err := p.nest(); err != nil {
		return nil, err
	}
	defer func() { p.expr-- }()
	x, err := p.not()
	return &notExpr{position(t.pos), x}, err
}

// chain parses operands separated by operators. op consumes and returns the current
// operator, or returns "".
func (p *parser) chain(operand func() (expr, error), op func() string) (*chainExpr, expr, error) {
	first, err := operand()
	if err != nil {
		return nil, nil, err
	}
	var x *chainExpr
	for {
		t := p.cur()
		o := op()
		if o == "" {
			return x, first, nil
		}
		arg, err := operand()
		if err != nil {
			return nil, nil, err
		}
		if x == nil {
			x = &chainExpr{position: position(t.pos), first: first}
		}
		x.ops, x.args = append(x.ops, o), append(x.args, arg)
	}
}

func (p *parser) compare() (expr, error) {
	x, first, err := p.chain(p.sum, func() string {
		t := p.cur()
		switch {
		case t.kind == tokOp && (t.text == "==" || t.text == "!=" || t.text == "<" || t.text == "<=" ||
			t.text == ">" || t.text == ">="):
			return p.next().text
		case p.skipName("in"):
			return "in"
		case t.isName("not") && p.look().isName("in"):
			p.next()
			p.next()
			return "not in"
		}
		return ""
	})
	if x == nil {
		return first, err
	}
	x.compare = true
	return x, err
}

// arithmetic is chain for operators that are signs.
func (p *parser) arithmetic(operand func() (expr, error), ops ...string) (expr, error) {
	x, first, err := p.chain(operand, func() string {
		for _, op := range ops {
			if p.skipOp(op) {
				return op
			}
		}
		return ""
	})
	if x == nil {
		return first, err
	}
	return x, err
}

func (p *parser) sum() (expr, error) { return p.arithmetic(p.concat, "+", "-") }

func (p *parser) concat() (expr, error) {
	first, err := p.product()
	if err != nil || !p.cur().is("~") {
		return first, err
	}
	x := &concatExpr{position(first.offset()), []expr{first}}
	for p.skipOp("~") {
		e, err := p.product()
		if err != nil {
			return nil, err
		}
		x.items = append(x.items, e)
	}
	return x, nil
}

func (p *parser) product() (expr, error) { return p.arithmetic(p.power, "*", "/", "//", "%") }

// power is left-associative, unlike Python's.
func (p *parser) power() (expr, error) {
	return p.arithmetic(func() (expr, error) { return p.unary(true) }, "**")
}

func (p *parser) unary(filters bool) (expr, error) {
	t := p.cur()
	var x expr
	var err error
	if t.is("-") || t.is("+") {
		p.next()
		if err := p.nest(); err != nil {
			return nil, err
		}
		x, err = p.unary(false)
		p.expr--
		x = &signExpr{position(t.pos), t.text == "-", x}
	} else {
		x, err = p.primary(false)
	}
	if err == nil {
		x, err = p.postfix(x)
	}
	if err == nil && filters {
		x, err = p.filtered(x)
	}
	return x, err
}

func (p *parser) primary(namespaces bool) (expr, error) {
	t := p.cur()
	pos := position(t.pos)
	switch t.kind {
	case tokName:
		p.next()
		switch t.text {
		case "true", "True":
			return &constExpr{pos, Bool(true)}, nil
		case "false", "False":
			return &constExpr{pos, Bool(false)}, nil
		case "none", "None":
			return &constExpr{pos, None{}}, nil
		}
		if namespaces && p.skipOp(".") {
			attr, err := p.expectName()
			return &attrTarget{position: pos, name: t.text, attr: attr.text}, err
		}
		return &nameExpr{position: pos, name: t.text}, nil
	case tokString:
		return p.strings(), nil
	case tokInt, tokFloat:
		return &constExpr{pos, p.next().value}, nil
	case tokOp:
		switch t.text {
		case "(":
			p.next()
			x, err := p.tuple(tupleRules{cond: true, parens: true})
			if err != nil {
				return nil, err
			}
			return x, p.expectOp(")")
		case "[":
			return p.list()
		case "{":
			return p.dict()
		}
	}
	return nil, syntaxErr(t.pos, "unexpected %v", t)
}
