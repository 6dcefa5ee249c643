package formula

import (
	"math"
	"math/big"
	"strings"
)

const (
	maxBits      = 1 << 14 // of numerators and denominators in arithmetic
	MaxTenPower  = 4000    // 1e4000 is still expanded
	maxFactorial = 1200
)

// Budget counts the work of one grading, in units of about a quarter of a microsecond; see MaxWork. It
// bounds the time on any input.
type Budget struct{ left int }

// MaxWork keeps the slowest grading well under 50 ms on one slow core.
const MaxWork = 40_000

// NewBudget returns a budget of some work.
func NewBudget(work int) Budget { return Budget{work} }

// Spend takes n off the budget and reports whether that was left.
func (b *Budget) Spend(n int) bool {
	b.left -= n
	return b.left >= 0
}

func ratBits(r *big.Rat) int { return max(r.Num().BitLen(), r.Denom().BitLen()) }

// spendOn charges for one operation on r and s and rejects numbers that are too long.
func (b *Budget) spendOn(r, s *big.Rat) bool {
	n := ratBits(r) + ratBits(s)
	w := n / 64
	return n <= 2*maxBits && b.Spend(1+w*w/32)
}

// Rational evaluates x exactly. It fails if x is irrational or too large.
func (b *Budget) Rational(x *Expr) (*big.Rat, bool) {
	switch x.Op {
	case Num:
		return x.Num, true
	case Percent:
		v, ok := b.Rational(x.Args[0])
		if !ok {
			return nil, false
		}
		return new(big.Rat).Mul(v, big.NewRat(1, 100)), true
	case Base:
		base := int(x.Args[0].Num.Num().Int64())
		if HasPrefix(x) {
			base = 0 // SetString reads the prefix
		}
		whole, frac, _ := strings.Cut(x.Name, ".")
		n, ok := new(big.Int).SetString(whole+frac, base)
		if !ok {
			return nil, false
		}
		den := new(big.Int).Exp(x.Args[0].Num.Num(), big.NewInt(int64(len(frac))), nil)
		return new(big.Rat).SetFrac(n, den), true
	case Add, Mul:
		return b.fold(x)
	case Pow:
		base, ok := b.Rational(x.Args[0])
		if !ok {
			return nil, false
		}
		exp, ok := b.Rational(x.Args[1])
		if !ok {
			return nil, false
		}
		return b.ratPower(base, exp)
	case Func:
		return b.ratCall(x)
	}
	return nil, false
}

func (b *Budget) fold(x *Expr) (*big.Rat, bool) {
	acc := new(big.Rat)
	if x.Op == Mul {
		acc.SetInt64(1)
	}
	for _, a := range x.Args {
		v, ok := b.Rational(a)
		if !ok || !b.spendOn(acc, v) {
			return nil, false
		}
		if x.Op == Mul {
			acc.Mul(acc, v)
		} else {
			acc.Add(acc, v)
		}
	}
	return acc, true
}

// ratPower returns base^exp if rational: integer exponents and exact roots.
func (b *Budget) ratPower(base, exp *big.Rat) (*big.Rat, bool) {
	if !exp.IsInt() {
		if !exp.Denom().IsInt64() || base.Sign() < 0 && exp.Denom().Bit(0) == 0 || exp.Denom().Int64() > 64 {
			return nil, false
		}
		n := int(exp.Denom().Int64())
		num, ok := exactRoot(base.Num(), n)
		if !ok {
			return nil, false
		}
		den, ok := exactRoot(base.Denom(), n)
		if !ok || !b.Spend(50) {
			return nil, false
		}
		return b.ratPower(new(big.Rat).SetFrac(num, den), new(big.Rat).SetInt(exp.Num()))
	}
	if base.Sign() == 0 {
		if exp.Sign() <= 0 {
			return nil, false
		}
		return new(big.Rat), true
	}
	one := big.NewInt(1)
	if base.IsInt() && base.Num().CmpAbs(one) == 0 {
		if base.Sign() < 0 && exp.Num().Bit(0) == 1 {
			return big.NewRat(-1, 1), true
		}
		return big.NewRat(1, 1), true
	}
	if !exp.Num().IsInt64() {
		return nil, false
	}
	e := exp.Num().Int64()
	n := max(e, -e)
	if n > maxBits || int64(ratBits(base))*n > maxBits {
		return nil, false
	}
	w := ratBits(base) * int(n) / 64
	if !b.Spend(1 + w*w/16) {
		return nil, false
	}
	k := big.NewInt(n)
	num, den := new(big.Int).Exp(base.Num(), k, nil), new(big.Int).Exp(base.Denom(), k, nil)
	if e < 0 {
		num, den = den, num
	}
	return new(big.Rat).SetFrac(num, den), true
}

// exactRoot returns the n-th root of z if it is an integer. Odd roots keep the sign.
func exactRoot(z *big.Int, n int) (*big.Int, bool) {
	if z.BitLen() > 2048 {
		return nil, false
	}
	a := new(big.Int).Abs(z)
	r := integerRoot(a, n)
	if new(big.Int).Exp(r, big.NewInt(int64(n)), nil).Cmp(a) != 0 {
		return nil, false
	}
	if z.Sign() < 0 {
		r.Neg(r)
	}
	return r, true
}

