package form

import (
	"fmt"
	"math/big"
	"strings"
)

// bound is a bound of a number.
type bound struct {
	value  *big.Rat // nil: none
	strict bool     // the number is not the bound itself
}

// mostWhole is the largest integer of mostDigits digits.
func mostWhole() *big.Int {
	n := new(big.Int).Exp(big.NewInt(10), big.NewInt(mostDigits), nil)
	return n.Sub(n, big.NewInt(1))
}

// integers stands for the integers within bounds.
func integers(lo, hi bound) expr {
	least, most := new(big.Int).Neg(mostWhole()), mostWhole()
	if lo.value != nil {
		n := ceil(lo.value)
		if lo.strict && lo.value.IsInt() {
			n.Add(n, big.NewInt(1))
		}
		least = larger(least, n)
	}
	if hi.value != nil {
		n := ceil(new(big.Rat).Neg(hi.value))
		if hi.strict && hi.value.IsInt() {
			n.Add(n, big.NewInt(1))
		}
		most = smaller(most, n.Neg(n))
	}
	negative := naturals(larger(big.NewInt(1), new(big.Int).Neg(most)), new(big.Int).Neg(least))
	return alt(naturals(larger(new(big.Int), least), most), seq(text("-"), negative))
}

// ceil returns the least integer that is not below x.
func ceil(x *big.Rat) *big.Int {
	n, rest := new(big.Int).DivMod(x.Num(), x.Denom(), new(big.Int)) // rounds down
	if rest.Sign() > 0 {
		n.Add(n, big.NewInt(1))
	}
	return n
}

func larger(a, b *big.Int) *big.Int {
	if a.Cmp(b) < 0 {
		return b
	}
	return a
}

func smaller(a, b *big.Int) *big.Int {
	if a.Cmp(b) > 0 {
		return b
	}
	return a
}

// naturals stands for the integers from lo ≥ 0 to hi, without leading zeros.
func naturals(lo, hi *big.Int) expr {
	var list []expr
	for n := len(lo.String()); lo.Cmp(hi) <= 0; n++ {
		last := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil)
		next := new(big.Int).Set(last)
		last = smaller(last.Sub(last, big.NewInt(1)), hi)
		list = append(list, decimals(lo.String(), last.String()))
		lo = next
	}
	return alt(list...)
}

// decimals stands for the numbers from lo to hi, which have the same number of digits.
func decimals(lo, hi string) expr {
	n := len(lo)
	nines, zeros := strings.Repeat("9", n), strings.Repeat("0", n)
	switch {
	case n == 0:
		return empty
	case lo == zeros && hi == nines:
		return repeat(digit, n, n)
	case lo[0] == hi[0]:
		return seq(text(lo[:1]), decimals(lo[1:], hi[1:]))
	}
	first, last := int(lo[0]-'0'), int(hi[0]-'0')
	list := []expr{seq(text(lo[:1]), decimals(lo[1:], nines[1:])), seq(text(hi[:1]), decimals(zeros[1:], hi[1:]))}
	if first+1 < last {
		list = append(list, seq(digits(first+1, last-1), repeat(digit, n-1, n-1)))
	}
	return alt(list...)
}

// numbers stands for the numbers within bounds, without exponents. The error says which bound has too many digits.
func numbers(lo, hi bound) (expr, error) {
	limit := new(big.Rat).SetInt(new(big.Int).Add(mostWhole(), big.NewInt(1)))
	if lo.value == nil {
		lo = bound{new(big.Rat).Neg(limit), true}
	}
	if hi.value == nil {
		hi = bound{limit, true}
	}
	for _, b := range []bound{lo, hi} {
		n, exact := b.value.FloatPrec()
		if !exact || n > mostDigits || new(big.Rat).Abs(b.value).Cmp(limit) > 0 {
			return nil, fmt.Errorf("a bound has at most %d digits before its point and behind", mostDigits)
		}
	}
	if c := lo.value.Cmp(hi.value); c > 0 || c == 0 && (lo.strict || hi.strict) {
		return never, nil
	}
	zero := new(big.Rat)
	var list []expr
	if hi.value.Sign() >= 0 {
		from := lo
		if lo.value.Sign() < 0 {
			from = bound{zero, false}
		}
		list = append(list, positives(from, hi))
	}
	if lo.value.Sign() < 0 {
		from, to := bound{new(big.Rat).Neg(hi.value), hi.strict}, bound{new(big.Rat).Neg(lo.value), lo.strict}
		if hi.value.Sign() > 0 {
			from = bound{zero, false}
		}
		list = append(list, seq(text("-"), positives(from, to)))
	}
	return alt(list...), nil
}

// positives stands for the numbers within bounds that are not below 0.
func positives(lo, hi bound) expr {
	least, from := parts(lo)
	most, to := parts(hi)
	if least.Cmp(most) == 0 {
		return seq(text(least.String()), fraction(from, to, mostDigits))
	}
	one := big.NewInt(1)
	return alt(seq(text(least.String()), fraction(from, nil, mostDigits)),
		seq(naturals(new(big.Int).Add(least, one), new(big.Int).Sub(most, one)),
			optional(seq(text("."), repeat(digit, 1, mostDigits)))),
		seq(text(most.String()), fraction(nil, to, mostDigits)))
}

// edge is a bound of the digits behind a point.
type edge struct {
	digits string // without zeros at the end
	strict bool
}

// parts returns the digits before and behind the point of a bound.
func parts(b bound) (*big.Int, *edge) {
	whole, rest, _ := strings.Cut(b.value.FloatString(mostDigits), ".")
	n, _ := new(big.Int).SetString(whole, 10)
	return n, &edge{strings.TrimRight(rest, "0"), b.strict}
}

// after returns the bound of the digits behind d, and whether d may come. side is 1 for a lower bound and -1 for an
// upper one.
func (e *edge) after(d, side int) (rest *edge, ok bool) {
	if e == nil {
		return nil, true
	}
	own, behind := 0, ""
	if e.digits != "" {
		own, behind = int(e.digits[0]-'0'), e.digits[1:]
	}
	if d != own {
		return nil, side*(d-own) > 0
	}
	return &edge{behind, e.strict}, true
}

// fraction stands for a point and up to n digits within bounds, or nothing; nil: no bound.
func fraction(lo, hi *edge, n int) expr {
	return alt(stop(lo, hi), seq(text("."), behind(lo, hi, n, 1)))
}

// stop stands for no more digits.
func stop(lo, hi *edge) expr {
	if lo != nil && (lo.digits != "" || lo.strict) || hi != nil && hi.digits == "" && hi.strict {
		return never
	}
	return empty
}

// behind stands for least to n digits within bounds.
func behind(lo, hi *edge, n, least int) expr {
	var list []expr
	if least == 0 {
		list = append(list, stop(lo, hi))
	}
	for d := 0; d < 10 && n > 0; d++ {
		after, ok := lo.after(d, 1)
		before, fits := hi.after(d, -1)
		switch {
		case !ok || !fits:
		case after == nil && before == nil:
			list = append(list, seq(digits(d, d), repeat(digit, 0, n-1)))
		default:
			list = append(list, seq(digits(d, d), behind(after, before, n-1, 0)))
		}
	}
	return alt(list...)
}
