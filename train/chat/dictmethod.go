package chat

import "math/big"

// dictMethod returns a method of a dict; mutating ones are hidden.
func dictMethod(d *Dict, name string) Value {
	switch name {
	case "get":
		return method(name, func(st *state, a *arguments) (Value, error) {
			args, err := a.positional(name, 1, 2)
			if err != nil {
				return nil, err
			}
			v, ok, err := st.lookup(d, args[0])
			if ok || err != nil {
				return v, err
			}
			return optional(args[1], None{}), nil
		})
	case "keys", "values", "items":
		return method(name, func(_ *state, a *arguments) (Value, error) {
			_, err := a.positional(name, 0, 0)
			return &view{d, "dict_" + name}, err
		})
	case "copy":
		return method(name, func(st *state, a *arguments) (Value, error) {
			if _, err := a.positional(name, 0, 0); err != nil {
				return nil, err
			}
			return d.copy(), st.charge(d.Len() / 2)
		})
	case "fromkeys":
		return unsupported("dict", name)
	case "clear", "pop", "popitem", "setdefault", "update":
		return unsafeAttribute(d, name)
	}
	return nil
}

func listMethod(l *List, name string) Value {
	switch name {
	case "append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove":
		return unsafeAttribute(l, name)
	case "copy":
		return method(name, func(_ *state, a *arguments) (Value, error) {
			_, err := a.positional(name, 0, 0)
			return l, err
		})
	}
	return sequenceMethod(l.Items, name)
}

// sequenceMethod returns count or index of a list or a tuple.
func sequenceMethod(items []Value, name string) Value {
	switch name {
	case "count":
		return method(name, func(st *state, a *arguments) (Value, error) {
			args, err := a.positional(name, 1, 1)
			if err != nil {
				return nil, err
			}
			n := 0
			for _, x := range items {
				eq, err := st.equal(x, args[0])
				if err == nil {
					err = st.charge(1)
				}
				if err != nil {
					return nil, err
				}
				if eq {
					n++
				}
			}
			return Int(n), nil
		})
	case "index":
		return method(name, func(st *state, a *arguments) (Value, error) { return indexMethod(st, items, a) })
	}
	return nil
}

func indexMethod(st *state, items []Value, a *arguments) (Value, error) {
	args, err := a.positional("index", 1, 3)
	if err != nil {
		return nil, err
	}
	bounds := [2]int{0, len(items)}
	for i, v := range args[1:] {
		if v == nil {
			continue
		}
		if bounds[i], err = indexOf(v); err != nil {
			return nil, err
		}
		if bounds[i] < 0 {
			bounds[i] = max(bounds[i]+len(items), 0)
		}
	}
	for i := bounds[0]; i < min(bounds[1], len(items)); i++ {
		eq, err := st.equal(items[i], args[0])
		if err == nil {
			err = st.charge(1)
		}
		if err != nil {
			return nil, err
		}
		if eq {
			return Int(i), nil
		}
	}
	return nil, valueErr("index(): the value is not in the list")
}

// attr returns an attribute of a range, or nil.
func (r *rangeValue) attr(name string) Value {
	switch name {
	case "start":
		return Int(r.start)
	case "stop":
		return Int(r.stop)
	case "step":
		return Int(r.step)
	case "count", "index":
		return method(name, func(st *state, a *arguments) (Value, error) {
			items, err := st.list(r)
			if err != nil {
				return nil, err
			}
			return st.call(sequenceMethod(items, name), a)
		})
	}
	return nil
}

// numberAttribute returns an attribute of a number, or nil.
func numberAttribute(v Value, name string) Value {
	f, isFloat := v.(Float)
	i, _ := asBig(v)
	answer := func(x Value) Value {
		return method(name, func(_ *state, a *arguments) (Value, error) {
			_, err := a.positional(name, 0, 0)
			return x, err
		})
	}
	switch {
	case name == "real":
		return plain(v)
	case name == "imag" && isFloat:
		return newFloat(0)
	case name == "imag":
		return Int(0)
	case name == "conjugate":
		return answer(plain(v))
	case name == "is_integer" && isFloat:
		return answer(Bool(exactInt(f.F)))
	case name == "numerator" && !isFloat:
		return plain(v)
	case name == "denominator" && !isFloat:
		return Int(1)
	case name == "bit_length" && !isFloat:
		return answer(Int(i.BitLen()))
	case name == "as_integer_ratio", isFloat && (name == "hex" || name == "fromhex"),
		!isFloat && (name == "bit_count" || name == "from_bytes" || name == "to_bytes"):
		return unsupported(v.typeName(), name)
	}
	return nil
}

// plain returns a bool as the integer it counts as.
func plain(v Value) Value {
	if b, ok := v.(Bool); ok {
		i, _ := asInt64(b)
		return Int(i)
	}
	return v
}

func exactInt(f float64) bool {
	i, err := truncate(f)
	if err != nil {
		return false
	}
	x, _ := new(big.Float).SetInt(i).Float64()
	return x == f
}
