package rows

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"strconv"
	"strings"
)

// ErrMissing is wrapped by errors about a field that is absent or null.
var ErrMissing = errors.New("missing")

// Value returns the field at a path; ok is false if it is absent or null. A name with dots is first tried
// as one name.
func (r Row) Value(path string) (any, bool) {
	v, ok := lookup(r.Fields, path)
	return v, ok && v != nil
}

// Empty reports whether the field at a path is present and null or an empty text.
func (r Row) Empty(path string) bool {
	v, ok := lookup(r.Fields, path)
	return ok && (v == nil || v == "")
}

func lookup(fields map[string]any, path string) (any, bool) {
	if v, ok := fields[path]; ok {
		return v, true
	}
	first, rest, nested := strings.Cut(path, ".")
	if !nested {
		return nil, false
	}
	inner, ok := fields[first].(map[string]any)
	if !ok {
		return nil, false
	}
	return lookup(inner, rest)
}

// Raw returns the field at a path as JSON. For a JSON file it keeps the bytes; for parquet the keys of
// objects are in the order of the file's schema.
func (r Row) Raw(path string) (json.RawMessage, error) {
	v, ok := r.Value(path)
	if !ok {
		return nil, r.Errorf(path, "%w", ErrMissing)
	}
	if raw, ok := lookupRaw(r.text, path); ok {
		return raw, nil
	}
	var b bytes.Buffer
	if err := r.order.at(r.Fields, path).encode(&b, v); err != nil {
		return nil, r.Errorf(path, "%w", err)
	}
	return b.Bytes(), nil
}

// JSON returns the whole row as JSON, as Raw does for a field.
func (r Row) JSON() (json.RawMessage, error) {
	if r.text != nil {
		return r.text, nil
	}
	var b bytes.Buffer
	if err := r.order.encode(&b, r.Fields); err != nil {
		return nil, r.Errorf("", "%w", err)
	}
	return b.Bytes(), nil
}

// WithField returns the row with the value of the field at a path as a further column, or in place of the
// column of that name.
func (r Row) WithField(name, path string) Row {
	fields := maps.Clone(r.Fields)
	fields[name], _ = lookup(r.Fields, path)
	if r.order != nil {
		o := *r.order
		o.fields = maps.Clone(o.fields)
		o.fields[name] = r.order.at(r.Fields, path)
		r.order = &o
	}
	if raw, ok := lookupRaw(r.text, path); ok {
		var columns map[string]json.RawMessage
		if json.Unmarshal(r.text, &columns) == nil {
			columns[name] = raw
			var b bytes.Buffer
			if encodeJSON(&b, columns) == nil {
				r.text = b.Bytes()
			}
		}
	}
	r.Fields = fields
	return r
}

// lookupRaw does what lookup does, in the text of an object.
func lookupRaw(text []byte, path string) (json.RawMessage, bool) {
	var fields map[string]json.RawMessage
	if len(text) == 0 || json.Unmarshal(text, &fields) != nil {
		return nil, false
	}
	if raw, ok := fields[path]; ok {
		return raw, true
	}
	first, rest, nested := strings.Cut(path, ".")
	if !nested {
		return nil, false
	}
	return lookupRaw(fields[first], rest)
}

// Has reports whether all of these fields are present and not null.
func (r Row) Has(paths ...string) bool {
	for _, p := range paths {
		if _, ok := r.Value(p); !ok {
			return false
		}
	}
	return true
}

// Text returns a text or number field as text; numbers as Decimal writes them.
func (r Row) Text(path string) (string, error) {
	v, ok := r.Value(path)
	if !ok {
		return "", r.Errorf(path, "%w", ErrMissing)
	}
	s, ok := text(v)
	if !ok {
		return "", r.Errorf(path, "%s, not a text", kind(v))
	}
	return s, nil
}

// Texts returns a field that holds a list of texts or numbers, or a single one.
func (r Row) Texts(path string) ([]string, error) {
	v, ok := r.Value(path)
	if !ok {
		return nil, r.Errorf(path, "%w", ErrMissing)
	}
	list, ok := v.([]any)
	if !ok {
		s, err := r.Text(path)
		return []string{s}, err
	}
	var texts []string
	for i, item := range list {
		s, ok := text(item)
		if !ok {
			return nil, r.Errorf(path, "item %d is %s, not a text", i+1, kind(item))
		}
		texts = append(texts, s)
	}
	return texts, nil
}

// Objects returns a field that holds a list of objects, as rows located at r.
func (r Row) Objects(path string) ([]Row, error) {
	v, ok := r.Value(path)
	if !ok {
		return nil, r.Errorf(path, "%w", ErrMissing)
	}
	list, ok := v.([]any)
	if !ok {
		return nil, r.Errorf(path, "%s, not a list", kind(v))
	}
	var out []Row
	for i, item := range list {
		fields, ok := item.(map[string]any)
		if !ok {
			return nil, r.Errorf(path, "item %d is %s, not an object", i+1, kind(item))
		}
		out = append(out, Row{Path: r.Path, Where: fmt.Sprintf("%s: %s[%d]", r.Where, path, i), Index: i,
			Fields: fields})
	}
	return out, nil
}

// Number returns a number field, or the decimal number that a table's cell spells; a bool is 1 or 0.
func (r Row) Number(path string) (float64, error) {
	v, ok := r.Value(path)
	if !ok {
		return 0, r.Errorf(path, "%w", ErrMissing)
	}
	switch v := v.(type) {
	case bool:
		if v {
			return 1, nil
		}
		return 0, nil
	case json.Number:
		if x, err := v.Float64(); err == nil {
			return x, nil
		}
	case string:
		if x, err := strconv.ParseFloat(v, 64); r.cells && err == nil && strings.Trim(v, "+-.0123456789eE") == "" {
			return x, nil
		}
	}
	return 0, r.Errorf(path, "%s, not a number", kind(v))
}

// Errorf returns an *Error about a field of the row.
func (r Row) Errorf(field, format string, args ...any) error {
	return &Error{Where: r.Where, Field: field, Err: fmt.Errorf(format, args...)}
}

func text(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		return Decimal(v.String()), true
	}
	return "", false
}

// Decimal writes a number as a person would: integers without a decimal point, whatever their size (27.0
// becomes 27), everything else unchanged. Some copies of a benchmark store its integers as floats, and
// comparing texts would never accept them.
func Decimal(number string) string {
	if !strings.ContainsAny(number, ".eE") {
		return number
	}
	if x, err := strconv.ParseFloat(number, 64); err != nil || x > 1e18 || x < -1e18 {
		return number
	}
	if x, ok := new(big.Rat).SetString(number); ok && x.IsInt() {
		return x.Num().String()
	}
	return number
}

// kind names the type of a value in errors.
func kind(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a bool"
	case json.Number:
		return "a number"
	case string:
		return "a text"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return fmt.Sprintf("a %T", v)
}
