package config

import (
	"encoding/json"
	"strings"
)

// Stored reads a configuration from the JSON in which the store keeps it: nested objects, with the plain values of
// Resolved.Value. JSON does not tell 1 from 1.0, so the kinds of the keys decide. known is false if they cannot: of a
// whole number in a key of Values, and of a key that this table does not have.
func Stored(text string) (values map[string]any, known bool, err error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&values); err != nil {
		return nil, false, err
	}
	s := storedReader{known: true}
	s.block("", values)
	return values, s.known, nil
}

// StoredAt returns the value at a dotted path in nested objects, and whether it is there.
func StoredAt(values map[string]any, path string) (any, bool) {
	block, below, nested := strings.Cut(path, ".")
	if !nested {
		v, ok := values[path]
		return v, ok
	}
	next, _ := values[block].(map[string]any)
	return StoredAt(next, below)
}

// storedReader replaces json.Numbers by plain numbers.
type storedReader struct{ known bool }

// block converts the values in an object that holds the keys below path.
func (s *storedReader) block(path string, values map[string]any) {
	for name, v := range values {
		at := name
		if path != "" {
			at = path + "." + name
		}
		k := lookup(at)
		if below, ok := v.(map[string]any); ok && k == nil {
			s.block(at, below)
			continue
		}
		values[name] = s.value(k, v)
	}
}

// value returns the plain value of a key; nil is an unknown one.
func (s *storedReader) value(k *Key, v any) any {
	s.known = s.known && k != nil
	switch v := v.(type) {
	case json.Number:
		return s.number(k, v)
	case []any:
		for i := range v {
			v[i] = s.value(k, v[i])
		}
	case map[string]any:
		for name := range v {
			of := k
			if k != nil && k.Kind == Objects {
				of = k.field(name)
			}
			v[name] = s.value(of, v[name])
		}
	}
	return v
}

// field returns the field of an object by its name, or nil.
func (k *Key) field(name string) *Key {
	for i := range k.Fields {
		if k.Fields[i].Path == name {
			return &k.Fields[i]
		}
	}
	return nil
}

func (s *storedReader) number(k *Key, v json.Number) any {
	whole, err := v.Int64()
	isWhole := err == nil
	switch {
	case k == nil:
	case k.Kind == Float || k.Kind == Share:
		isWhole = false
	case k.Kind == Values && isWhole:
		s.known = false
	}
	if isWhole {
		return whole
	}
	f, err := v.Float64()
	s.known = s.known && err == nil
	return f
}
