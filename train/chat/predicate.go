package chat

// testNamed returns the test of x is name, or nil.
func testNamed(name string) builtin {
	switch name {
	case "==", "eq", "equalto":
		return comparison(name, "==")
	case "!=", "ne":
		return comparison(name, "!=")
	case ">", "gt", "greaterthan":
		return comparison(name, ">")
	case ">=", "ge":
		return comparison(name, ">=")
	case "<", "lt", "lessthan":
		return comparison(name, "<")
	case "<=", "le":
		return comparison(name, "<=")
	case "in":
		return comparison(name, "in")
	case "sameas":
		return bound("sameas", sameTest, "other")
	case "odd", "even", "divisibleby":
		return remainderTest(name)
	case "filter", "test":
		return knownTest(name)
	case "iterable":
		return alone("iterable", iterableTest)
	case "lower", "upper":
		return caseTest(name)
	case "defined", "undefined", "none", "boolean", "true", "false", "integer", "float", "string", "mapping",
		"number",
		"sequence", "callable", "escaped":
		return typeTest(name)
	}
	return nil
}

func comparison(name, op string) builtin {
	return func(st *state, v Value, a *arguments) (Value, error) {
		args, err := a.positional(name, 1, 1)
		if err != nil {
			return nil, err
		}
		ok, err := st.compare(op, v, args[0])
		return Bool(ok), err
	}
}

func sameTest(_ *state, v Value, args []Value) (Value, error) {
	if x, ok := v.(bigInt); ok {
		y, ok := args[0].(bigInt)
		return Bool(ok && x.i == y.i), nil
	}
	return Bool(v == args[0]), nil
}

func remainderTest(name string) builtin {
	return func(st *state, v Value, a *arguments) (Value, error) {
		params := []string{}
		if name == "divisibleby" {
			params = append(params, "num")
		}
		args, err := a.bind(name, params...)
		if err != nil {
			return nil, err
		}
		by, want := Value(Int(2)), Value(Int(0))
		switch name {
		case "odd":
			want = Int(1)
		case "divisibleby":
			by = args[0]
		}
		rest, err := st.arithmetic("%", v, by)
		if err != nil {
			return nil, err
		}
		eq, err := st.equal(rest, want)
		return Bool(eq), err
	}
}

// knownTest reports whether the named filter or test exists.
func knownTest(kind string) builtin {
	return func(st *state, v Value, a *arguments) (Value, error) {
		if _, err := a.positional(kind, 0, 0); err != nil {
			return nil, err
		}
		if err := st.chargeKey(v); err != nil {
			return nil, err
		}
		if _, err := hashKey(v, 0); err != nil {
			return nil, err
		}
		name, _ := textOf(v)
		if kind == "filter" {
			return Bool(filterNamed(name) != nil), nil
		}
		return Bool(testNamed(name) != nil), nil
	}
}

func iterableTest(st *state, v Value) (Value, error) {
	if _, ok := v.(*loopValue); ok {
		return Bool(true), nil
	}
	_, err := st.iterate(v)
	return Bool(err == nil), nil
}

func caseTest(name string) builtin {
	return func(st *state, v Value, a *arguments) (Value, error) {
		if _, err := a.positional(name, 0, 0); err != nil {
			return nil, err
		}
		s, err := st.str(v)
		if err == nil {
			err = st.chargeSlow(len(s))
		}
		if err != nil {
			return nil, err
		}
		return Bool(textIs("is"+name, s)), nil
	}
}

func typeTest(name string) builtin {
	return func(_ *state, v Value, a *arguments) (Value, error) {
		_, err := a.positional(name, 0, 0)
		return Bool(hasType(name, v)), err
	}
}

func hasType(name string, v Value) bool {
	switch v := v.(type) {
	case *undefined:
		return name == "undefined" || name == "sequence" || name == "callable"
	case None:
		return name == "none" || name == "defined"
	case Bool:
		return name == "boolean" || name == "defined" || name == "number" || name == "true" && bool(v) ||
			name == "false" && !bool(v)
	case Int, bigInt:
		return name == "integer" || name == "number" || name == "defined"
	case Float:
		return name == "float" || name == "number" || name == "defined"
	case Str:
		return name == "string" || name == "sequence" || name == "defined"
	case markup:
		return name == "string" || name == "sequence" || name == "defined" || name == "escaped"
	case *List, *tuple, *rangeValue:
		return name == "sequence" || name == "defined"
	case *Dict:
		return name == "mapping" || name == "sequence" || name == "defined"
	case *function, *macro, *joinerValue, *loopValue:
		return name == "callable" || name == "defined"
	}
	return name == "defined"
}
