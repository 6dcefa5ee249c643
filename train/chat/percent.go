package chat

import (
	"math"
	"math/big"
	"strings"
	"unicode/utf8"
)

// percentArgs hands out the values of a % formatting.
type percentArgs struct {
	values  []Value
	used    int
	mapping bool // leftover values are not an error
	whole   Value
}

func (p *percentArgs) next() (Value, error) {
	if p.used >= len(p.values) {
		return nil, typeErr("not enough arguments for the format string")
	}
	p.used++
	return p.values[p.used-1], nil
}

// percent returns format % v; like is the format string as a value.
func (st *state) percent(like Value, format string, v Value) (Value, error) {
	p := &percentArgs{values: []Value{v}, whole: v}
	switch v := v.(type) {
	case *tuple:
		p.values = v.items
	case Str, markup, None, Bool, Int, bigInt, Float:
	case *Dict, *List, *rangeValue, *undefined:
		p.mapping = true
	}
	var b strings.Builder
	for format != "" {
		i := strings.IndexByte(format, '%')
		if i < 0 {
			b.WriteString(format)
			break
		}
		b.WriteString(format[:i])
		var text string
		var err error
		if text, format, err = st.directive(format[i+1:], p, isMarkup(like)); err != nil {
			return nil, err
		}
		if err := st.chargeText(b.Len() + len(text)); err != nil {
			return nil, err
		}
		b.WriteString(text)
	}
	if p.used < len(p.values) && !p.mapping {
		return nil, typeErr("not all arguments converted in a string formatting")
	}
	return alike(like, b.String()), st.chargeText(b.Len())
}

// directive formats the directive after a %, and returns the rest of the format.
func (st *state) directive(s string, p *percentArgs, escape bool) (text, rest string, err error) {
	f := formatSpec{fill: " ", precision: -1}
	if strings.HasPrefix(s, "(") {
		if s, err = p.key(st, s); err != nil {
			return "", "", err
		}
	}
	zero := false
	for ; s != "" && strings.IndexByte("#0- +", s[0]) >= 0; s = s[1:] {
		switch s[0] {
		case '#':
			f.alternate = true
		case '0':
			zero = true
		case '-':
			f.align = '<'
		default:
			if f.sign != '+' {
				f.sign = s[0]
			}
		}
	}
	if f.width, s, err = p.number(s, 0); err != nil {
		return "", "", err
	}
	if f.width < 0 {
		f.width, f.align = -f.width, '<'
	}
	if strings.HasPrefix(s, ".") {
		if f.precision, s, err = p.number(s[1:], 0); err != nil {
			return "", "", err
		}
		f.precision = max(f.precision, 0)
	}
	s = strings.TrimLeft(s, "hlL")
	if s == "" {
		return "", "", valueErr("the format string ends inside of a directive")
	}
	if s[0] == '%' {
		return "%", s[1:], nil
	}
	if err := st.chargeText(f.width + f.precision + 1); err != nil {
		return "", "", err
	}
	v, err := p.next()
	if err != nil {
		return "", "", err
	}
	kind, size := utf8.DecodeRuneInString(s)
	text, err = st.convertPercent(f, kind, zero, v, escape)
	return text, s[size:], err
}

// key reads (name) and makes its value the next argument.
func (p *percentArgs) key(st *state, s string) (string, error) {
	level := 0
	for i := range len(s) {
		switch s[i] {
		case '(':
			level++
		case ')':
			level--
		}
		if level > 0 {
			continue
		}
		if !p.mapping {
			return "", typeErr("the format string needs a mapping")
		}
		v, err := st.element(p.whole, Str(s[1:i]))
		if err != nil {
			if isKind(err, kindLookup) {
				err = &pyError{kindLookup, "the format string refers to '" + s[1:i] + "', which is not given"}
			}
			return "", err
		}
		p.values, p.used = []Value{v}, 0
		return s[i+1:], nil
	}
	return "", valueErr("the format string has no end of a key")
}

// number reads a width or a precision: digits, or * for the next argument.
func (p *percentArgs) number(s string, none int) (int, string, error) {
	if strings.HasPrefix(s, "*") {
		v, err := p.next()
		if err != nil {
			return 0, "", err
		}
		n, err := indexOf(v)
		if err == nil && (n > maxOutput || n < -maxOutput) {
			err = limitErr("text longer than %d bytes", maxOutput)
		}
		return n, s[1:], err
	}
	n, rest, ok := leadingInt(s, none)
	if !ok {
		return 0, "", limitErr("text longer than %d bytes", maxOutput)
	}
	return n, rest, nil
}

func (st *state) convertPercent(f formatSpec, kind rune, zero bool, v Value, escape bool) (string, error) {
	switch kind {
	case 's', 'r', 'a':
		conv := &formatter{st: st}
		text, err := conv.convert(v, string(kind))
		if err != nil {
			return "", err
		}
		if escape && !(kind == 's' && isMarkup(v)) {
			text = escapeHTML(text)
		}
		if t, err := st.runesOf(text); err != nil {
			return "", err
		} else if f.precision >= 0 && f.precision < t.len() {
			text = t.cut(0, f.precision)
		}
		return f.aligned(text, '>'), nil
	case 'c':
		if s, ok := textOf(v); ok && utf8.RuneCountInString(s) == 1 {
			return f.aligned(s, '>'), nil
		}
		i, ok := asInt64(v)
		if !ok || i < 0 || i > utf8.MaxRune {
			return "", typeErr("%%c needs a character")
		}
		return f.aligned(string(rune(i)), '>'), nil
	}
	if u, ok := v.(*undefined); ok {
		return "", undefErr(u)
	}
	if zero && f.align == 0 {
		f.fill, f.align = "0", '='
	}
	switch kind {
	case 'd', 'i', 'u', 'x', 'X', 'o':
		i, err := percentInt(byte(kind), v)
		if err != nil {
			return "", err
		}
		return f.percentInteger(byte(kind), i)
	case 'e', 'E', 'f', 'F', 'g', 'G':
		if !isNumber(v) {
			return "", typeErr("%%%c needs a number, not %s", kind, v.typeName())
		}
		x, err := toFloat(v)
		if err != nil {
			return "", err
		}
		digits := cFloat(math.Abs(x), byte(kind), f.precision, f.alternate)
		return f.number(math.Signbit(x) && !math.IsNaN(x), "", digits, 3), nil
	}
	return "", valueErr("unsupported directive '%%%c' in a format string", kind)
}

func percentInt(kind byte, v Value) (*big.Int, error) {
	if i, ok := asBig(v); ok {
		return i, nil
	}
	f, ok := v.(Float)
	if !ok || kind == 'x' || kind == 'X' || kind == 'o' {
		return nil, typeErr("%%%c needs an integer, not %s", kind, v.typeName())
	}
	return truncate(f.F)
}

func (f formatSpec) percentInteger(kind byte, i *big.Int) (string, error) {
	base, prefix := 10, ""
	switch kind {
	case 'x', 'X':
		base, prefix = 16, "0"+string(kind)
	case 'o':
		base, prefix = 8, "0o"
	}
	digits := new(big.Int).Abs(i).Text(base)
	if base == 10 && len(digits) > maxDigits {
		return "", valueErr("the integer has more than %d digits", maxDigits)
	}
	if kind == 'X' {
		digits = strings.ToUpper(digits)
	}
	if n := f.precision - len(digits); n > 0 {
		digits = strings.Repeat("0", n) + digits
	}
	if !f.alternate {
		prefix = ""
	}
	return f.number(i.Sign() < 0, prefix, digits, 3), nil
}
