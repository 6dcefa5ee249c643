package chat

import (
	"slices"
	"strings"
	"unicode"
)

// attributePath returns the keys of an attribute such as "a.b.0".
func attributePath(attr Value) []Value {
	if attr == nil {
		return nil
	}
	s, ok := textOf(attr)
	if !ok {
		if _, none := attr.(None); none {
			return nil
		}
		return []Value{attr}
	}
	var path []Value
	for _, part := range strings.Split(s, ".") {
		if part != "" && strings.IndexFunc(part, func(r rune) bool { return !unicode.IsDigit(r) }) < 0 {
			if i, err := parseInt(part, 10); err == nil {
				path = append(path, fromBig(i))
				continue
			}
		}
		path = append(path, Str(part))
	}
	return path
}

// follow returns the value at a path; def, if given, replaces undefined ones.
func (st *state) follow(v Value, path []Value, def Value) (Value, error) {
	for _, key := range path {
		var err error
		if v, err = st.getitem(v, key); err != nil {
			return nil, err
		}
		if _, undef := v.(*undefined); undef && def != nil {
			v = def
		}
	}
	return v, nil
}

// foldCase lowers text for comparisons that ignore case.
func (st *state) foldCase(v Value, sensitive bool) (Value, error) {
	s, ok := textOf(v)
	if !ok || sensitive {
		return v, nil
	}
	return alike(v, lowerText(s)), st.chargeSlow(len(s))
}

func given(v Value) bool { return v != nil && isTrue(v) }

// notNone returns nil for None.
func notNone(v Value) Value {
	if _, none := v.(None); none {
		return nil
	}
	return v
}

func listFilter(st *state, v Value) (Value, error) {
	items, err := st.list(v)
	return &List{items}, err
}

func firstFilter(st *state, v Value) (Value, error) {
	next, err := st.iterate(v)
	if err != nil {
		return nil, err
	}
	x, ok, err := next()
	if !ok && err == nil {
		return &undefined{hint: "no first item: the sequence is empty"}, nil
	}
	return x, err
}

// reversible returns the elements of v if Python's reversed accepts it.
func (st *state) reversible(v Value) ([]Value, error) {
	switch v.(type) {
	case *List, *tuple, *Dict, *view, *rangeValue, Str, markup:
		return st.list(v)
	case *undefined:
		return nil, nil
	}
	return nil, typeErr("'%s' object is not reversible", v.typeName())
}

func lastFilter(st *state, v Value) (Value, error) {
	items, err := st.reversible(v)
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return &undefined{hint: "no last item: the sequence is empty"}, nil
	}
	return items[len(items)-1], nil
}

func reverseFilter(st *state, v Value) (Value, error) {
	if s, ok := textOf(v); ok {
		if err := st.chargeText(len(s)); err != nil {
			return nil, err
		}
		rs := []rune(s)
		slices.Reverse(rs)
		return alike(v, string(rs)), nil
	}
	items, err := st.reversible(v)
	if err == nil {
		items = slices.Clone(items)
		slices.Reverse(items)
		return newGenerator("reverse", sliceIterator(items)), nil
	}
	if items, err = st.list(v); err != nil {
		return nil, err
	}
	items = slices.Clone(items)
	slices.Reverse(items)
	return &List{items}, nil
}

func itemsFilter(_ *state, v Value) (Value, error) {
	switch v := v.(type) {
	case *undefined:
		return newGenerator("items", sliceIterator(nil)), nil
	case *Dict:
		return newGenerator("items", (&view{v, "dict_items"}).iterate()), nil
	}
	return failing("items", typeErr("items needs a mapping, not %s", v.typeName())), nil
}

// failing is a generator whose first element is an error: in Python the body of a generator
// runs when it is read.
func failing(name string, err error) Value {
	return newGenerator(name, func() (Value, bool, error) { return nil, false, err })
}

func joinFilter(st *state, v Value, args []Value) (Value, error) {
	sep, err := st.str(optional(args[0], Str("")))
	if err != nil {
		return nil, err
	}
	items, err := st.list(v)
	if err != nil {
		return nil, err
	}
	path := attributePath(args[1])
	parts := make([]string, len(items))
	for i, x := range items {
		if x, err = st.follow(x, path, nil); err != nil {
			return nil, err
		}
		if parts[i], err = st.str(x); err != nil {
			return nil, err
		}
	}
	text, err := st.joinTexts(parts, sep)
	return Str(text), err
}

func sumFilter(st *state, v Value, args []Value) (Value, error) {
	total := optional(args[1], Int(0))
	if _, ok := textOf(total); ok {
		return nil, typeErr("sum does not join strings: use join")
	}
	items, err := st.list(v)
	if err != nil {
		return nil, err
	}
	path := attributePath(args[0])
	for _, x := range items {
		if x, err = st.follow(x, path, nil); err != nil {
			return nil, err
		}
		if total, err = st.arithmetic("+", total, x); err != nil {
			return nil, err
		}
	}
	return total, nil
}

