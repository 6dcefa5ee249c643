// Package quantity formats numbers, sizes and times for people. The whole program uses
// it, so a size looks the same in a plan, a table and a report. It is under experiments
// because harness, reports and cmd may import that; kernels, train, eval and sandbox may
// not, and format only whole numbers.
//
// Most formats are short plain text for terminals and messages. The typeset ones are for
// documents: they use a real minus sign and spaces before units. Values that programs
// read back have other formats: harness/config formats configurations, and JSON and CSV
// use the shortest text that reads back.
package quantity

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Fixed formats v with the given number of digits after the point. A value that rounds to
// zero has no sign. NaN, +Inf and -Inf appear as such.
func Fixed(v float64, digits int) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nonFinite(v)
	}
	s := strconv.FormatFloat(v, 'f', digits, 64)
	if s[0] == '-' && isZero(s[1:]) {
		return s[1:]
	}
	return s
}

// Signed is Fixed with a plus sign before a positive value, unless it rounds to zero.
func Signed(v float64, digits int) string {
	s := Fixed(v, digits)
	if v > 0 && s[0] != '+' && !isZero(s) {
		return "+" + s
	}
	return s
}

// Short formats v with about three significant digits in at most seven
// columns, for values whose size is not known in advance: 0.620, 4.10, 15.3,
// 128, 12345, 1.2e-05, 1.5e+07.
func Short(v float64) string {
	a := math.Abs(v)
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return nonFinite(v)
	case a != 0 && a < 0.001 || a >= 1e6:
		return strconv.FormatFloat(v, 'e', 1, 64)
	case a < 1:
		return Fixed(v, 3)
	case a < 10:
		return Fixed(v, 2)
	case a < 100:
		return Fixed(v, 1)
	}
	return Fixed(v, 0)
}

// Percent formats a share of 1 in per cent: Percent(0.123, 1) is "12.3%".
func Percent(share float64, digits int) string {
	return Fixed(100*share, digits) + "%"
}

// Count formats a count in at most six columns: 99999, 123k, 1.23M, 7.62G.
func Count(n int64) string {
	return scaledCount(n, "G", "T", "P", "E")
}

// Parameters formats the size of a model as the field does, with B for 10⁹: 19232,
// 494M, 7.62B.
func Parameters(n int64) string {
	return scaledCount(n, "B", "T")
}

func scaledCount(n int64, large ...string) string {
	if -100_000 < n && n < 100_000 {
		return strconv.FormatInt(n, 10)
	}
	return scaled(float64(n), 1000, append([]string{"", "k", "M"}, large...))
}

// Bytes formats a size with a binary unit: "512 B", "4.00 GiB".
func Bytes(n int64) string {
	if -1024 < n && n < 1024 {
		return strconv.FormatInt(n, 10) + " B"
	}
	return scaled(float64(n), 1024, []string{"", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"})
}

// scaled divides v by base until it fits three digits: "1.23k", "12.3k", "123k".
func scaled(v, base float64, units []string) string {
	unit := 0
	for math.Abs(v) >= 999.5 && unit < len(units)-1 {
		v /= base
		unit++
	}
	digits := 2
	switch a := math.Abs(v); {
	case a >= 99.95:
		digits = 0
	case a >= 9.995:
		digits = 1
	}
	return Fixed(v, digits) + units[unit]
}

// Plural returns "1 seed", "3 seeds".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

func nonFinite(v float64) string {
	switch {
	case math.IsInf(v, 1):
		return "+Inf"
	case math.IsInf(v, -1):
		return "-Inf"
	}
	return "NaN"
}

func isZero(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] != '0' && s[i] != '.' {
			return false
		}
	}
	return true
}

// AtMost joins at most n names, and counts the others.
func AtMost(names []string, n int) string {
	if len(names) <= n {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:n], ", "), len(names)-n)
}
