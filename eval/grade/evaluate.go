package grade

import (
	"hash/fnv"
	"math"
	"math/big"
	"math/cmplx"
)

// ball is a complex number with an error bound: the true value is within radius r of v. It is computed in
// float64 and carries errors along, so disjoint balls prove that two values differ.
type ball struct {
	v complex128
	r float64
}

// rounding bounds the relative error of one operation: a few units in the last place, which the functions
// of package math stay within.
const rounding = 1e-15

// point gives values to variables.
type point struct {
	values map[string]*big.Rat
	// complex allows the imaginary unit. Otherwise everything must be real throughout, and odd roots of
	// negative numbers are real.
	complex bool
}

// points returns the points at which two expressions are compared: three with positive values, three with
// both signs, three with natural numbers. The values depend only on the variable names, so a verdict is the
// same every time. They are multiples of 1/64: exact in binary.
func points(vars []string, complex bool) []point {
	if len(vars) == 0 {
		return []point{{complex: complex}}
	}
	var list []point
	for k := range 9 {
		p := point{values: make(map[string]*big.Rat, len(vars)), complex: complex}
		for i, name := range vars {
			h := fnv.New64a()
			h.Write([]byte(name))
			h.Write([]byte{byte(k), byte(i)})
			u := int64(h.Sum64() >> 40 % 150)
			switch {
			case k < 3:
				p.values[name] = big.NewRat(21+2*u, 64) // 0.3 to 5
			case k < 6:
				n := 17 + 2*u
				if u&2 == 0 {
					n = -n
				}
				p.values[name] = big.NewRat(n, 64)
			default:
				p.values[name] = big.NewRat(int64(k-4)+(u%5)*int64(i+1), 1)
			}
		}
		list = append(list, p)
	}
	return list
}

func (a ball) size() float64 { return cmplx.Abs(a.v) }

// made finishes an operation: it adds the rounding error and rejects values that are not finite or, in real
// arithmetic, not real.
func (p *point) made(v complex128, r float64) (ball, bool) {
	b := ball{v, r + rounding*cmplx.Abs(v)}
	ok := !cmplx.IsNaN(v) && !cmplx.IsInf(v) && !math.IsNaN(b.r) && !math.IsInf(b.r, 0)
	if !p.complex && imag(v) != 0 {
		ok = false
	}
	return b, ok
}

// evaluate computes x at a point.
func (w *budget) evaluate(x *expr, p *point) (ball, bool) {
	if !w.spend(1) {
		return ball{}, false
	}
	switch x.op {
	case opNum:
		f, _ := x.num.Float64()
		return p.made(complex(f, 0), math.SmallestNonzeroFloat64)
	case opSym:
		switch x.name {
		case symPi:
			return p.made(math.Pi, 0)
		case symE:
			return p.made(math.E, 0)
		case symI:
			return p.made(1i, 0)
		}
		v, ok := p.values[x.name]
		if !ok {
			return ball{}, false
		}
		f, _ := v.Float64()
		return ball{complex(f, 0), 0}, true
	case opBase:
		v, ok := w.rational(x)
		if !ok {
			return ball{}, false
		}
		return w.evaluate(number(v), p)
	case opPercent:
		a, ok := w.evaluate(x.args[0], p)
		if !ok {
			return ball{}, false
		}
		return p.made(a.v/100, a.r/100)
	case opDegree:
		return w.evaluate(inRadians(x), p)
	case opAdd:
		var s ball
		for _, arg := range x.args {
			a, ok := w.evaluate(arg, p)
			if !ok {
				return a, false
			}
			if s, ok = p.made(s.v+a.v, s.r+a.r); !ok {
				return s, false
			}
		}
		return s, true
	case opMul:
		s := ball{v: 1}
		for _, arg := range x.args {
			a, ok := w.evaluate(arg, p)
			if !ok {
				return a, false
			}
			if s, ok = p.made(s.v*a.v, s.size()*a.r+a.size()*s.r+s.r*a.r); !ok {
				return s, false
			}
		}
		return s, true
	case opPow:
		return w.evaluatePower(x, p)
	case opFunc:
		return w.evaluateCall(x, p)
	}
	return ball{}, false
}

