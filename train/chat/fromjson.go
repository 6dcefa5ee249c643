package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// DecodeJSON returns the value of one JSON text. Objects keep their key order, and the last
// of equal keys wins; numbers with a fraction or an exponent become Floats that keep their
// text, others integers of any size.
func DecodeJSON(data []byte) (Value, error) {
	if !utf8.Valid(data) {
		return nil, errors.New("chat: the JSON is not UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	v, err := decodeValue(dec, 0)
	if err == nil {
		if _, more := dec.Token(); more != io.EOF {
			err = errors.New("more text after the value")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("chat: JSON at byte %d: %w", dec.InputOffset(), err)
	}
	return v, nil
}

func decodeValue(dec *json.Decoder, depth int) (Value, error) {
	if depth > maxValueDepth {
		return nil, errDeep
	}
	t, err := dec.Token()
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case nil:
		return None{}, nil
	case bool:
		return Bool(t), nil
	case string:
		return Str(t), nil
	case json.Number:
		return decodeNumber(string(t))
	case json.Delim:
		if t == '[' {
			l := &List{}
			for dec.More() {
				v, err := decodeValue(dec, depth+1)
				if err != nil {
					return nil, err
				}
				l.Items = append(l.Items, v)
			}
			_, err := dec.Token()
			return l, err
		}
		return decodeObject(dec, depth)
	}
	return nil, fmt.Errorf("unexpected %v", t)
}

func decodeObject(dec *json.Decoder, depth int) (Value, error) {
	d := &Dict{}
	for dec.More() {
		k, err := dec.Token()
		if err != nil {
			return nil, err
		}
		key, ok := k.(string)
		if !ok {
			return nil, fmt.Errorf("unexpected %v", k)
		}
		v, err := decodeValue(dec, depth+1)
		if err != nil {
			return nil, err
		}
		d.Set(key, v)
	}
	_, err := dec.Token()
	return d, err
}

func decodeNumber(s string) (Value, error) {
	if strings.ContainsAny(s, ".eE") {
		f, _ := strconv.ParseFloat(s, 64) // out of range: infinite, as in Python
		return Float{F: f, Text: s}, nil
	}
	if len(s) > maxDigits {
		return nil, fmt.Errorf("a number has more than %d digits", maxDigits)
	}
	i, ok := new(big.Int).SetString(s, 10)
	if !ok {
		return nil, fmt.Errorf("%q is not a number", s)
	}
	return fromBig(i), nil
}

// EncodeJSON writes a value made by DecodeJSON or FromGo, without white space. Numbers keep
// their text; Go's HTML escaping does not apply.
func EncodeJSON(v Value) ([]byte, error) {
	return appendJSON(nil, v, 0)
}

func appendJSON(b []byte, v Value, depth int) ([]byte, error) {
	if depth > maxValueDepth {
		return nil, errDeep
	}
	var err error
	switch v := v.(type) {
	case Str:
		return append(b, jsonString(string(v), false)...), nil
	case Float:
		if v.Text != "" {
			return append(b, v.Text...), nil
		}
		s, err := json.Marshal(v.F)
		return append(b, s...), err
	case None, Bool, Int, bigInt:
		s, err := jsonScalar(v)
		return append(b, s...), err
	case *List:
		b = append(b, '[')
		for i, x := range v.Items {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = appendJSON(b, x, depth+1); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	case *Dict:
		b = append(b, '{')
		for i, k := range v.keys {
			key, err := jsonKey(k)
			if err != nil {
				return nil, err
			}
			if i > 0 {
				b = append(b, ',')
			}
			b = append(append(b, jsonString(key, false)...), ':')
			if b, err = appendJSON(b, v.vals[i], depth+1); err != nil {
				return nil, err
			}
		}
		return append(b, '}'), nil
	}
	return nil, fmt.Errorf("chat: a value of type %s cannot be written as JSON", v.typeName())
}
