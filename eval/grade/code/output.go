package code

import (
	"errors"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// sameOutput is Strict on stdout: equal numbers of lines, equal numbers of tokens per line, all tokens
// equal. It ignores white space between tokens and at line ends, and blank lines at the beginning and end,
// as all published comparators do. Tokens are equal if their texts are. If the expected one has a fraction
// or an exponent, or a tolerance is declared, they are also equal as numbers, exactly or within the
// tolerance.
func sameOutput(got, want string, tolerance float64) bool {
	g, w := outputLines(got), outputLines(want)
	if len(g) != len(w) {
		return false
	}
	for i := range g {
		x, y := strings.Fields(g[i]), strings.Fields(w[i])
		if len(x) != len(y) {
			return false
		}
		for j := range x {
			if x[j] != y[j] && !sameNumber(x[j], y[j], tolerance) {
				return false
			}
		}
	}
	return true
}

// outputLines returns the lines without blank ones at the beginning and end.
func outputLines(s string) []string {
	s = strings.Trim(s, " \t\r\n")
	if s == "" {
		return nil
	}
	return strings.Split(s, "\n")
}

// sameNumber compares tokens as plain decimal numbers.
func sameNumber(got, want string, tolerance float64) bool {
	if tolerance == 0 && !strings.ContainsAny(want, ".eE") {
		return false
	}
	g, ok := decimal(got)
	w, ok2 := decimal(want)
	if !ok || !ok2 {
		return false
	}
	if g.Cmp(w) == 0 {
		return true
	}
	if !strings.ContainsAny(got+want, ".eE") {
		return false // a count is exact
	}
	x, _ := g.Float64()
	y, _ := w.Float64()
	return tolerance > 0 && within(x, y, tolerance)
}

// within reports whether got is near want, absolutely or relatively.
func within(got, want, tolerance float64) bool {
	return math.Abs(got-want) <= tolerance*max(1, math.Abs(want))
}

// longestNumber is the length limit, in bytes, for comparing by value; largestExponent bounds the cost of
// numbers like 1e999999999.
const (
	longestNumber   = 100_000
	largestExponent = 5000
)

// decimal reads [+-]digits[.digits][e[+-]digits] exactly.
func decimal(s string) (*big.Rat, bool) {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(s), "e")
	digits := strings.TrimLeft(strings.TrimLeft(exponent, "+-"), "0")
	switch {
	case len(s) > longestNumber || strings.Trim(s, "0123456789+-.eE") != "" || !strings.ContainsAny(mantissa,
		"0123456789"):
		return nil, false
	case len(digits) > 4 || len(digits) == 4 && digits > "5000":
		return nil, false
	}
	return new(big.Rat).SetString(s)
}

// Upstream reports whether the published comparator of a family accepts an output, mistakes included
// (code_utils of the FlowRL release, commit decbc57b).
func (f Family) Upstream(got, want string) bool {
	switch f {
	case LiveCodeBench:
		return liveCodeBenchSame(got, want)
	case Codeforces:
		return pythonStrip(got) == pythonStrip(want) || looselySame(got, want)
	case TACO:
		return tacoSame(got, want) || looselySame(got, want)
	}
	return sameOutput(got, want, 0)
}

// pythonStrip is str.strip().
func pythonStrip(s string) string { return strings.TrimFunc(s, pythonSpace) }

// pythonFields is str.split().
func pythonFields(s string) []string { return strings.FieldsFunc(s, pythonSpace) }

// pythonSpace is str.isspace: Unicode white space and the four ASCII separators.
func pythonSpace(r rune) bool {
	return r >= 0x1c && r <= 0x1f ||
		strings.ContainsRune("\t\n\v\f\r \u0085\u00a0\u1680\u2028\u2029\u202f\u205f\u3000", r) ||
		r >= 0x2000 && r <= 0x200a
}

// liveCodeBenchSame compares line by line: equal text or equal exact decimals.
func liveCodeBenchSame(got, want string) bool {
	g, w := strings.Split(pythonStrip(got), "\n"), strings.Split(pythonStrip(want), "\n")
	if len(g) != len(w) {
		return false
	}
	for i := range g {
		a, b := pythonStrip(g[i]), pythonStrip(w[i])
		if a == b {
			continue
		}
		x, y := pythonFields(a), pythonFields(b)
		if len(x) != len(y) {
			return false
		}
		for j := range x {
			p, ok := pythonDecimal(x[j])
			q, ok2 := pythonDecimal(y[j])
			if !ok || !ok2 || p != q {
				return false
			}
		}
	}
	return true
}

// zero reports whether s is a decimal zero, whatever its exponent.
func zero(s string) bool {
	mantissa, exponent, scaled := strings.Cut(s, "e")
	if !strings.Contains(mantissa, "0") || strings.Trim(mantissa, "0.+-") != "" {
		return false
	}
	if scaled {
		digits := strings.TrimPrefix(strings.TrimPrefix(exponent, "-"), "+")
		if digits == "" || strings.Trim(digits, "0123456789") != "" || strings.HasPrefix(exponent, "-+") {
			return false
		}
	}
	_, ok := decimal(mantissa)
	return ok
}

// pythonDecimal reads what decimal.Decimal reads and returns a text that is the same for equal numbers. It
// rejects nan, which equals nothing.
func pythonDecimal(s string) (string, bool) {
	s = strings.ToLower(strings.ReplaceAll(asciiDigits(pythonStrip(s)), "_", ""))
	switch s {
	case "inf", "infinity", "+inf", "+infinity":
		return "inf", true
	case "-inf", "-infinity":
		return "-inf", true
	}
	if zero(s) {
		return "0", true
	}
	r, ok := decimal(s)
	if !ok {
		return "", false
	}
	return r.RatString(), true
}

