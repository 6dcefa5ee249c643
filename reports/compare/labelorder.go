package compare

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
)

// number is a number within a label: beta=1e-6, qwen2.5-7b.
var number = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?`)

// CompareLabels orders labels as people do, with the numbers in them by value: beta=5,
// beta=15. It reads no signs.
func CompareLabels(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		m, n := number.FindString(x), number.FindString(y)
		if m == "" || n == "" {
			if x[0] != y[0] {
				return cmp.Compare(x[0], y[0])
			}
			x, y = x[1:], y[1:]
			continue
		}
		v, _ := strconv.ParseFloat(m, 64) // infinite if too large, which still orders
		w, _ := strconv.ParseFloat(n, 64)
		if v != w {
			return cmp.Compare(v, w)
		}
		x, y = x[len(m):], y[len(n):]
	}
	return cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(a, b))
}
