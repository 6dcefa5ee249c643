package main

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// envelope wraps data in what every JSON and YAML result has.
func (o *output) envelope(schema string, data any) object {
	var store any
	if o.store != "" {
		store = o.store
	}
	warnings := make([]any, len(o.warnings))
	for i, w := range o.warnings {
		warnings[i] = w
	}
	o.warnings = nil
	return object{{"schema", schema}, {"store", store}, {"data", data}, {"warnings", warnings}}
}

func (o *output) printEnvelope(schema string, data any) error {
	e := o.envelope(schema, data)
	var out []byte
	if o.format == formatYAML {
		out = appendYAML(nil, e, 0)
	} else {
		out = append(appendJSON(nil, e, 0), '\n')
	}
	_, err := o.w.Write(out)
	return err
}

// printLines prints one object a line. Warnings go to stderr in this format.
func (o *output) printLines(list []any) error {
	var out []byte
	for _, v := range list {
		out = append(appendJSON(out, v, compact), '\n')
	}
	_, err := o.w.Write(out)
	return err
}

// compact as the depth of appendJSON means one line.
const compact = -1

// appendJSON appends a tree at the given depth of indentation. Lists and objects
// without parts in their parts stand on one line.
func appendJSON(dst []byte, v any, depth int) []byte {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...)
	case string:
		return appendJSONString(dst, v)
	case object:
		return jsonList{"{}", len(v), false}.append(dst, depth, func(dst []byte, i, depth int) []byte {
			dst = append(appendJSONString(dst, v[i].key), ':')
			if depth != compact {
				dst = append(dst, ' ')
			}
			return appendJSON(dst, v[i].value, depth)
		})
	case []any:
		flat := true
		for _, item := range v {
			flat = flat && isScalar(item)
		}
		return jsonList{"[]", len(v), flat}.append(dst, depth, func(dst []byte, i, depth int) []byte {
			return appendJSON(dst, v[i], depth)
		})
	}
	return append(dst, machineText(v)...)
}

// jsonList is n items between brackets, each on a line of its own unless flat.
type jsonList struct {
	brackets string
	n        int
	flat     bool
}

// append appends the list; item appends item i at the depth it is given.
func (l jsonList) append(dst []byte, depth int, item func(dst []byte, i, depth int) []byte) []byte {
	dst = append(dst, l.brackets[0])
	inner := depth
	if depth != compact {
		inner++
	}
	for i := range l.n {
		if i > 0 {
			dst = append(dst, ',')
		}
		switch {
		case depth != compact && !l.flat:
			dst = appendNewline(dst, inner)
		case depth != compact && i > 0:
			dst = append(dst, ' ')
		}
		dst = item(dst, i, inner)
	}
	if l.n > 0 && depth != compact && !l.flat {
		dst = appendNewline(dst, depth)
	}
	return append(dst, l.brackets[1])
}

func appendNewline(dst []byte, depth int) []byte {
	dst = append(dst, '\n')
	return append(dst, bytes.Repeat([]byte("  "), depth)...)
}

// appendJSONString appends s quoted, with < > & as they are; bytes that are not
// UTF-8 become U+FFFD.
func appendJSONString(dst []byte, s string) []byte {
	plain := true
	for i := 0; i < len(s) && plain; i++ {
		plain = ' ' <= s[i] && s[i] < 0x7f && s[i] != '"' && s[i] != '\\'
	}
	if plain {
		return strconv.AppendQuote(dst, s)
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string cannot fail
	return append(dst, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...)
}