// asciiDigits writes the decimal digits of other scripts as 0 to 9. Their ranges begin with a zero.
func asciiDigits(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 || !unicode.IsDigit(r) {
			return r
		}
		for _, d := range unicode.Nd.R16 {
			if rune(d.Lo) <= r && r <= rune(d.Hi) {
				return '0' + (r-rune(d.Lo))%10
			}
		}
		for _, d := range unicode.Nd.R32 {
			if rune(d.Lo) <= r && r <= rune(d.Hi) {
				return '0' + (r-rune(d.Lo))%10
			}
		}
		return r
	}, s)
}

// publishedOutput is the output as the published comparator of a family gets it: TACO's and Codeforces' read pipes as
// text, and TACO's drops line ends at the end.
func (f Family) publishedOutput(s string) string {
	if f == TACO || f == Codeforces {
		s = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s)
	}
	if f == TACO {
		s = strings.TrimRight(s, "\n")
	}
	return s
}

// pythonFloat reads what float() reads.
func pythonFloat(s string) (float64, bool) {
	s = strings.ToLower(asciiDigits(pythonStrip(s)))
	if strings.HasPrefix(s, "_") || strings.HasSuffix(s, "_") || strings.Contains(s, "__") {
		return 0, false
	}
	s = strings.ReplaceAll(s, "_", "")
	sign := 1.0
	unsigned := s
	if s != "" && (s[0] == '-' || s[0] == '+') {
		unsigned = s[1:]
		if s[0] == '-' {
			sign = -1
		}
	}
	switch unsigned {
	case "inf", "infinity":
		return math.Inf(int(sign)), true
	case "nan":
		return math.NaN(), true
	}
	if len(s) > longestNumber || strings.Trim(s, "0123456789+-.e") != "" {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil || errors.Is(err, strconv.ErrRange) // 1e400 is inf
}

// isClose is numpy.isclose with its defaults.
func isClose(a, b float64) bool {
	if math.IsInf(a, 0) || math.IsInf(b, 0) {
		return a == b
	}
	return math.Abs(a-b) <= 1e-8+1e-5*math.Abs(b)
}

// tacoSame accepts equal stripped texts, the whole as one number, or the same number of tokens on each line.
// Two tokens differ only if both are numbers and not close; a token that is not a number equals any other:
// NO equals YES.
func tacoSame(got, want string) bool {
	got, want = pythonStrip(got), pythonStrip(want)
	if got == want {
		return true
	}
	x, ok := pythonFloat(got)
	y, ok2 := pythonFloat(want)
	if ok && ok2 {
		return isClose(x, y)
	}
	lines := func(s string) (list []string) {
		for line := range strings.SplitSeq(s, "\n") {
			if line = pythonStrip(line); line != "" {
				list = append(list, line)
			}
		}
		return list
	}
	g, w := lines(got), lines(want)
	if len(g) != len(w) {
		return false
	}
	for i := range g {
		a, b := pythonFields(g[i]), pythonFields(w[i])
		if len(a) != len(b) {
			return false
		}
		for j := range a {
			x, ok := pythonFloat(a[j])
			y, ok2 := pythonFloat(b[j])
			if a[j] != b[j] && ok && ok2 && !isClose(x, y) {
				return false
			}
		}
	}
	return true
}

// looselySame is the fallback of both. It was written for lists but gets a text, so it takes the output
// apart into characters. It accepts if each is a number close to an expected line, or if the output's
// tokens as sets of characters equal the expected lines as sets of tokens, both as sets, as texts or as
// numbers to three decimals.
func looselySame(got, want string) bool {
	var lines []string
	for line := range strings.SplitSeq(want, "\n") {
		if line != "" {
			lines = append(lines, pythonStrip(line))
		}
	}
	chars := strings.Split(got, "")
	close := len(chars) == len(lines)
	for i := 0; close && i < len(chars); i++ {
		x, ok := pythonFloat(chars[i])
		y, ok2 := pythonFloat(lines[i])
		close = ok && ok2 && isClose(x, y)
	}
	if close {
		return true
	}
	var g, w [][]string
	for _, token := range pythonFields(got) {
		g = append(g, strings.Split(token, ""))
	}
	for _, line := range lines {
		w = append(w, pythonFields(line))
	}
	if setOfSets(g) == setOfSets(w) {
		return true
	}
	x, ok := rounded(g)
	y, ok2 := rounded(w)
	return ok && ok2 && setOfSets(x) == setOfSets(y)
}

// setOfSets returns a text that is the same for equal sets of sets. Tokens contain no white space.
func setOfSets(sets [][]string) string {
	var list []string
	for _, s := range sets {
		s = slices.Clone(s)
		slices.Sort(s)
		list = append(list, strings.Join(slices.Compact(s), " "))
	}
	slices.Sort(list)
	return strings.Join(slices.Compact(list), "\n") + "\n" + map[bool]string{true: "none"}[len(list) == 0]
}

// rounded rounds each number to three decimals; ok is false if one is not a number, or is nan, which equals
// nothing.
func rounded(sets [][]string) (_ [][]string, ok bool) {
	out := make([][]string, len(sets))
	for i, s := range sets {
		for _, token := range s {
			f, ok := pythonFloat(token)
			if !ok || math.IsNaN(f) {
				return nil, false
			}
			out[i] = append(out[i], roundedText(f))
		}
	}
	return out, true
}

// roundedText is round(f, 3), half to even of the exact binary value; 0 has no sign.
func roundedText(f float64) string {
	text := strconv.FormatFloat(f, 'f', 3, 64)
	if strings.Trim(text, "-0.") == "" {
		return "0.000"
	}
	return text
}
