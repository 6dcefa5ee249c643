package serve

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"exp/experiments/quantity"
	"exp/experiments/store"
)

// fieldText formats the value of a field: whole numbers without a point, lists without
// brackets.
func fieldText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case float64:
		if v == float64(int64(v)) {
			return strconv.FormatInt(int64(v), 10)
		}
		return quantity.Short(v)
	case time.Time:
		return clockText(v)
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = fieldText(v[i])
		}
		return strings.Join(parts, ", ")
	}
	return fmt.Sprint(v)
}

// exactText is fieldText with every digit of a number, which tells groups apart.
func exactText(v any) string {
	if x, ok := v.(float64); ok {
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	return fieldText(v)
}

func numberText(v any, digits int) string {
	if x, ok := v.(float64); ok {
		return quantity.Fixed(x, digits)
	}
	return ""
}

func tookText(now time.Time, r *store.Run) string {
	if d, known := r.Took(now); known {
		return quantity.Duration(d)
	}
	return ""
}
