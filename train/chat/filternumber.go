package chat

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode"
)

// isWordRune is \w of Python's regular expressions.
func isWordRune(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r)
}

// truncate is Python's int(f).
func truncate(f float64) (*big.Int, error) {
	if math.IsNaN(f) {
		return nil, valueErr("cannot convert float NaN to integer")
	}
	if math.IsInf(f, 0) {
		return nil, overflowErr("cannot convert float infinity to integer")
	}
	i, _ := new(big.Float).SetFloat64(f).Int(nil)
	return i, nil
}

// intFilter returns int(value), else int(float(value)), else the default.
func intFilter(st *state, v Value, args []Value) (Value, error) {
	if s, ok := textOf(v); ok {
		if err := st.chargeSlow(min(len(s), maxDigits) + len(s)/textPerStep); err != nil {
			return nil, err
		}
	}
	i, err := toInt(v, args[1])
	if err == nil {
		return fromBig(i), nil
	}
	if !isKind(err, kindType, kindValue) {
		return nil, err
	}
	f, err := toNumber(v)
	if err == nil {
		i, err = truncate(f)
	}
	switch {
	case err == nil:
		return fromBig(i), nil
	case isKind(err, kindType, kindValue, kindOverflow):
		return optional(args[0], Int(0)), nil
	}
	return nil, err
}

func toInt(v, base Value) (*big.Int, error) {
	switch x := v.(type) {
	case Str, markup:
		s, _ := textOf(v)
		b, err := indexOf(optional(base, Int(10)))
		if err != nil {
			return nil, err
		}
		return parseInt(s, b)
	case Float:
		return truncate(x.F)
	case *undefined:
		return nil, undefErr(x)
	}
	if i, ok := asBig(v); ok {
		return i, nil
	}
	return nil, typeErr("'%s' is not a number", v.typeName())
}

// toNumber is Python's float(v).
func toNumber(v Value) (float64, error) {
	if s, ok := textOf(v); ok {
		return parseFloat(s)
	}
	if u, ok := v.(*undefined); ok {
		return 0, undefErr(u)
	}
	if !isNumber(v) {
		return 0, typeErr("'%s' is not a number", v.typeName())
	}
	return toFloat(v)
}

func floatFilter(_ *state, v Value, args []Value) (Value, error) {
	f, err := toNumber(v)
	if isKind(err, kindType, kindValue) {
		return optional(args[0], newFloat(0)), nil
	}
	return newFloat(f), err
}

func roundFilter(st *state, v Value, args []Value) (Value, error) {
	how, _ := textOf(optional(args[1], Str("common")))
	if u, ok := v.(*undefined); ok {
		return nil, undefErr(u)
	}
	if !isNumber(v) {
		return nil, typeErr("round needs a number, not %s", v.typeName())
	}
	if _, none := args[0].(None); none && how == "common" {
		f, err := toFloat(v)
		if err != nil {
			return nil, err
		}
		i, err := truncate(math.RoundToEven(f))
		if err != nil {
			return nil, err
		}
		return fromBig(i), nil
	}
	digits, err := indexOf(optional(args[0], Int(0)))
	if err != nil {
		return nil, err
	}
	switch how {
	case "common":
		if f, ok := v.(Float); ok {
			return roundFloat(f.F, digits)
		}
		i, _ := asBig(v)
		return roundInt(i, digits)
	case "ceil", "floor":
		return st.roundTo(v, digits, how)
	}
	return nil, valueErr("round: the method must be common, ceil or floor")
}

// roundFloat is Python's round(x, digits): the nearest decimal, exact ties to even.
func roundFloat(x float64, digits int) (Value, error) {
	switch {
	case math.IsNaN(x) || math.IsInf(x, 0) || digits > 323 || x == 0:
		return newFloat(x), nil
	case digits < -308:
		return newFloat(math.Copysign(0, x)), nil
	case digits >= 0:
		f, err := strconv.ParseFloat(strconv.FormatFloat(x, 'f', digits, 64), 64)
		if err != nil {
			return nil, overflowErr("the rounded value is too large for a float")
		}
		return newFloat(f), nil
	}
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(-digits)), nil)
	r := new(big.Rat).SetFloat64(x)
	i := nearest(r.Num(), new(big.Int).Mul(r.Denom(), unit))
	f, _ := new(big.Float).SetInt(i.Mul(i, unit)).Float64()
	if math.IsInf(f, 0) {
		return nil, overflowErr("the rounded value is too large for a float")
	}
	if f == 0 {
		f = math.Copysign(0, x)
	}
	return newFloat(f), nil
}

