package chat

import (
	"slices"
	"strings"
)

func (x *constExpr) eval(*state, *frame) (Value, error) { return x.v, nil }

func (x *nameExpr) eval(st *state, f *frame) (Value, error) {
	if err := st.charge(1); err != nil {
		return nil, at(x.offset(), err)
	}
	if v := *f.at(x.ref); v != nil {
		return v, nil
	}
	return undefinedName(x.name), nil
}

// eval of an attrTarget is never called: targets are only assigned.
func (x *attrTarget) eval(*state, *frame) (Value, error) { return undefinedName(x.name), nil }

func evalAll(st *state, f *frame, list []expr) ([]Value, error) {
	items := make([]Value, len(list))
	for i, e := range list {
		v, err := e.eval(st, f)
		if err != nil {
			return nil, err
		}
		items[i] = v
	}
	return items, st.charge(1 + len(items)/4)
}

func (x *tupleExpr) eval(st *state, f *frame) (Value, error) {
	items, err := evalAll(st, f, x.items)
	return newTuple(items...), at(x.offset(), err)
}

func (x *listExpr) eval(st *state, f *frame) (Value, error) {
	items, err := evalAll(st, f, x.items)
	return &List{items}, at(x.offset(), err)
}

func (x *dictExpr) eval(st *state, f *frame) (Value, error) {
	d := &Dict{}
	for i := range x.keys {
		k, err := x.keys[i].eval(st, f)
		if err != nil {
			return nil, err
		}
		v, err := x.vals[i].eval(st, f)
		if err != nil {
			return nil, err
		}
		if err = st.chargeKey(k); err == nil {
			err = d.set(k, v)
		}
		if err == nil {
			err = st.charge(1)
		}
		if err != nil {
			return nil, at(x.keys[i].offset(), err)
		}
	}
	return d, at(x.offset(), st.charge(1))
}

func (x *condExpr) eval(st *state, f *frame) (Value, error) {
	test, err := x.test.eval(st, f)
	switch {
	case err != nil:
		return nil, err
	case isTrue(test):
		return x.then.eval(st, f)
	case x.els == nil:
		return &undefined{hint: "the inline if is false and has no else"}, nil
	}
	return x.els.eval(st, f)
}

func (x *logicExpr) eval(st *state, f *frame) (v Value, err error) {
	for _, e := range x.items {
		if v, err = e.eval(st, f); err != nil || isTrue(v) == x.or {
			break
		}
	}
	return v, err
}

func (x *notExpr) eval(st *state, f *frame) (Value, error) {
	v, err := x.x.eval(st, f)
	if err != nil {
		return nil, err
	}
	return Bool(!isTrue(v)), nil
}

func (x *chainExpr) eval(st *state, f *frame) (Value, error) {
	left, err := x.first.eval(st, f)
	if err != nil {
		return nil, err
	}
	for i, op := range x.ops {
		right, err := x.args[i].eval(st, f)
		if err != nil {
			return nil, err
		}
		if err := st.charge(1); err != nil {
			return nil, at(x.offset(), err)
		}
		if !x.compare {
			if left, err = st.arithmetic(op, left, right); err != nil {
				return nil, at(x.args[i].offset(), err)
			}
			continue
		}
		ok, err := st.compare(op, left, right)
		if err != nil {
			return nil, at(x.args[i].offset(), err)
		}
		if !ok || i == len(x.ops)-1 {
			return Bool(ok), nil
		}
		left = right
	}
	return left, nil
}

func (x *concatExpr) eval(st *state, f *frame) (Value, error) {
	var b strings.Builder
	for _, e := range x.items {
		v, err := e.eval(st, f)
		if err != nil {
			return nil, err
		}
		s, err := st.str(v)
		if err == nil {
			err = st.chargeText(b.Len() + len(s))
		}
		if err != nil {
			return nil, at(e.offset(), err)
		}
		b.WriteString(s)
	}
	return Str(b.String()), nil
}

