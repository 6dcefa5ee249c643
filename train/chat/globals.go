package chat

import "fmt"

// globalNamed returns the named built-in function, or nil.
func globalNamed(name string) Value {
	switch name {
	case "range":
		return &function{name: name, class: "range", call: makeRange}
	case "dict":
		return &function{name: name, class: "dict", call: makeDict}
	case "namespace":
		return &function{name: name, class: "jinja2.utils.Namespace",
			call: func(st *state, a *arguments) (Value, error) {
				d, err := makeDict(st, a)
				if err != nil {
					return nil, err
				}
				return &namespace{d.(*Dict)}, nil
			}}
	case "cycler":
		return &function{name: name, class: "jinja2.utils.Cycler", call: makeCycler}
	case "joiner":
		return &function{name: name, class: "jinja2.utils.Joiner", call: func(_ *state, a *arguments) (Value, error) {
			v, err := a.bind("joiner", "sep=")
			if err != nil {
				return nil, err
			}
			return &joinerValue{sep: optional(v[0], Str(", "))}, nil
		}}
	case "raise_exception":
		return &function{name: name, call: raiseException}
	case "strftime_now":
		return &function{name: name, call: strftimeNow}
	case "lipsum":
		return unsupported("template", name)
	}
	return nil
}

func makeRange(_ *state, a *arguments) (Value, error) {
	v, err := a.positional("range", 1, 3)
	if err != nil {
		return nil, err
	}
	var n [3]int
	n[2] = 1
	for i := range len(a.pos) {
		if n[i], err = indexOf(v[i]); err != nil {
			return nil, err
		}
	}
	if len(a.pos) == 1 {
		n[0], n[1] = 0, n[0]
	}
	start, stop, step := n[0], n[1], n[2]
	if step == 0 {
		return nil, valueErr("the step of a range cannot be zero")
	}
	const far = 1 << 61 // ranges that start beyond it would overflow
	if start > far || start < -far || stop > far || stop < -far || step > far || step < -far {
		return nil, overflowErr("the bounds of the range are too large")
	}
	count := 0
	if (step > 0) == (start < stop) && start != stop {
		count = (stop-start-step/abs(step))/step + 1
	}
	if count > maxRange {
		return nil, overflowErr("the range has more than %d elements", maxRange)
	}
	r := &rangeValue{int64(start), int64(stop), int64(step), int64(count)}
	return r, nil
}

func abs(i int) int {
	if i < 0 {
		return -i
	}
	return i
}

// makeDict is Python's dict(mapping or pairs, name=value…).
func makeDict(st *state, a *arguments) (Value, error) {
	if len(a.pos) > 1 {
		return nil, typeErr("dict() takes at most one argument without a name")
	}
	d := &Dict{}
	if len(a.pos) == 1 {
		if u, ok := a.pos[0].(*undefined); ok {
			return nil, undefErr(u)
		}
		if m, ok := a.pos[0].(*Dict); ok {
			d = m.copy()
		} else if err := fillDict(st, d, a.pos[0]); err != nil {
			return nil, err
		}
	}
	for i, name := range a.names {
		d.Set(name, a.kw[i])
	}
	return d, st.charge(d.Len() / 4)
}

func fillDict(st *state, d *Dict, pairs Value) error {
	items, err := st.list(pairs)
	if err != nil {
		return err
	}
	for _, p := range items {
		kv, err := st.unpack(p, 2)
		if err != nil {
			return err
		}
		if err := st.chargeKey(kv[0]); err != nil {
			return err
		}
		if err := d.set(kv[0], kv[1]); err != nil {
			return err
		}
	}
	return nil
}

func makeCycler(_ *state, a *arguments) (Value, error) {
	if len(a.names) > 0 || len(a.pos) == 0 {
		return nil, typeErr("cycler() needs values without names")
	}
	return &cyclerValue{items: a.pos}, nil
}

// attr returns an attribute of a cycler, or nil.
func (c *cyclerValue) attr(name string) Value {
	none := func(after func() Value) func(*state, *arguments) (Value, error) {
		return func(_ *state, a *arguments) (Value, error) {
			if _, err := a.positional(name, 0, 0); err != nil {
				return nil, err
			}
			return after(), nil
		}
	}
	switch name {
	case "next":
		return method(name, none(func() Value {
			v := c.items[c.at]
			c.at = (c.at + 1) % len(c.items)
			return v
		}))
	case "reset":
		return method(name, none(func() Value {
			c.at = 0
			return None{}
		}))
	case "current":
		return c.items[c.at]
	case "items":
		return newTuple(c.items...)
	case "pos":
		return Int(c.at)
	}
	return nil
}

func raiseException(st *state, a *arguments) (Value, error) {
	v, err := a.bind("raise_exception", "message")
	if err != nil {
		return nil, err
	}
	text, err := st.str(v[0])
	if err != nil {
		text = fmt.Sprintf("a value of type %s", v[0].typeName())
	}
	return nil, &pyError{kindRaised, text}
}

func strftimeNow(st *state, a *arguments) (Value, error) {
	v, err := a.bind("strftime_now", "format")
	if err != nil {
		return nil, err
	}
	format, ok := textOf(v[0])
	if !ok {
		return nil, typeErr("strftime_now() needs a string, not %s", v[0].typeName())
	}
	text, err := strftime(st, st.date, format)
	return Str(text), err
}
