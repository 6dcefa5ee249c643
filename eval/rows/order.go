package rows

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// order is the order of the fields in a column's objects, as the file declares them: a chat template writes
// tool definitions in it. nil is the order of a column without objects, and by name.
type order struct {
	names  []string
	fields map[string]*order
	item   *order        // of the items, if the value is a list
	value  *order        // of all fields, if the value is a map
	number func(any) any // converts values of a type that the library does not; nil for others
}

// orderOf returns the order of the fields of a group.
func orderOf(n parquet.Node) *order {
	if n.Leaf() {
		if number := numberOf(n.Type().LogicalType()); number != nil {
			return &order{number: number}
		}
		return nil
	}
	o := &order{fields: map[string]*order{}}
	for _, f := range n.Fields() {
		o.names = append(o.names, f.Name())
		o.fields[f.Name()] = orderOf(f)
	}
	o.item = o // of a repeated group
	if t := n.Type().LogicalType(); t != nil && len(o.names) == 1 {
		if _, ok := t.Value.(*format.MapType); ok {
			o.value = o.fields[o.names[0]].field("value")
			return o
		}
	}
	if len(o.names) == 1 && n.Fields()[0].Repeated() {
		// A list is a group with one field, which repeats the item or a group that holds it.
		if o.item = o.fields[o.names[0]]; o.item != nil && len(o.item.names) == 1 {
			o.item = o.item.fields[o.item.names[0]]
		}
	}
	return o
}

// field returns the order of the field with a name; o may be nil.
func (o *order) field(name string) *order {
	switch {
	case o == nil:
		return nil
	case o.value != nil:
		return o.value
	}
	return o.fields[name]
}

// at returns the order of the field at a path, which lookup finds in fields.
func (o *order) at(fields map[string]any, path string) *order {
	if o == nil {
		return nil
	}
	if _, ok := fields[path]; ok {
		return o.field(path)
	}
	first, rest, _ := strings.Cut(path, ".")
	inner, _ := fields[first].(map[string]any)
	return o.field(first).at(inner, rest)
}

// encode writes a value as JSON.
func (o *order) encode(to *bytes.Buffer, v any) error {
	switch v := v.(type) {
	case map[string]any:
		to.WriteByte('{')
		for i, name := range o.sorted(v) {
			if i > 0 {
				to.WriteByte(',')
			}
			if err := encodeJSON(to, name); err != nil {
				return err
			}
			to.WriteByte(':')
			if err := o.field(name).encode(to, v[name]); err != nil {
				return err
			}
		}
		to.WriteByte('}')
	case []any:
		var item *order
		if o != nil {
			item = o.item
		}
		to.WriteByte('[')
		for i, x := range v {
			if i > 0 {
				to.WriteByte(',')
			}
			if err := item.encode(to, x); err != nil {
				return err
			}
		}
		to.WriteByte(']')
	default:
		return encodeJSON(to, v)
	}
	return nil
}

// sorted returns the names of an object's fields in order; names that o lacks come last.
func (o *order) sorted(object map[string]any) []string {
	names := slices.Sorted(maps.Keys(object))
	if o == nil {
		return names
	}
	rank := func(name string) int {
		if i := slices.Index(o.names, name); i >= 0 {
			return i
		}
		return len(o.names)
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	return names
}

// encodeJSON writes a value as JSON; <, > and & stay as they are.
func encodeJSON(to *bytes.Buffer, v any) error {
	enc := json.NewEncoder(to)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	if err == nil {
		to.Truncate(to.Len() - 1) // the line's end
	}
	return err
}
