package code

import (
	"encoding/json"
	"fmt"

	"exp/sandbox"
)

// sameValue is Python's == on JSON values, with a tolerance for numbers.
func sameValue(got, want any, tolerance float64) bool {
	return sandbox.SameValue(got, want, func(x, y float64) bool { return tolerance > 0 && within(x, y, tolerance) })
}

// judgeValue compares a function's return value, in JSON.
func (p *Problem) judgeValue(got []byte, want json.RawMessage, upstream bool) (bool, string) {
	if len(got) == 0 {
		return false, "no value was returned"
	}
	var g, w any
	if err := sandbox.DecodeValue(got, &g); err != nil {
		return false, "the value is not JSON: " + err.Error()
	}
	if err := sandbox.DecodeValue(want, &w); err != nil {
		return false, "the expected value is not JSON: " + err.Error() // excluded by Check
	}
	tolerance := p.Tolerance
	if upstream {
		tolerance = 0
	}
	same := sameValue(g, w, tolerance)
	if list, ok := w.([]any); ok && len(list) > 0 && !same && (p.Wrapped || upstream && p.Family == TACO) {
		// TACO's own grader takes the first element of any list.
		same = sameValue(g, list[0], tolerance)
	}
	if !same {
		return false, fmt.Sprintf("another value: %.200s", got)
	}
	return true, ""
}
