package formula

import (
	"hash/fnv"
	"math"
	"math/big"
	"math/cmplx"
)

// Ball is a complex number with an error bound: the true value is within radius r of v. It is computed in
// float64 and carries errors along, so disjoint balls prove that two values differ.
type Ball struct {
	V complex128
	R float64
}

// rounding bounds the relative error of one operation: a few units in the last place, which the functions
// of package math stay within.
const rounding = 1e-15

// Point gives values to variables.
type Point struct {
	Values map[string]*big.Rat
	// complex allows the imaginary unit. Otherwise everything must be real throughout, and odd roots of
	// negative numbers are real.
	Complex bool
}

// Points returns the points for comparing two expressions: three with positive values, three in
// which each variable, and each product of two, is negative somewhere, three with natural numbers.
// The values depend only on the variable names, so a verdict is the same every time. Some
// are large, since functions by cases may differ only there.
func Points(vars []string, complex bool) []Point {
	if len(vars) == 0 {
		return []Point{{Complex: complex}}
	}
	var list []Point
	for k := range 9 {
		p := Point{Values: make(map[string]*big.Rat, len(vars)), Complex: complex}
		for i, name := range vars {
			h := fnv.New64a()
			h.Write([]byte(name))
			h.Write([]byte{byte(k), byte(i)})
			u := int64(h.Sum64() >> 40 % 150)
			switch {
			case k == 2:
				p.Values[name] = big.NewRat(21+2*u, 2) // 10 to 160
			case k < 3:
				p.Values[name] = big.NewRat(21+2*u, 64) // 0.3 to 5
			case k < 6:
				n := 17 + 2*u
				if k == 5 || i%2 == k-3 {
					n = -n
				}
				den := int64(64)
				if k == 5 {
					den = 4 // to -78, behind the kink of |x + 4|
				}
				p.Values[name] = big.NewRat(n, den)
			default:
				p.Values[name] = big.NewRat(int64(k-4)+(u%5)*int64(i+1), 1)
			}
		}
		list = append(list, p)
	}
	return list
}

// Size returns the absolute value of the middle.
func (a Ball) Size() float64 { return cmplx.Abs(a.V) }

// made finishes an operation: it adds the rounding error and rejects values that are not finite or, in real
// arithmetic, not real.
func (p *Point) made(v complex128, r float64) (Ball, bool) {
	b := Ball{v, r + rounding*cmplx.Abs(v)}
	ok := !cmplx.IsNaN(v) && !cmplx.IsInf(v) && !math.IsNaN(b.R) && !math.IsInf(b.R, 0)
	if !p.Complex && imag(v) != 0 {
		ok = false
	}
	return b, ok
}

// Evaluate computes x at a point.
func (w *Budget) Evaluate(x *Expr, p *Point) (Ball, bool) {
	if !w.Spend(1) {
		return Ball{}, false
	}
	switch x.Op {
	case Num:
		f, _ := x.Num.Float64()
		return p.made(complex(f, 0), math.SmallestNonzeroFloat64)
	case Sym:
		switch x.Name {
		case Pi:
			return p.made(math.Pi, 0)
		case E:
			return p.made(math.E, 0)
		case I:
			return p.made(1i, 0)
		}
		v, ok := p.Values[x.Name]
		if !ok {
			return Ball{}, false
		}
		f, _ := v.Float64()
		return Ball{complex(f, 0), 0}, true
	case Base:
		v, ok := w.Rational(x)
		if !ok {
			return Ball{}, false
		}
		return w.Evaluate(Number(v), p)
	case Percent:
		a, ok := w.Evaluate(x.Args[0], p)
		if !ok {
			return Ball{}, false
		}
		return p.made(a.V/100, a.R/100)
	case Degree:
		return w.Evaluate(inRadians(x), p)
	case Add:
		var s Ball
		for _, arg := range x.Args {
			a, ok := w.Evaluate(arg, p)
			if !ok {
				return a, false
			}
			if s, ok = p.made(s.V+a.V, s.R+a.R); !ok {
				return s, false
			}
		}
		return s, true
	case Mul:
		s := Ball{V: 1}
		for _, arg := range x.Args {
			a, ok := w.Evaluate(arg, p)
			if !ok {
				return a, false
			}
			if s, ok = p.made(s.V*a.V, s.Size()*a.R+a.Size()*s.R+s.R*a.R); !ok {
				return s, false
			}
		}
		return s, true
	case Pow:
		return w.evaluatePower(x, p)
	case Func:
		return w.evaluateCall(x, p)
	}
	return Ball{}, false
}

func (w *Budget) evaluatePower(x *Expr, p *Point) (Ball, bool) {
	a, ok := w.Evaluate(x.Args[0], p)
	if !ok {
		return a, false
	}
	if exp, ok := w.Rational(x.Args[1]); ok {
		if exp.IsInt() && exp.Num().IsInt64() {
			return p.integerPower(a, exp.Num().Int64())
		}
		if !p.Complex && real(a.V) < 0 {
			if exp.Denom().Bit(0) == 0 {
				return Ball{}, false
			}
			f, _ := exp.Float64()
			v := math.Pow(-real(a.V), f)
			if exp.Num().Bit(0) == 1 {
				v = -v
			}
			return p.made(complex(v, 0), spread(a, f)*math.Abs(v)+8*rounding*math.Abs(v))
		}
	}
	e, ok := w.Evaluate(x.Args[1], p)
	if !ok {
		return e, false
	}
	if a.V == 0 {
		return Ball{}, real(e.V) > 0 && a.R == 0
	}
	if !p.Complex && real(a.V) < 0 && e.R < 1e-9 && imag(e.V) == 0 && real(e.V) == math.Trunc(real(e.V)) &&
		math.Abs(real(e.V)) < 1<<30 {
		return p.integerPower(a, int64(real(e.V))) // (-1)^n at a natural n
	}
	if imag(a.V) == 0 && imag(e.V) == 0 && real(a.V) > 0 {
		v := math.Pow(real(a.V), real(e.V))
		relative := spread(a, real(e.V)) + 1.1*e.R*math.Abs(math.Log(real(a.V))) + 8*rounding*(1+math.Abs(real(e.V)))
		return p.made(complex(v, 0), math.Abs(v)*relative)
	}
	if cutRisk(a) {
		return Ball{}, false
	}
	v := cmplx.Pow(a.V, e.V)
	size := cmplx.Abs(v)
	return p.made(v, size*(spread(a, cmplx.Abs(e.V))+1.1*e.R*cmplx.Abs(cmplx.Log(a.V))+16*rounding*(1+cmplx.Abs(e.V))))
}

