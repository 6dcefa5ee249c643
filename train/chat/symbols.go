package chat

// Names are resolved to variables before rendering, as in Jinja2 (jinja2/idtracking.py):
// each block that opens a scope lists the names it reads and sets, and each one's initial
// value on entry.

// funcInfo is a body with its own variables: the template, or a macro. Nested blocks keep
// their variables in slots of its frame.
type funcInfo struct {
	parent *funcInfo
	slots  map[variable]int
}

// variable is a name at a level of nested scopes.
type variable struct {
	level int
	name  string
}

func (fn *funcInfo) slot(level int, name string) int {
	v := variable{level, name}
	i, ok := fn.slots[v]
	if !ok {
		i = len(fn.slots)
		fn.slots[v] = i
	}
	return i
}

// symbols are the names of one scope. A branch of an if has symbols on top of the scope's,
// which base points to.
type symbols struct {
	base, parent *symbols
	level        int
	fn           *funcInfo
	loads        map[string]loadKind // initial value of each name; its keys are the names
	order        []string            // of loads
	stores       map[string]bool
	top          *symbols // in a block that is not scoped: the template's outermost scope
}

func newSymbols(parent *symbols, fn *funcInfo) *symbols {
	s := &symbols{parent: parent, fn: fn, loads: map[string]loadKind{}, stores: map[string]bool{}}
	if parent != nil {
		s.level, s.top = parent.level+1, parent.top
	}
	return s
}

func (s *symbols) branch() *symbols {
	b := newSymbols(s.parent, s.fn)
	b.base = s
	return b
}

func (s *symbols) has(name string) bool {
	for b := s; b != nil; b = b.base {
		if _, ok := b.loads[name]; ok {
			return true
		}
	}
	return false
}

func (s *symbols) stored(name string) bool {
	for b := s; b != nil; b = b.base {
		if b.stores[name] {
			return true
		}
	}
	return false
}

// find returns the scope that name belongs to, or nil.
func (s *symbols) find(name string) *symbols {
	for ; s != nil; s = s.parent {
		if s.has(name) {
			return s
		}
	}
	return nil
}

func (s *symbols) define(name string, kind loadKind) {
	if _, ok := s.loads[name]; !ok {
		s.order = append(s.order, name)
	}
	s.loads[name] = kind
}

func (s *symbols) param(name string) {
	s.stores[name] = true
	s.define(name, loadParam)
}

func (s *symbols) load(name string) {
	if s.find(name) == nil {
		s.define(name, loadGlobal)
	}
}

func (s *symbols) store(name string) {
	if !s.stored(name) {
		s.stores[name] = true
	}
	if s.has(name) {
		return
	}
	if s.parent.find(name) != nil {
		s.define(name, loadAlias)
		return
	}
	s.define(name, loadMissing)
}

// join merges the branches of an if. A name that only a branch sets starts with its outer
// value, because the branch may not be taken.
func (s *symbols) join(branches ...*symbols) {
	var fresh []string
	for _, b := range branches {
		for _, name := range b.order {
			if b.stores[name] && !s.stored(name) {
				fresh = append(fresh, name)
			}
		}
		for name := range b.stores {
			if _, own := b.loads[name]; !own && !s.stored(name) {
				fresh = append(fresh, name)
			}
		}
	}
	for _, b := range branches {
		for _, name := range b.order {
			s.define(name, b.loads[name])
		}
		for name := range b.stores {
			s.stores[name] = true
		}
	}
	for _, name := range fresh {
		if s.parent.find(name) != nil {
			s.define(name, loadAlias)
		} else {
			s.define(name, loadGlobal)
		}
	}
}

// scope returns what to do on entry to the scope of s.
func (s *symbols) scope() scope {
	list := make(scope, len(s.order))
	for i, name := range s.order {
		l := load{slot: s.fn.slot(s.level, name), kind: s.loads[name], name: name}
		switch {
		case l.kind == loadAlias:
			l.from, _ = s.parent.ref(name, s.fn)
		case l.kind == loadGlobal && s.top != nil && s.top.stored(name):
			l.kind, l.from = loadTop, ref{slot: s.top.fn.slot(s.top.level, name)}
		}
		list[i] = l
	}
	return list
}

// ref returns the place of variable name as seen from fn, and false if no scope has it.
func (s *symbols) ref(name string, fn *funcInfo) (ref, bool) {
	owner := s.find(name)
	if owner == nil {
		return ref{}, false
	}
	r := ref{slot: owner.fn.slot(owner.level, name)}
	for ; fn != owner.fn; fn = fn.parent {
		r.up++
	}
	return r, true
}

// stmts enters the names of statements; blocks with their own scope keep their own symbols.
func (s *symbols) stmts(list []stmt) {
	for _, x := range list {
		s.stmt(x)
	}
}

func (s *symbols) stmt(x stmt) {
	switch x := x.(type) {
	case *outputStmt:
		s.exprs(x.parts...)
	case *ifStmt:
		s.exprs(x.tests[0])
		body, elifs, els := s.branch(), s.branch(), s.branch()
		body.stmts(x.bodies[0])
		for i, test := range x.tests[1:] {
			elifs.exprs(test)
			b, none1, none2 := elifs.branch(), elifs.branch(), elifs.branch()
			b.stmts(x.bodies[i+1])
			elifs.join(b, none1, none2)
		}
		els.stmts(x.els)
		s.join(body, elifs, els)
	case *macroStmt:
		s.store(x.name)
	case *setStmt:
		s.exprs(x.value)
		s.targets(x.target, s.store)
	case *setBlockStmt:
		s.targets(x.target, s.store)
	case *forStmt:
		s.exprs(x.iter)
	case *callStmt:
		if x.call != nil {
			s.exprs(x.call)
		}
	case *filterStmt:
		s.exprs(x.filter)
	case *withStmt:
		s.exprs(x.values...)
	}
}

func (s *symbols) exprs(list ...expr) {
	for _, x := range list {
		walkExpr(x, func(name string, _ bool) { s.load(name) })
	}
}

// targets enters the names on the left side of an assignment.
func (s *symbols) targets(x expr, enter func(string)) {
	switch x := x.(type) {
	case *nameExpr:
		enter(x.name)
	case *attrTarget:
		s.load(x.name)
	case *tupleExpr:
		for _, e := range x.items {
			s.targets(e, enter)
		}
	}
}