// nearest returns a/b rounded to an integer, ties to even; b is positive.
func nearest(a, b *big.Int) *big.Int {
	q, m := new(big.Int).DivMod(a, b, new(big.Int))
	c := m.Lsh(m, 1).Cmp(b)
	if c > 0 || c == 0 && q.Bit(0) == 1 {
		q.Add(q, big.NewInt(1))
	}
	return q
}

func roundInt(i *big.Int, digits int) (Value, error) {
	if digits >= 0 {
		return fromBig(i), nil
	}
	if -digits > maxDigits || digits == minInt {
		return Int(0), nil
	}
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(-digits)), nil)
	return fromBig(new(big.Int).Mul(nearest(i, unit), unit)), nil
}

// roundTo returns func(value * 10**digits) / 10**digits.
func (st *state) roundTo(v Value, digits int, how string) (Value, error) {
	if digits > maxDigits || digits < -maxDigits {
		return nil, overflowErr("round: the precision is out of range")
	}
	power, err := st.arithmetic("**", Int(10), Int(digits))
	if err != nil {
		return nil, err
	}
	scaled, err := st.arithmetic("*", v, power)
	if err != nil {
		return nil, err
	}
	if f, ok := scaled.(Float); ok {
		x := math.Floor(f.F)
		if how == "ceil" {
			x = math.Ceil(f.F)
		}
		i, err := truncate(x)
		if err != nil {
			return nil, err
		}
		scaled = fromBig(i)
	}
	return st.arithmetic("/", plain(scaled), power)
}

func filesizeFilter(_ *state, v Value, args []Value) (Value, error) {
	n, err := toNumber(v)
	if err != nil {
		return nil, err
	}
	base, units := 1000.0, []string{"kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"}
	if args[0] != nil && isTrue(args[0]) {
		base, units = 1024, []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"}
	}
	switch {
	case n == 1:
		return Str("1 Byte"), nil
	case n < base:
		i, err := truncate(n)
		return Str(fmt.Sprintf("%v Bytes", i)), err
	}
	unit := base * base
	for i, name := range units {
		if n < unit || i == len(units)-1 {
			return Str(fmt.Sprintf("%.1f %s", base*n/unit, name)), nil
		}
		unit *= base
	}
	return nil, nil
}

// urlQuote is urllib.parse.quote; query writes spaces as + and quotes / too.
func urlQuote(s string, query bool) string {
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', isDigit(c), strings.IndexByte("_.-~", c) >= 0,
			c == '/' && !query:
			b.WriteByte(c)
		case c == ' ' && query:
			b.WriteByte('+')
		default:
			b.WriteByte('%')
			b.WriteByte("0123456789ABCDEF"[c>>4])
			b.WriteByte("0123456789ABCDEF"[c&15])
		}
	}
	return b.String()
}

func urlencodeFilter(st *state, v Value) (Value, error) {
	next, err := st.iterate(v)
	if _, text := textOf(v); text || err != nil {
		s, err := st.str(v)
		if err != nil {
			return nil, err
		}
		return Str(urlQuote(s, false)), st.chargeText(3 * len(s))
	}
	if d, ok := v.(*Dict); ok {
		next = (&view{d, "dict_items"}).iterate()
	}
	var parts []string
	for {
		item, ok, err := next()
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		pair, err := st.unpack(item, 2)
		if err != nil {
			return nil, err
		}
		var kv [2]string
		for i, x := range pair {
			if kv[i], err = st.str(x); err == nil {
				err = st.chargeText(3 * len(kv[i]))
			}
			if err != nil {
				return nil, err
			}
		}
		parts = append(parts, urlQuote(kv[0], true)+"="+urlQuote(kv[1], true))
	}
	text, err := st.joinTexts(parts, "&")
	return Str(text), err
}
