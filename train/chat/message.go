package chat

import (
	"errors"
	"fmt"
)

// Message is one message of a chat: role, content, and any other fields, such as name,
// tool_calls or reasoning_content, in the given order. The zero value has no fields.
type Message struct{ fields *Dict }

// NewMessage returns a message with a role and text.
func NewMessage(role, content string) Message {
	d := &Dict{}
	d.Set("role", Str(role))
	d.Set("content", Str(content))
	return Message{d}
}

// MessageOf returns a message with the fields of d, which must not change later. It returns
// an error if the role is missing or not text.
func MessageOf(d *Dict) (Message, error) {
	role, ok := d.Get("role")
	if !ok {
		return Message{}, errors.New("chat: message without a role")
	}
	if _, ok := textOf(role); !ok {
		return Message{}, fmt.Errorf("chat: the role of a message is %s, not text", role.typeName())
	}
	return Message{d}, nil
}

// Role returns the role, "" for the zero value.
func (m Message) Role() string {
	v, _ := m.Field("role")
	s, _ := textOf(v)
	return s
}

// Text returns the content if it is text; false for a list of parts, None or no content.
func (m Message) Text() (string, bool) {
	v, ok := m.Field("content")
	if !ok {
		return "", false
	}
	return textOf(v)
}

// Field returns a field by name.
func (m Message) Field(name string) (Value, bool) {
	if m.fields == nil {
		return None{}, false
	}
	v, ok := m.fields.Get(name)
	if !ok {
		v = None{}
	}
	return v, ok
}

// With returns a copy of m with a field set.
func (m Message) With(name string, v Value) Message {
	d := &Dict{}
	if m.fields != nil {
		d = m.fields.copy()
	}
	d.Set(name, v)
	return Message{d}
}

func (m Message) value() Value {
	if m.fields == nil {
		return &Dict{}
	}
	return m.fields
}

// MarshalJSON writes all fields in order; numbers keep their text.
func (m Message) MarshalJSON() ([]byte, error) { return EncodeJSON(m.value()) }

// UnmarshalJSON reads an object with a role.
func (m *Message) UnmarshalJSON(data []byte) error {
	v, err := DecodeJSON(data)
	if err != nil {
		return err
	}
	d, ok := v.(*Dict)
	if !ok {
		return fmt.Errorf("chat: a message must be an object, not %s", v.typeName())
	}
	*m, err = MessageOf(d)
	return err
}
