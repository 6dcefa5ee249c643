package quantity

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Absent marks a missing value in a document's table.
const Absent = "–"

// Typeset converts a number formatted by this package for a document: with a minus sign
// and ∞, and Absent for NaN.
func Typeset(number string) string {
	if number == nonFinite(math.NaN()) {
		return Absent
	}
	return strings.NewReplacer("-", "−", "Inf", "∞").Replace(number)
}

// TypesetShort formats v with about four significant digits, for values whose size is
// not known in advance: 0.6203, 4.102, 128.1, 12345, 1.20e−05. Whole numbers have no
// digits after the point.
func TypesetShort(v float64) string {
	a, digits := math.Abs(v), 0
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
	case a == 0:
		return "0"
	case a < 0.001 || a >= 1e7:
		return strings.ReplaceAll(strconv.FormatFloat(v, 'e', 2, 64), "-", "−")
	case a == math.Trunc(a):
	case a < 1:
		digits = 4
	case a < 10:
		digits = 3
	case a < 100:
		digits = 2
	case a < 10000:
		digits = 1
	}
	return Typeset(Fixed(v, digits))
}

// TypesetSeconds formats a number of seconds: 0.21 s, 12.3 s, 4 min 05 s, 2 h 10 min.
func TypesetSeconds(s float64) string {
	switch {
	case math.IsNaN(s):
		return Absent
	case s < 1:
		return Typeset(Fixed(s, 2)) + " s"
	case s < 99.95:
		return Typeset(Fixed(s, 1)) + " s"
	case s < 3600:
		t := int64(math.Round(s))
		return fmt.Sprintf("%d min %02d s", t/60, t%60)
	}
	t := int64(math.Round(s / 60))
	return fmt.Sprintf("%d h %02d min", t/60, t%60)
}

// TypesetCount formats a whole number in groups of three digits.
func TypesetCount(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if s[0] == '-' {
		sign, s = "−", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u202f" + s[i:] // narrow no-break space, as SI asks
	}
	return sign + s
}