// integerRoot returns the largest r with r^n <= a, by Newton's method from above.
func integerRoot(a *big.Int, n int) *big.Int {
	if n == 2 {
		return new(big.Int).Sqrt(a)
	}
	if a.Sign() == 0 {
		return new(big.Int)
	}
	r := new(big.Int).Lsh(big.NewInt(1), uint((a.BitLen()+n-1)/n))
	bn, bn1 := big.NewInt(int64(n)), big.NewInt(int64(n-1))
	for {
		t := new(big.Int).Exp(r, bn1, nil)
		t.Quo(a, t)
		t.Add(t, new(big.Int).Mul(bn1, r))
		t.Quo(t, bn)
		if t.Cmp(r) >= 0 {
			return r
		}
		r = t
	}
}

// ratCall evaluates functions with rational values.
func (b *Budget) ratCall(x *Expr) (*big.Rat, bool) {
	if isSeries(x) {
		return b.series(x)
	}
	switch x.Name {
	case "abs", "floor", "ceil", "fact", "fact2", "binom", "max", "min", "gcd", "lcm", "ln":
	default:
		return nil, false
	}
	args := make([]*big.Rat, len(x.Args))
	for i, a := range x.Args {
		v, ok := b.Rational(a)
		if !ok && (x.Name == "floor" || x.Name == "ceil") {
			return b.wholePart(x)
		}
		if !ok || !b.spendOn(v, v) {
			return nil, false
		}
		args[i] = v
	}
	switch x.Name {
	case "abs":
		return new(big.Rat).Abs(args[0]), true
	case "ln":
		return new(big.Rat), args[0].IsInt() && args[0].Num().Cmp(big.NewInt(1)) == 0
	case "floor", "ceil":
		q := new(big.Int).Div(args[0].Num(), args[0].Denom()) // rounds down: the divisor is positive
		if x.Name == "ceil" && !args[0].IsInt() {
			q.Add(q, big.NewInt(1))
		}
		return new(big.Rat).SetInt(q), true
	case "fact":
		n, ok := SmallNatural(args[0], maxFactorial)
		if !ok || !b.Spend(n*n/64) {
			return nil, false
		}
		return new(big.Rat).SetInt(new(big.Int).MulRange(1, int64(n))), true
	case "fact2": // n(n-2)(n-4)…
		n, ok := SmallNatural(args[0], maxFactorial)
		if !ok || !b.Spend(n*n/64) {
			return nil, false
		}
		v := big.NewInt(1)
		for ; n > 1; n -= 2 {
			v.Mul(v, big.NewInt(int64(n)))
		}
		return new(big.Rat).SetInt(v), true
	case "binom":
		n, ok := SmallNatural(args[0], 1<<30)
		if len(args) != 2 || !ok {
			return nil, false
		}
		k, ok := SmallNatural(args[1], 1<<30)
		if n >= k {
			k = min(k, n-k)
		}
		if !ok || k > maxFactorial || n > 8000 || !b.Spend(1+k*k/64) {
			return nil, false
		}
		return new(big.Rat).SetInt(new(big.Int).Binomial(int64(n), int64(k))), true
	}
	return extreme(x.Name, args)
}

// wholePart rounds an irrational number down or up, if its error bounds hold no integer.
func (b *Budget) wholePart(x *Expr) (*big.Rat, bool) {
	const most = 1 << 50
	v, ok := b.Evaluate(x.Args[0], &Point{})
	f := math.Floor(real(v.V))
	if !ok || imag(v.V) != 0 || math.Abs(f) > most || real(v.V)-f <= v.R || f+1-real(v.V) <= v.R {
		return nil, false
	}
	if x.Name == "ceil" {
		f++
	}
	return new(big.Rat).SetInt64(int64(f)), true
}

// extreme evaluates max, min, gcd and lcm.
func extreme(name string, args []*big.Rat) (*big.Rat, bool) {
	acc := args[0]
	for _, v := range args[1:] {
		switch name {
		case "max":
			if v.Cmp(acc) > 0 {
				acc = v
			}
		case "min":
			if v.Cmp(acc) < 0 {
				acc = v
			}
		default:
			if !v.IsInt() || !acc.IsInt() {
				return nil, false
			}
			a, b := new(big.Int).Abs(acc.Num()), new(big.Int).Abs(v.Num())
			g := new(big.Int).GCD(nil, nil, a, b)
			if name == "lcm" && g.Sign() != 0 {
				g.Div(a.Mul(a, b), g)
			}
			acc = new(big.Rat).SetInt(g)
		}
	}
	return acc, true
}

// SmallNatural returns a natural number of at most most.
func SmallNatural(r *big.Rat, most int) (int, bool) {
	if !r.IsInt() || r.Sign() < 0 || !r.Num().IsInt64() || r.Num().Int64() > int64(most) {
		return 0, false
	}
	return int(r.Num().Int64()), true
}
