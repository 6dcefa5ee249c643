package chat

import (
	"math"
	"math/big"
	"slices"
	"strings"
)

// arithmetic returns a op b for + - * / // % **.
func (st *state) arithmetic(op string, a, b Value) (Value, error) {
	if s, ok := textOf(a); ok && op == "%" {
		return st.percent(a, s, b)
	}
	if u, ok := a.(*undefined); ok {
		return nil, undefErr(u)
	}
	if u, ok := b.(*undefined); ok {
		return nil, undefErr(u)
	}
	if isNumber(a) && isNumber(b) {
		_, fa := a.(Float)
		_, fb := b.(Float)
		if fa || fb || op == "/" {
			return st.floatArithmetic(op, a, b)
		}
		return st.intArithmetic(op, a, b)
	}
	switch op {
	case "+":
		return st.join(a, b)
	case "*":
		switch {
		case isInteger(b):
			return st.repeat(a, b)
		case isInteger(a):
			return st.repeat(b, a)
		}
	}
	return nil, typeErr("unsupported operand types for %s: '%s' and '%s'", op, a.typeName(), b.typeName())
}

// join returns a + b of texts, lists or tuples.
func (st *state) join(a, b Value) (Value, error) {
	if s, ok := textOf(a); ok {
		if t, ok := textOf(b); ok {
			_, ma := a.(markup)
			_, mb := b.(markup)
			if ma != mb { // escape the other one
				s, t = escapeIf(!ma, s), escapeIf(!mb, t)
			}
			if err := st.chargeText(len(s) + len(t)); err != nil {
				return nil, err
			}
			if ma || mb {
				return markup(s + t), nil
			}
			return Str(s + t), nil
		}
	}
	switch x := a.(type) {
	case *List:
		if y, ok := b.(*List); ok {
			return &List{slices.Concat(x.Items, y.Items)}, st.charge((len(x.Items) + len(y.Items)) / 4)
		}
	case *tuple:
		if y, ok := b.(*tuple); ok {
			return newTuple(slices.Concat(x.items, y.items)...), st.charge((len(x.items) + len(y.items)) / 4)
		}
	}
	return nil, typeErr("cannot add '%s' and '%s'", a.typeName(), b.typeName())
}

func isInteger(v Value) bool {
	_, ok := asBig(v)
	return ok
}

// repeat returns v * times of a text, a list or a tuple.
func (st *state) repeat(v, times Value) (Value, error) {
	count, fits := asInt64(times)
	n := max(int(count), 0)
	cells := func(items []Value) ([]Value, error) {
		if !fits {
			return nil, overflowErr("a list cannot be repeated so often")
		}
		if len(items) == 0 || n == 0 {
			return nil, nil
		}
		if n > maxSteps || len(items) > maxSteps {
			return nil, limitErr("list longer than %d", maxSteps)
		}
		if err := st.charge(len(items) * n / 4); err != nil {
			return nil, err
		}
		return slices.Repeat(items, n), nil
	}
	switch v := v.(type) {
	case Str, markup:
		s, _ := textOf(v)
		if !fits {
			return nil, overflowErr("text cannot be repeated so often")
		}
		if s == "" || n == 0 {
			return alike(v, ""), nil
		}
		if n > maxOutput {
			return nil, limitErr("text longer than %d bytes", maxOutput)
		}
		if err := st.chargeText(len(s) * n); err != nil {
			return nil, err
		}
		return alike(v, strings.Repeat(s, n)), nil
	case *List:
		items, err := cells(v.Items)
		return &List{items}, err
	case *tuple:
		items, err := cells(v.items)
		return newTuple(items...), err
	}
	return nil, typeErr("cannot multiply '%s' by an integer", v.typeName())
}

func zeroErr() error { return &pyError{kindZero, "division by zero"} }

func (st *state) floatArithmetic(op string, a, b Value) (Value, error) {
	if op == "/" {
		if v, ok, err := st.divideInts(a, b); ok {
			return v, err
		}
	}
	x, err := toFloat(a)
	if err != nil {
		return nil, err
	}
	y, err := toFloat(b)
	if err != nil {
		return nil, err
	}
	switch op {
	case "+":
		return newFloat(x + y), nil
	case "-":
		return newFloat(x - y), nil
	case "*":
		return newFloat(x * y), nil
	case "**":
		return floatPower(x, y)
	}
	if y == 0 {
		return nil, zeroErr()
	}
	switch op {
	case "/":
		return newFloat(x / y), nil
	case "//":
		return newFloat(floorDivide(x, y)), nil
	}
	return newFloat(floorMod(x, y)), nil
}

// divideInts returns a / b of integers, rounded once.
func (st *state) divideInts(a, b Value) (Value, bool, error) {
	i, oki := asBig(a)
	j, okj := asBig(b)
	if !oki || !okj {
		return nil, false, nil
	}
	if j.Sign() == 0 {
		return nil, true, zeroErr()
	}
	if x, y := i.BitLen()/64, j.BitLen()/64; x+y > 1 { // find a common divisor
		if err := st.charge((x + 1) * (y + 1) / 4); err != nil {
			return nil, true, err
		}
	}
	f, _ := new(big.Rat).SetFrac(i, j).Float64()
	if math.IsInf(f, 0) {
		return nil, true, overflowErr("integer division result too large for a float")
	}
	if i.Sign() == 0 && j.Sign() < 0 {
		f = math.Copysign(f, -1)
	}
	return newFloat(f), true, nil
}