func (w *budget) evaluatePower(x *expr, p *point) (ball, bool) {
	a, ok := w.evaluate(x.args[0], p)
	if !ok {
		return a, false
	}
	if exp, ok := w.rational(x.args[1]); ok {
		if exp.IsInt() && exp.Num().IsInt64() {
			return p.integerPower(a, exp.Num().Int64())
		}
		if !p.complex && real(a.v) < 0 {
			if exp.Denom().Bit(0) == 0 {
				return ball{}, false
			}
			f, _ := exp.Float64()
			v := math.Pow(-real(a.v), f)
			if exp.Num().Bit(0) == 1 {
				v = -v
			}
			return p.made(complex(v, 0), spread(a, f)*math.Abs(v)+8*rounding*math.Abs(v))
		}
	}
	e, ok := w.evaluate(x.args[1], p)
	if !ok {
		return e, false
	}
	if a.v == 0 {
		return ball{}, real(e.v) > 0 && a.r == 0
	}
	if !p.complex && real(a.v) < 0 && e.r < 1e-9 && imag(e.v) == 0 && real(e.v) == math.Trunc(real(e.v)) &&
		math.Abs(real(e.v)) < 1<<30 {
		return p.integerPower(a, int64(real(e.v))) // (-1)^n at a natural n
	}
	if imag(a.v) == 0 && imag(e.v) == 0 && real(a.v) > 0 {
		v := math.Pow(real(a.v), real(e.v))
		relative := spread(a, real(e.v)) + 1.1*e.r*math.Abs(math.Log(real(a.v))) + 8*rounding*(1+math.Abs(real(e.v)))
		return p.made(complex(v, 0), math.Abs(v)*relative)
	}
	if cutRisk(a) {
		return ball{}, false
	}
	v := cmplx.Pow(a.v, e.v)
	size := cmplx.Abs(v)
	return p.made(v, size*(spread(a, cmplx.Abs(e.v))+1.1*e.r*cmplx.Abs(cmplx.Log(a.v))+16*rounding*(1+cmplx.Abs(e.v))))
}

// cutRisk reports whether the value is so near the negative axis that the sign of its imaginary part is
// unknown.
func cutRisk(a ball) bool { return real(a.v) < 0 && imag(a.v) != 0 && math.Abs(imag(a.v)) <= a.r }

// spread returns the relative error that a contributes to a^e; infinite if a may be 0.
func spread(a ball, e float64) float64 {
	s := a.size()
	if a.r >= s/4 {
		return math.Inf(1)
	}
	return 2 * math.Abs(e) * a.r / (s - a.r)
}

// integerPower multiplies, so that errors stay small. Larger exponents are rejected: their result
// overflows, or is 0 or 1.
func (p *point) integerPower(a ball, n int64) (ball, bool) {
	if n > 1<<40 || n < -1<<40 {
		return ball{}, false
	}
	if n < 0 {
		if a.size() <= 2*a.r {
			return ball{}, false
		}
		inv := 1 / a.v
		var ok bool
		if a, ok = p.made(inv, 2*a.r*cmplx.Abs(inv)*cmplx.Abs(inv)); !ok {
			return a, false
		}
		n = -n
	}
	acc, ok := ball{v: 1}, true
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			if acc, ok = p.made(acc.v*a.v, acc.size()*a.r+a.size()*acc.r+acc.r*a.r); !ok {
				return acc, false
			}
		}
		if n > 1 {
			if a, ok = p.made(a.v*a.v, 2*a.size()*a.r+a.r*a.r); !ok {
				return a, false
			}
		}
	}
	return acc, true
}

func (w *budget) evaluateCall(x *expr, p *point) (ball, bool) {
	if v, ok := w.rational(x); ok {
		return w.evaluate(number(v), p)
	}
	args := make([]ball, len(x.args))
	for i, arg := range x.args {
		a, ok := w.evaluate(arg, p)
		if !ok {
			return a, false
		}
		args[i] = a
	}
	if len(args) == 0 {
		return ball{}, false
	}
	a := args[0]
	switch x.name {
	case "abs":
		return p.made(complex(a.size(), 0), a.r)
	case "re":
		return p.made(complex(real(a.v), 0), a.r)
	case "im":
		return p.made(complex(imag(a.v), 0), a.r)
	case "max", "min":
		for _, b := range args[1:] {
			if (real(b.v) > real(a.v)) == (x.name == "max") {
				a = b
			}
		}
		return a, true
	case "floor", "ceil":
		f := math.Floor(real(a.v))
		if x.name == "ceil" {
			f = math.Ceil(real(a.v))
		}
		return ball{complex(f, 0), 0}, imag(a.v) == 0 && (math.Abs(real(a.v)-math.Round(real(a.v))) > a.r || a.r == 0)
	case "fact", "binom":
		return p.factorial(x.name, args)
	case "bar":
		return ball{cmplx.Conj(a.v), a.r}, p.complex
	}
	if f, ok := elementary[x.name]; ok && len(args) == 1 {
		return p.elementary(f, a)
	}
	return ball{}, false
}

