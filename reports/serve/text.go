package serve

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"exp/experiments/quantity"
	"exp/experiments/store"
)

// textOf formats the value of a field: of a configuration with every digit, of others with about three.
func textOf(f store.Field, v any) string {
	if f.Kind == store.FieldConfig {
		return exactText(v)
	}
	return fieldText(v)
}

// fieldText formats the value of a field: whole numbers without a point, lists without
// brackets.
func fieldText(v any) string { return listText(v, quantity.Short) }

// exactText is fieldText with every digit of a number, which tells settings and groups apart.
func exactText(v any) string {
	return listText(v, func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) })
}

func listText(v any, number func(float64) string) string {
	switch v := v.(type) {
	case nil:
		return ""
	case float64:
		if v == float64(int64(v)) {
			return strconv.FormatInt(int64(v), 10)
		}
		return number(v)
	case time.Time:
		return clockText(v)
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = listText(v[i], number)
		}
		return strings.Join(parts, ", ")
	}
	return fmt.Sprint(v)
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
