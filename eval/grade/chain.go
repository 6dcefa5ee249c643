package grade

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// relations compares answers if at least one is an equation or inequality.
func (c *comparer) relations(g, p *expr) result {
	g, p = oriented(g), oriented(p)
	if g.op == opRelation && p.op == opRelation {
		return c.twoRelations(g, p)
	}
	if r, ok := c.regions(g, p); ok {
		return r
	}
	x, other := g, p
	if p.op == opRelation {
		x, other = p, g
	}
	if v, ok := c.value(x); ok {
		if x == g {
			return c.same(v, p)
		}
		return c.same(g, v)
	}
	if isInequality(x) && isCollection(other) {
		return unsure("an inequality that is not solved")
	}
	return no(fmt.Sprintf("%s against %s", describe(p), describe(g)))
}

// oriented writes 5 = x as x = 5.
func oriented(x *expr) *expr {
	if x.op != opRelation || len(x.args) != 2 || x.rels[0] != "=" || len(variables(x.args[0])) > 0 ||
		!isSimple(x.args[1]) {
		return x
	}
	y := *x
	y.args = []*expr{x.args[1], x.args[0]}
	return &y
}

func isInequality(x *expr) bool {
	return x.op == opRelation && !slices.ContainsFunc(x.rels, func(r string) bool {
		return r == "=" || r == "≈" || r == "->"
	})
}

// value returns the value an equation gives its left side: 5 for x = 5 and for 2+3 = 5, and √2 for
// x = √2 ≈ 1.414.
func (c *comparer) value(x *expr) (*expr, bool) {
	exact := len(x.args)
	for i, r := range x.rels {
		switch {
		case r == "≈" && exact == len(x.args):
			exact = i + 1
		case r != "=" && r != "≈":
			return nil, false
		}
	}
	if exact < len(x.args) {
		if exact == 1 && isSimple(x.args[0]) && len(x.args) == 2 { // x ≈ 5
			return x.args[1], !shareVariables(x.args[0], x.args[1])
		}
		for _, a := range x.args[exact:] {
			if !c.isRounded(x.args[exact-1], a) {
				return nil, false
			}
		}
	}
	last := x.args[exact-1]
	for _, a := range x.args[:exact-1] {
		if isSimple(a) {
			if shareVariables(a, last) {
				return nil, false
			}
			continue
		}
		if !c.same(a, last).equal {
			return nil, false
		}
	}
	return last, true
}

// shareVariables reports whether a name and a value have a variable in common that is not the argument of f(x).
func shareVariables(name, value *expr) bool {
	vars := variables(value)
	return slices.ContainsFunc(variables(name), func(v string) bool {
		return slices.Contains(vars, v) && !isFunctionOf(name, v) && !isInverse(name)
	})
}

// isRounded reports whether a number is a value rounded or cut off to the digits it has.
func (c *comparer) isRounded(value, rounded *expr) bool {
	value, rounded = withoutUnit(value), withoutUnit(rounded)
	if rounded.op == opPercent && value.op != opPercent {
		value = product(value, integer(100))
	}
	lit := literal(inner(rounded))
	if lit == nil || len(variables(value)) > 0 || !value.isScalar() || !rounded.isScalar() {
		return c.same(value, rounded).equal
	}
	at := point{complex: value.has(isImaginary)}
	a, ok := c.evaluate(inner(value), &at)
	b, ok2 := c.evaluate(inner(rounded), &at)
	if !ok || !ok2 {
		return false
	}
	unit := math.Pow10(-lit.decimals)
	d := ball{v: a.v - b.v}.size()
	return d <= unit/2*1.0001+a.r || d < unit && b.size() <= a.size()
}

func withoutUnit(x *expr) *expr {
	if x.op == opUnit {
		return x.args[0]
	}
	return x
}

// isSimple reports whether x is a name, f(x), or sums and products of names, as on the left of the answer
// to "find a+b".
func isSimple(x *expr) bool {
	switch x.op {
	case opSym:
		return true
	case opAdd:
		return !slices.ContainsFunc(x.args, func(a *expr) bool { return !isSimple(a) && !isNegatedName(a) })
	case opMul:
		return isInverse(x) || isApplication(x) || !slices.ContainsFunc(x.args, func(a *expr) bool {
			return !isSimple(a) && !(isReciprocal(a) && isSimple(x.args[0]))
		})
	case opTuple, opRatio, opList:
		return !slices.ContainsFunc(x.args, func(a *expr) bool { return !isSimple(a) })
	case opFunc:
		return len(variables(x)) > 0
	case opDegree:
		return isSimple(x.args[0])
	}
	return false
}

func isNegatedName(x *expr) bool {
	return x.op == opMul && len(x.args) == 2 && x.args[0].op == opNum && x.args[0].num.Cmp(big.NewRat(-1, 1)) == 0 &&
		isSimple(x.args[1])
}

// isReciprocal reports whether x is 1 over a name.
func isReciprocal(x *expr) bool {
	return x.op == opPow && x.args[1].op == opNum && x.args[1].num.Cmp(big.NewRat(-1, 1)) == 0 && isSimple(x.args[0])
}

