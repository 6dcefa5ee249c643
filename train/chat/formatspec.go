package chat

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// formatSpec is a parsed format specification of str.format:
// [[fill]align][sign][z][#][0][width][grouping][.precision][type].
type formatSpec struct {
	fill      string
	align     byte // 0 if not given
	sign      byte
	noMinus   bool // z: a negative zero loses its sign
	alternate bool
	width     int
	grouping  byte
	precision int // -1 if not given
	kind      byte
}

func parseSpec(s string) (formatSpec, error) {
	f := formatSpec{fill: " ", precision: -1}
	bad := valueErr("the format specifier '%.40s' is not valid", s)
	_, n := utf8.DecodeRuneInString(s)
	if len(s) > n && strings.IndexByte("<>=^", s[n]) >= 0 {
		f.fill, f.align, s = s[:n], s[n], s[n+1:]
	} else if s != "" && strings.IndexByte("<>=^", s[0]) >= 0 {
		f.align, s = s[0], s[1:]
	}
	if s != "" && strings.IndexByte("+- ", s[0]) >= 0 {
		f.sign, s = s[0], s[1:]
	}
	if s != "" && s[0] == 'z' {
		f.noMinus, s = true, s[1:]
	}
	if s != "" && s[0] == '#' {
		f.alternate, s = true, s[1:]
	}
	if s != "" && s[0] == '0' {
		if f.align == 0 {
			f.fill, f.align = "0", '='
		}
		s = s[1:]
	}
	var ok bool
	if f.width, s, ok = leadingInt(s, 0); !ok {
		return f, bad
	}
	if s != "" && (s[0] == ',' || s[0] == '_') {
		f.grouping, s = s[0], s[1:]
	}
	if s != "" && s[0] == '.' {
		if f.precision, s, ok = leadingInt(s[1:], -1); !ok || f.precision < 0 {
			return f, bad
		}
	}
	if len(s) > 1 {
		return f, bad
	}
	if s != "" {
		f.kind = s[0]
	}
	return f, nil
}

// leadingInt reads leading digits of s; ok is false beyond maxOutput.
func leadingInt(s string, none int) (n int, rest string, ok bool) {
	i := 0
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	if i == 0 {
		return none, s, true
	}
	n, err := strconv.Atoi(s[:i])
	return n, s[i:], err == nil && n <= maxOutput
}

// formatValue is Python's format(v, spec).
func (st *state) formatValue(v Value, spec string) (string, error) {
	if spec == "" {
		return st.str(v)
	}
	f, err := parseSpec(spec)
	if err != nil && v.typeName() != "str" && !isNumber(v) {
		err = typeErr("unsupported format string for a %s", v.typeName())
	}
	if err != nil {
		return "", err
	}
	if err := st.chargeText(f.width + f.precision + 1); err != nil {
		return "", err
	}
	switch v := v.(type) {
	case Str:
		return f.text(st, string(v))
	case Bool, Int, bigInt:
		if f.kind != 0 && strings.IndexByte("eEfFgG%", f.kind) >= 0 {
			x, err := toFloat(v)
			if err != nil {
				return "", err
			}
			return f.float(st, x)
		}
		i, _ := asBig(v)
		return f.integer(st, i)
	case Float:
		return f.float(st, v.F)
	}
	return "", typeErr("unsupported format string for a %s", v.typeName())
}

func (f formatSpec) text(st *state, s string) (string, error) {
	if f.kind != 0 && f.kind != 's' || f.sign != 0 || f.noMinus || f.alternate || f.grouping != 0 || f.align == '=' &&
		f.fill != "0" {
		return "", valueErr("the format specifier does not suit a string")
	}
	if f.align == '=' { // from a leading 0
		f.align = '<'
	}
	t, err := st.runesOf(s)
	if err != nil {
		return "", err
	}
	if f.precision >= 0 && f.precision < t.len() {
		s = t.cut(0, f.precision)
	}
	return f.aligned(s, '<'), nil
}

// aligned fills s up to the width; align is the default alignment.
func (f formatSpec) aligned(s string, align byte) string {
	n := f.width - utf8.RuneCountInString(s)
	if n <= 0 {
		return s
	}
	if f.align != 0 {
		align = f.align
	}
	left := 0
	switch align {
	case '>':
		left = n
	case '^':
		left = n / 2
	}
	return strings.Repeat(f.fill, left) + s + strings.Repeat(f.fill, n-left)
}

// number joins sign, prefix, digits and fill.
func (f formatSpec) number(neg bool, prefix, digits string, group int) string {
	sign := ""
	switch {
	case neg:
		sign = "-"
	case f.sign == '+' || f.sign == ' ':
		sign = string(f.sign)
	}
	head := sign + prefix
	whole, rest := digits, ""
	for i := range len(digits) {
		if c := digits[i]; group == 3 && !isDigit(c) {
			whole, rest = digits[:i], digits[i:]
			break
		}
	}
	if f.grouping != 0 {
		least := 0
		if f.align == '=' && f.fill == "0" {
			least = f.width - len(head) - len(rest)
		}
		whole = groupDigits(whole, f.grouping, group, least)
	}
	body := whole + rest
	if f.align == '=' {
		if n := f.width - len(head) - len(body); n > 0 {
			body = strings.Repeat(f.fill, n) + body
		}
		return head + body
	}
	return f.aligned(head+body, '>')
}