// factorial handles natural numbers; other arguments go to Γ.
func (p *point) factorial(name string, args []ball) (ball, bool) {
	value := 1.0
	gamma := func(a ball, sign float64) bool {
		if imag(a.v) != 0 || a.r > 1e-9*(1+a.size()) || real(a.v) < 0 {
			return false
		}
		value *= math.Pow(math.Gamma(real(a.v)+1), sign)
		return true
	}
	ok := true
	if name == "fact" {
		ok = gamma(args[0], 1)
	} else {
		ok = len(args) == 2 && gamma(args[0], 1) && gamma(args[1], -1) &&
			gamma(ball{args[0].v - args[1].v, args[0].r + args[1].r}, -1)
	}
	if !ok {
		return ball{}, false
	}
	return p.made(complex(value, 0), 1e-12*math.Abs(value))
}

// function is a function of one variable with its derivative, which propagates errors.
type function struct {
	f, df func(complex128) complex128
	real  func(float64) (float64, bool) // nil: no real version
}

var elementary = map[string]function{
	"sin": {cmplx.Sin, cmplx.Cos, realOf(math.Sin)},
	"cos": {cmplx.Cos, cmplx.Sin, realOf(math.Cos)},
	"tan": {cmplx.Tan, func(z complex128) complex128 { c := cmplx.Cos(z); return 1 / (c * c) }, realOf(math.Tan)},
	"cot": {func(z complex128) complex128 { return 1 / cmplx.Tan(z) },
		func(z complex128) complex128 { s := cmplx.Sin(z); return 1 / (s * s) }, nil},
	"sec": {func(z complex128) complex128 { return 1 / cmplx.Cos(z) },
		func(z complex128) complex128 { c := cmplx.Cos(z); return cmplx.Sin(z) / (c * c) }, nil},
	"csc": {func(z complex128) complex128 { return 1 / cmplx.Sin(z) },
		func(z complex128) complex128 { s := cmplx.Sin(z); return cmplx.Cos(z) / (s * s) }, nil},
	"ln": {cmplx.Log, func(z complex128) complex128 { return 1 / z }, func(x float64) (float64, bool) {
		return math.Log(x), x > 0
	}},
	"sinh": {cmplx.Sinh, cmplx.Cosh, realOf(math.Sinh)},
	"cosh": {cmplx.Cosh, cmplx.Sinh, realOf(math.Cosh)},
	"tanh": {cmplx.Tanh, func(z complex128) complex128 { c := cmplx.Cosh(z); return 1 / (c * c) },
		realOf(math.Tanh)},
	"coth": {func(z complex128) complex128 { return 1 / cmplx.Tanh(z) },
		func(z complex128) complex128 { s := cmplx.Sinh(z); return 1 / (s * s) }, nil},
	"sech": {func(z complex128) complex128 { return 1 / cmplx.Cosh(z) },
		func(z complex128) complex128 { c := cmplx.Cosh(z); return cmplx.Sinh(z) / (c * c) }, nil},
	"csch": {func(z complex128) complex128 { return 1 / cmplx.Sinh(z) },
		func(z complex128) complex128 { s := cmplx.Sinh(z); return cmplx.Cosh(z) / (s * s) }, nil},
	"arcsin": {cmplx.Asin, func(z complex128) complex128 { return 1 / cmplx.Sqrt(1-z*z) },
		func(x float64) (float64, bool) { return math.Asin(x), math.Abs(x) <= 1 }},
	"arccos": {cmplx.Acos, func(z complex128) complex128 { return 1 / cmplx.Sqrt(1-z*z) },
		func(x float64) (float64, bool) { return math.Acos(x), math.Abs(x) <= 1 }},
	"arctan": {cmplx.Atan, func(z complex128) complex128 { return 1 / (1 + z*z) }, realOf(math.Atan)},
	"arccot": {func(z complex128) complex128 { return math.Pi/2 - cmplx.Atan(z) },
		func(z complex128) complex128 { return 1 / (1 + z*z) }, nil},
}

func realOf(f func(float64) float64) func(float64) (float64, bool) {
	return func(x float64) (float64, bool) { return f(x), true }
}

func (p *point) elementary(f function, a ball) (ball, bool) {
	r := 0.0
	if a.r > 0 {
		if a.r > 1e-6*(1+a.size()) {
			return ball{}, false // the derivative at the middle says too little
		}
		r = 2 * a.r * cmplx.Abs(f.df(a.v))
	}
	if imag(a.v) == 0 && f.real != nil {
		if y, ok := f.real(real(a.v)); ok {
			return p.made(complex(y, 0), r+8*rounding*math.Abs(y)+rounding)
		}
		if !p.complex {
			return ball{}, false
		}
	}
	if cutRisk(a) {
		return ball{}, false
	}
	y := f.f(a.v)
	if !p.complex {
		y = complex(real(y), 0)
	}
	return p.made(y, r+16*rounding*cmplx.Abs(y)+rounding)
}
