package task

// fraction is num/den, not reduced, den ≥ 0. den = 0 means undefined: a division by zero and everything
// computed from it.
//
// Arithmetic is exact for an expression that uses each of some positive integers at most once, if their
// product times 2^n stays in range (fractionsFit). By induction |num| and den are at most 2^(n-1) times the
// product of the n integers used, because a sum num/den ± num'/den' has |num·den' ± num'·den| ≤ twice the
// product of the two bounds.
type fraction struct{ num, den int64 }

// fractionsFit reports whether fractions can hold expressions that use each of numbers at most once.
func fractionsFit(numbers []int64) bool {
	const room = 1 << 62
	bound := int64(1)
	for _, n := range numbers {
		if n < 1 || n > room/2/bound {
			return false
		}
		bound *= 2 * n
	}
	return true
}

// apply returns a op b.
func (a fraction) apply(op byte, b fraction) fraction {
	if a.den == 0 || b.den == 0 {
		return fraction{}
	}
	switch op {
	case '+':
		return fraction{a.num*b.den + b.num*a.den, a.den * b.den}
	case '-':
		return fraction{a.num*b.den - b.num*a.den, a.den * b.den}
	case '*':
		return fraction{a.num * b.num, a.den * b.den}
	case '/':
		switch {
		case b.num < 0:
			return fraction{-a.num * b.den, a.den * -b.num}
		case b.num > 0:
			return fraction{a.num * b.den, a.den * b.num}
		}
		return fraction{}
	}
	panic("task: unknown operator")
}

// is reports whether a equals the integer v.
func (a fraction) is(v int64) bool {
	n, ok := a.integer()
	return ok && n == v
}

// integer returns the value of a if it is an integer.
func (a fraction) integer() (int64, bool) {
	if a.den == 0 || a.num%a.den != 0 {
		return 0, false
	}
	return a.num / a.den, true
}

// sign returns -1, 0 or 1.
func (a fraction) sign() int {
	switch {
	case a.num > 0:
		return 1
	case a.num < 0:
		return -1
	}
	return 0
}

// String formats the reduced fraction: 7, -1/2.
func (a fraction) String() string {
	if a.den == 0 {
		return "1/0"
	}
	x, y := a.den, a.num
	for y != 0 {
		x, y = y, x%y
	}
	x = max(x, -x)
	num, den := itoa(a.num/x), itoa(a.den/x)
	if den == "1" {
		return num
	}
	return num + "/" + den
}
