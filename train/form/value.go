package form

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
)

// object is a JSON object with its members in order. Other values are []any, string, json.Number, bool and nil.
type object []member

type member struct {
	name  string
	value any
}

// get returns a member's value.
func (o object) get(name string) (v any, ok bool) {
	i := slices.IndexFunc(o, func(m member) bool { return m.name == name })
	if i < 0 {
		return nil, false
	}
	return o[i].value, true
}

// readValue reads one JSON value.
func readValue(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	v, err := nextValue(d)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("has more than one JSON value")
	}
	return v, nil
}

func nextValue(d *json.Decoder) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := nextValue(d)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err = d.Token()
		return list, err
	case json.Delim('{'):
		o := object{}
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := nextValue(d)
			if err != nil {
				return nil, err
			}
			if _, twice := o.get(name.(string)); twice {
				return nil, fmt.Errorf("has two members %q in an object", name)
			}
			o = append(o, member{name.(string), v})
		}
		_, err = d.Token()
		return o, err
	}
	return t, nil
}

// valueOf stands for one JSON value.
func (x *jsonRules) valueOf(v any) expr {
	bracketed := func(open, end string, items []expr) expr {
		if len(items) == 0 {
			return text(open + end)
		}
		list := []expr{text(open), x.space, items[0]}
		for _, e := range items[1:] {
			list = append(list, x.comma(), e)
		}
		return seq(append(list, x.space, text(end))...)
	}
	var items []expr
	switch v := v.(type) {
	case object:
		for _, m := range v {
			items = append(items, seq(x.name(m.name), x.colon(), x.valueOf(m.value)))
		}
		return bracketed("{", "}", items)
	case []any:
		for _, e := range v {
			items = append(items, x.valueOf(e))
		}
		return bracketed("[", "]", items)
	case string:
		return x.name(v)
	case bool:
		if v {
			return x.yes
		}
		return x.no
	case nil:
		return x.null
	}
	return text(fmt.Sprint(v))
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
