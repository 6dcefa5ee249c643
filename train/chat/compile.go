package chat

// compiler resolves the variables, filters and tests of a tree. It refuses what Jinja2
// refuses at compile time.
type compiler struct {
	loops  int             // enclosing for blocks
	top    *symbols        // of the template's outermost scope
	blocks map[string]bool // names of the blocks so far
}

// block is the compiler's position.
type block struct {
	syms   *symbols
	soft   bool     // in a branch: unknown filters and tests are errors only when called
	inLoop bool     // break and continue are allowed
	around *symbols // that named blocks see unless they are scoped; nil: the template's
}

func (b block) inner(syms *symbols) block {
	return block{syms: syms, inLoop: b.inLoop, around: b.around}
}

func compile(body []stmt) (*funcInfo, scope, error) {
	fn := &funcInfo{slots: map[variable]int{}}
	syms := newSymbols(nil, fn)
	syms.stmts(body)
	c := &compiler{top: syms, blocks: map[string]bool{}}
	err := c.stmts(body, block{syms: syms})
	return fn, syms.scope(), err
}

func (c *compiler) stmts(list []stmt, b block) error {
	for _, s := range list {
		if err := c.stmt(s, b); err != nil {
			return err
		}
	}
	return nil
}

func (c *compiler) stmt(s stmt, b block) error {
	switch s := s.(type) {
	case *outputStmt:
		return c.exprs(b, s.parts...)
	case *ifStmt:
		b.soft = true
		for i := range s.tests {
			if err := c.exprs(b, s.tests[i]); err != nil {
				return err
			}
			if err := c.stmts(s.bodies[i], b); err != nil {
				return err
			}
		}
		return c.stmts(s.els, b)
	case *forStmt:
		return c.forLoop(s, b)
	case *macroStmt:
		if err := c.macro(s.def, int(s.position), b); err != nil {
			return err
		}
		return c.variable(s.name, int(s.position), &s.ref, b)
	case *callStmt:
		if err := c.macro(s.def, int(s.position), b); err != nil || s.call == nil {
			return err
		}
		for _, name := range s.call.args.names {
			if name == "caller" {
				return syntaxErr(s.offset(), "a call block sets the argument 'caller' itself")
			}
		}
		return c.exprs(b, s.call)
	case *filterStmt:
		syms := newSymbols(b.syms, b.syms.fn)
		syms.stmts(s.body)
		syms.exprs(s.filter)
		s.scope = syms.scope()
		in := b.inner(syms)
		if err := c.stmts(s.body, in); err != nil {
			return err
		}
		return c.exprs(in, s.filter)
	case *setStmt:
		if err := c.target(s.target, b); err != nil {
			return err
		}
		return c.exprs(b, s.value)
	case *setBlockStmt:
		return c.setBlock(s, b)
	case *withStmt:
		return c.with(s, b)
	case *blockStmt:
		return c.block(s, b)
	case *jumpStmt:
		if !b.inLoop {
			return syntaxErr(s.offset(), "break and continue need a loop around")
		}
	}
	return nil
}

func (c *compiler) setBlock(s *setBlockStmt, b block) error {
	syms := newSymbols(b.syms, b.syms.fn)
	syms.stmts(s.body)
	s.scope = syms.scope()
	in := b.inner(syms)
	if err := c.stmts(s.body, in); err != nil {
		return err
	}
	if err := c.target(s.target, b); err != nil {
		return err
	}
	if s.filter == nil {
		return nil
	}
	return c.exprs(in, s.filter)
}

func (c *compiler) with(s *withStmt, b block) error {
	syms := newSymbols(b.syms, b.syms.fn)
	for _, t := range s.targets {
		syms.targets(t, syms.param)
	}
	syms.stmts(s.body)
	s.scope = syms.scope()
	in := b.inner(syms)
	for i, t := range s.targets {
		if err := c.names(t, in); err != nil {
			return err
		}
		if err := c.exprs(b, s.values[i]); err != nil {
			return err
		}
	}
	return c.stmts(s.body, in)
}

func (c *compiler) forLoop(s *forStmt, b block) error {
	fn := b.syms.fn
	if s.recursive {
		fn = &funcInfo{parent: b.syms.fn, slots: map[variable]int{}}
		s.fn = fn
	}
	body, test, els := newSymbols(b.syms, fn), newSymbols(b.syms, fn), newSymbols(b.syms, fn)
	if s.recursive || undeclared(s.body, "loop")["loop"] || hasScopedBlock(s.body) {
		body.param("loop")
	}
	body.targets(s.target, body.param)
	body.stmts(s.body)
	els.stmts(s.els)
	if s.test != nil {
		test.targets(s.target, test.param)
		test.exprs(s.test)
	}
	s.bodyScope, s.testScope, s.elsScope = body.scope(), test.scope(), els.scope()
	if _, ok := body.loads["loop"]; ok && body.loads["loop"] == loadParam {
		r, _ := body.ref("loop", fn)
		s.loop = &r
	}
	if err := c.exprs(b, s.iter); err != nil {
		return err
	}
	c.loops++
	defer func() { c.loops-- }()
	in := block{syms: body, inLoop: true, around: b.around}
	if err := c.target(s.target, in); err != nil {
		return err
	}
	if s.test != nil {
		if err := c.exprs(b.inner(test), s.test); err != nil {
			return err
		}
	}
	if err := c.stmts(s.body, in); err != nil {
		return err
	}
	after := b.inner(els)
	after.inLoop = b.inLoop && !s.recursive
	return c.stmts(s.els, after)
}