// extremeFilter is min and max: the first extreme element.
func extremeFilter(name, op string) builtin {
	return func(st *state, v Value, a *arguments) (Value, error) {
		args, err := a.bind(name, "case_sensitive=", "attribute=")
		if err != nil {
			return nil, err
		}
		items, err := st.list(v)
		if err != nil {
			return nil, err
		}
		if len(items) == 0 {
			return &undefined{hint: "no " + name + ": the sequence is empty"}, nil
		}
		path := attributePath(args[1])
		var best, bestKey Value
		for _, x := range items {
			key, err := st.follow(x, path, nil)
			if err == nil {
				key, err = st.foldCase(key, given(args[0]))
			}
			better := best == nil
			if err == nil && !better {
				better, err = st.order(op, key, bestKey)
			}
			if err != nil {
				return nil, err
			}
			if better {
				best, bestKey = x, key
			}
		}
		return best, nil
	}
}

func uniqueFilter(st *state, v Value, args []Value) (Value, error) {
	path := attributePath(args[1])
	next, err := st.iterate(v)
	if err != nil {
		return failing("unique", err), nil
	}
	seen := map[string]bool{}
	return newGenerator("unique", func() (Value, bool, error) {
		for {
			x, ok, err := next()
			if err != nil || !ok {
				return nil, false, err
			}
			key, err := st.follow(x, path, nil)
			if err == nil {
				key, err = st.foldCase(key, given(args[0]))
			}
			if err == nil {
				err = st.chargeKey(key)
			}
			if err != nil {
				return nil, false, err
			}
			h, err := hashKey(key, 0)
			if err != nil {
				return nil, false, err
			}
			if !seen[h] {
				seen[h] = true
				return x, true, nil
			}
		}
	}), nil
}

func batchFilter(st *state, v Value, args []Value) (Value, error) {
	items, err := st.list(v)
	if err != nil {
		return failing("batch", err), nil
	}
	n, isInt := asInt64(args[0])
	if f, ok := args[0].(Float); ok && f.F == float64(int64(f.F)) {
		n, isInt = int64(f.F), true
	}
	var rows []Value
	var row []Value
	for _, x := range items {
		if isInt && int64(len(row)) == n {
			rows, row = append(rows, &List{row}), nil
		}
		row = append(row, x)
	}
	if fill := notNone(args[1]); len(row) > 0 && fill != nil {
		if !isInt {
			return failing("batch", typeErr("batch needs an integer")), nil
		}
		if n > maxSteps {
			return nil, limitErr("list longer than %d", maxSteps)
		}
		for int64(len(row)) < n {
			row = append(row, fill)
		}
	}
	if len(row) > 0 {
		rows = append(rows, &List{row})
	}
	return newGenerator("batch", sliceIterator(rows)), st.charge(len(items)/4 + len(row)/4)
}

func sliceFilter(st *state, v Value, args []Value) (Value, error) {
	items, err := st.list(v)
	if err != nil {
		return failing("slice", err), nil
	}
	n, err := indexOf(args[0])
	if err != nil || n == 0 {
		return failing("slice", typeErr("slice needs a number of slices that is an integer and not zero")), nil
	}
	if n > maxRange {
		return nil, limitErr("more than %d slices", maxRange)
	}
	if n < 0 {
		n = 0
	}
	rows := make([]Value, n)
	offset := 0
	for i := range n {
		per, extra := len(items)/n, len(items)%n
		start := offset + i*per
		if i < extra {
			offset++
		}
		row := slices.Clone(items[start : offset+(i+1)*per])
		if fill := notNone(args[1]); fill != nil && i >= extra {
			row = append(row, fill)
		}
		rows[i] = &List{row}
	}
	return newGenerator("slice", sliceIterator(rows)), st.charge(n + len(items)/4)
}

func xmlattrFilter(st *state, v Value, args []Value) (Value, error) {
	d, ok := v.(*Dict)
	if !ok {
		return nil, typeErr("xmlattr needs a mapping, not %s", v.typeName())
	}
	var parts []string
	for i, k := range d.keys {
		x := d.vals[i]
		if _, undef := x.(*undefined); undef || notNone(x) == nil {
			continue
		}
		key, ok := textOf(k)
		if !ok || strings.ContainsAny(key, " \t\n\r\f\v/>=") {
			return nil, valueErr("xmlattr: a key is not the name of an attribute")
		}
		s, err := st.str(x)
		if err == nil {
			err = st.chargeText(len(s))
		}
		if err != nil {
			return nil, err
		}
		parts = append(parts, escapeValue(k, key)+`="`+escapeValue(x, s)+`"`)
	}
	text, err := st.joinTexts(parts, " ")
	if text != "" && (args[0] == nil || isTrue(args[0])) {
		text = " " + text
	}
	return Str(text), err
}
