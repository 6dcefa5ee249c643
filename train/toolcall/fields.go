package toolcall

import (
	"bytes"
	"encoding/json"
	"slices"
)

// fields are the fields of an object, in order. The zero value is empty.
type fields struct {
	names  []string
	values map[string]json.RawMessage
}

// set sets a field. The last value of a name counts, at the place of the first.
func (f *fields) set(name string, value json.RawMessage) {
	if f.values == nil {
		f.values = map[string]json.RawMessage{}
	}
	if !slices.Contains(f.names, name) {
		f.names = append(f.names, name)
	}
	f.values[name] = value
}

// object returns the object.
func (f *fields) object() json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, name := range f.names {
		if i > 0 {
			b.WriteString(", ")
		}
		b.Write(quoted(name))
		b.WriteString(": ")
		b.Write(f.values[name])
	}
	b.WriteByte('}')
	return b.Bytes()
}

// quoted returns a JSON string; <, > and & stay as they are.
func quoted(text string) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a string can be written
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
