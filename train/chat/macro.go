package chat

import "slices"

// macro is a macro, or the body of a call block, with its enclosing variables.
type macro struct {
	def   *macroDef
	frame *frame // enclosing frame
}

func (*macro) typeName() string { return "Macro" }

func (s *macroStmt) exec(_ *state, f *frame) (signal, error) {
	*f.at(s.ref) = &macro{s.def, f}
	return goOn, nil
}

func (s *callStmt) exec(st *state, f *frame) (signal, error) {
	caller := &macro{s.def, f}
	var v Value
	var err error
	if s.generation {
		v, err = caller.call(st, &arguments{})
	} else {
		v, err = s.call.invoke(st, f, caller)
	}
	if err != nil {
		return goOn, at(s.offset(), err)
	}
	return goOn, at(s.offset(), st.writeText(v))
}

// call binds the arguments as Jinja2's Macro does, and returns the text of the body.
func (m *macro) call(st *state, a *arguments) (Value, error) {
	d := m.def
	if err := st.charge(len(d.fn.slots)/4 + len(a.names)); err != nil {
		return nil, err
	}
	f := &frame{slots: make([]Value, len(d.fn.slots)), parent: m.frame}
	taken := min(len(a.pos), len(d.args))
	for i := range taken {
		*f.at(d.args[i].ref) = a.pos[i]
	}
	rest := &arguments{names: slices.Clone(a.names), kw: slices.Clone(a.kw)}
	for _, arg := range d.args[taken:] {
		*f.at(arg.ref) = rest.take(arg.name)
	}
	if d.caller != nil {
		v := rest.take("caller")
		if _, none := v.(None); v == nil || none {
			v = &undefined{hint: "No caller defined"}
		}
		*f.at(*d.caller) = v
	}
	if d.kwargs != nil {
		kw := &Dict{}
		for i, name := range rest.names {
			kw.Set(name, rest.kw[i])
		}
		*f.at(*d.kwargs) = kw
	} else if len(rest.names) > 0 {
		return nil, typeErr("macro '%s' takes no argument named '%s'", d.name, rest.names[0])
	}
	if d.varargs != nil {
		*f.at(*d.varargs) = newTuple(a.pos[taken:]...)
	} else if len(a.pos) > taken {
		return nil, typeErr("macro '%s' takes no more than %d arguments", d.name, len(d.args))
	}
	return m.run(st, f)
}

func (m *macro) run(st *state, f *frame) (Value, error) {
	d := m.def
	if st.depth++; st.depth > maxDepth {
		return nil, limitErr("macro calls nested more than %d deep", maxDepth)
	}
	defer func() { st.depth-- }()
	st.enter(d.scope, f)
	for i, arg := range d.args {
		slot := f.at(arg.ref)
		if *slot != nil {
			continue
		}
		x := d.defaultOf(i)
		if x == nil {
			*slot = &undefined{hint: "parameter '" + arg.name + "' was not provided"}
			continue
		}
		v, err := x.eval(st, f)
		if err != nil {
			return nil, err
		}
		*slot = v
	}
	text, err := st.capture(func() error {
		_, err := st.run(d.body, f)
		return err
	})
	return Str(text), err
}

// attr returns an attribute of a macro, or nil.
func (m *macro) attr(name string) Value {
	d := m.def
	switch name {
	case "name":
		if d.name == "" {
			return None{}
		}
		return Str(d.name)
	case "arguments":
		t := newTuple()
		for _, a := range d.args {
			t.items = append(t.items, Str(a.name))
		}
		return t
	case "catch_kwargs":
		return Bool(d.kwargs != nil)
	case "catch_varargs":
		return Bool(d.varargs != nil)
	case "caller":
		return Bool(d.caller != nil || d.explicitCaller)
	case "explicit_caller":
		return Bool(d.explicitCaller)
	}
	return nil
}
