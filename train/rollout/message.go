package rollout

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// Message is one message of a chat, as chat templates receive it. As JSON it is an object:
// role, content, then More. Messages are immutable once made.
type Message struct {
	Role    string
	Content string // its text; empty where Parts is set
	// Parts is non-text content as compact JSON: a list of parts, or null; empty but not
	// nil if a message has no content at all.
	Parts json.RawMessage
	// More holds further fields, such as tool_calls, in source order.
	More []Field
}

// Field is a field of a message with its value as compact JSON.
type Field struct {
	Name  string
	Value json.RawMessage
}

// Plain reports whether the messages are a single user text. The chat of such a problem
// equals its prompt.
func Plain(messages []Message) bool {
	if len(messages) != 1 {
		return len(messages) == 0
	}
	m := messages[0]
	return m.Role == "user" && m.Parts == nil && len(m.More) == 0
}

// MarshalJSON writes role, content and the further fields, in this order.
func (m Message) MarshalJSON() ([]byte, error) {
	content := m.Parts
	if content == nil {
		var err error
		if content, err = text(m.Content); err != nil {
			return nil, err
		}
	}
	role, err := text(m.Role)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"role":%s`, role)
	if len(content) > 0 {
		fmt.Fprintf(&b, `,"content":%s`, content)
	}
	for _, f := range m.More {
		name, err := text(f.Name)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, ",%s:%s", name, f.Value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// text returns s as a JSON string; <, > and & stay unescaped.
func text(s string) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(s)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// UnmarshalJSON reads an object with a role.
func (m *Message) UnmarshalJSON(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errors.New("a message is an object with role and content")
	}
	read := Message{Parts: json.RawMessage{}}
	hasRole := false
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return err
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return err
		}
		name := t.(string) // what stands before a value in an object
		switch name {
		case "role":
			if err := json.Unmarshal(raw, &read.Role); err != nil || read.Role == "" {
				return fmt.Errorf("the role of a message must be a string, not %s", raw)
			}
			hasRole = true
		case "content":
			if err := read.setContent(raw); err != nil {
				return err
			}
		default:
			value, err := compact(raw)
			if err != nil {
				return err
			}
			read.More = slices.DeleteFunc(read.More, func(f Field) bool { return f.Name == name })
			read.More = append(read.More, Field{name, value})
		}
	}
	if !hasRole {
		return errors.New("message without a role")
	}
	*m = read
	return nil
}

func (m *Message) setContent(raw json.RawMessage) (err error) {
	m.Content, m.Parts = "", nil
	if raw[0] == '"' {
		return json.Unmarshal(raw, &m.Content)
	}
	m.Parts, err = compact(raw)
	return err
}

func compact(raw json.RawMessage) (json.RawMessage, error) {
	var b bytes.Buffer
	err := json.Compact(&b, raw)
	return b.Bytes(), err
}
