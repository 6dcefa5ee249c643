package code

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

// sameValue is Python's == on values of JSON, a tuple being a list: numbers by value
// and within the tolerance, true is 1. Keys of dictionaries are texts in JSON, so 1 and
// "1" are the same key.
func sameValue(got, want any, tolerance float64) bool {
	if w, ok := number(want); ok {
		g, ok := number(got)
		if !ok {
			return false
		}
		if g.Cmp(w) == 0 {
			return true
		}
		x, _ := g.Float64()
		y, _ := w.Float64()
		return tolerance > 0 && within(x, y, tolerance)
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
			if !sameValue(g[i], w[i], tolerance) {
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
			if v, ok := g[k]; !ok || !sameValue(v, w[k], tolerance) {
				return false
			}
		}
		return true
	}
	return false
}

// number is the exact value of a number: an integer as written, else the double that
// Python reads.
func number(v any) (*big.Rat, bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return big.NewRat(1, 1), true
		}
		return new(big.Rat), true
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

// judgeValue compares what a function returned, in JSON.
func (p *Problem) judgeValue(got []byte, want json.RawMessage, upstream bool) (bool, string) {
	if len(got) == 0 {
		return false, "no value was returned"
	}
	var g, w any
	if err := decode(got, &g); err != nil {
		return false, "the value is no JSON: " + err.Error()
	}
	if err := decode(want, &w); err != nil {
		return false, "the expected value is no JSON: " + err.Error() // excluded by Check
	}
	tolerance := p.Tolerance
	if upstream {
		tolerance = 0
	}
	same := sameValue(g, w, tolerance)
	if list, ok := w.([]any); ok && len(list) > 0 && !same && (p.Wrapped || upstream && p.Family == TACO) {
		// TACO's own grader takes the first of any list.
		same = sameValue(g, list[0], tolerance)
	}
	if !same {
		return false, fmt.Sprintf("another value: %.200s", got)
	}
	return true, ""
}
