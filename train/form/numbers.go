package form

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
)

// number returns numbers that follow keywords and are none of some values, of integers or fractions or both.
func (x *schemaReader) number(k kinds, f *facts) (expr, error) {
	var lo, hi bound
	var limits []limit
	at := ""
	for _, p := range f.words {
		if kindOfWord(p.word) != aNumber {
			continue
		}
		raw, _ := p.value().(json.Number)
		n, ok := rat(raw)
		if !ok {
			return nil, fmt.Errorf("%s must be a number", p.where())
		}
		strict := strings.HasPrefix(p.word, "exclusive")
		switch at = p.at; {
		case p.word == "multipleOf":
			e, err := multiples(n)
			if err != nil {
				return nil, fmt.Errorf("%s %w", p.where(), err)
			}
			limits = append(limits, limit{e, p.not})
		case strings.HasSuffix(strings.ToLower(p.word), "minimum"):
			lo = lo.tighter(bound{n, strict}, 1)
		default:
			hi = hi.tighter(bound{n, strict}, -1)
		}
	}
	for _, v := range f.differ {
		if raw, ok := v.(json.Number); ok {
			e, err := spellings(raw)
			if err != nil {
				return nil, err
			}
			limits = append(limits, limit{e, true})
		}
	}
	if k == aFraction {
		point := seq(text("."), repeat(text("0"), 1, -1))
		limits = append(limits, limit{seq(optional(text("-")), repeat(digit, 1, -1), optional(point)), true})
	}
	free := len(limits) == 0 && lo.value == nil && hi.value == nil
	switch {
	case k == anInteger && free:
		return x.json.integer, nil
	case free:
		return x.json.number, nil
	}
	e := integers(lo, hi)
	if k != anInteger {
		var err error
		if e, err = numbers(lo, hi); err != nil {
			return nil, fmt.Errorf("%s: %w", at, err)
		}
	}
	if len(limits) == 0 {
		return e, nil
	}
	return meet(append(limits, limit{e, false}), nil), nil
}

// spellings stands for the ways to write a number without an exponent.
func spellings(n json.Number) (expr, error) {
	v, ok := rat(n)
	if !ok {
		return nil, fmt.Errorf("%s is too large a number", n)
	}
	decimals, exact := v.FloatPrec()
	if !exact || decimals > mostDigits {
		return never, nil // which none of ours are
	}
	digits := new(big.Rat).Abs(v).FloatString(decimals)
	sign := empty
	switch v.Sign() {
	case -1:
		sign = text("-")
	case 0:
		sign = optional(text("-"))
	}
	zeros := repeat(text("0"), 0, -1)
	if decimals == 0 {
		zeros = optional(seq(text("."), repeat(text("0"), 1, -1)))
	}
	return seq(sign, text(digits), zeros), nil
}

// mostSteps bounds the automaton of multiples.
const mostSteps = 1 << 14

// multiples stands for the numbers, perhaps with a sign and zeros before, that another one divides. It reads digit
// after digit the rest of their division by the divisor's digits without its point.
func multiples(of *big.Rat) (expr, error) {
	decimals, exact := of.FloatPrec()
	if of.Sign() <= 0 || !exact || decimals > mostDigits {
		return nil, fmt.Errorf("must be above 0, with at most %d digits behind the point", mostDigits)
	}
	ten := big.NewInt(10)
	scale := new(big.Int).Exp(ten, big.NewInt(int64(decimals)), nil)
	whole := new(big.Rat).Mul(of, new(big.Rat).SetInt(scale)).Num()
	if !whole.IsInt64() || whole.Int64()*int64(decimals+2) > mostSteps || whole.Int64() > mostSteps {
		return nil, fmt.Errorf("has too many digits: without its point, the number is at most %d",
			mostSteps/(decimals+2))
	}
	n := int(whole.Int64())
	return func(g *grammar, from, to node) {
		rows := make([][]node, decimals+1) // by digits behind the point, and rest
		for i := range rows {
			for range n {
				rows[i] = append(rows[i], g.node())
			}
		}
		if g.large {
			return
		}
		g.skip(from, rows[0][0])
		g.arc(from, '-', '-', rows[0][0])
		for i, row := range rows {
			missing := 1 // 10 to the digits that have not come
			for range decimals - i {
				missing = missing * 10 % n
			}
			for r, at := range row {
				if r*missing%n == 0 {
					g.skip(at, to)
				}
				g.point(rows, i, r, to)
				for d := range 10 {
					switch next := (10*r + d) % n; {
					case i == 0:
						g.arc(at, byte('0'+d), byte('0'+d), row[next])
					case i < decimals:
						g.arc(at, byte('0'+d), byte('0'+d), rows[i+1][next])
					case d == 0:
						g.arc(at, '0', '0', at)
					}
				}
			}
		}
	}, nil
}

// point adds the point behind the digits before it, and the first digit that follows, to an automaton of multiples.
func (g *grammar) point(rows [][]node, i, r int, to node) {
	if i > 0 {
		return
	}
	point := g.node()
	g.arc(rows[0][r], '.', '.', point)
	if len(rows) == 1 {
		zeros := g.node()
		g.arc(point, '0', '0', zeros)
		g.arc(zeros, '0', '0', zeros)
		if r == 0 {
			g.skip(zeros, to)
		}
		return
	}
	for d := range 10 {
		g.arc(point, byte('0'+d), byte('0'+d), rows[1][(10*r+d)%len(rows[1])])
	}
}

// tighter returns the tighter of two lower bounds, side 1, or upper ones, side -1.
func (b bound) tighter(other bound, side int) bound {
	if b.value == nil {
		return other
	}
	switch c := side * b.value.Cmp(other.value); {
	case c > 0, c == 0 && b.strict:
		return b
	}
	return other
}

// rat returns a number of JSON, if it is not so large or small that it would take much memory.
func rat(n json.Number) (*big.Rat, bool) {
	if _, exponent, ok := strings.Cut(strings.ToLower(n.String()), "e"); ok && len(exponent) > 4 {
		return nil, false
	}
	return new(big.Rat).SetString(n.String())
}
