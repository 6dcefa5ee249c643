package grade

import "math/big"

// grid is a matrix of expressions in row-major order.
type grid struct {
	rows, cols int
	at         []*expr
}

// maxEntries bounds matrices in arithmetic.
const maxEntries = 64

// matrices compares two matrices, or a column or row with a tuple.
func (c *comparer) matrices(g, p *expr) result {
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
	vector := (g.op == opTuple || p.op == opTuple) && (a.rows == 1 || a.cols == 1) && (b.rows == 1 || b.cols == 1)
	if (a.rows != b.rows || a.cols != b.cols) && !vector {
		return no("matrices of different sizes")
	}
	r := c.inOrder(a.at, b.at)
	if r.equal {
		r.why = "equal entries"
	}
	return r
}

func isMatrixTimes(x *expr) bool { return x.op != opMatrix && x.has(isMatrix) }

// grid evaluates sums, products, integer powers and transposes of matrices.
func (c *comparer) grid(x *expr) (grid, bool) {
	if !c.spend(2) {
		return grid{}, false
	}
	switch x.op {
	case opMatrix:
		return grid{len(x.args) / x.cols, x.cols, x.args}, true
	case opTuple:
		return tupleGrid(x)
	case opAdd, opMul:
		return c.gridFold(x)
	case opPow:
		return c.gridPower(x)
	}
	return grid{}, false
}

// tupleGrid returns a column, or the matrix that [[1,2],[3,4]] denotes.
func tupleGrid(x *expr) (grid, bool) {
	g := grid{len(x.args), 1, x.args}
	if x.open != '[' || x.args[0].op != opTuple || x.args[0].open != '[' {
		return g, true
	}
	g.cols, g.at = len(x.args[0].args), nil
	for _, row := range x.args {
		if row.op != opTuple || len(row.args) != g.cols {
			return grid{}, false
		}
		g.at = append(g.at, row.args...)
	}
	return g, true
}

func (c *comparer) gridFold(x *expr) (grid, bool) {
	var acc grid
	var scale []*expr
	for _, a := range x.args {
		if !a.has(isMatrix) {
			if x.op == opAdd || !a.isScalar() {
				return grid{}, false
			}
			scale = append(scale, a)
			continue
		}
		m, ok := c.grid(a)
		if !ok || len(m.at) > maxEntries {
			return grid{}, false
		}
		switch {
		case acc.at == nil:
			acc = m
		case x.op == opAdd:
			acc, ok = addGrids(acc, m)
		default:
			acc, ok = c.mulGrids(acc, m)
		}
		if !ok {
			return grid{}, false
		}
	}
	if acc.at == nil {
		return grid{}, false
	}
	if len(scale) > 0 {
		scaled := make([]*expr, len(acc.at))
		for i, e := range acc.at {
			scaled[i] = product(append([]*expr{e}, scale...)...)
		}
		acc.at = scaled
	}
	return acc, true
}

func addGrids(a, b grid) (grid, bool) {
	if a.rows != b.rows || a.cols != b.cols {
		return grid{}, false
	}
	out := grid{a.rows, a.cols, make([]*expr, len(a.at))}
	for i := range a.at {
		out.at[i] = sum(a.at[i], b.at[i])
	}
	return out, true
}

// mulGrids multiplies and folds rational entries at once.
func (c *comparer) mulGrids(a, b grid) (grid, bool) {
	if a.cols != b.rows || a.rows*b.cols > maxEntries {
		return grid{}, false
	}
	out := grid{rows: a.rows, cols: b.cols}
	for i := range a.rows {
		for j := range b.cols {
			var terms []*expr
			for k := range a.cols {
				terms = append(terms, product(a.at[i*a.cols+k], b.at[k*b.cols+j]))
			}
			e := sum(terms...)
			if v, ok := c.rational(e); ok {
				e = number(v)
			} else if e.size(2000) >= 2000 || !c.spend(20) {
				return grid{}, false
			}
			out.at = append(out.at, e)
		}
	}
	return out, true
}

func (c *comparer) gridPower(x *expr) (grid, bool) {
	m, ok := c.grid(x.args[0])
	if !ok {
		return grid{}, false
	}
	if e := x.args[1]; e.op == opSym && (e.name == "T" || e.name == "t") {
		out := grid{rows: m.cols, cols: m.rows}
		for j := range m.cols {
			for i := range m.rows {
				out.at = append(out.at, m.at[i*m.cols+j])
			}
		}
		return out, true
	}
	v, ok := c.rational(x.args[1])
	if !ok || m.rows != m.cols {
		return grid{}, false
	}
	if v.Cmp(big.NewRat(-1, 1)) == 0 {
		return c.inverse(m)
	}
	n, ok := smallNatural(v, 20)
	if !ok || n == 0 {
		return grid{}, false
	}
	acc := m
	for range n - 1 {
		if acc, ok = c.mulGrids(acc, m); !ok {
			return grid{}, false
		}
	}
	return acc, true
}

// inverse returns the adjugate over the determinant, up to 3×3.
func (c *comparer) inverse(m grid) (grid, bool) {
	d, ok := determinant(m)
	if !ok || m.rows < 2 || m.rows > 3 || d.size(500) >= 500 {
		return grid{}, false
	}
	if v, ok := c.rational(d); ok && v.Sign() == 0 {
		return grid{}, false
	}
	out := grid{rows: m.rows, cols: m.cols}
	for i := range m.rows {
		for j := range m.cols {
			cofactor, _ := determinant(m.without(j, i))
			if (i+j)%2 == 1 {
				cofactor = negative(cofactor)
			}
			out.at = append(out.at, quotient(cofactor, d))
		}
	}
	return out, true
}

// without returns the matrix without a row and a column.
func (g grid) without(row, col int) grid {
	minor := grid{rows: g.rows - 1, cols: g.cols - 1}
	for i := range g.rows {
		for j := range g.cols {
			if i != row && j != col {
				minor.at = append(minor.at, g.at[i*g.cols+j])
			}
		}
	}
	return minor
}

// determinant expands along the first row; for \begin{vmatrix}, up to 5×5.
func determinant(g grid) (*expr, bool) {
	if g.rows != g.cols || g.rows > 5 {
		return nil, false
	}
	if g.rows == 1 {
		return g.at[0], true
	}
	var terms []*expr
	for k := range g.cols {
		d, ok := determinant(g.without(0, k))
		if !ok {
			return nil, false
		}
		sign := big.NewRat(1, 1)
		if k%2 == 1 {
			sign.SetInt64(-1)
		}
		terms = append(terms, product(number(sign), g.at[k], d))
	}
	return sum(terms...), true
}