func (x *signExpr) eval(st *state, f *frame) (Value, error) {
	v, err := x.x.eval(st, f)
	if err != nil {
		return nil, err
	}
	v, err = sign(x.neg, v)
	return v, at(x.offset(), err)
}

func (x *attrExpr) eval(st *state, f *frame) (Value, error) {
	obj, err := x.x.eval(st, f)
	if err != nil {
		return nil, err
	}
	if err := st.charge(1); err != nil {
		return nil, at(x.offset(), err)
	}
	v, err := st.getattr(obj, x.name)
	return v, at(x.offset(), err)
}

func (x *itemExpr) eval(st *state, f *frame) (Value, error) {
	obj, err := x.x.eval(st, f)
	if err != nil {
		return nil, err
	}
	if err := st.charge(1); err != nil {
		return nil, at(x.offset(), err)
	}
	if s, ok := x.key.(*sliceExpr); ok {
		v, err := s.cut(st, f, obj)
		return v, at(x.offset(), err)
	}
	key, err := x.key.eval(st, f)
	if err != nil {
		return nil, err
	}
	v, err := st.getitem(obj, key)
	return v, at(x.offset(), err)
}

// eval of a slice outside of [] is never called: the parser makes none.
func (x *sliceExpr) eval(*state, *frame) (Value, error) { return None{}, nil }

func (x *callExpr) eval(st *state, f *frame) (Value, error) { return x.invoke(st, f, nil) }

// invoke calls the function of x; a caller, if given, is an extra argument.
func (x *callExpr) invoke(st *state, f *frame, caller *macro) (Value, error) {
	fn, err := x.fn.eval(st, f)
	if err != nil {
		return nil, err
	}
	a, err := x.args.eval(st, f)
	if err != nil {
		return nil, at(x.offset(), err)
	}
	if caller != nil {
		if slices.Contains(a.names, "caller") {
			return nil, at(x.offset(), typeErr("a call block sets the argument 'caller' itself"))
		}
		a.names, a.kw = append(a.names, "caller"), append(a.kw, Value(caller))
	}
	if err := st.charge(1); err != nil {
		return nil, at(x.offset(), err)
	}
	v, err := st.call(fn, a)
	return v, at(x.offset(), err)
}

func (st *state) call(fn Value, a *arguments) (Value, error) {
	switch fn := fn.(type) {
	case *function:
		return fn.call(st, a)
	case *macro:
		return fn.call(st, a)
	case *joinerValue:
		if len(a.pos)+len(a.names) > 0 {
			return nil, typeErr("a joiner takes no arguments")
		}
		if fn.used {
			return fn.sep, nil
		}
		fn.used = true
		return Str(""), nil
	case *undefined:
		return nil, undefErr(fn)
	case *loopValue:
		return fn.again(st, a)
	}
	return nil, typeErr("'%s' object is not callable", fn.typeName())
}

func (x *filterExpr) eval(st *state, f *frame) (Value, error) { return x.apply(st, f, nil) }

// apply runs the filter; text is the value of a block's innermost filter.
func (x *filterExpr) apply(st *state, f *frame, text Value) (v Value, err error) {
	switch in := x.x.(type) {
	case nil:
		v = text
	case *filterExpr:
		v, err = in.apply(st, f, text)
	default:
		v, err = x.x.eval(st, f)
	}
	if err != nil {
		return nil, err
	}
	if x.fn == nil {
		return nil, at(x.offset(), typeErr("no filter named '%s'", x.name))
	}
	v, err = x.fn.run(st, f, v, &x.args)
	return v, at(x.offset(), err)
}

func (x *testExpr) eval(st *state, f *frame) (Value, error) {
	v, err := x.x.eval(st, f)
	if err != nil {
		return nil, err
	}
	if x.fn == nil {
		return nil, at(x.offset(), typeErr("no test named '%s'", x.name))
	}
	v, err = x.fn.run(st, f, v, &x.args)
	return v, at(x.offset(), err)
}
