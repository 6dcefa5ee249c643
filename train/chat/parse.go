package chat

import "slices"

// parser builds the tree of a template, as jinja2/parser.py does.
type parser struct {
	tokens      []token
	at          int
	stmts, expr int // nesting
}

func (p *parser) cur() token { return p.tokens[p.at] }

func (p *parser) look() token { return p.tokens[min(p.at+1, len(p.tokens)-1)] }

func (p *parser) next() token {
	t := p.tokens[p.at]
	if p.at < len(p.tokens)-1 {
		p.at++
	}
	return t
}

func (p *parser) skipOp(op string) bool {
	if p.cur().is(op) {
		p.next()
		return true
	}
	return false
}

func (p *parser) skipName(name string) bool {
	if p.cur().isName(name) {
		p.next()
		return true
	}
	return false
}

func (p *parser) expectOp(op string) error {
	if !p.skipOp(op) {
		return syntaxErr(p.cur().pos, "expected '%s', got %v", op, p.cur())
	}
	return nil
}

func (p *parser) expectName() (token, error) {
	t := p.cur()
	if t.kind != tokName {
		return t, syntaxErr(t.pos, "expected a name, got %v", t)
	}
	return p.next(), nil
}

func (p *parser) expectKind(kind tokenKind) error {
	if t := p.cur(); t.kind != kind {
		return syntaxErr(t.pos, "expected %v, got %v", token{kind: kind}, t)
	}
	p.next()
	return nil
}

// body parses statements until one of the end tags, which stays the current token, or
// without end tags to the end of the template.
func (p *parser) body(ends ...string) ([]stmt, error) {
	if p.stmts++; p.stmts > maxDepth {
		return nil, tooDeep(p.cur().pos)
	}
	defer func() { p.stmts-- }()
	begin := p.cur().pos
	var list []stmt
	out := &outputStmt{}
	flush := func() {
		if len(out.parts) > 0 {
			list = append(list, out)
			out = &outputStmt{}
		}
	}
	for {
		t := p.cur()
		switch t.kind {
		case tokEOF:
			if len(ends) > 0 {
				return nil, syntaxErr(begin, "the template ends before '%s'", ends[0])
			}
			flush()
			return list, nil
		case tokData:
			p.next()
			out.parts = append(out.parts, &constExpr{position(t.pos), Str(t.text)})
		case tokVarBegin:
			p.next()
			x, err := p.tuple(tupleRules{cond: true})
			if err != nil {
				return nil, err
			}
			if err := p.expectKind(tokVarEnd); err != nil {
				return nil, err
			}
			out.parts = append(out.parts, x)
		default:
			flush()
			p.next()
			if t := p.cur(); t.kind == tokName && slices.Contains(ends, t.text) {
				return list, nil
			}
			s, err := p.statement()
			if err != nil {
				return nil, err
			}
			if err := p.expectKind(tokBlockEnd); err != nil {
				return nil, err
			}
			list = append(list, s)
		}
	}
}

func tooDeep(pos int) error {
	return &syntaxError{pos, "the template is nested too deep", limitErr("nesting deeper than %d", maxDepth)}
}

// block parses the end of the opening tag, a body, and consumes the end tag.
func (p *parser) block(end string) ([]stmt, error) {
	body, err := p.blockUntil(end)
	if err == nil {
		p.next()
	}
	return body, err
}

// blockUntil is block without consuming the end tag.
func (p *parser) blockUntil(ends ...string) ([]stmt, error) {
	p.skipOp(":")
	if err := p.expectKind(tokBlockEnd); err != nil {
		return nil, err
	}
	return p.body(ends...)
}

func (p *parser) statement() (stmt, error) {
	t := p.cur()
	if t.kind != tokName {
		return nil, syntaxErr(t.pos, "expected the name of a tag, got %v", t)
	}
	p.next()
	pos := position(t.pos)
	switch t.text {
	case "for":
		return p.forTag(pos)
	case "if":
		return p.ifTag()
	case "set":
		return p.setTag(pos)
	case "macro":
		return p.macroTag(pos)
	case "call":
		return p.callTag(pos)
	case "filter":
		return p.filterTag()
	case "with":
		return p.withTag()
	case "print":
		return p.printTag()
	case "break":
		return &jumpStmt{pos, breakLoop}, nil
	case "continue":
		return &jumpStmt{pos, nextRound}, nil
	case "generation":
		body, err := p.block("endgeneration")
		return &callStmt{position: pos, generation: true, def: &macroDef{body: body}}, err
	case "block":
		return p.blockTag(pos)
	case "include", "import", "from", "extends", "autoescape":
		return nil, syntaxErr(t.pos, "the tag '%s' is not supported in chat templates", t.text)
	}
	return nil, syntaxErr(t.pos, "unknown tag '%s'", t.text)
}

