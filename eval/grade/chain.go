package grade

import (
	"fmt"
	"math"
	"math/big"
	"slices"

	"exp/eval/grade/formula"
	"exp/eval/grade/latex"
)

// relations compares answers if at least one is an equation or inequality.
func (c *comparer) relations(g, p *formula.Expr) result {
	g, p = oriented(g), oriented(p)
	if g.Op == formula.Relation && p.Op == formula.Relation {
		return c.twoRelations(g, p)
	}
	if r, ok := c.regions(g, p); ok {
		return r
	}
	if a, b := asInterval(g), asInterval(p); a != g || b != p {
		return c.same(a, b)
	}
	x, other := g, p
	if p.Op == formula.Relation {
		x, other = p, g
	}
	if x == p && c.givesRounded(p, g) {
		return yes("the value that the answer rounds to").by(Convention)
	}
	if all := repeated(x, other); all != nil {
		return c.same(all, other)
	}
	if v, ok := c.value(x); ok {
		if x == g {
			return c.same(v, p)
		}
		return c.same(g, v)
	}
	if isInequality(x) && formula.IsCollection(other) {
		return unsure("an inequality that is not solved")
	}
	return no(fmt.Sprintf("%s against %s", describe(p), describe(g)))
}

// tupleOf returns the values of (x, y, z) = (1, 1, 1), nil if x is something else.
func tupleOf(x *formula.Expr) *formula.Expr {
	if len(x.Args) == 2 && x.Rels[0] == "=" && x.Args[0].Op == formula.Tuple && x.Args[1].Op == formula.Tuple &&
		isSimple(x.Args[0]) {
		return x.Args[1]
	}
	return nil
}

// repeated writes x = y = z = 1 as (1, 1, 1) if the other side is a tuple of as many; nil if it is something else.
func repeated(x, other *formula.Expr) *formula.Expr {
	n := len(x.Args) - 1
	if other.Op != formula.Tuple || len(other.Args) != n || len(formula.Variables(x.Args[n])) > 0 ||
		slices.ContainsFunc(x.Rels, func(r string) bool { return r != "=" }) {
		return nil
	}
	var names []string
	y := *other
	y.Args = nil
	for _, a := range x.Args[:n] {
		if a.Op != formula.Sym || slices.Contains(names, a.Name) {
			return nil
		}
		names = append(names, a.Name)
		y.Args = append(y.Args, x.Args[n])
	}
	return &y
}

// oriented writes 5 = x as x = 5.
func oriented(x *formula.Expr) *formula.Expr {
	if x.Op != formula.Relation || len(x.Args) != 2 || x.Rels[0] != "=" || len(formula.Variables(x.Args[0])) > 0 ||
		!isSimple(x.Args[1]) {
		return x
	}
	y := *x
	y.Args = []*formula.Expr{x.Args[1], x.Args[0]}
	return &y
}

func isInequality(x *formula.Expr) bool {
	return x.Op == formula.Relation && !slices.ContainsFunc(x.Rels, func(r string) bool {
		return r == "=" || r == "≈" || r == "->"
	})
}

// value returns the value an equation gives its left side: 5 for x = 5 and for 2+3 = 5, and √2 for
// x = √2 ≈ 1.414.
func (c *comparer) value(x *formula.Expr) (*formula.Expr, bool) {
	exact := len(x.Args)
	for i, r := range x.Rels {
		switch {
		case r == "≈" && exact == len(x.Args):
			exact = i + 1
		case r != "=" && r != "≈":
			return nil, false
		}
	}
	if exact < len(x.Args) {
		if exact == 1 && isUnknown(x.Args[0]) && len(x.Args) == 2 { // x ≈ 5
			return x.Args[1], !shareVariables(x.Args[0], x.Args[1])
		}
		for i, a := range x.Args[exact:] {
			if !c.isRounded(x.Args[exact-1], a) {
				return nil, false
			}
			if i > 0 && x.Rels[exact+i-1] == "=" && !c.same(x.Args[exact+i-1], a).equal {
				return nil, false // √5 ≈ 2.24 = 2
			}
		}
	}
	last := x.Args[exact-1]
	for i, a := range x.Args[:exact-1] {
		if isUnknown(a) || last.Op == formula.Matrix && isPowerOfName(a) {
			if shareVariables(a, last) {
				return nil, false
			}
			continue
		}
		if i > 0 && isUnknown(x.Args[0]) && len(formula.Variables(a)) > 0 && len(formula.Variables(last)) == 0 {
			continue // C = 2πr = 6π
		}
		if !c.same(a, last).equal {
			return nil, false
		}
	}
	return last, true
}

