package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strconv"
)

// decode reads exactly one JSON value, numbers as written.
func decode(text []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(to); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one value")
	}
	return nil
}

// judgeCall compares what a call gave with what it should.
func judgeCall(got []byte, want json.RawMessage) (Verdict, string) {
	if len(got) == 0 {
		return WrongAnswer, "no value was returned"
	}
	var g, w any
	if err := decode(pythonJSON(got), &g); err != nil {
		return WrongAnswer, "the value is no JSON: " + err.Error()
	}
	if err := decode(want, &w); err != nil {
		return InfraError, "expect: " + err.Error()
	}
	if !equal(g, w) {
		return WrongAnswer, fmt.Sprintf("another value: %.200s", got)
	}
	return OK, ""
}

// pythonJSON gives what Python writes for no number and the infinities, which JSON
// does not have, values that equal nothing expected.
func pythonJSON(text []byte) []byte {
	var out []byte
	inString := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case inString && c == '\\' && i+1 < len(text):
			out = append(out, c)
			i++
			c = text[i]
		case c == '"':
			inString = !inString
		case !inString && (c == 'N' || c == 'I'):
			for _, word := range []string{"NaN", "Infinity"} {
				if bytes.HasPrefix(text[i:], []byte(word)) {
					if len(out) > 0 && out[len(out)-1] == '-' {
						out = out[:len(out)-1]
					}
					out = append(out, `{"not a JSON number":true}`...)
					i += len(word) - 1
					goto next
				}
			}
		}
		out = append(out, c)
	next:
	}
	return out
}

// equal is Python's == on JSON values: numbers by value, true is 1.
func equal(a, b any) bool {
	if x, ok := numeric(a); ok {
		y, ok := numeric(b)
		return ok && x.Cmp(y) == 0
	}
	switch a := a.(type) {
	case nil:
		return b == nil
	case string:
		s, ok := b.(string)
		return ok && a == s
	case []any:
		list, ok := b.([]any)
		if !ok || len(a) != len(list) {
			return false
		}
		for i := range a {
			if !equal(a[i], list[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		m, ok := b.(map[string]any)
		if !ok || len(a) != len(m) {
			return false
		}
		for k := range a {
			if v, ok := m[k]; !ok || !equal(a[k], v) {
				return false
			}
		}
		return true
	}
	return false
}

// numeric is the exact value of a number: an integer as written, otherwise the double
// that Python would read.
func numeric(v any) (*big.Rat, bool) {
	switch v := v.(type) {
	case bool:
		n := big.NewRat(0, 1)
		if v {
			n.SetInt64(1)
		}
		return n, true
	case json.Number:
		if i, ok := new(big.Int).SetString(v.String(), 10); ok {
			return new(big.Rat).SetInt(i), true
		}
		f, err := strconv.ParseFloat(v.String(), 64)
		if err != nil {
			return nil, false
		}
		return new(big.Rat).SetFloat64(f), true
	}
	return nil, false
}