// groupDigits separates digits into groups; leading zeros fill up to least.
func groupDigits(s string, sep byte, group, least int) string {
	var out []byte // backwards
	for i, n := len(s)-1, 0; i >= 0 || len(out) < least; i-- {
		if n == group {
			out = append(out, sep)
			n = 0
		}
		c := byte('0')
		if i >= 0 {
			c = s[i]
		}
		out = append(out, c)
		n++
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return string(out)
}

func (f formatSpec) integer(st *state, i *big.Int) (string, error) {
	if f.precision >= 0 || f.noMinus {
		return "", valueErr("a precision or z does not suit an integer")
	}
	base, group, prefix := 10, 3, ""
	switch f.kind {
	case 0, 'd', 'n':
	case 'x', 'X':
		base, group, prefix = 16, 4, "0"+string(f.kind)
	case 'o':
		base, group, prefix = 8, 4, "0o"
	case 'b':
		base, group, prefix = 2, 4, "0b"
	case 'c':
		if f.sign != 0 || f.alternate || f.grouping != 0 || !i.IsInt64() || i.Int64() < 0 ||
			i.Int64() > utf8.MaxRune {
			return "", overflowErr("the integer is not a character")
		}
		return f.aligned(string(rune(i.Int64())), '<'), nil
	default:
		return "", valueErr("the format code '%c' does not suit an integer", f.kind)
	}
	if f.grouping == ',' && base != 10 || f.grouping != 0 && f.kind == 'n' {
		return "", valueErr("the grouping does not suit the format code")
	}
	if !f.alternate {
		prefix = ""
	}
	digits := new(big.Int).Abs(i).Text(base)
	if base == 10 {
		text, err := formatInt(i)
		if err != nil {
			return "", err
		}
		digits = strings.TrimPrefix(text, "-")
	}
	if f.kind == 'X' {
		digits = strings.ToUpper(digits)
	}
	return f.number(i.Sign() < 0, prefix, digits, group), st.chargeText(len(digits))
}

func (f formatSpec) float(st *state, x float64) (string, error) {
	if f.kind != 0 && strings.IndexByte("eEfFgGn%", f.kind) < 0 {
		return "", valueErr("the format code '%c' does not suit a float", f.kind)
	}
	if f.grouping != 0 && f.kind == 'n' {
		return "", valueErr("the grouping does not suit the format code")
	}
	if err := st.chargeText(f.precision + 400); err != nil {
		return "", err
	}
	kind := f.kind
	if kind == 0 && f.precision < 0 {
		digits := formatFloat(math.Abs(x))
		return f.number(f.minus(x, digits), "", digits, 3), nil
	}
	suffix := ""
	if kind == '%' {
		x, kind, suffix = x*100, 'f', "%"
	}
	digits := cFloat(math.Abs(x), kind, f.precision, f.alternate)
	return f.number(f.minus(x, digits), "", digits+suffix, 3), nil
}

// minus reports whether x, written as digits, has a leading minus.
func (f formatSpec) minus(x float64, digits string) bool {
	if math.IsNaN(x) || f.noMinus && strings.Trim(digits, "0.e+-") == "" {
		return false
	}
	return math.Signbit(x)
}

// cFloat formats a non-negative number like C's printf with e, f, g, and like Python with
// none (0) and n. A precision of -1 means 6.
func cFloat(x float64, kind byte, precision int, alternate bool) string {
	upper := kind == 'E' || kind == 'F' || kind == 'G'
	if precision < 0 {
		precision = 6
	}
	var s string
	switch {
	case math.IsNaN(x):
		s = "nan"
	case math.IsInf(x, 0):
		s = "inf"
	case kind == 'e' || kind == 'E':
		s = strconv.FormatFloat(x, 'e', precision, 64)
		if alternate && precision == 0 {
			s = strings.Replace(s, "e", ".e", 1)
		}
	case kind == 'f' || kind == 'F':
		s = strconv.FormatFloat(x, 'f', precision, 64)
		if alternate && precision == 0 {
			s += "."
		}
	default:
		s = general(x, max(precision, 1), alternate, kind == 0)
	}
	if upper {
		s = strings.ToUpper(s)
	}
	return s
}

// general is the format g: the shorter of e and f with precision digits. point is Python's
// variant that always shows a fraction in the f form.
func general(x float64, precision int, alternate, point bool) string {
	s := strconv.FormatFloat(x, 'e', precision-1, 64)
	i := strings.IndexByte(s, 'e')
	exp, _ := strconv.Atoi(s[i+1:])
	mantissa, tail := s[:i], s[i:]
	limit := precision
	if point {
		limit-- // format(123456.0, '.6') is 1.23456e+05
	}
	if exp >= -4 && exp < limit {
		mantissa, tail = strconv.FormatFloat(x, 'f', precision-1-exp, 64), ""
	}
	if alternate {
		if !strings.Contains(mantissa, ".") {
			mantissa += "."
		}
		return mantissa + tail
	}
	if strings.Contains(mantissa, ".") {
		mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
	}
	if point && tail == "" && !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	return mantissa + tail
}
