package chat

// mapFilter is map('filter', args…) or map(attribute=path, default=value).
func mapFilter(st *state, v Value, a *arguments) (Value, error) {
	if !isTrue(v) {
		return newGenerator("map", sliceIterator(nil)), nil
	}
	fn, err := st.mapping(a)
	if err != nil {
		return failing("map", err), nil
	}
	g, err := st.mapped("map", v, fn)
	if err != nil {
		return failing("map", err), nil
	}
	return g, nil
}

func (st *state) mapping(a *arguments) (func(Value) (Value, error), error) {
	rest := &arguments{names: append([]string{}, a.names...), kw: append([]Value{}, a.kw...)}
	if len(a.pos) == 0 {
		if attr := rest.take("attribute"); attr != nil {
			def := rest.take("default")
			if len(rest.names) > 0 {
				return nil, typeErr("map() got an unexpected argument '%s'", rest.names[0])
			}
			path := attributePath(attr)
			return func(x Value) (Value, error) { return st.follow(x, path, notNone(def)) }, nil
		}
		return nil, typeErr("map needs a filter or an attribute")
	}
	name, _ := textOf(a.pos[0])
	filter := filterNamed(name)
	if filter == nil {
		return nil, typeErr("no filter named '%.60s'", name)
	}
	rest.pos = a.pos[1:]
	return func(x Value) (Value, error) { return filter(st, x, rest) }, nil
}

// selectFilter is select, reject, selectattr and rejectattr: the elements whose value, or
// attribute, passes or fails a test.
func selectFilter(filter string, keep, byAttr bool) builtin {
	return func(st *state, v Value, a *arguments) (Value, error) {
		if !isTrue(v) {
			return newGenerator(filter, sliceIterator(nil)), nil
		}
		next, err := st.iterate(v)
		if err != nil {
			return failing(filter, err), nil
		}
		var path []Value
		args := a.pos
		if byAttr {
			if len(args) == 0 {
				return failing(filter, typeErr("%s needs the name of an attribute", filter)), nil
			}
			path, args = attributePath(args[0]), args[1:]
		}
		test := func(x Value) (bool, error) { return isTrue(x), nil }
		if len(args) > 0 {
			name, _ := textOf(args[0])
			fn := testNamed(name)
			if fn == nil {
				return failing(filter, typeErr("no test named '%.60s'", name)), nil
			}
			rest := &arguments{pos: args[1:], names: a.names, kw: a.kw}
			test = func(x Value) (bool, error) {
				ok, err := fn(st, x, rest)
				return err == nil && isTrue(ok), err
			}
		}
		return newGenerator(filter, func() (Value, bool, error) {
			for {
				x, ok, err := next()
				if err != nil || !ok {
					return nil, false, err
				}
				if err := st.charge(1); err != nil {
					return nil, false, err
				}
				of, err := st.follow(x, path, nil)
				if err != nil {
					return nil, false, err
				}
				pass, err := test(of)
				if err != nil {
					return nil, false, err
				}
				if pass == keep {
					return x, true, nil
				}
			}
		}), nil
	}
}
