package chat

// run executes statements until one of them leaves the enclosing loop.
func (st *state) run(list []stmt, f *frame) (signal, error) {
	for _, s := range list {
		if err := st.charge(1); err != nil {
			return goOn, err
		}
		sig, err := s.exec(st, f)
		if sig != goOn || err != nil {
			return sig, err
		}
	}
	return goOn, nil
}

func (s *outputStmt) exec(st *state, f *frame) (signal, error) {
	for _, x := range s.parts {
		if c, ok := x.(*constExpr); ok {
			if text, ok := c.v.(Str); ok {
				if err := st.write(string(text)); err != nil {
					return goOn, at(x.offset(), err)
				}
				continue
			}
		}
		v, err := x.eval(st, f)
		if err != nil {
			return goOn, err
		}
		text, err := st.str(v)
		if err == nil {
			err = st.write(text)
		}
		if err != nil {
			return goOn, at(x.offset(), err)
		}
	}
	return goOn, nil
}

func (s *ifStmt) exec(st *state, f *frame) (signal, error) {
	for i, test := range s.tests {
		v, err := test.eval(st, f)
		if err != nil {
			return goOn, err
		}
		if isTrue(v) {
			return st.run(s.bodies[i], f)
		}
	}
	return st.run(s.els, f)
}

func (s *jumpStmt) exec(*state, *frame) (signal, error) { return s.signal, nil }

func (s *setStmt) exec(st *state, f *frame) (signal, error) {
	if err := checkNamespaces(s.target, f); err != nil {
		return goOn, err
	}
	v, err := s.value.eval(st, f)
	if err != nil {
		return goOn, err
	}
	return goOn, st.assign(s.target, v, f)
}

func (s *setBlockStmt) exec(st *state, f *frame) (signal, error) {
	st.enter(s.scope, f)
	sig := goOn
	text, err := st.capture(func() (err error) {
		sig, err = st.run(s.body, f)
		return err
	})
	if sig != goOn || err != nil {
		return sig, err
	}
	var v Value = Str(text)
	if s.filter != nil {
		if v, err = s.filter.apply(st, f, v); err != nil {
			return goOn, err
		}
	}
	err = st.assign(s.target, v, f)
	s.scope.leave(f)
	return goOn, err
}

func (s *filterStmt) exec(st *state, f *frame) (signal, error) {
	st.enter(s.scope, f)
	sig := goOn
	text, err := st.capture(func() (err error) {
		sig, err = st.run(s.body, f)
		return err
	})
	if sig != goOn || err != nil {
		return sig, err
	}
	v, err := s.filter.apply(st, f, Str(text))
	if err == nil {
		err = st.writeText(v)
	}
	s.scope.leave(f)
	return goOn, at(s.filter.offset(), err)
}

func (s *withStmt) exec(st *state, f *frame) (signal, error) {
	st.enter(s.scope, f)
	for i, target := range s.targets {
		v, err := s.values[i].eval(st, f)
		if err != nil {
			return goOn, err
		}
		if err := st.assign(target, v, f); err != nil {
			return goOn, err
		}
	}
	sig, err := st.run(s.body, f)
	s.scope.leave(f)
	return sig, err
}

func (s *blockStmt) exec(st *state, outer *frame) (signal, error) {
	for range s.up {
		outer = outer.parent
	}
	f := &frame{slots: make([]Value, len(s.fn.slots)), parent: outer}
	st.enter(s.scope, f)
	_, err := st.run(s.body, f)
	return goOn, err
}

// writeText writes the result of a filter or call block, which must be text.
func (st *state) writeText(v Value) error {
	s, ok := textOf(v)
	if !ok {
		return typeErr("the block must yield text, not %s", v.typeName())
	}
	return st.write(s)
}

// checkNamespaces refuses ns.attr on the left side of a set unless ns is a namespace.
func checkNamespaces(x expr, f *frame) error {
	switch x := x.(type) {
	case *attrTarget:
		if _, ok := (*f.at(x.ref)).(*namespace); !ok {
			return at(x.offset(), typeErr("'%s' is not a namespace: its attributes cannot be set", x.name))
		}
	case *tupleExpr:
		for _, e := range x.items {
			if err := checkNamespaces(e, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// assign sets a target; a tuple unpacks a sequence.
func (st *state) assign(x expr, v Value, f *frame) error {
	switch x := x.(type) {
	case *nameExpr:
		*f.at(x.ref) = v
	case *attrTarget:
		ns, ok := (*f.at(x.ref)).(*namespace)
		if !ok {
			return at(x.offset(), typeErr("'%s' is not a namespace: its attributes cannot be set", x.name))
		}
		ns.attrs.Set(x.attr, v)
	case *tupleExpr:
		items, err := st.unpack(v, len(x.items))
		if err != nil {
			return at(x.offset(), err)
		}
		for i, e := range x.items {
			if err := st.assign(e, items[i], f); err != nil {
				return err
			}
		}
	}
	return nil
}

// unpack returns the n elements of v.
func (st *state) unpack(v Value, n int) ([]Value, error) {
	next, err := st.iterate(v)
	if err != nil {
		if isKind(err, kindType) {
			return nil, typeErr("cannot unpack a value of type %s", v.typeName())
		}
		return nil, err
	}
	var items []Value
	for len(items) <= n {
		x, ok, err := next()
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		items = append(items, x)
	}
	if len(items) < n {
		return nil, valueErr("not enough values to unpack: expected %d, got %d", n, len(items))
	}
	if len(items) > n {
		return nil, valueErr("too many values to unpack: expected %d", n)
	}
	return items, nil
}