// shareVariables reports whether a name and a value have a variable in common that is not the argument of f(x).
func shareVariables(name, value *formula.Expr) bool {
	vars := formula.Variables(value)
	return slices.ContainsFunc(formula.Variables(name), func(v string) bool {
		return slices.Contains(vars, v) && !isFunctionOf(name, v) && !isInverse(name)
	})
}

// isRounded reports whether a number is a value rounded to the digits it has, or cut off to two digits or
// more.
func (c *comparer) isRounded(value, rounded *formula.Expr) bool {
	value, rounded = withoutUnit(value), withoutUnit(rounded)
	if rounded.Op == formula.Percent && value.Op != formula.Percent {
		value = formula.Product(value, formula.Integer(100))
	}
	lit := literal(inner(rounded))
	if lit == nil || len(formula.Variables(value)) > 0 || !value.IsScalar() || !rounded.IsScalar() {
		return c.same(value, rounded).equal
	}
	at := formula.Point{Complex: value.Has(formula.IsImaginary)}
	a, ok := c.Evaluate(inner(value), &at)
	b, ok2 := c.Evaluate(inner(rounded), &at)
	if !ok || !ok2 {
		return false
	}
	unit := math.Pow10(-lit.Decimals)
	d := formula.Ball{V: a.V - b.V}.Size()
	return d <= unit/2*1.0001+a.R || d < unit && b.Size() <= a.Size() && b.Size() >= 10*unit
}

// givesRounded reports whether A ≈ B says the decimal gold answer: B is that and A rounded, not cut off. A decimal A
// is an answer itself, which B must not change: 0.54 ≈ 0.5 gives 0.54 only.
func (c *comparer) givesRounded(x, gold *formula.Expr) bool {
	exact := slices.Index(x.Rels, "≈")
	if exact < 0 {
		return false
	}
	value, rounded := withoutUnit(x.Args[exact]), x.Args[len(x.Args)-1]
	lit, last := literal(inner(withoutUnit(gold))), literal(inner(withoutUnit(rounded)))
	if lit == nil || lit.Decimals == 0 || last == nil || isSimple(value) || c.isTerminating(value) {
		return false
	}
	if _, ok := c.value(x); !ok {
		return false
	}
	if rounded = withoutUnit(rounded); rounded.Op == formula.Percent && value.Op != formula.Percent {
		value = formula.Product(value, formula.Integer(100))
	}
	a, ok := c.Evaluate(inner(value), &formula.Point{})
	b, ok2 := c.Evaluate(inner(rounded), &formula.Point{})
	if half := math.Pow10(-last.Decimals) / 2; !ok || !ok2 || (formula.Ball{V: a.V - b.V}).Size() > half*1.0001+a.R {
		return false
	}
	return c.same(gold, x.Args[len(x.Args)-1]).equal
}

// isTerminating reports whether a decimal with finitely many digits has the value of x.
func (c *comparer) isTerminating(x *formula.Expr) bool {
	v, ok := c.Rational(inner(x))
	if !ok {
		return false
	}
	rest := new(big.Int).Set(v.Denom())
	for _, p := range []int64{2, 5} {
		for q, r := new(big.Int), new(big.Int); ; rest.Set(q) {
			if q.QuoRem(rest, big.NewInt(p), r); r.Sign() != 0 {
				break
			}
		}
	}
	return rest.IsInt64() && rest.Int64() == 1
}

func withoutUnit(x *formula.Expr) *formula.Expr {
	if x.Op == formula.Unit {
		return x.Args[0]
	}
	return x
}

// isUnknown reports whether x is a name that an equation may give a value: no constant, and no |x| of an unknown real
// number, which leaves its sign open.
func isUnknown(x *formula.Expr) bool {
	if x.Op == formula.Sym && x.Name == formula.Pi {
		return false
	}
	if x.Op == formula.Func && x.Name == "abs" && x.Args[0].Op == formula.Sym && len(x.Args) == 1 {
		return !slices.Contains([]string{"x", "y", "t", "n", "m", "k"}, x.Args[0].Name)
	}
	return isSimple(x)
}

// isSimple reports whether x is a name, f(x), or sums and products of names, as on the left of the answer
// to "find a+b".
func isSimple(x *formula.Expr) bool {
	switch x.Op {
	case formula.Sym:
		return true
	case formula.Add:
		return !slices.ContainsFunc(x.Args, func(a *formula.Expr) bool { return !isSimple(a) && !isNegatedName(a) })
	case formula.Mul:
		return isInverse(x) || isApplication(x) || !slices.ContainsFunc(x.Args, func(a *formula.Expr) bool {
			return !isSimple(a) && !(isReciprocal(a) && isSimple(x.Args[0]))
		})
	case formula.Tuple, formula.Ratio, formula.List, formula.Matrix:
		return !slices.ContainsFunc(x.Args, func(a *formula.Expr) bool { return !isSimple(a) })
	case formula.Func:
		return len(formula.Variables(x)) > 0
	case formula.Degree:
		return isSimple(x.Args[0])
	}
	return false
}

