package formula

import "math/big"

// Grid is a matrix of expressions in row-major order.
type Grid struct {
	Rows, Cols int
	At         []*Expr
}

// MaxEntries bounds matrices in arithmetic.
const MaxEntries = 64

// TupleGrid returns a column, or the matrix that [[1,2],[3,4]] denotes.
func TupleGrid(x *Expr) (Grid, bool) {
	g := Grid{len(x.Args), 1, x.Args}
	if x.Open != '[' || x.Args[0].Op != Tuple || x.Args[0].Open != '[' {
		return g, true
	}
	g.Cols, g.At = len(x.Args[0].Args), nil
	for _, row := range x.Args {
		if row.Op != Tuple || len(row.Args) != g.Cols {
			return Grid{}, false
		}
		g.At = append(g.At, row.Args...)
	}
	return g, true
}

// AddGrids adds two matrices of one size.
func AddGrids(a, b Grid) (Grid, bool) {
	if a.Rows != b.Rows || a.Cols != b.Cols {
		return Grid{}, false
	}
	out := Grid{a.Rows, a.Cols, make([]*Expr, len(a.At))}
	for i := range a.At {
		out.At[i] = Sum(a.At[i], b.At[i])
	}
	return out, true
}

// Without returns the matrix without a row and a column.
func (g Grid) Without(row, col int) Grid {
	minor := Grid{Rows: g.Rows - 1, Cols: g.Cols - 1}
	for i := range g.Rows {
		for j := range g.Cols {
			if i != row && j != col {
				minor.At = append(minor.At, g.At[i*g.Cols+j])
			}
		}
	}
	return minor
}

// Determinant expands along the first row; for \begin{vmatrix}, up to 5×5.
func Determinant(g Grid) (*Expr, bool) {
	if g.Rows != g.Cols || g.Rows > 5 {
		return nil, false
	}
	if g.Rows == 1 {
		return g.At[0], true
	}
	var terms []*Expr
	for k := range g.Cols {
		d, ok := Determinant(g.Without(0, k))
		if !ok {
			return nil, false
		}
		sign := big.NewRat(1, 1)
		if k%2 == 1 {
			sign.SetInt64(-1)
		}
		terms = append(terms, Product(Number(sign), g.At[k], d))
	}
	return Sum(terms...), true
}
