package chat

// loopValue is the variable loop of a for block (LoopContext of Jinja2).
type loopValue struct {
	iterable Value
	filtered bool // the iterable is filtered by an if: its length is unknown
	next     iterator
	depth0   int // rounds of a recursive loop around this one
	index0   int
	length   int // -1: not yet known

	before, current, after Value // after is nil until needed
	ended                  bool  // after was looked for and does not exist
	changed                []Value
	hasChanged             bool

	recurse func(iterable Value, depth0 int) (string, error) // nil unless the loop is recursive
}

func (*loopValue) typeName() string { return "LoopContext" }

// advance goes to the next element.
func (l *loopValue) advance() (Value, bool, error) {
	v := l.after
	if v == nil {
		if l.ended {
			return nil, false, nil
		}
		var ok bool
		var err error
		if v, ok, err = l.next(); err != nil || !ok {
			return nil, false, err
		}
	}
	l.after = nil
	l.index0++
	l.before, l.current = l.current, v
	return v, true, nil
}

// peek returns the next element without advancing, nil after the last.
func (l *loopValue) peek() (Value, error) {
	if l.after == nil && !l.ended {
		v, ok, err := l.next()
		if err != nil {
			return nil, err
		}
		if ok {
			l.after = v
		} else {
			l.ended = true
		}
	}
	return l.after, nil
}

// count returns loop.length; a sequence without a length is read to its end.
func (l *loopValue) count(st *state) (int, error) {
	if l.length >= 0 {
		return l.length, nil
	}
	if !l.filtered {
		if n, err := st.length(l.iterable); err == nil {
			l.length = n
			return n, nil
		}
	}
	var rest []Value
	for {
		v, ok, err := l.next()
		if err != nil {
			return 0, err
		}
		if !ok {
			break
		}
		rest = append(rest, v)
		if err := st.charge(1); err != nil {
			return 0, err
		}
	}
	l.length = len(rest) + l.index0 + 1
	if l.after != nil {
		l.length++
	}
	l.next = sliceIterator(rest)
	return l.length, nil
}

// attr returns loop.name, or nil.
func (l *loopValue) attr(st *state, name string) (Value, error) {
	switch name {
	case "index":
		return Int(l.index0 + 1), nil
	case "index0":
		return Int(l.index0), nil
	case "first":
		return Bool(l.index0 == 0), nil
	case "depth":
		return Int(l.depth0 + 1), nil
	case "depth0":
		return Int(l.depth0), nil
	case "length", "revindex", "revindex0":
		n, err := l.count(st)
		switch name {
		case "revindex":
			n -= l.index0
		case "revindex0":
			n -= l.index0 + 1
		}
		return Int(n), err
	case "last":
		v, err := l.peek()
		return Bool(v == nil), err
	case "previtem":
		if l.index0 == 0 {
			return &undefined{hint: "the first item has no previous item"}, nil
		}
		return l.before, nil
	case "nextitem":
		v, err := l.peek()
		if v == nil && err == nil {
			return &undefined{hint: "the last item has no next item"}, nil
		}
		return v, err
	case "cycle":
		return &function{name: "cycle", call: l.cycle}, nil
	case "changed":
		return &function{name: "changed", call: l.change}, nil
	}
	return nil, nil
}

func (l *loopValue) cycle(_ *state, a *arguments) (Value, error) {
	if len(a.names) > 0 || len(a.pos) == 0 {
		return nil, typeErr("loop.cycle needs values to cycle through, without names")
	}
	return a.pos[l.index0%len(a.pos)], nil
}

func (l *loopValue) change(st *state, a *arguments) (Value, error) {
	if len(a.names) > 0 {
		return nil, typeErr("loop.changed takes no named arguments")
	}
	if l.hasChanged {
		same, err := st.equal(newTuple(l.changed...), newTuple(a.pos...))
		if err != nil || same {
			return Bool(false), err
		}
	}
	l.changed, l.hasChanged = a.pos, true
	return Bool(true), nil
}

