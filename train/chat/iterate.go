package chat

import (
	"math"
	"unicode/utf8"
)

// iterator returns the next element of a sequence, and false after the last.
type iterator func() (Value, bool, error)

func sliceIterator(items []Value) iterator {
	i := 0
	return func() (Value, bool, error) {
		if i >= len(items) {
			return nil, false, nil
		}
		i++
		return items[i-1], true, nil
	}
}

// iterate is Python's iter(v).
func (st *state) iterate(v Value) (iterator, error) {
	switch v := v.(type) {
	case *List:
		return sliceIterator(v.Items), nil
	case *tuple:
		return sliceIterator(v.items), nil
	case *Dict:
		return sliceIterator(v.keys), nil
	case *view:
		return v.iterate(), nil
	case *generator:
		return v.next, nil
	case *undefined:
		return sliceIterator(nil), nil
	case *rangeValue:
		i := int64(0)
		return func() (Value, bool, error) {
			if i >= v.n {
				return nil, false, nil
			}
			i++
			return Int(v.start + (i-1)*v.step), true, nil
		}, nil
	case Str, markup:
		s, _ := textOf(v)
		return func() (Value, bool, error) {
			if s == "" {
				return nil, false, nil
			}
			_, n := utf8.DecodeRuneInString(s)
			c := s[:n]
			s = s[n:]
			return Str(c), true, nil
		}, nil
	}
	return nil, typeErr("'%s' object is not iterable", v.typeName())
}

func (v *view) iterate() iterator {
	i := 0
	return func() (Value, bool, error) {
		if i >= v.dict.Len() {
			return nil, false, nil
		}
		i++
		return v.at(i - 1), true, nil
	}
}

func (v *view) at(i int) Value {
	switch v.kind {
	case "dict_keys":
		return v.dict.keys[i]
	case "dict_values":
		return v.dict.vals[i]
	}
	return newTuple(v.dict.keys[i], v.dict.vals[i])
}

// list is Python's list(v) as a slice, which must not be changed.
func (st *state) list(v Value) ([]Value, error) {
	switch v := v.(type) {
	case *List:
		return v.Items, st.charge(len(v.Items) / 4)
	case *tuple:
		return v.items, st.charge(len(v.items) / 4)
	}
	next, err := st.iterate(v)
	if err != nil {
		return nil, err
	}
	var items []Value
	for {
		x, ok, err := next()
		if err != nil || !ok {
			return items, err
		}
		if err := st.charge(1); err != nil {
			return nil, err
		}
		items = append(items, x)
	}
}

// length is Python's len(v).
func (st *state) length(v Value) (int, error) {
	switch v := v.(type) {
	case *List:
		return len(v.Items), nil
	case *tuple:
		return len(v.items), nil
	case *Dict:
		return v.Len(), nil
	case *view:
		return v.dict.Len(), nil
	case *rangeValue:
		return int(v.n), nil
	case *undefined:
		return 0, nil
	case *loopValue:
		return v.count(st)
	case Str, markup:
		s, _ := textOf(v)
		t, err := st.runesOf(s)
		return t.len(), err
	}
	return 0, typeErr("object of type '%s' has no len()", v.typeName())
}

// newGenerator returns a sequence that can be read once.
func newGenerator(name string, next iterator) *generator { return &generator{name, next} }

// mapped returns a generator of fn over the elements of v.
func (st *state) mapped(name string, v Value, fn func(Value) (Value, error)) (Value, error) {
	next, err := st.iterate(v)
	if err != nil {
		return nil, err
	}
	return newGenerator(name, func() (Value, bool, error) {
		x, ok, err := next()
		if err != nil || !ok {
			return nil, false, err
		}
		if err := st.charge(1); err != nil {
			return nil, false, err
		}
		x, err = fn(x)
		return x, err == nil, err
	}), nil
}

// contains returns x in r for a number x.
func (r *rangeValue) contains(x Value) bool {
	f, err := toFloat(x)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<62 {
		return false
	}
	off := int64(f) - r.start
	return off%r.step == 0 && off/r.step >= 0 && off/r.step < r.n
}
