package reports

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
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

// absent stands in a table where there is no value.
const absent = "–"

// fixed formats v with digits after the point; what rounds to zero has no sign, and
// the minus is a minus.
func fixed(v float64, digits int) string {
	if math.IsNaN(v) {
		return absent
	}
	if math.IsInf(v, 0) {
		return strings.Replace(strings.Replace(strconv.FormatFloat(v, 'g', -1, 64), "Inf", "∞", 1), "-", "−", 1)
	}
	s := strconv.FormatFloat(v, 'f', digits, 64)
	if strings.Trim(s, "-0.") == "" {
		s = strings.TrimPrefix(s, "-")
	}
	return strings.Replace(s, "-", "−", 1)
}

// short formats v with about four significant digits, for values whose size is not
// known in advance: 0.6203, 4.102, 128.1, 12345, 1.20e−5.
func short(v float64) string {
	a := math.Abs(v)
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return fixed(v, 0)
	case a == 0:
		return "0"
	case a < 0.001 || a >= 1e7:
		return strings.ReplaceAll(strconv.FormatFloat(v, 'e', 2, 64), "-", "−")
	case a == math.Trunc(a):
		return fixed(v, 0)
	case a < 1:
		return fixed(v, 4)
	case a < 10:
		return fixed(v, 3)
	case a < 100:
		return fixed(v, 2)
	case a < 10000:
		return fixed(v, 1)
	}
	return fixed(v, 0)
}

// signed is fixed with a plus before what is above zero.
func signed(v float64, digits int) string {
	s := fixed(v, digits)
	if v > 0 && strings.Trim(s, "0.") != "" {
		return "+" + s
	}
	return s
}

// seconds formats a duration: 0.21 s, 12.3 s, 4 min 05 s, 2 h 10 min.
func seconds(s float64) string {
	switch {
	case math.IsNaN(s):
		return absent
	case s < 1:
		return fixed(s, 2) + " s"
	case s < 99.95:
		return fixed(s, 1) + " s"
	case s < 3600:
		t := int64(math.Round(s))
		return fmt.Sprintf("%d min %02d s", t/60, t%60)
	}
	t := int64(math.Round(s / 60))
	return fmt.Sprintf("%d h %02d min", t/60, t%60)
}

// count formats a whole number in groups of three digits.
func count(n int64) string {
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

// bytesText formats a size with a binary unit.
func bytesText(n int64) string {
	v := float64(n)
	for _, unit := range []string{"B", "KiB", "MiB", "GiB"} {
		if v < 1024 {
			if unit == "B" {
				return fmt.Sprintf("%d B", n)
			}
			return fixed(v, 1) + " " + unit
		}
		v /= 1024
	}
	return fixed(v, 1) + " TiB"
}

// plural is "1 seed", "3 seeds".
func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// listed joins words as a sentence does: "a, b and c".
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