// isApplication reports whether x is a function of anything: f'(3), P(X = 1).
func isApplication(x *expr) bool {
	if x.op != opMul || len(x.args) != 2 {
		return false
	}
	if f := x.args[0]; f.op == opPow && isReciprocal(f) && f.args[0].op == opSym { // f^{-1}(2)
		return strings.Contains("fgh", f.args[0].name)
	}
	if x.args[0].op != opSym {
		return false
	}
	name, _, _ := strings.Cut(x.args[0].name, "_")
	return strings.HasSuffix(name, "'") || len(name) == 1 && strings.Contains("fghFGHPQEVSTN", name) ||
		slices.Contains([]string{"Area", "Var", "Pr"}, name)
}

// sameNames compares the left sides of two equations.
func (c *comparer) sameNames(g, p *expr) result {
	if g.String() == p.String() || isApplication(g) && isApplication(p) && g.args[0].op == opSym &&
		g.args[0].name == p.args[0].name &&
		len(arguments(g)) > 0 && len(arguments(g)) == len(arguments(p)) {
		return yes("the same name")
	}
	return c.same(g, p)
}

// sameArguments renames the arguments of p's function to those of g's: f(t) = 2t is f(x) = 2x.
func sameArguments(g, p, value *expr) *expr {
	if !isApplication(g) || !isApplication(p) || g.args[0].op != opSym || g.args[0].name != p.args[0].name {
		return value
	}
	from, to := arguments(p), arguments(g)
	if len(from) != len(to) || slices.Equal(from, to) {
		return value
	}
	for i, v := range from {
		value = rename(value, v, boundName+"f"+strconv.Itoa(i))
	}
	for i, v := range to {
		value = rename(value, boundName+"f"+strconv.Itoa(i), v)
	}
	return value
}

// arguments returns the variables that f is applied to, nil if one is no variable.
func arguments(x *expr) []string {
	list := []*expr{x.args[1]}
	if list[0].op == opTuple {
		list = list[0].args
	}
	var names []string
	for _, a := range list {
		if a.op != opSym || slices.Contains(names, a.name) {
			return nil
		}
		names = append(names, a.name)
	}
	return names
}

// isInverse reports whether x is f^{-1}(v).
func isInverse(x *expr) bool {
	if x.op != opMul || len(x.args) != 2 || x.args[1].op != opSym {
		return false
	}
	f := x.args[0]
	return f.op == opPow && f.args[0].op == opSym && f.args[1].op == opNum &&
		f.args[1].num.Cmp(big.NewRat(-1, 1)) == 0
}

// isFunctionOf reports whether x is f(v) or f(…, v, …).
func isFunctionOf(x *expr, v string) bool {
	return x.op == opMul && len(x.args) == 2 && x.args[0].op == opSym &&
		(x.args[1].op == opSym && x.args[1].name == v || x.args[1].op == opTuple && slices.Contains(arguments(x), v))
}

// isValueOfFunction reports whether x is f(v), or the y that stands for it.
func isValueOfFunction(x *expr) bool {
	return x.op == opSym || x.op == opMul && len(x.args) == 2 && x.args[0].op == opSym && x.args[1].op != opNum &&
		strings.Contains("fghpquvFGHPQ", x.args[0].name)
}

// twoRelations compares equations and inequalities by their right sides, as sets of real numbers, or as
// multiples of each other.
func (c *comparer) twoRelations(g, p *expr) result {
	if gv, ok := c.value(g); ok {
		if pv, ok := c.value(p); ok && isSimple(g.args[0]) && isSimple(p.args[0]) {
			pv = sameArguments(g.args[0], p.args[0], pv)
			left := c.sameNames(g.args[0], p.args[0])
			r := c.same(gv, pv)
			if left.equal || !r.equal || p.args[0].String() == anyName ||
				len(variables(gv)) > 0 && g.args[0].op != p.args[0].op {
				return r
			}
			if g.args[0].op != p.args[0].op && isValueOfFunction(g.args[0]) && isValueOfFunction(p.args[0]) {
				// f(x) = y
				return r
			}
			return unsure("equal values of different names")
		}
	}
	if r, ok := c.regions(g, p); ok && (r.equal || r.sure) {
		return r
	}
	if len(g.args) != len(p.args) {
		if isInequality(g) && isInequality(p) {
			return unsure("inequalities that are not solved")
		}
		return no("relations of different length")
	}
	if len(g.args) == 2 {
		return c.multiples(g, p)
	}
	straight := slices.Equal(g.rels, p.rels)
	if straight {
		if r := c.inOrder(g.args, p.args); r.equal {
			return r
		}
	}
	back, rels := slices.Clone(p.args), slices.Clone(p.rels)
	slices.Reverse(back)
	slices.Reverse(rels)
	for i, r := range rels {
		rels[i] = flip(r)
	}
	if slices.Equal(g.rels, rels) {
		return c.inOrder(g.args, back)
	}
	return no("the relations differ")
}

func flip(rel string) string {
	switch rel {
	case "<":
		return ">"
	case ">":
		return "<"
	case "<=":
		return ">="
	case ">=":
		return "<="
	}
	return rel
}
