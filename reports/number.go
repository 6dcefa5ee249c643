package reports

import (
	"encoding/json"
	"math"
	"strings"

	"exp/experiments/quantity"
)

// number is a float64 in data.json: NaN, +Inf and -Inf are strings.
type number float64

// MarshalJSON writes the shortest text that reads back as the same float64.
func (n number) MarshalJSON() ([]byte, error) {
	v := float64(n)
	switch {
	case math.IsNaN(v):
		return []byte(`"NaN"`), nil
	case math.IsInf(v, 1):
		return []byte(`"+Inf"`), nil
	case math.IsInf(v, -1):
		return []byte(`"-Inf"`), nil
	}
	return json.Marshal(v)
}

// absent marks a missing value in a table.
const absent = quantity.Absent

// fixed formats v with digits after the point.
func fixed(v float64, digits int) string { return quantity.Typeset(quantity.Fixed(v, digits)) }

// signed is fixed with a plus sign before positive values.
func signed(v float64, digits int) string { return quantity.Typeset(quantity.Signed(v, digits)) }

// listed joins words for a sentence: "a, b and c".
func listed(words []string) string {
	switch n := len(words); n {
	case 0:
		return ""
	case 1:
		return words[0]
	default:
		return strings.Join(words[:n-1], ", ") + " and " + words[n-1]
	}
}
