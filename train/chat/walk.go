package chat

import "slices"

// walkExpr calls visit for the names of an expression; loaded is always true.
func walkExpr(x expr, visit func(name string, loaded bool)) {
	all := func(list ...expr) {
		for _, e := range list {
			if e != nil {
				walkExpr(e, visit)
			}
		}
	}
	call := func(a callArgs) {
		all(a.pos...)
		all(a.kw...)
		all(a.star, a.stars)
	}
	switch x := x.(type) {
	case *nameExpr:
		visit(x.name, true)
	case *tupleExpr:
		all(x.items...)
	case *listExpr:
		all(x.items...)
	case *dictExpr:
		for i := range x.keys {
			all(x.keys[i], x.vals[i])
		}
	case *condExpr:
		all(x.test, x.then, x.els)
	case *logicExpr:
		all(x.items...)
	case *notExpr:
		all(x.x)
	case *chainExpr:
		all(x.first)
		all(x.args...)
	case *concatExpr:
		all(x.items...)
	case *signExpr:
		all(x.x)
	case *attrExpr:
		all(x.x)
	case *itemExpr:
		all(x.x, x.key)
	case *sliceExpr:
		all(x.start, x.stop, x.step)
	case *callExpr:
		all(x.fn)
		call(x.args)
	case *filterExpr:
		all(x.x)
		call(x.args)
	case *testExpr:
		all(x.x)
		call(x.args)
	}
}

// walkTarget calls visit for the names that an assignment sets.
func walkTarget(x expr, visit func(name string, loaded bool)) {
	switch x := x.(type) {
	case *nameExpr:
		visit(x.name, false)
	case *tupleExpr:
		for _, e := range x.items {
			walkTarget(e, visit)
		}
	}
}

// walkStmts calls visit for all names in statements, including nested ones, in Jinja2's
// order of nodes. As there, it leaves out named blocks.
func walkStmts(list []stmt, visit func(name string, loaded bool)) {
	exprs := func(list ...expr) {
		for _, e := range list {
			if e != nil {
				walkExpr(e, visit)
			}
		}
	}
	def := func(d *macroDef) {
		for _, a := range d.args {
			visit(a.name, false)
		}
		exprs(d.defaults...)
		walkStmts(d.body, visit)
	}
	for _, s := range list {
		switch s := s.(type) {
		case *outputStmt:
			exprs(s.parts...)
		case *ifStmt:
			for i := range s.tests {
				exprs(s.tests[i])
				walkStmts(s.bodies[i], visit)
			}
			walkStmts(s.els, visit)
		case *forStmt:
			walkTarget(s.target, visit)
			exprs(s.iter)
			walkStmts(s.body, visit)
			walkStmts(s.els, visit)
			exprs(s.test)
		case *macroStmt:
			def(s.def)
		case *callStmt:
			if s.call != nil {
				exprs(s.call)
			}
			def(s.def)
		case *filterStmt:
			walkStmts(s.body, visit)
			exprs(s.filter)
		case *setStmt:
			walkTarget(s.target, visit)
			exprs(s.value)
		case *setBlockStmt:
			walkTarget(s.target, visit)
			if s.filter != nil {
				exprs(s.filter)
			}
			walkStmts(s.body, visit)
		case *withStmt:
			for _, t := range s.targets {
				walkTarget(t, visit)
			}
			exprs(s.values...)
			walkStmts(s.body, visit)
		}
	}
}

// hasScopedBlock reports whether list has a scoped block, at any depth.
func hasScopedBlock(list []stmt) bool {
	return slices.ContainsFunc(list, func(s stmt) bool {
		switch s := s.(type) {
		case *blockStmt:
			return s.scoped || hasScopedBlock(s.body)
		case *ifStmt:
			return slices.ContainsFunc(s.bodies, hasScopedBlock) || hasScopedBlock(s.els)
		case *forStmt:
			return hasScopedBlock(s.body) || hasScopedBlock(s.els)
		case *macroStmt:
			return hasScopedBlock(s.def.body)
		case *callStmt:
			return hasScopedBlock(s.def.body)
		case *filterStmt:
			return hasScopedBlock(s.body)
		case *setBlockStmt:
			return hasScopedBlock(s.body)
		case *withStmt:
			return hasScopedBlock(s.body)
		}
		return false
	})
}

// undeclared returns the names that list reads before it sets them.
func undeclared(list []stmt, names ...string) map[string]bool {
	open := map[string]bool{}
	for _, n := range names {
		open[n] = true
	}
	found := map[string]bool{}
	walkStmts(list, func(name string, loaded bool) {
		if loaded && open[name] {
			found[name] = true
		} else {
			delete(open, name)
		}
	})
	return found
}
