package chat

import (
	"slices"
	"strings"
)

// arguments are the values passed to a function: by position and by name.
type arguments struct {
	pos   []Value
	names []string
	kw    []Value
}

// builtin is a filter or a test: a function of a value and arguments.
type builtin func(st *state, v Value, a *arguments) (Value, error)

// alone makes a builtin without arguments.
func alone(name string, do func(st *state, v Value) (Value, error)) builtin {
	return func(st *state, v Value, a *arguments) (Value, error) {
		if _, err := a.positional(name, 0, 0); err != nil {
			return nil, err
		}
		return do(st, v)
	}
}

// bound makes a builtin of a function that takes its arguments in the order of params; see bind.
func bound(name string, do func(st *state, v Value, args []Value) (Value, error), params ...string) builtin {
	return func(st *state, v Value, a *arguments) (Value, error) {
		args, err := a.bind(name, params...)
		if err != nil {
			return nil, err
		}
		return do(st, v, args)
	}
}

// run evaluates args and calls fn with them.
func (fn builtin) run(st *state, f *frame, v Value, args *callArgs) (Value, error) {
	a, err := args.eval(st, f)
	if err != nil {
		return nil, err
	}
	if err := st.charge(1); err != nil {
		return nil, err
	}
	return fn(st, v, a)
}

func (c *callArgs) eval(st *state, f *frame) (*arguments, error) {
	a := &arguments{names: slices.Clip(c.names)}
	if len(c.pos) > 0 {
		a.pos = make([]Value, len(c.pos))
	}
	for i, x := range c.pos {
		v, err := x.eval(st, f)
		if err != nil {
			return nil, err
		}
		a.pos[i] = v
	}
	for _, x := range c.kw {
		v, err := x.eval(st, f)
		if err != nil {
			return nil, err
		}
		a.kw = append(a.kw, v)
	}
	if c.star != nil {
		v, err := c.star.eval(st, f)
		if err != nil {
			return nil, err
		}
		items, err := st.list(v)
		if err != nil {
			return nil, err
		}
		a.pos = append(a.pos, items...)
	}
	if c.stars != nil {
		v, err := c.stars.eval(st, f)
		if err != nil {
			return nil, err
		}
		if err := a.spread(st, v); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// spread adds the entries of a dict as named arguments.
func (a *arguments) spread(st *state, v Value) error {
	d, ok := v.(*Dict)
	if !ok {
		if u, ok := v.(*undefined); ok {
			return undefErr(u)
		}
		return typeErr("the argument after ** must be a mapping, not %s", v.typeName())
	}
	for i := range d.Len() {
		name, ok := d.Key(i)
		if !ok {
			return typeErr("the keys of the mapping after ** must be strings")
		}
		if err := st.charge(1 + len(a.names)/16 + len(name)/textPerStep); err != nil {
			return err
		}
		if slices.Contains(a.names, name) {
			return typeErr("the argument '%.60s' occurs twice", name)
		}
		a.names, a.kw = append(a.names, name), append(a.kw, d.At(i))
	}
	return nil
}

// take removes the named argument and returns it, or nil.
func (a *arguments) take(name string) Value {
	i := slices.Index(a.names, name)
	if i < 0 {
		return nil
	}
	v := a.kw[i]
	a.names, a.kw = slices.Delete(a.names, i, i+1), slices.Delete(a.kw, i, i+1)
	return v
}

// bind returns the arguments in the order of params; a name that ends with = is optional
// and nil if missing.
func (a *arguments) bind(function string, params ...string) ([]Value, error) {
	if len(a.pos) > len(params) {
		return nil, typeErr("%s() takes at most %d arguments, got %d", function, len(params), len(a.pos))
	}
	values := make([]Value, len(params))
	copy(values, a.pos)
	used := 0
	for i, p := range params {
		name, optional := strings.CutSuffix(p, "=")
		if j := slices.Index(a.names, name); j >= 0 {
			if i < len(a.pos) {
				return nil, typeErr("%s() got two values for the argument '%s'", function, name)
			}
			values[i] = a.kw[j]
			used++
		}
		if values[i] == nil && !optional {
			return nil, typeErr("%s() needs the argument '%s'", function, name)
		}
	}
	if used < len(a.names) {
		for _, name := range a.names {
			if !slices.Contains(params, name) && !slices.Contains(params, name+"=") {
				return nil, typeErr("%s() got an unexpected argument '%s'", function, name)
			}
		}
	}
	return values, nil
}

// positional returns from least to most positional arguments; the rest is nil.
func (a *arguments) positional(function string, least, most int) ([]Value, error) {
	if len(a.names) > 0 {
		return nil, typeErr("%s() takes no named arguments", function)
	}
	if len(a.pos) < least || len(a.pos) > most {
		return nil, typeErr("%s() got %d arguments, takes %d to %d", function, len(a.pos), least, most)
	}
	values := make([]Value, most)
	copy(values, a.pos)
	return values, nil
}

// indexOf returns v as an integer like Python's __index__: no floats. An integer beyond 64
// bits is clamped.
func indexOf(v Value) (int, error) {
	switch v := v.(type) {
	case Bool:
		if v {
			return 1, nil
		}
		return 0, nil
	case Int:
		return int(v), nil
	case bigInt:
		if v.i.Sign() < 0 {
			return minInt, nil
		}
		return maxInt, nil
	case *undefined:
		return 0, typeErr("an integer is needed: %s", v.why())
	}
	return 0, typeErr("'%s' object cannot be interpreted as an integer", v.typeName())
}

// optionalIndex is indexOf with a default for nil and None.
func optionalIndex(v Value, def int) (int, error) {
	if _, none := v.(None); v == nil || none {
		return def, nil
	}
	return indexOf(v)
}

// optional returns v, or def if the argument is missing.
func optional(v, def Value) Value {
	if v == nil {
		return def
	}
	return v
}
