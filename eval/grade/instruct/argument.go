package instruct

import (
	"encoding/json"
	"fmt"
	"math"
)

// whole returns the whole number that v is. Files in Parquet have numbers with a fraction of 0.
func whole(v any) (int, bool) {
	x, ok := number(v)
	return int(x), ok && x == math.Trunc(x) && math.Abs(x) <= 1<<31
}

// number returns the number that v is.
func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int:
		return float64(v), true
	case float64:
		return v, true
	case json.Number:
		x, err := v.Float64()
		return x, err == nil
	}
	return 0, false
}

// longestShown is the length from which a value is cut in an error, in bytes.
const longestShown = 60

// shown is a value as an error shows it.
func shown(v any) string {
	text, err := json.Marshal(v)
	switch {
	case v == nil:
		return "nothing"
	case err != nil:
		return fmt.Sprintf("%T", v)
	case len(text) > longestShown:
		return string(text[:longestShown]) + "…"
	}
	return string(text)
}
