package chat

import (
	"fmt"
	"strings"
	"time"
)

// DefaultDate is the default date of strftime_now: prompts must not depend on the day of
// the run.
func DefaultDate() time.Time { return time.Date(2024, time.July, 26, 0, 0, 0, 0, time.UTC) }

// strftime formats t with English names, like C in the locale C, with glibc's flags - _ 0 ^
// #. Unknown directives stay unchanged.
func strftime(st *state, t time.Time, format string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b.WriteByte(format[i])
			continue
		}
		start := i
		var flag byte
		upper := false
		for i++; i < len(format) && strings.IndexByte("-_0^#", format[i]) >= 0; i++ {
			if format[i] == '^' || format[i] == '#' {
				upper = true
			} else {
				flag = format[i]
			}
		}
		if i >= len(format) {
			b.WriteString(format[start:])
			break
		}
		text, ok := directiveOf(t, format[i], flag)
		if !ok {
			text = format[start : i+1]
		}
		if upper {
			text = strings.ToUpper(text)
		}
		b.WriteString(text)
		if b.Len() > maxOutput {
			break
		}
	}
	return b.String(), st.chargeText(b.Len())
}

// number writes n with width digits; the flag changes or drops the padding.
func paddedNumber(n, width int, pad, flag byte) string {
	switch flag {
	case '-':
		return fmt.Sprint(n)
	case '_':
		pad = ' '
	case '0':
		pad = '0'
	}
	if pad == ' ' {
		return fmt.Sprintf("%*d", width, n)
	}
	return fmt.Sprintf("%0*d", width, n)
}

// compound maps directives to their expansions.
var compound = map[byte]string{
	'c': "%a %b %e %H:%M:%S %Y", 'D': "%m/%d/%y", 'F': "%Y-%m-%d", 'r': "%I:%M:%S %p",
	'R': "%H:%M", 'T': "%H:%M:%S", 'x': "%m/%d/%y", 'X': "%H:%M:%S",
}

func directiveOf(t time.Time, c, flag byte) (string, bool) {
	num := func(n, width int) (string, bool) { return paddedNumber(n, width, '0', flag), true }
	if long, ok := compound[c]; ok {
		var b strings.Builder
		for i := 0; i < len(long); i++ {
			if long[i] != '%' {
				b.WriteByte(long[i])
				continue
			}
			i++
			s, _ := directiveOf(t, long[i], 0)
			b.WriteString(s)
		}
		return b.String(), true
	}
	isoYear, isoWeek := t.ISOWeek()
	hour12 := (t.Hour()+11)%12 + 1
	switch c {
	case 'a':
		return t.Weekday().String()[:3], true
	case 'A':
		return t.Weekday().String(), true
	case 'b', 'h':
		return t.Month().String()[:3], true
	case 'B':
		return t.Month().String(), true
	case 'C':
		return num(t.Year()/100, 2)
	case 'd':
		return num(t.Day(), 2)
	case 'e':
		return paddedNumber(t.Day(), 2, ' ', flag), true
	case 'f':
		return fmt.Sprintf("%06d", t.Nanosecond()/1000), true
	case 'g':
		return num(isoYear%100, 2)
	case 'G':
		return num(isoYear, 4)
	case 'H':
		return num(t.Hour(), 2)
	case 'I':
		return num(hour12, 2)
	case 'j':
		return num(t.YearDay(), 3)
	case 'k':
		return paddedNumber(t.Hour(), 2, ' ', flag), true
	case 'l':
		return paddedNumber(hour12, 2, ' ', flag), true
	case 'm':
		return num(int(t.Month()), 2)
	case 'M':
		return num(t.Minute(), 2)
	case 'n':
		return "\n", true
	case 'p', 'P':
		half := "AM"
		if t.Hour() >= 12 {
			half = "PM"
		}
		if c == 'P' {
			half = strings.ToLower(half)
		}
		return half, true
	case 's':
		return fmt.Sprint(t.Unix()), true
	case 'S':
		return num(t.Second(), 2)
	case 't':
		return "\t", true
	case 'u':
		return num((int(t.Weekday())+6)%7+1, 1)
	case 'U':
		return num((t.YearDay()+6-int(t.Weekday()))/7, 2)
	case 'V':
		return num(isoWeek, 2)
	case 'w':
		return num(int(t.Weekday()), 1)
	case 'W':
		return num((t.YearDay()+6-(int(t.Weekday())+6)%7)/7, 2)
	case 'y':
		return num(t.Year()%100, 2)
	case 'Y':
		return num(t.Year(), 1)
	case 'z', 'Z':
		return "", true // the date has no zone, as datetime.now() has none
	case '%':
		return "%", true
	}
	return "", false
}
