package query

import (
	"strconv"
	"strings"
	"time"
)

// literal is a value in a condition. A word may have several readings; the value it is
// compared with decides.
type literal struct {
	text     string
	col      int // where, in runes from 0
	quoted   bool
	begins   bool // it equals the texts that begin with it
	isNumber bool
	number   float64 // 1e-6
	isAge    bool
	age      time.Duration // 3h, 2d, 1h30m
	isTime   bool
	from, to time.Time // 2026-01-02 is a day, [from, to); with a time of day an instant, from = to
}

func literalOf(t token) literal {
	l := literal{text: t.text, col: t.col, quoted: t.kind == quoted}
	if l.quoted {
		return l
	}
	// ParseFloat also reads "inf", "nan", hexadecimals and underscores; filters accept
	// only infinity.
	if n, err := strconv.ParseFloat(t.text, 64); err == nil && n == n && !strings.ContainsAny(t.text, "xX_") {
		l.isNumber, l.number = true, n
	}
	l.age, l.isAge = parseAge(t.text)
	l.from, l.to, l.isTime = parseTime(t.text)
	return l
}

// units of durations, longest names first where one begins with another.
var units = []struct {
	name string
	size time.Duration
}{
	{"ms", time.Millisecond},
	{"s", time.Second},
	{"m", time.Minute},
	{"h", time.Hour},
	{"d", 24 * time.Hour},
	{"w", 7 * 24 * time.Hour},
}

// parseAge reads a duration: numbers with units, 90s, 1h30m, 2d, 1.5h.
func parseAge(text string) (time.Duration, bool) {
	if text == "" {
		return 0, false
	}
	var sum float64 // nanoseconds
	for text != "" {
		digits := strings.IndexFunc(text, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
		if digits <= 0 {
			return 0, false
		}
		n, err := strconv.ParseFloat(text[:digits], 64)
		if err != nil {
			return 0, false
		}
		text = text[digits:]
		known := false
		for _, u := range units {
			if rest, ok := strings.CutPrefix(text, u.name); ok {
				text, known = rest, true
				sum += n * float64(u.size)
				break
			}
		}
		if !known {
			return 0, false
		}
	}
	const longest = 1 << 62 // nanoseconds, 146 years
	return time.Duration(sum), sum < longest
}

// parseTime reads a day, 2026-01-02, or an instant, 2026-01-02T15:04:05Z.
func parseTime(text string) (from, to time.Time, ok bool) {
	if t, err := time.Parse(time.DateOnly, text); err == nil {
		return t, t.AddDate(0, 0, 1), true
	}
	t, err := time.Parse(time.RFC3339, text)
	return t, t, err == nil
}

// ParseAge reads a duration as filters write it: 90s, 1h30m, 2d, 1.5h, 3w.
func ParseAge(text string) (time.Duration, bool) { return parseAge(text) }
