package term

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// Fixed formats v with the given number of digits after the point. A value that
// rounds to zero has no sign. NaN, +Inf and -Inf are written so.
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

// PlusMinus formats an estimate with the half width of its interval:
// "0.641 ±0.041".
func PlusMinus(v, half float64, digits int) string {
	return Fixed(v, digits) + " ±" + Fixed(half, digits)
}

// Percent formats a share of 1 in per cent: Percent(0.123, 1) is "12.3%".
func Percent(share float64, digits int) string {
	return Fixed(100*share, digits) + "%"
}

// Count formats a number of things in at most six columns: 99999, 123k, 1.23M.
func Count(n int64) string {
	if -100_000 < n && n < 100_000 {
		return strconv.FormatInt(n, 10)
	}
	return scaled(float64(n), 1000, []string{"", "k", "M", "G", "T", "P", "E"})
}

// Bytes formats a size with a binary unit: "512 B", "4.00 GiB".
func Bytes(n int64) string {
	if -1024 < n && n < 1024 {
		return strconv.FormatInt(n, 10) + " B"
	}
	return scaled(float64(n), 1024, []string{"", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"})
}

// scaled divides v by base until three digits say it, "1.23k", "12.3k", "123k".
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

// Duration formats a time span with the two units that matter: 0.0s, 16.3s,
// 2m05s, 3h12m, 2d03h. A negative span has its sign in front.
func Duration(d time.Duration) string {
	if d < 0 {
		return "-" + Duration(-d)
	}
	if d < 59950*time.Millisecond {
		return Fixed(d.Seconds(), 1) + "s"
	}
	return coarse(d)
}

// Remaining formats a time still to wait, without the tenths that would only
// flicker: 3s, 2m05s, 3h12m.
func Remaining(d time.Duration) string {
	d = max(d, 0)
	if d < 59500*time.Millisecond {
		return Fixed(d.Seconds(), 0) + "s"
	}
	return coarse(d)
}

func coarse(d time.Duration) string {
	s := int64(d.Round(time.Second) / time.Second)
	switch {
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	case s < 24*3600:
		return fmt.Sprintf("%dh%02dm", s/3600, s/60%60)
	}
	return fmt.Sprintf("%dd%02dh", s/86400, s/3600%24)
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
