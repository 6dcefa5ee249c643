package chat

import (
	"fmt"
	"math/big"
)

// Value is a value of a template, as in Python: None, Bool, Int, Float, Str, *List, *Dict
// and kinds that only templates create. Values are immutable once made, so several
// goroutines may render with the same ones.
type Value interface {
	typeName() string // type(x).__name__
}

type (
	// None is Python's None, JSON's null.
	None struct{}
	// Bool is True or False; it counts as an integer, 1 or 0.
	Bool bool
	// Int is a 64-bit integer; larger ones have another type.
	Int int64
	// Float is a double. Text is the JSON text that it was decoded from, for writing it
	// back; rendering prints F as Python does.
	Float struct {
		F    float64
		Text string
	}
	// Str is text in UTF-8. Length and indices count code points.
	Str string

	// bigInt is an integer that does not fit into Int.
	bigInt struct{ i *big.Int }
	// markup is text that counts as HTML: text joined to it is escaped.
	markup string
)

// List is a list of values.
type List struct{ Items []Value }

// tuple is a list that prints with parentheses. grouped marks pairs of the filter groupby,
// which have the attributes grouper and list.
type tuple struct {
	items   []Value
	grouped bool
}

// undefined is the value of a missing thing. It prints as nothing, and most other uses are
// errors. unsafe marks things that the sandbox hides.
type undefined struct {
	hint   string // says why; empty: key is not in obj, or no variable is called name
	name   string
	obj    Value
	key    Value
	unsafe bool
}

// rangeValue is the result of range(): start, start+step, …, n values.
type rangeValue struct{ start, stop, step, n int64 }

// namespace is the result of namespace(), the only value that templates change.
type namespace struct{ attrs *Dict }

// view is the result of a dict's keys, values and items.
type view struct {
	dict *Dict
	kind string // dict_keys, dict_values, dict_items
}

// generator is a sequence that can be read once, such as the result of map.
type generator struct {
	name string
	next iterator
}

// function is a callable: a global, a method with its object, a class.
type function struct {
	name  string
	class string // printed form of a class; empty for other functions
	call  func(st *state, a *arguments) (Value, error)
}

// cyclerValue is the result of cycler(), joinerValue of joiner().
type (
	cyclerValue struct {
		items []Value
		at    int
	}
	joinerValue struct {
		sep  Value
		used bool
	}
)

func (None) typeName() string         { return "NoneType" }
func (Bool) typeName() string         { return "bool" }
func (Int) typeName() string          { return "int" }
func (bigInt) typeName() string       { return "int" }
func (Float) typeName() string        { return "float" }
func (Str) typeName() string          { return "str" }
func (markup) typeName() string       { return "Markup" }
func (*List) typeName() string        { return "list" }
func (*Dict) typeName() string        { return "dict" }
func (*tuple) typeName() string       { return "tuple" }
func (*undefined) typeName() string   { return "Undefined" }
func (*rangeValue) typeName() string  { return "range" }
func (*namespace) typeName() string   { return "Namespace" }
func (v *view) typeName() string      { return v.kind }
func (*generator) typeName() string   { return "generator" }
func (*function) typeName() string    { return "function" }
func (*cyclerValue) typeName() string { return "Cycler" }
func (*joinerValue) typeName() string { return "Joiner" }

func newTuple(items ...Value) *tuple { return &tuple{items: items} }

func newFloat(f float64) Float { return Float{F: f} }

// textOf returns the text of a Str or markup.
func textOf(v Value) (string, bool) {
	switch v := v.(type) {
	case Str:
		return string(v), true
	case markup:
		return string(v), true
	}
	return "", false
}

// alike returns s as the same kind of text as v.
func alike(v Value, s string) Value {
	if _, ok := v.(markup); ok {
		return markup(s)
	}
	return Str(s)
}

func undefinedName(name string) *undefined { return &undefined{name: name} }

// undefinedElement is the value of obj[key] if obj has no such key.
func undefinedElement(obj, key Value) *undefined { return &undefined{obj: obj, key: key} }

func undefinedAttribute(obj Value, name string) *undefined {
	return &undefined{obj: obj, key: Str(name)}
}

// unsafeAttribute is the value of an attribute that the sandbox hides.
func unsafeAttribute(obj Value, name string) *undefined {
	return &undefined{hint: fmt.Sprintf("access to attribute '%s' of '%s' object is unsafe", name, obj.typeName()),
		unsafe: true}
}

// why explains an undefined value.
func (u *undefined) why() string {
	switch {
	case u.hint != "":
		return u.hint
	case u.obj == nil:
		return fmt.Sprintf("'%s' is undefined", u.name)
	}
	switch k := u.key.(type) {
	case Str:
		return fmt.Sprintf("'%s' has no attribute '%.100s'", objectName(u.obj), string(k))
	case Int:
		return fmt.Sprintf("%s has no element %d", objectName(u.obj), int64(k))
	}
	return fmt.Sprintf("%s has no element of type %s", objectName(u.obj), u.key.typeName())
}

func objectName(v Value) string {
	if _, ok := v.(None); ok {
		return "None"
	}
	return v.typeName() + " object"
}

// isTrue is Python's bool(v).
func isTrue(v Value) bool {
	switch v := v.(type) {
	case None, *undefined:
		return false
	case Bool:
		return bool(v)
	case Int:
		return v != 0
	case Float:
		return v.F != 0
	case Str:
		return v != ""
	case markup:
		return v != ""
	case *List:
		return len(v.Items) > 0
	case *tuple:
		return len(v.items) > 0
	case *Dict:
		return v.Len() > 0
	case *view:
		return v.dict.Len() > 0
	case *rangeValue:
		return v.n > 0
	}
	return true
}

// FromGo returns the value of Go data: nil, bool, integers, floats, strings, JSON-like
// slices and maps of these, and Values. Map keys come in sorted order, because a Go map has
// none; use a *Dict if the order matters.
func FromGo(x any) (Value, error) { return fromGo(x, 0) }
