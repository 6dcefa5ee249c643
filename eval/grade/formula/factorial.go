package formula

import "math/big"

// Products of n! are compared without multiplying them out if the largest n is between these.
const (
	longFactorial    = 400
	largestFactorial = 20_000
)

// factorialProduct is a rational number times powers of factorials of natural numbers.
type factorialProduct struct {
	factor *big.Rat
	powers map[int]int // of n!
}

// SameFactorials reports whether two products of powers of rational numbers, factorials and binomial coefficients are
// equal: by the exponents of their primes, since 3000! is too long to multiply out. ok is false for other
// formulas, and for short ones.
func (b *Budget) SameFactorials(x, y *Expr) (equal, ok bool) {
	q := factorialProduct{big.NewRat(1, 1), map[int]int{}}
	if !x.Has(isFactorial) && !y.Has(isFactorial) || len(Variables(x, y)) > 0 {
		return false, false
	}
	if !b.factorials(x, 1, &q) || !b.factorials(y, -1, &q) {
		return false, false
	}
	most := 0
	for n := range q.powers {
		most = max(most, n)
	}
	if most < longFactorial || !b.Spend(most/4*(1+len(q.powers))) {
		return false, false
	}
	num, den := new(big.Int).Set(q.factor.Num()), new(big.Int).Set(q.factor.Denom())
	composite := make([]bool, most+1)
	for p := 2; p <= most; p++ {
		if composite[p] {
			continue
		}
		for m := 2 * p; m <= most; m += p {
			composite[m] = true
		}
		exponent := b.takeOut(num, int64(p)) - b.takeOut(den, int64(p))
		for n, power := range q.powers {
			for m := n / p; m > 0; m /= p {
				exponent += power * m
			}
		}
		if exponent != 0 || b.left < 0 {
			return false, b.left >= 0
		}
	}
	return num.Cmp(den) == 0, true
}

func isFactorial(x *Expr) bool { return x.Op == Func && (x.Name == "fact" || x.Name == "binom") }

// takeOut divides z by p as often as possible, and returns how often.
func (b *Budget) takeOut(z *big.Int, p int64) (times int) {
	prime, rest := big.NewInt(p), new(big.Int)
	for b.Spend(1 + z.BitLen()/256) {
		q, m := new(big.Int).QuoRem(z, prime, rest)
		if m.Sign() != 0 {
			break
		}
		z.Set(q)
		times++
	}
	return times
}

// factorials multiplies x^power into q.
func (b *Budget) factorials(x *Expr, power int, q *factorialProduct) bool {
	if !b.Spend(1) || power > 100 || power < -100 {
		return false
	}
	switch {
	case x.Op == Mul:
		for _, a := range x.Args {
			if !b.factorials(a, power, q) {
				return false
			}
		}
		return true
	case x.Op == Pow && x.Args[0].Op != Num:
		e, ok := b.Rational(x.Args[1])
		return ok && e.IsInt() && e.Num().BitLen() < 7 && b.factorials(x.Args[0], power*int(e.Num().Int64()), q)
	case x.Op == Func && x.Name == "fact":
		n, ok := b.natural(x.Args[0])
		q.powers[n] += power
		return ok
	case x.Op == Func && x.Name == "binom" && len(x.Args) == 2:
		n, ok := b.natural(x.Args[0])
		k, ok2 := b.natural(x.Args[1])
		if !ok || !ok2 || k > n {
			return false
		}
		q.powers[n] += power
		q.powers[k] -= power
		q.powers[n-k] -= power
		return true
	}
	v, ok := b.Rational(x)
	if !ok || v.Sign() == 0 {
		return false
	}
	if power < 0 {
		v, power = new(big.Rat).Inv(v), -power
	}
	for range power {
		if !b.spendOn(q.factor, v) {
			return false
		}
		q.factor.Mul(q.factor, v)
	}
	return true
}

func (b *Budget) natural(x *Expr) (int, bool) {
	v, ok := b.Rational(x)
	if !ok {
		return 0, false
	}
	return SmallNatural(v, largestFactorial)
}
