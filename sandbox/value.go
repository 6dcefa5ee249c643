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

// DecodeValue reads exactly one JSON value and keeps numbers as written (json.Number).
func DecodeValue(text []byte, to any) error {
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

// judgeCall compares a call's return value with the expected one.
func judgeCall(got []byte, want json.RawMessage) (Verdict, string) {
	if len(got) == 0 {
		return WrongAnswer, "no value was returned"
	}
	var g, w any
	if err := DecodeValue(pythonJSON(got), &g); err != nil {
		return WrongAnswer, "the value is not JSON: " + err.Error()
	}
	if err := DecodeValue(want, &w); err != nil {
		return InfraError, "expect: " + err.Error()
	}
	if !SameValue(g, w, nil) {
		return WrongAnswer, fmt.Sprintf("another value: %.200s", got)
	}
	return OK, ""
}

// pythonJSON replaces Python's NaN and infinities, which JSON lacks, by values that equal nothing expected.
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

// SameValue is Python's == on values from DecodeValue, with tuples as lists: numbers by value, true is 1.
// Dictionary keys are texts in JSON, so 1 and "1" are the same key. near, if not nil, decides about numbers
// that are not equal, unless both are integers as written.
func SameValue(got, want any, near func(got, want float64) bool) bool {
	if w, ok := numeric(want); ok {
		g, ok := numeric(got)
		if !ok || g.Cmp(w) == 0 || isCount(got) && isCount(want) {
			return ok && g.Cmp(w) == 0
		}
		x, _ := g.Float64()
		y, _ := w.Float64()
		return near != nil && near(x, y)
	}
	switch w := want.(type) {
	case nil:
		return got == nil
	case string:
		g, ok := got.(string)
		return ok && g == w
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return false
		}
		for i := range w {
			if !SameValue(g[i], w[i], near) {
				return false
			}
		}
		return true
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok || len(g) != len(w) {
			return false
		}
		for k := range w {
			if v, ok := g[k]; !ok || !SameValue(v, w[k], near) {
				return false
			}
		}
		return true
	}
	return false
}

// isCount reports whether a value is an integer as written, which no rounding changes.
func isCount(v any) bool {
	n, ok := v.(json.Number)
	return ok && !bytes.ContainsAny([]byte(n), ".eE")
}

// numeric returns the exact value of a number: an integer as written, otherwise the double that Python
// would read.
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
