package instruct

import (
	"encoding/json"
	"fmt"
	"math"
)

// whole returns the whole number that v is. Files in Parquet have numbers with a fraction of 0.
func whole(v any) (int, bool) {
	var x float64
	switch v := v.(type) {
	case int:
		return v, true
	case float64:
		x = v
	case json.Number:
		var err error
		if x, err = v.Float64(); err != nil {
			return 0, false
		}
	default:
		return 0, false
	}
	return int(x), x == math.Trunc(x) && math.Abs(x) <= 1<<31
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
