package chat

import (
	"slices"
	"strings"
)

// getattr returns obj.name as in Jinja2's sandbox: an attribute of the object, else its
// element of that name, else undefined.
func (st *state) getattr(obj Value, name string) (Value, error) {
	v, err := st.attribute(obj, name)
	if v != nil || err != nil {
		return v, err
	}
	if d, ok := obj.(*Dict); ok {
		if v, ok := d.Get(name); ok {
			return v, nil
		}
	}
	return undefinedAttribute(obj, name), nil
}

// getitem returns obj[key]: an element, else for text an attribute, else undefined.
func (st *state) getitem(obj, key Value) (Value, error) {
	if err := st.chargeKey(key); err != nil {
		return nil, err
	}
	v, err := st.element(obj, key)
	if err == nil {
		return v, nil
	}
	if !isKind(err, kindType, kindLookup) {
		return nil, err
	}
	if name, ok := textOf(key); ok {
		if v, err := st.attribute(obj, name); v != nil || err != nil {
			return v, err
		}
	}
	return undefinedElement(obj, key), nil
}

func lookupErr() error { return &pyError{kindLookup, "no such element"} }

// element is Python's obj[key].
func (st *state) element(obj, key Value) (Value, error) {
	switch o := obj.(type) {
	case *undefined:
		return nil, undefErr(o)
	case *Dict:
		v, ok, err := o.get(key)
		if err == nil && !ok {
			err = lookupErr()
		}
		return v, err
	case *List:
		return pick(o.Items, key)
	case *tuple:
		return pick(o.items, key)
	case Str, markup:
		s, _ := textOf(o)
		if _, err := indexOf(key); err != nil {
			return nil, err
		}
		t, err := st.runesOf(s)
		if err != nil {
			return nil, err
		}
		i, err := within(key, t.len())
		if err != nil {
			return nil, err
		}
		return alike(o, t.cut(i, i+1)), nil
	case *rangeValue:
		i, err := within(key, int(o.n))
		return Int(o.start + int64(i)*o.step), err
	}
	return nil, typeErr("'%s' object has no elements", obj.typeName())
}

func pick(items []Value, key Value) (Value, error) {
	i, err := within(key, len(items))
	if err != nil {
		return nil, err
	}
	return items[i], nil
}

// within returns key as an index below n; a negative one counts from the end.
func within(key Value, n int) (int, error) {
	i, err := indexOf(key)
	if err != nil {
		return 0, err
	}
	if i < 0 {
		i += n
	}
	if i < 0 || i >= n {
		return 0, lookupErr()
	}
	return i, nil
}

// attribute returns the result of Python's getattr, undefined if the sandbox hides it, and
// nil if obj has no such attribute.
func (st *state) attribute(obj Value, name string) (Value, error) {
	if err := st.charge(len(name) / textPerStep); err != nil {
		return nil, err
	}
	if strings.HasPrefix(name, "__") && strings.HasSuffix(name, "__") && slices.Contains(objectAttributes, name) {
		return unsafeAttribute(obj, name), nil
	}
	switch o := obj.(type) {
	case *undefined:
		return nil, undefErr(o)
	case Str, markup:
		return textMethod(o, name), nil
	case *Dict:
		return dictMethod(o, name), nil
	case *List:
		return listMethod(o, name), nil
	case *tuple:
		if o.grouped && (name == "grouper" || name == "list") {
			return o.items[slices.Index([]string{"grouper", "list"}, name)], nil
		}
		return sequenceMethod(o.items, name), nil
	case *namespace:
		v, ok := o.attrs.Get(name)
		if ok && strings.HasPrefix(name, "_") {
			return unsafeAttribute(obj, name), nil
		}
		return v, nil
	case *loopValue:
		return o.attr(st, name)
	case *macro:
		return o.attr(name), nil
	case Bool, Int, bigInt, Float:
		return numberAttribute(o, name), nil
	case *rangeValue:
		return o.attr(name), nil
	case *cyclerValue:
		return o.attr(name), nil
	case *joinerValue:
		switch name {
		case "sep":
			return o.sep, nil
		case "used":
			return Bool(o.used), nil
		}
	case *view:
		if name == "mapping" || name == "isdisjoint" && o.kind != "dict_values" {
			return unsupported(o.kind, name), nil
		}
	}
	return nil, nil
}