// block compiles a named block, which has its own frame. If it is scoped, it sees the variables around it; if not,
// what the next scoped block around it sees, or only the template's variables.
func (c *compiler) block(s *blockStmt, b block) error {
	if c.blocks[s.name] {
		return syntaxErr(s.offset(), "block '%s' is defined twice", s.name)
	}
	c.blocks[s.name] = true
	around := b.around
	if s.scoped {
		around = b.syms
	}
	s.fn = &funcInfo{slots: map[variable]int{}}
	syms := newSymbols(around, s.fn)
	if around == nil {
		syms.top = c.top
	} else {
		s.fn.parent = around.fn
		for fn := b.syms.fn; fn != around.fn; fn = fn.parent {
			s.up++
		}
	}
	syms.stmts(s.body)
	s.scope = syms.scope()
	return c.stmts(s.body, block{syms: syms, around: around})
}

// macro compiles the body of a macro or a call block, which has its own frame.
func (c *compiler) macro(d *macroDef, pos int, b block) error {
	d.fn = &funcInfo{parent: b.syms.fn, slots: map[variable]int{}}
	syms := newSymbols(b.syms, d.fn)
	special := map[string]**ref{"caller": &d.caller, "kwargs": &d.kwargs, "varargs": &d.varargs}
	free := undeclared(d.body, "caller", "kwargs", "varargs")
	for i, a := range d.args {
		syms.param(a.name)
		if a.name == "caller" && free["caller"] && d.defaultOf(i) == nil {
			return syntaxErr(pos, "the parameter 'caller' must have a default or be left out")
		}
		d.explicitCaller = d.explicitCaller || a.name == "caller"
	}
	syms.exprs(d.defaults...)
	syms.stmts(d.body)
	for _, name := range []string{"caller", "kwargs", "varargs"} {
		own := false
		for _, a := range d.args {
			own = own || a.name == name
		}
		if free[name] && !own {
			syms.param(name)
			r, _ := syms.ref(name, d.fn)
			*special[name] = &r
		}
	}
	d.scope = syms.scope()
	in := block{syms: syms, around: b.around}
	for _, a := range d.args {
		if err := c.variable(a.name, a.offset(), &a.ref, in); err != nil {
			return err
		}
	}
	if err := c.exprs(in, d.defaults...); err != nil {
		return err
	}
	return c.stmts(d.body, in)
}

func (c *compiler) variable(name string, pos int, r *ref, b block) error {
	found, ok := b.syms.ref(name, b.syms.fn)
	if !ok {
		return syntaxErr(pos, "the variable '%s' cannot be used here", name)
	}
	*r = found
	return nil
}

// target compiles the left side of a set or a for.
func (c *compiler) target(x expr, b block) error {
	if n, ok := x.(*nameExpr); ok && n.name == "loop" && c.loops > 0 {
		return syntaxErr(n.offset(), "the variable 'loop' cannot be assigned to in a loop")
	}
	if t, ok := x.(*tupleExpr); ok {
		for _, e := range t.items {
			if err := c.target(e, b); err != nil {
				return err
			}
		}
		return nil
	}
	return c.names(x, b)
}

// names compiles a target without the rule about loop.
func (c *compiler) names(x expr, b block) error {
	switch x := x.(type) {
	case *nameExpr:
		return c.variable(x.name, x.offset(), &x.ref, b)
	case *attrTarget:
		return c.variable(x.name, x.offset(), &x.ref, b)
	case *tupleExpr:
		for _, e := range x.items {
			if err := c.names(e, b); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *compiler) exprs(b block, list ...expr) error {
	for _, x := range list {
		if x == nil {
			continue
		}
		if err := c.expr(x, b); err != nil {
			return err
		}
	}
	return nil
}

func (c *compiler) args(b block, a callArgs) error {
	if err := c.exprs(b, a.pos...); err != nil {
		return err
	}
	if err := c.exprs(b, a.kw...); err != nil {
		return err
	}
	return c.exprs(b, a.star, a.stars)
}

func (c *compiler) expr(x expr, b block) error {
	switch x := x.(type) {
	case *nameExpr:
		return c.variable(x.name, x.offset(), &x.ref, b)
	case *tupleExpr:
		return c.exprs(b, x.items...)
	case *listExpr:
		return c.exprs(b, x.items...)
	case *dictExpr:
		for i := range x.keys {
			if err := c.exprs(b, x.keys[i], x.vals[i]); err != nil {
				return err
			}
		}
	case *condExpr:
		b.soft = true
		return c.exprs(b, x.test, x.then, x.els)
	case *logicExpr:
		return c.exprs(b, x.items...)
	case *notExpr:
		return c.exprs(b, x.x)
	case *chainExpr:
		if err := c.exprs(b, x.first); err != nil {
			return err
		}
		return c.exprs(b, x.args...)
	case *concatExpr:
		return c.exprs(b, x.items...)
	case *signExpr:
		return c.exprs(b, x.x)
	case *attrExpr:
		return c.exprs(b, x.x)
	case *itemExpr:
		return c.exprs(b, x.x, x.key)
	case *sliceExpr:
		return c.exprs(b, x.start, x.stop, x.step)
	case *callExpr:
		if err := c.exprs(b, x.fn); err != nil {
			return err
		}
		return c.args(b, x.args)
	case *filterExpr:
		if x.fn = filterNamed(x.name); x.fn == nil && !b.soft {
			return syntaxErr(x.offset(), "no filter named '%s'", x.name)
		}
		if x.x != nil {
			if err := c.expr(x.x, b); err != nil {
				return err
			}
		}
		return c.args(b, x.args)
	case *testExpr:
		if x.fn = testNamed(x.name); x.fn == nil && !b.soft {
			return syntaxErr(x.offset(), "no test named '%s'", x.name)
		}
		if err := c.expr(x.x, b); err != nil {
			return err
		}
		return c.args(b, x.args)
	}
	return nil
}