// isPowerOfName reports whether x is a power, the inverse or the transpose of a matrix with a name: A^{-1}.
func isPowerOfName(x *formula.Expr) bool {
	return x.Op == formula.Pow && x.Args[0].Op == formula.Sym && len(x.Args[0].Name) == 1 && x.Args[0].Name < "a" &&
		(x.Args[1].Op == formula.Num && x.Args[1].Num.IsInt() || x.Args[1].Op == formula.Sym)
}

func isNegatedName(x *formula.Expr) bool {
	return x.Op == formula.Mul && len(x.Args) == 2 && x.Args[0].Op == formula.Num && x.Args[0].Num.Cmp(big.NewRat(-1,
		1)) == 0 &&
		isSimple(x.Args[1])
}

// isReciprocal reports whether x is 1 over a name.
func isReciprocal(x *formula.Expr) bool {
	return x.Op == formula.Pow && x.Args[1].Op == formula.Num && x.Args[1].Num.Cmp(big.NewRat(-1, 1)) == 0 &&
		isSimple(x.Args[0])
}

// twoRelations compares equations and inequalities by their right sides, as sets of real numbers, or as
// multiples of each other.
func (c *comparer) twoRelations(g, p *formula.Expr) result {
	if v := tupleOf(g); v != nil && len(p.Args) > 2 { // (x, y, z) = (1, 1, 1) against x = y = z = 1
		if all := repeated(p, v); all != nil {
			return c.same(v, all)
		}
	}
	if v := tupleOf(p); v != nil && len(g.Args) > 2 {
		if all := repeated(g, v); all != nil {
			return c.same(all, v)
		}
	}
	if gv, ok := c.value(g); ok {
		if pv, ok := c.value(p); ok && isSimple(g.Args[0]) && isSimple(p.Args[0]) &&
			!shareVariables(g.Args[0], pv) && !shareVariables(p.Args[0], gv) {
			pv = sameArguments(g.Args[0], p.Args[0], pv)
			left := c.sameNames(g.Args[0], p.Args[0])
			r := c.same(gv, pv)
			if !r.equal && c.solveEachOther(g, p) {
				return yes("the same equation, solved for another variable")
			}
			if !r.equal {
				if q := c.sameConstantName(g.Args[0], gv, pv); q.equal {
					r = q
				}
			}
			if left.equal || !r.equal || p.Args[0].String() == latex.AnyName || dependsOn(g.Args[0], p.Args[0], gv) ||
				len(formula.Variables(gv)) > 0 && g.Args[0].Op != p.Args[0].Op && isOneName(g.Args[0]) &&
					isOneName(p.Args[0]) {
				return r
			}
			if g.Args[0].Op != p.Args[0].Op && isValueOfFunction(g.Args[0]) && isValueOfFunction(p.Args[0]) {
				// f(x) = y
				return r
			}
			return unsure("equal values of different names")
		}
	}
	if r, ok := c.regions(g, p); ok && (r.equal || r.sure) {
		return r
	}
	if len(g.Args) != len(p.Args) {
		if isInequality(g) && isInequality(p) {
			return unsure("inequalities that are not solved")
		}
		return no("relations of different length")
	}
	if len(g.Args) == 2 {
		return c.multiples(g, p)
	}
	straight := slices.Equal(g.Rels, p.Rels)
	if straight {
		if r := c.inOrder(g.Args, p.Args); r.equal {
			return r
		}
	}
	back, rels := slices.Clone(p.Args), slices.Clone(p.Rels)
	slices.Reverse(back)
	slices.Reverse(rels)
	for i, r := range rels {
		rels[i] = flip(r)
	}
	if slices.Equal(g.Rels, rels) {
		return c.inOrder(g.Args, back)
	}
	return no("the relations differ")
}

func flip(rel string) string {
	if other, ok := flipped[rel]; ok {
		return other
	}
	return rel
}

// flipped are the signs that mean the same with the sides exchanged.
var flipped = map[string]string{"<": ">", ">": "<", "<=": ">=", ">=": "<=", "⊂": "⊃", "⊃": "⊂", "⊆": "⊇", "⊇": "⊆",
	"⊊": "⊋", "⊋": "⊊", "≺": "≻", "≻": "≺", "⪯": "⪰", "⪰": "⪯", "≪": "≫", "≫": "≪",
	"->": "<-", "<-": "->", "⊲": "⊳", "⊳": "⊲"}