// cutRisk reports whether the value is so near the negative axis that the sign of its imaginary part is
// unknown.
func cutRisk(a Ball) bool { return real(a.V) < 0 && imag(a.V) != 0 && math.Abs(imag(a.V)) <= a.R }

// spread returns the relative error that a contributes to a^e; infinite if a may be 0.
func spread(a Ball, e float64) float64 {
	s := a.Size()
	if a.R >= s/4 {
		return math.Inf(1)
	}
	return 2 * math.Abs(e) * a.R / (s - a.R)
}

// integerPower multiplies, so that errors stay small. Larger exponents are rejected: their result
// overflows, or is 0 or 1.
func (p *Point) integerPower(a Ball, n int64) (Ball, bool) {
	if n > 1<<40 || n < -1<<40 {
		return Ball{}, false
	}
	if n < 0 {
		if a.Size() <= 2*a.R {
			return Ball{}, false
		}
		inv := 1 / a.V
		var ok bool
		if a, ok = p.made(inv, 2*a.R*cmplx.Abs(inv)*cmplx.Abs(inv)); !ok {
			return a, false
		}
		n = -n
	}
	acc, ok := Ball{V: 1}, true
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			if acc, ok = p.made(acc.V*a.V, acc.Size()*a.R+a.Size()*acc.R+acc.R*a.R); !ok {
				return acc, false
			}
		}
		if n > 1 {
			if a, ok = p.made(a.V*a.V, 2*a.Size()*a.R+a.R*a.R); !ok {
				return a, false
			}
		}
	}
	return acc, true
}

func (w *Budget) evaluateCall(x *Expr, p *Point) (Ball, bool) {
	if v, ok := w.Rational(x); ok {
		return w.Evaluate(Number(v), p)
	}
	args := make([]Ball, len(x.Args))
	for i, arg := range x.Args {
		a, ok := w.Evaluate(arg, p)
		if !ok {
			return a, false
		}
		args[i] = a
	}
	if len(args) == 0 {
		return Ball{}, false
	}
	a := args[0]
	switch x.Name {
	case "abs":
		return p.made(complex(a.Size(), 0), a.R)
	case "re":
		return p.made(complex(real(a.V), 0), a.R)
	case "im":
		return p.made(complex(imag(a.V), 0), a.R)
	case "max", "min":
		for _, b := range args[1:] {
			if (real(b.V) > real(a.V)) == (x.Name == "max") {
				a = b
			}
		}
		return a, true
	case "floor", "ceil":
		f := math.Floor(real(a.V))
		if x.Name == "ceil" {
			f = math.Ceil(real(a.V))
		}
		return Ball{complex(f, 0), 0}, imag(a.V) == 0 && (math.Abs(real(a.V)-math.Round(real(a.V))) > a.R || a.R == 0)
	case "fact", "binom":
		return p.factorial(x.Name, args)
	case "bar":
		return Ball{cmplx.Conj(a.V), a.R}, p.Complex
	}
	if f, ok := elementary[x.Name]; ok && len(args) == 1 {
		return p.elementary(f, a)
	}
	return Ball{}, false
}

// factorial handles natural numbers; other arguments go to Γ.
func (p *Point) factorial(name string, args []Ball) (Ball, bool) {
	value := 1.0
	gamma := func(a Ball, sign float64) bool {
		if imag(a.V) != 0 || a.R > 1e-9*(1+a.Size()) || real(a.V) < 0 {
			return false
		}
		value *= math.Pow(math.Gamma(real(a.V)+1), sign)
		return true
	}
	ok := true
	if name == "fact" {
		ok = gamma(args[0], 1)
	} else {
		ok = len(args) == 2 && gamma(args[0], 1) && gamma(args[1], -1) &&
			gamma(Ball{args[0].V - args[1].V, args[0].R + args[1].R}, -1)
	}
	if !ok {
		return Ball{}, false
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

func (p *Point) elementary(f function, a Ball) (Ball, bool) {
	r := 0.0
	if a.R > 0 {
		if a.R > 1e-6*(1+a.Size()) {
			return Ball{}, false // the derivative at the middle says too little
		}
		r = 2 * a.R * cmplx.Abs(f.df(a.V))
	}
	if imag(a.V) == 0 && f.real != nil {
		if y, ok := f.real(real(a.V)); ok {
			return p.made(complex(y, 0), r+8*rounding*math.Abs(y)+rounding)
		}
		if !p.Complex {
			return Ball{}, false
		}
	}
	if cutRisk(a) {
		return Ball{}, false
	}
	y := f.f(a.V)
	if !p.Complex {
		y = complex(real(y), 0)
	}
	return p.made(y, r+16*rounding*cmplx.Abs(y)+rounding)
}