func (p *parser) forTag(pos position) (stmt, error) {
	target, err := p.target("in")
	if err != nil {
		return nil, err
	}
	if !p.skipName("in") {
		return nil, syntaxErr(p.cur().pos, "expected 'in', got %v", p.cur())
	}
	s := &forStmt{position: pos, target: target}
	if s.iter, err = p.tuple(tupleRules{end: "recursive"}); err != nil {
		return nil, err
	}
	if p.skipName("if") {
		if s.test, err = p.expression(true); err != nil {
			return nil, err
		}
	}
	s.recursive = p.skipName("recursive")
	if s.body, err = p.blockUntil("endfor", "else"); err != nil {
		return nil, err
	}
	if p.next().text == "else" {
		if s.els, err = p.block("endfor"); err != nil {
			return nil, err
		}
		s.hasElse = len(s.els) > 0
	}
	return s, nil
}

func (p *parser) ifTag() (stmt, error) {
	s := &ifStmt{}
	for {
		test, err := p.tuple(tupleRules{})
		if err != nil {
			return nil, err
		}
		body, err := p.blockUntil("elif", "else", "endif")
		if err != nil {
			return nil, err
		}
		s.tests, s.bodies = append(s.tests, test), append(s.bodies, body)
		switch p.next().text {
		case "else":
			s.els, err = p.block("endif")
			return s, err
		case "endif":
			return s, nil
		}
	}
}

func (p *parser) setTag(pos position) (stmt, error) {
	target, err := p.namespaceTarget()
	if err != nil {
		return nil, err
	}
	if p.skipOp("=") {
		value, err := p.tuple(tupleRules{cond: true})
		return &setStmt{pos, target, value}, err
	}
	s := &setBlockStmt{position: pos, target: target}
	if p.cur().is("|") {
		if s.filter, err = p.filters(nil, false); err != nil {
			return nil, err
		}
	}
	s.body, err = p.block("endset")
	return s, err
}

func (p *parser) macroTag(pos position) (stmt, error) {
	name, err := p.nameTarget()
	if err != nil {
		return nil, err
	}
	def := &macroDef{name: name.name}
	if err := p.signature(def); err != nil {
		return nil, err
	}
	def.body, err = p.block("endmacro")
	return &macroStmt{position: pos, name: name.name, def: def}, err
}

// signature parses the parameters of a macro or a call block.
func (p *parser) signature(def *macroDef) error {
	if err := p.expectOp("("); err != nil {
		return err
	}
	for !p.cur().is(")") {
		if len(def.args) > 0 {
			if err := p.expectOp(","); err != nil {
				return err
			}
		}
		arg, err := p.nameTarget()
		if err != nil {
			return err
		}
		for _, a := range def.args {
			if a.name == arg.name {
				return syntaxErr(arg.offset(), "the parameter '%s' occurs twice", arg.name)
			}
		}
		if p.skipOp("=") {
			x, err := p.expression(true)
			if err != nil {
				return err
			}
			def.defaults = append(def.defaults, x)
		} else if len(def.defaults) > 0 {
			return syntaxErr(arg.offset(), "the parameter '%s' needs a default, as the one before it has one",
				arg.name)
		}
		def.args = append(def.args, arg)
	}
	p.next()
	return nil
}

func (p *parser) callTag(pos position) (stmt, error) {
	s := &callStmt{position: pos, def: &macroDef{}}
	if p.cur().is("(") {
		if err := p.signature(s.def); err != nil {
			return nil, err
		}
	}
	x, err := p.expression(true)
	if err != nil {
		return nil, err
	}
	call, ok := x.(*callExpr)
	if !ok {
		return nil, syntaxErr(x.offset(), "the tag 'call' needs a call such as f(x)")
	}
	s.call = call
	s.def.body, err = p.block("endcall")
	return s, err
}

func (p *parser) filterTag() (stmt, error) {
	filter, err := p.filters(nil, true)
	if err != nil {
		return nil, err
	}
	body, err := p.block("endfilter")
	return &filterStmt{filter: filter, body: body}, err
}

// blockTag parses a named block. Nothing can override it, because templates do not extend others.
func (p *parser) blockTag(pos position) (stmt, error) {
	name, err := p.expectName()
	if err != nil {
		return nil, err
	}
	s := &blockStmt{position: pos, name: name.text, scoped: p.skipName("scoped")}
	if t := p.cur(); t.isName("required") {
		return nil, syntaxErr(t.pos, "a required block needs a template that overrides it: not supported")
	}
	s.body, err = p.block("endblock")
	p.skipName(s.name)
	return s, err
}

func (p *parser) withTag() (stmt, error) {
	s := &withStmt{}
	for p.cur().kind != tokBlockEnd {
		if len(s.targets) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
		}
		target, err := p.target("")
		if err != nil {
			return nil, err
		}
		if err := p.expectOp("="); err != nil {
			return nil, err
		}
		x, err := p.expression(true)
		if err != nil {
			return nil, err
		}
		s.targets, s.values = append(s.targets, target), append(s.values, x)
	}
	var err error
	s.body, err = p.block("endwith")
	return s, err
}

func (p *parser) printTag() (stmt, error) {
	s := &outputStmt{}
	for p.cur().kind != tokBlockEnd {
		if len(s.parts) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
		}
		x, err := p.expression(true)
		if err != nil {
			return nil, err
		}
		s.parts = append(s.parts, x)
	}
	return s, nil
}