// again is loop(iterable) in a recursive loop: the text of the loop over iterable, one level deeper.
func (l *loopValue) again(st *state, a *arguments) (Value, error) {
	v, err := a.bind("loop", "iterable")
	switch {
	case err != nil:
		return nil, err
	case l.recurse == nil:
		return nil, typeErr("only a loop that is marked 'recursive' can be called")
	}
	text, err := l.recurse(v[0], l.depth0+1)
	return Str(text), err
}

func (s *forStmt) exec(st *state, f *frame) (signal, error) {
	iterable, err := s.iter.eval(st, f)
	if err != nil {
		return goOn, err
	}
	if !s.recursive {
		return s.over(st, f, &loopValue{iterable: iterable})
	}
	text, err := s.recurse(st, f, iterable, 0)
	if err != nil {
		return goOn, at(s.offset(), err)
	}
	return goOn, at(s.offset(), st.write(text))
}

// recurse returns the text of a recursive loop over iterable, with variables of its own.
func (s *forStmt) recurse(st *state, outer *frame, iterable Value, depth0 int) (string, error) {
	if st.depth++; st.depth > maxDepth {
		return "", limitErr("recursive loops nested more than %d deep", maxDepth)
	}
	defer func() { st.depth-- }()
	f := &frame{slots: make([]Value, len(s.fn.slots)), parent: outer}
	loop := &loopValue{iterable: iterable, depth0: depth0}
	loop.recurse = func(iterable Value, depth0 int) (string, error) {
		return s.recurse(st, outer, iterable, depth0)
	}
	return st.capture(func() error {
		_, err := s.over(st, f, loop)
		return err
	})
}

// over runs the rounds of a loop over its iterable.
func (s *forStmt) over(st *state, f *frame, loop *loopValue) (signal, error) {
	next, err := st.iterate(loop.iterable)
	if err != nil {
		return goOn, at(s.iter.offset(), err)
	}
	if s.test != nil {
		next = s.filtered(st, f, next)
	}
	loop.filtered, loop.next, loop.index0, loop.length = s.test != nil, next, -1, -1
	els := s.hasElse
	for {
		v, ok, err := loop.advance()
		if err == nil && ok {
			err = st.charge(1)
		}
		if err != nil {
			return goOn, at(s.offset(), err)
		}
		if !ok {
			break
		}
		sig, err := s.round(st, f, loop, v)
		if err != nil {
			return goOn, err
		}
		if sig == breakLoop {
			break
		}
		if sig == goOn {
			els = false // as in Jinja2, where break and continue keep the else alive
		}
	}
	s.bodyScope.leave(f)
	if !els {
		return goOn, nil
	}
	st.enter(s.elsScope, f)
	sig, err := st.run(s.els, f)
	s.elsScope.leave(f)
	return sig, err
}

func (s *forStmt) round(st *state, f *frame, loop *loopValue, v Value) (signal, error) {
	if err := st.assign(s.target, v, f); err != nil {
		return goOn, err
	}
	if s.loop != nil {
		*f.at(*s.loop) = loop
	}
	st.enter(s.bodyScope, f)
	return st.run(s.body, f)
}

// filtered returns the elements that pass the loop's if. The test keeps its variables in
// the body's slots, which are restored after it.
func (s *forStmt) filtered(st *state, f *frame, next iterator) iterator {
	return func() (Value, bool, error) {
		saved := make([]Value, len(s.testScope))
		for {
			v, ok, err := next()
			if err != nil || !ok {
				return nil, false, err
			}
			if err := st.charge(1); err != nil {
				return nil, false, err
			}
			for i, l := range s.testScope {
				saved[i] = f.slots[l.slot]
			}
			st.enter(s.testScope, f)
			var pass Value
			if err = st.assign(s.target, v, f); err == nil {
				pass, err = s.test.eval(st, f)
			}
			for i, l := range s.testScope {
				f.slots[l.slot] = saved[i]
			}
			if err != nil {
				return nil, false, err
			}
			if isTrue(pass) {
				return v, true, nil
			}
		}
	}
}
