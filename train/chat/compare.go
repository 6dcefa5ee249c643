package chat

import "strings"

// compare returns a op b for == != < <= > >= in, and not in.
func (st *state) compare(op string, a, b Value) (bool, error) {
	switch op {
	case "==":
		return st.equal(a, b)
	case "!=":
		eq, err := st.equal(a, b)
		return !eq, err
	case "in":
		return st.contains(b, a)
	case "not in":
		in, err := st.contains(b, a)
		return !in, err
	}
	return st.order(op, a, b)
}

func (st *state) equal(a, b Value) (bool, error) { return st.equalAt(a, b, 0) }

func (st *state) equalAt(a, b Value, depth int) (bool, error) {
	if depth > maxValueDepth {
		return false, errDeep
	}
	if isNumber(a) || isNumber(b) {
		if !isNumber(a) || !isNumber(b) {
			return false, nil
		}
		c, ok := compareNumbers(a, b)
		return ok && c == 0, nil
	}
	if s, ok := textOf(a); ok {
		t, ok := textOf(b)
		if !ok || len(s) != len(t) {
			return false, nil
		}
		return s == t, st.charge(len(s) / textPerStep)
	}
	switch x := a.(type) {
	case None:
		_, ok := b.(None)
		return ok, nil
	case *undefined:
		_, ok := b.(*undefined)
		return ok, nil
	case *List:
		y, ok := b.(*List)
		if !ok {
			return false, nil
		}
		return st.equalItems(x.Items, y.Items, depth)
	case *tuple:
		y, ok := b.(*tuple)
		if !ok {
			return false, nil
		}
		return st.equalItems(x.items, y.items, depth)
	case *Dict:
		y, ok := b.(*Dict)
		if !ok {
			return false, nil
		}
		return st.equalDicts(x, y, depth)
	case *rangeValue:
		y, ok := b.(*rangeValue)
		return ok && x.n == y.n && (x.n == 0 || x.start == y.start && (x.n == 1 || x.step == y.step)), nil
	case *view:
		return st.equalViews(x, b, depth)
	}
	return a == b, nil
}

func (st *state) equalItems(a, b []Value, depth int) (bool, error) {
	if len(a) != len(b) {
		return false, nil
	}
	for i := range a {
		if err := st.charge(1); err != nil {
			return false, err
		}
		if eq, err := st.equalAt(a[i], b[i], depth+1); !eq || err != nil {
			return false, err
		}
	}
	return true, nil
}

func (st *state) equalDicts(a, b *Dict, depth int) (bool, error) {
	if a.Len() != b.Len() {
		return false, nil
	}
	for i, k := range a.keys {
		if err := st.charge(1); err != nil {
			return false, err
		}
		v, ok, err := st.lookup(b, k)
		if !ok || err != nil {
			return false, err
		}
		if eq, err := st.equalAt(a.vals[i], v, depth+1); !eq || err != nil {
			return false, err
		}
	}
	return true, nil
}

// equalViews compares keys or items as sets; values are equal only to themselves.
func (st *state) equalViews(a *view, other Value, depth int) (bool, error) {
	b, ok := other.(*view)
	if !ok || a.kind != b.kind || a.kind == "dict_values" {
		return a == b && ok, nil
	}
	if a.kind == "dict_items" {
		return st.equalDicts(a.dict, b.dict, depth)
	}
	if a.dict.Len() != b.dict.Len() {
		return false, nil
	}
	for _, k := range a.dict.keys {
		if err := st.charge(1); err != nil {
			return false, err
		}
		if _, ok, err := st.lookup(b.dict, k); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

// order returns a op b for < <= > >=.
func (st *state) order(op string, a, b Value) (bool, error) {
	return st.orderAt(op, a, b, 0)
}

func signFits(op string, c int) bool {
	switch op {
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0
	}
	return c >= 0
}

func (st *state) orderAt(op string, a, b Value, depth int) (bool, error) {
	if depth > maxValueDepth {
		return false, errDeep
	}
	if u, ok := a.(*undefined); ok {
		return false, undefErr(u)
	}
	if u, ok := b.(*undefined); ok {
		return false, undefErr(u)
	}
	if isNumber(a) && isNumber(b) {
		c, ok := compareNumbers(a, b)
		return ok && signFits(op, c), nil
	}
	if s, ok := textOf(a); ok {
		if t, ok := textOf(b); ok {
			return signFits(op, strings.Compare(s, t)), st.charge(min(len(s), len(t)) / textPerStep)
		}
	}
	switch x := a.(type) {
	case *List:
		if y, ok := b.(*List); ok {
			return st.orderItems(op, x.Items, y.Items, depth)
		}
	case *tuple:
		if y, ok := b.(*tuple); ok {
			return st.orderItems(op, x.items, y.items, depth)
		}
	}
	return false, typeErr("'%s' not supported between '%s' and '%s'", op, a.typeName(), b.typeName())
}

// orderItems compares sequences by their first differing elements.
func (st *state) orderItems(op string, a, b []Value, depth int) (bool, error) {
	for i := range min(len(a), len(b)) {
		if err := st.charge(1); err != nil {
			return false, err
		}
		eq, err := st.equalAt(a[i], b[i], depth+1)
		if err != nil {
			return false, err
		}
		if !eq {
			return st.orderAt(op, a[i], b[i], depth+1)
		}
	}
	return signFits(op, len(a)-len(b)), nil
}

// contains returns x in seq.
func (st *state) contains(seq, x Value) (bool, error) {
	switch s := seq.(type) {
	case Str, markup:
		text, _ := textOf(s)
		part, ok := textOf(x)
		if !ok {
			return false, typeErr("'in <string>' requires a string on the left, not %s", x.typeName())
		}
		return strings.Contains(text, part), st.charge(len(text) / textPerStep)
	case *Dict:
		_, ok, err := st.lookup(s, x)
		return ok, err
	case *view:
		if s.kind == "dict_keys" {
			_, ok, err := st.lookup(s.dict, x)
			return ok, err
		}
	case *rangeValue:
		if isNumber(x) {
			return s.contains(x), nil
		}
		return false, nil
	}
	next, err := st.iterate(seq)
	if err != nil {
		if isKind(err, kindType) {
			return false, typeErr("argument of type '%s' is not iterable", seq.typeName())
		}
		return false, err
	}
	for {
		v, ok, err := next()
		if err != nil || !ok {
			return false, err
		}
		if err := st.charge(1); err != nil {
			return false, err
		}
		if eq, err := st.equal(v, x); eq || err != nil {
			return eq, err
		}
	}
}
