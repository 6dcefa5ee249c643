package chat

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	minInt = math.MinInt
	maxInt = math.MaxInt
)

// fromBig returns i as an Int if it fits.
func fromBig(i *big.Int) Value {
	if i.IsInt64() {
		return Int(i.Int64())
	}
	return bigInt{i}
}

// asBig returns an integer or a bool as a big integer, which must not be changed.
func asBig(v Value) (*big.Int, bool) {
	switch v := v.(type) {
	case Bool:
		if v {
			return big.NewInt(1), true
		}
		return new(big.Int), true
	case Int:
		return big.NewInt(int64(v)), true
	case bigInt:
		return v.i, true
	}
	return nil, false
}

// asInt64 returns an integer or a bool that fits into 64 bits.
func asInt64(v Value) (int64, bool) {
	switch v := v.(type) {
	case Bool:
		if v {
			return 1, true
		}
		return 0, true
	case Int:
		return int64(v), true
	}
	return 0, false
}

func isNumber(v Value) bool {
	switch v.(type) {
	case Bool, Int, bigInt, Float:
		return true
	}
	return false
}

// toFloat returns a number as a double; it returns an error for integers that are too
// large.
func toFloat(v Value) (float64, error) {
	switch v := v.(type) {
	case Float:
		return v.F, nil
	case bigInt:
		f, _ := new(big.Float).SetInt(v.i).Float64()
		if math.IsInf(f, 0) {
			return 0, overflowErr("int too large to convert to float")
		}
		return f, nil
	}
	i, _ := asInt64(v)
	return float64(i), nil
}

// compareNumbers returns the sign of a − b, exactly; ok is false if one is NaN.
func compareNumbers(a, b Value) (sign int, ok bool) {
	if x, okx := asInt64(a); okx {
		if y, oky := asInt64(b); oky {
			switch {
			case x < y:
				return -1, true
			case x > y:
				return 1, true
			}
			return 0, true
		}
	}
	if i, ok := asBig(a); ok {
		if j, ok := asBig(b); ok {
			return i.Cmp(j), true
		}
	}
	fa, isA := a.(Float)
	fb, isB := b.(Float)
	if isA && math.IsNaN(fa.F) || isB && math.IsNaN(fb.F) {
		return 0, false
	}
	return exact(a).Cmp(exact(b)), true
}

// exact returns a non-NaN number without rounding.
func exact(v Value) *big.Float {
	if f, ok := v.(Float); ok {
		return new(big.Float).SetFloat64(f.F)
	}
	i, _ := asBig(v)
	return new(big.Float).SetInt(i)
}

// formatFloat is Python's repr of a double.
func formatFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	s := strconv.FormatFloat(f, 'e', -1, 64)
	i := strings.IndexByte(s, 'e')
	exp, _ := strconv.Atoi(s[i+1:])
	if exp < -4 || exp >= 16 {
		return s
	}
	s = strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// formatInt is Python's str of an integer; it returns an error above maxDigits digits.
func formatInt(i *big.Int) (string, error) {
	if i.BitLen() > maxDigits*10/3+16 {
		return "", valueErr("the integer has more than %d digits", maxDigits)
	}
	s := i.String()
	if len(strings.TrimPrefix(s, "-")) > maxDigits {
		return "", valueErr("the integer has more than %d digits", maxDigits)
	}
	return s, nil
}

// parseInt is Python's int(s, base).
func parseInt(s string, base int) (*big.Int, error) {
	bad := valueErr("'%.60s' is not an integer of base %d", s, base)
	if base != 0 && (base < 2 || base > 36) {
		return nil, valueErr("the base of an integer must be 0 or from 2 to 36")
	}
	text := asciiDigits(strings.TrimFunc(s, isSpace))
	neg := strings.HasPrefix(text, "-")
	if neg || strings.HasPrefix(text, "+") {
		text = text[1:]
	}
	prefixed := false
	if len(text) > 2 && text[0] == '0' {
		b := map[byte]int{'x': 16, 'o': 8, 'b': 2}[text[1]|0x20]
		if b != 0 && (base == 0 || base == b) {
			base, text, prefixed = b, text[2:], true
		}
	}
	if base == 0 {
		base = 10
		if len(text) > 1 && text[0] == '0' && strings.Trim(text, "0_") != "" {
			return nil, bad
		}
	}
	if prefixed {
		text = strings.TrimPrefix(text, "_")
	}
	digits := strings.ReplaceAll(text, "_", "")
	if digits == "" || text[0] == '_' || text[len(text)-1] == '_' || strings.Contains(text, "__") ||
		len(digits) > maxDigits {
		return nil, bad
	}
	for _, c := range []byte(digits) {
		if !isDigit(c) && (c|0x20 < 'a' || c|0x20 > 'z') {
			return nil, bad
		}
	}
	i, ok := new(big.Int).SetString(digits, base)
	if !ok {
		return nil, bad
	}
	if neg {
		i.Neg(i)
	}
	return i, nil
}

// parseFloat is Python's float(s).
func parseFloat(s string) (float64, error) {
	bad := valueErr("'%.60s' is not a number", s)
	text := strings.ToLower(asciiDigits(strings.TrimFunc(s, isSpace)))
	switch strings.TrimLeft(text, "+-") {
	case "inf", "infinity", "nan":
		f, err := strconv.ParseFloat(text, 64)
		if strings.HasSuffix(text, "nan") && len(text) <= 4 {
			return math.NaN(), nil
		}
		if err != nil {
			return 0, bad
		}
		return f, nil
	}
	for i := range len(text) {
		c := text[i]
		if c == '_' && (i == 0 || i == len(text)-1 || !isDigit(text[i-1]) || !isDigit(text[i+1])) {
			return 0, bad
		}
		if !isDigit(c) && !strings.ContainsRune("+-.e_", rune(c)) {
			return 0, bad
		}
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
	if err != nil && !math.IsInf(f, 0) {
		return 0, bad
	}
	return f, nil
}

// asciiDigits replaces the decimal digits of other scripts, which Python also accepts.
func asciiDigits(s string) string {
	return strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf || !unicode.IsDigit(r) {
			return r
		}
		for _, t := range unicode.Nd.R16 {
			if rune(t.Lo) <= r && r <= rune(t.Hi) {
				return '0' + (r-rune(t.Lo))%10
			}
		}
		for _, t := range unicode.Nd.R32 {
			if rune(t.Lo) <= r && r <= rune(t.Hi) {
				return '0' + (r-rune(t.Lo))%10
			}
		}
		return r
	}, s)
}
