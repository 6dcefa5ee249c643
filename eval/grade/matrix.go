package grade

import (
	"math/big"
	"strconv"

	"exp/eval/grade/formula"
)

// matrices compares two matrices, or a column or row with a tuple.
func (c *comparer) matrices(g, p *formula.Expr) result {
	g, p = withoutMatrixNames(g, p), withoutMatrixNames(p, g)
	a, ok := c.grid(g)
	b, ok2 := c.grid(p)
	if !ok || !ok2 {
		if g.String() == p.String() {
			return yes("the same expression")
		}
		if !ok && isMatrixTimes(g) || !ok2 && isMatrixTimes(p) {
			return unsure("arithmetic with matrices that is not followed")
		}
		return no(describe(p) + " against " + describe(g))
	}
	vector := (g.Op == formula.Tuple || p.Op == formula.Tuple) && (a.Rows == 1 || a.Cols == 1) && (b.Rows == 1 ||
		b.Cols == 1)
	if (a.Rows != b.Rows || a.Cols != b.Cols) && !vector {
		return no("matrices of different sizes")
	}
	r := c.inOrder(a.At, b.At)
	if r.equal {
		r.why = "equal entries"
	}
	return r
}

// withoutMatrixNames writes the identity matrix I and the zero matrix in x as matrices of the size of the other side.
func withoutMatrixNames(x, other *formula.Expr) *formula.Expr {
	if x.Has(formula.IsMatrix) || other.Op != formula.Matrix || other.Cols == 0 {
		return x
	}
	rows := len(other.Args) / other.Cols
	if x.Op == formula.Num && x.Num.Sign() == 0 {
		return diagonal(rows, other.Cols, 0)
	}
	if rows != other.Cols {
		return x
	}
	return formula.Rewrite(x, func(y *formula.Expr) *formula.Expr {
		if y.Op == formula.Sym && (y.Name == "I" || y.Name == "I_"+strconv.Itoa(rows)) {
			return diagonal(rows, rows, 1)
		}
		return y
	})
}

// diagonal returns a matrix with one value on its diagonal and zeros elsewhere.
func diagonal(rows, cols int, value int64) *formula.Expr {
	m := &formula.Expr{Op: formula.Matrix, Cols: cols}
	for i := range rows {
		for j := range cols {
			v := int64(0)
			if i == j {
				v = value
			}
			m.Args = append(m.Args, formula.Integer(v))
		}
	}
	return m
}

func isMatrixTimes(x *formula.Expr) bool { return x.Op != formula.Matrix && x.Has(formula.IsMatrix) }

// grid evaluates sums, products, integer powers and transposes of matrices.
func (c *comparer) grid(x *formula.Expr) (formula.Grid, bool) {
	if !c.Spend(2) {
		return formula.Grid{}, false
	}
	switch x.Op {
	case formula.Matrix:
		return formula.Grid{Rows: len(x.Args) / x.Cols, Cols: x.Cols, At: x.Args}, true
	case formula.Tuple:
		return formula.TupleGrid(x)
	case formula.Add, formula.Mul:
		return c.gridFold(x)
	case formula.Pow:
		return c.gridPower(x)
	}
	return formula.Grid{}, false
}

func (c *comparer) gridFold(x *formula.Expr) (formula.Grid, bool) {
	var acc formula.Grid
	var scale []*formula.Expr
	for _, a := range x.Args {
		if !a.Has(formula.IsMatrix) {
			if x.Op == formula.Add || !a.IsScalar() {
				return formula.Grid{}, false
			}
			scale = append(scale, a)
			continue
		}
		m, ok := c.grid(a)
		if !ok || len(m.At) > formula.MaxEntries {
			return formula.Grid{}, false
		}
		switch {
		case acc.At == nil:
			acc = m
		case x.Op == formula.Add:
			acc, ok = formula.AddGrids(acc, m)
		default:
			acc, ok = c.mulGrids(acc, m)
		}
		if !ok {
			return formula.Grid{}, false
		}
	}
	if acc.At == nil {
		return formula.Grid{}, false
	}
	if len(scale) > 0 {
		scaled := make([]*formula.Expr, len(acc.At))
		for i, e := range acc.At {
			scaled[i] = formula.Product(append([]*formula.Expr{e}, scale...)...)
		}
		acc.At = scaled
	}
	return acc, true
}

// mulGrids multiplies and folds rational entries at once.
func (c *comparer) mulGrids(a, b formula.Grid) (formula.Grid, bool) {
	if a.Cols != b.Rows || a.Rows*b.Cols > formula.MaxEntries {
		return formula.Grid{}, false
	}
	out := formula.Grid{Rows: a.Rows, Cols: b.Cols}
	for i := range a.Rows {
		for j := range b.Cols {
			var terms []*formula.Expr
			for k := range a.Cols {
				terms = append(terms, formula.Product(a.At[i*a.Cols+k], b.At[k*b.Cols+j]))
			}
			e := formula.Sum(terms...)
			if v, ok := c.Rational(e); ok {
				e = formula.Number(v)
			} else if e.Size(2000) >= 2000 || !c.Spend(20) {
				return formula.Grid{}, false
			}
			out.At = append(out.At, e)
		}
	}
	return out, true
}

func (c *comparer) gridPower(x *formula.Expr) (formula.Grid, bool) {
	m, ok := c.grid(x.Args[0])
	if !ok {
		return formula.Grid{}, false
	}
	if e := x.Args[1]; e.Op == formula.Sym && (e.Name == "T" || e.Name == "t") {
		out := formula.Grid{Rows: m.Cols, Cols: m.Rows}
		for j := range m.Cols {
			for i := range m.Rows {
				out.At = append(out.At, m.At[i*m.Cols+j])
			}
		}
		return out, true
	}
	v, ok := c.Rational(x.Args[1])
	if !ok || m.Rows != m.Cols {
		return formula.Grid{}, false
	}
	if v.Cmp(big.NewRat(-1, 1)) == 0 {
		return c.inverse(m)
	}
	n, ok := formula.SmallNatural(v, 20)
	if !ok || n == 0 {
		return formula.Grid{}, false
	}
	acc := m
	for range n - 1 {
		if acc, ok = c.mulGrids(acc, m); !ok {
			return formula.Grid{}, false
		}
	}
	return acc, true
}

// inverse returns the adjugate over the determinant, up to 3×3.
func (c *comparer) inverse(m formula.Grid) (formula.Grid, bool) {
	d, ok := formula.Determinant(m)
	if !ok || m.Rows < 2 || m.Rows > 3 || d.Size(500) >= 500 {
		return formula.Grid{}, false
	}
	if v, ok := c.Rational(d); ok && v.Sign() == 0 {
		return formula.Grid{}, false
	}
	out := formula.Grid{Rows: m.Rows, Cols: m.Cols}
	for i := range m.Rows {
		for j := range m.Cols {
			cofactor, _ := formula.Determinant(m.Without(j, i))
			if (i+j)%2 == 1 {
				cofactor = formula.Negative(cofactor)
			}
			out.At = append(out.At, formula.Quotient(cofactor, d))
		}
	}
	return out, true
}