// objectAttributes lists the special attributes of every Python object.
var objectAttributes = []string{
	"__class__", "__delattr__", "__dir__", "__doc__", "__eq__", "__format__", "__ge__", "__getattribute__",
	"__getstate__",
	"__gt__", "__hash__", "__init__", "__init_subclass__", "__le__", "__lt__", "__ne__", "__new__", "__reduce__",
	"__reduce_ex__", "__repr__", "__setattr__", "__sizeof__", "__str__", "__subclasshook__",
}

// method returns a function bound to its object.
func method(name string, call func(st *state, a *arguments) (Value, error)) Value {
	return &function{name: name, call: call}
}

// unsupported stands for a Python method that this interpreter lacks.
func unsupported(kind, name string) Value {
	return method(name, func(*state, *arguments) (Value, error) {
		return nil, typeErr("the method '%s' of '%s' is not supported in chat templates", name, kind)
	})
}

// cut returns obj[start:stop:step].
func (s *sliceExpr) cut(st *state, f *frame, obj Value) (Value, error) {
	bounds := [3]Value{}
	for i, x := range []expr{s.start, s.stop, s.step} {
		if x == nil {
			continue
		}
		v, err := x.eval(st, f)
		if err != nil {
			return nil, err
		}
		bounds[i] = v
	}
	switch o := obj.(type) {
	case *undefined:
		return nil, undefErr(o)
	case *List:
		items, err := cutItems(st, o.Items, bounds)
		return &List{items}, err
	case *tuple:
		items, err := cutItems(st, o.items, bounds)
		return newTuple(items...), err
	case Str, markup:
		text, _ := textOf(o)
		return cutText(st, o, text, bounds)
	case *rangeValue:
		c, err := sliceBounds(bounds, int(o.n))
		return &rangeValue{
			start: o.start + int64(c.start)*o.step, stop: o.start + int64(c.stop)*o.step,
			step: o.step * int64(c.step),
			n:    int64(c.n),
		}, err
	case *Dict:
		return nil, typeErr("unhashable type: 'slice'")
	}
	return nil, typeErr("'%s' object cannot be sliced", obj.typeName())
}

func cutText(st *state, like Value, text string, bounds [3]Value) (Value, error) {
	t, err := st.runesOf(text)
	if err != nil {
		return nil, err
	}
	c, err := sliceBounds(bounds, t.len())
	if err != nil {
		return nil, err
	}
	if c.step == 1 {
		s := t.cut(c.start, c.start+c.n)
		return alike(like, s), st.chargeText(len(s))
	}
	if err := st.chargeText(4 * c.n); err != nil {
		return nil, err
	}
	var b strings.Builder
	for i := range c.n {
		at := c.start + i*c.step
		b.WriteString(t.cut(at, at+1))
	}
	return alike(like, b.String()), nil
}

func cutItems(st *state, items []Value, bounds [3]Value) ([]Value, error) {
	c, err := sliceBounds(bounds, len(items))
	if err != nil {
		return nil, err
	}
	if c.step == 1 {
		return items[c.start : c.start+c.n : c.start+c.n], nil
	}
	cut := make([]Value, c.n)
	for i := range cut {
		cut[i] = items[c.start+i*c.step]
	}
	return cut, st.charge(c.n / 4)
}

// cutRange holds the n elements start, start+step, … of a sequence, before stop.
type cutRange struct{ start, stop, step, n int }

// sliceBounds returns the elements of a slice of a sequence of length n.
func sliceBounds(bounds [3]Value, n int) (c cutRange, err error) {
	if c.step, err = optionalIndex(bounds[2], 1); err != nil {
		return c, err
	}
	if c.step == 0 {
		return c, valueErr("the step of a slice cannot be zero")
	}
	c.step = max(c.step, -maxInt)
	first, last := 0, n
	if c.step < 0 {
		first, last = n-1, -1
	}
	c.start, c.stop = first, last
	for i, p := range []*int{&c.start, &c.stop} {
		if notNone(bounds[i]) == nil {
			continue
		}
		v, err := indexOf(bounds[i])
		if err != nil {
			return c, err
		}
		if v < 0 {
			v += n
		}
		*p = max(min(v, max(first, last)), min(first, last))
	}
	switch {
	case c.step > 0 && c.start < c.stop:
		c.n = (c.stop-c.start-1)/c.step + 1
	case c.step < 0 && c.start > c.stop:
		c.n = (c.start-c.stop-1)/-c.step + 1
	}
	return c, nil
}
