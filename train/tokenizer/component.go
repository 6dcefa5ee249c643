package tokenizer

import (
	"encoding/json"
	"fmt"
)

// component is a part of tokenizer.json: a type, and fields by name. Its zero value is
// null.
type component struct {
	Type   string
	where  string // place in the file, for errors
	fields map[string]json.RawMessage
	depth  int
}

// mostNested is the maximum nesting of sequences.
const mostNested = 8

// parseComponent reads a component; where is its place in the file.
func parseComponent(raw json.RawMessage, where string) (component, error) {
	c := component{where: where}
	if absent(raw) {
		return c, nil
	}
	if err := json.Unmarshal(raw, &c.fields); err != nil {
		return c, fmt.Errorf("%s: not an object with a type: %w", where, err)
	}
	if err := json.Unmarshal(c.fields["type"], &c.Type); err != nil || c.Type == "" {
		return c, fmt.Errorf("%s: component without a type", where)
	}
	return c, nil
}

// each calls do for each component of a list.
func (c component) each(list string, do func(component) error) error {
	if c.depth >= mostNested {
		return fmt.Errorf("%s: sequences are nested deeper than %d", c.where, mostNested)
	}
	var parts []json.RawMessage
	if err := json.Unmarshal(c.fields[list], &parts); err != nil {
		return fmt.Errorf("%s: %s.%s is not a list", c.where, c.Type, list)
	}
	for i, raw := range parts {
		part, err := parseComponent(raw, fmt.Sprintf("%s.%s[%d]", c.where, list, i))
		if err != nil {
			return err
		}
		part.depth = c.depth + 1
		if err := do(part); err != nil {
			return err
		}
	}
	return nil
}

// flattened parses a component or, of a sequence, all components in it and in its sequences; list is the
// field that holds them.
func flattened[T any](c component, list string, parse func(component) (T, error)) ([]T, error) {
	switch c.Type {
	case "":
		return nil, nil
	case "Sequence":
		var all []T
		err := c.each(list, func(c component) error {
			more, err := flattened(c, list, parse)
			all = append(all, more...)
			return err
		})
		return all, err
	}
	one, err := parse(c)
	return []T{one}, err
}

// flag returns a boolean field, or its default if absent or null.
func (c component) flag(name string, absentIs bool) bool {
	var b *bool
	if json.Unmarshal(c.fields[name], &b) != nil || b == nil {
		return absentIs
	}
	return *b
}

// text returns a required string field.
func (c component) text(name string) (string, error) {
	var s *string
	if err := json.Unmarshal(c.fields[name], &s); err != nil || s == nil {
		return "", fmt.Errorf("%s: %s has no text %q", c.where, c.Type, name)
	}
	return *s, nil
}

// number returns a field with a non-negative whole number, or its default.
func (c component) number(name string, absentIs int) (int, error) {
	if absent(c.fields[name]) {
		return absentIs, nil
	}
	var n uint32
	if err := json.Unmarshal(c.fields[name], &n); err != nil {
		return 0, fmt.Errorf("%s: %s.%s is not a whole number", c.where, c.Type, name)
	}
	return int(n), nil
}

// char returns a field with one character.
func (c component) char(name string) (rune, error) {
	s, err := c.text(name)
	if err != nil {
		return 0, err
	}
	if r := []rune(s); len(r) == 1 {
		return r[0], nil
	}
	return 0, fmt.Errorf("%s: %s.%s is not one character: %q", c.where, c.Type, name, s)
}

// pattern returns the field "pattern": {"String": text} or {"Regex": expression}.
func (c component) pattern() (matcher, error) {
	var p struct {
		Text  *string `json:"String"`
		Regex *string
	}
	if err := json.Unmarshal(c.fields["pattern"], &p); err != nil || (p.Text == nil) == (p.Regex == nil) {
		return nil, fmt.Errorf("%s: the pattern of %s is neither a String nor a Regex", c.where, c.Type)
	}
	if p.Text != nil {
		return literalText(*p.Text), nil
	}
	m, err := newMatcher(*p.Regex)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.where, err)
	}
	return m, nil
}
