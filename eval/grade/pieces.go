package grade

import (
	"cmp"
	"math"
	"slices"

	"exp/eval/grade/formula"
)

// piece is an interval of real numbers, or one number if both ends are equal.
type piece struct {
	lo, hi             float64
	loExpr, hiExpr     *formula.Expr // nil for an infinite end
	loClosed, hiClosed bool
}

// near treats ends as equal if float64 cannot tell them apart; comparing two sets uses the expressions
// themselves.
func near(a, b float64) bool {
	return a == b || !math.IsInf(a, 0) && !math.IsInf(b, 0) && math.Abs(a-b) <= 1e-11*math.Max(math.Abs(a),
		math.Abs(b))
}

func everything() piece { return piece{lo: math.Inf(-1), hi: math.Inf(1)} }

// endpoint is a real number, or an infinity without expression.
type endpoint struct {
	v    float64
	expr *formula.Expr
}

func halfLine(rel string, e endpoint) ([]piece, bool) {
	p := everything()
	switch rel {
	case "<", "<=":
		p.hi, p.hiExpr, p.hiClosed = e.v, e.expr, rel == "<=" && e.expr != nil
	case ">", ">=":
		p.lo, p.loExpr, p.loClosed = e.v, e.expr, rel == ">=" && e.expr != nil
	case "=":
		return []piece{{e.v, e.v, e.expr, e.expr, true, true}}, e.expr != nil
	case "!=":
		return complement([]piece{{e.v, e.v, e.expr, e.expr, true, true}}), e.expr != nil
	default:
		return nil, false
	}
	return []piece{p}, true
}

// merge sorts pieces and joins pieces that overlap or touch.
func merge(list []piece) []piece {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b piece) int {
		if !near(a.lo, b.lo) {
			return cmp.Compare(a.lo, b.lo)
		}
		switch {
		case a.loClosed == b.loClosed:
			return 0
		case a.loClosed:
			return -1
		}
		return 1
	})
	var out []piece
	for _, p := range list {
		if near(p.lo, p.hi) && !(p.loClosed && p.hiClosed) {
			continue // empty
		}
		if len(out) > 0 {
			q := &out[len(out)-1]
			if p.lo < q.hi && !near(p.lo, q.hi) || near(p.lo, q.hi) && (p.loClosed || q.hiClosed) {
				if near(p.hi, q.hi) {
					q.hiClosed = q.hiClosed || p.hiClosed
				} else if p.hi > q.hi {
					q.hi, q.hiExpr, q.hiClosed = p.hi, p.hiExpr, p.hiClosed
				}
				continue
			}
		}
		out = append(out, p)
	}
	return out
}

// complement returns the complement of pieces, merged or not.
func complement(list []piece) []piece {
	out := []piece{}
	rest := everything()
	for _, p := range merge(list) {
		before := piece{rest.lo, p.lo, rest.loExpr, p.loExpr, rest.loClosed, !p.loClosed && p.loExpr != nil}
		if !math.IsInf(p.lo, -1) && (before.lo < before.hi && !near(before.lo, before.hi) || before.loClosed &&
			before.hiClosed) {
			out = append(out, before)
		}
		rest.lo, rest.loExpr, rest.loClosed = p.hi, p.hiExpr, !p.hiClosed && p.hiExpr != nil
	}
	if !math.IsInf(rest.lo, 1) {
		out = append(out, rest)
	}
	return out
}

func intersect(a, b []piece) []piece {
	var out []piece
	for _, p := range a {
		for _, q := range b {
			r := p
			if near(q.lo, r.lo) {
				r.loClosed = r.loClosed && q.loClosed
			} else if q.lo > r.lo {
				r.lo, r.loExpr, r.loClosed = q.lo, q.loExpr, q.loClosed
			}
			if near(q.hi, r.hi) {
				r.hiClosed = r.hiClosed && q.hiClosed
			} else if q.hi < r.hi {
				r.hi, r.hiExpr, r.hiClosed = q.hi, q.hiExpr, q.hiClosed
			}
			if r.lo < r.hi && !near(r.lo, r.hi) || near(r.lo, r.hi) && r.loClosed && r.hiClosed {
				out = append(out, r)
			}
		}
	}
	return merge(out)
}