// floorMod is Python's x % y, with the sign of y.
func floorMod(x, y float64) float64 {
	m := math.Mod(x, y)
	switch {
	case m == 0:
		return math.Copysign(0, y)
	case (y < 0) != (m < 0):
		return m + y
	}
	return m
}

// floorDivide is Python's x // y (float_floor_div in CPython).
func floorDivide(x, y float64) float64 {
	m := math.Mod(x, y)
	div := (x - m) / y
	if m != 0 && (y < 0) != (m < 0) {
		div--
	}
	if div == 0 {
		return math.Copysign(0, x/y)
	}
	floor := math.Floor(div)
	if div-floor > 0.5 {
		floor++
	}
	return floor
}

func floatPower(x, y float64) (Value, error) {
	if x == 0 && y < 0 {
		return nil, &pyError{kindZero, "0.0 cannot be raised to a negative power"}
	}
	if x < 0 && !math.IsInf(x, 0) && !math.IsInf(y, 0) && y != math.Floor(y) {
		return nil, valueErr("a negative number to a non-integer power is complex: not supported")
	}
	f := math.Pow(x, y)
	if math.IsInf(f, 0) && !math.IsInf(x, 0) && !math.IsInf(y, 0) {
		return nil, overflowErr("the result of ** is too large for a float")
	}
	return newFloat(f), nil
}

func (st *state) intArithmetic(op string, a, b Value) (Value, error) {
	x, okx := asInt64(a)
	y, oky := asInt64(b)
	if okx && oky {
		switch op {
		case "+":
			if s := x + y; (s > x) == (y > 0) {
				return Int(s), nil
			}
		case "-":
			if d := x - y; (d < x) == (y > 0) {
				return Int(d), nil
			}
		case "//", "%":
			if y != 0 && y != -1 {
				q, m := x/y, x%y
				if m != 0 && (m < 0) != (y < 0) {
					q, m = q-1, m+y
				}
				if op == "%" {
					return Int(m), nil
				}
				return Int(q), nil
			}
		}
	}
	i, _ := asBig(a)
	j, _ := asBig(b)
	return st.bigArithmetic(op, i, j)
}

func (st *state) bigArithmetic(op string, i, j *big.Int) (Value, error) {
	if err := st.chargeProduct(i, j); err != nil {
		return nil, err
	}
	r := new(big.Int)
	switch op {
	case "+":
		r.Add(i, j)
	case "-":
		r.Sub(i, j)
	case "*":
		if i.BitLen()+j.BitLen() > maxBits {
			return nil, limitErr("integer larger than %d bits", maxBits)
		}
		r.Mul(i, j)
	case "**":
		return st.intPower(i, j)
	case "//", "%":
		if j.Sign() == 0 {
			return nil, zeroErr()
		}
		m := new(big.Int)
		r.QuoRem(i, j, m)
		if m.Sign() != 0 && m.Sign() != j.Sign() {
			r.Sub(r, big.NewInt(1))
			m.Add(m, j)
		}
		if op == "%" {
			r = m
		}
	}
	if r.BitLen() > maxBits {
		return nil, limitErr("integer larger than %d bits", maxBits)
	}
	return fromBig(r), st.charge(r.BitLen() / 64)
}

// chargeProduct charges an operation whose time grows with the product of its sizes.
func (st *state) chargeProduct(i, j *big.Int) error {
	return st.charge((i.BitLen() / 64) * (j.BitLen() / 64) / 64)
}

func (st *state) intPower(i, j *big.Int) (Value, error) {
	if j.Sign() < 0 {
		x, err := toFloat(fromBig(i))
		if err != nil {
			return nil, err
		}
		y, err := toFloat(fromBig(j))
		if err != nil {
			return nil, err
		}
		return floatPower(x, y)
	}
	if i.BitLen() > 1 && (!j.IsInt64() || j.Int64() > maxBits || int64(i.BitLen()-1)*j.Int64() > maxBits) {
		return nil, limitErr("integer larger than %d bits", maxBits)
	}
	if i.BitLen() <= 1 { // -1, 0 or 1
		r := big.NewInt(1)
		if i.Sign() == 0 && j.Sign() > 0 || i.Sign() < 0 && j.Bit(0) == 1 {
			r.Set(i)
		}
		return fromBig(r), nil
	}
	r := new(big.Int).Exp(i, j, nil)
	return fromBig(r), st.charge(r.BitLen() / 16)
}

// sign returns -v or +v.
func sign(neg bool, v Value) (Value, error) {
	if u, ok := v.(*undefined); ok {
		return nil, undefErr(u)
	}
	if f, ok := v.(Float); ok {
		if neg {
			return newFloat(-f.F), nil
		}
		return newFloat(f.F), nil
	}
	i, ok := asBig(v)
	if !ok {
		return nil, typeErr("a '%s' has no sign", v.typeName())
	}
	if neg {
		return fromBig(new(big.Int).Neg(i)), nil
	}
	return fromBig(i), nil
}
