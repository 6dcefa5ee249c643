package grade

import (
	"errors"
	"math/big"
	"slices"
	"strings"
)

// Functions by cases: an opCases holds a value and a condition in turn.

// conditionWords introduce a condition.
var conditionWords = []string{"if", "for", "when", "where", "whenever", "is", "are", "all"}

// cases reads value & condition rows up to the end of the environment; the first value has been read.
func (p *parser) cases(first *expr) (*expr, error) {
	x := &expr{op: opCases}
	for value := first; ; {
		condition, err := p.condition()
		if err != nil {
			return nil, err
		}
		x.args = append(x.args, value, condition)
		for p.accept("\\\\") {
		}
		if p.peek().kind == tokFinish {
			return x, nil
		}
		if value, err = p.list(); err != nil {
			return nil, err
		}
		if err := p.expect("&"); err != nil {
			return nil, err
		}
	}
}

// condition reads the rest of a row: words, or relations after "if".
func (p *parser) condition() (*expr, error) {
	from := p.i
	for p.i < len(p.tokens) && p.tokens[p.i].kind != tokFinish && !p.isOp("\\\\") {
		if p.tokens[p.i].kind == tokBegin {
			return nil, errors.New("an environment in a condition")
		}
		p.i++
	}
	cell := p.tokens[from:p.i]
	onlyWords := true
	var text []string
	for i, t := range cell {
		if t.kind == tokText {
			var kept []string
			for _, w := range strings.Fields(strings.ToLower(t.text)) {
				if w = strings.Trim(w, ".,;:"); w != "" && !slices.Contains(conditionWords, w) {
					kept = append(kept, w)
				}
			}
			cell[i].text = strings.Join(kept, " ")
			text = append(text, kept...)
		} else if t.kind == tokSym {
			text = append(text, t.text)
		} else if t.kind != tokOp || t.text != "," && t.text != ";" {
			onlyWords = false
		}
	}
	if onlyWords {
		return &expr{op: opText, name: strings.Join(text, " ")}, nil
	}
	cell = slices.DeleteFunc(slices.Clone(cell), func(t token) bool { return t.kind == tokText && t.text == "" })
	inside := parser{tokens: cell, depth: p.depth, nodes: p.nodes}
	c, err := inside.list()
	if err != nil {
		return nil, err
	}
	if inside.i < len(cell) {
		return nil, errors.New("a condition that is not understood")
	}
	p.nodes = inside.nodes
	return c, nil
}

// piecewise compares functions by cases with each other, or with one expression.
func (c *comparer) piecewise(g, p *expr) result {
	if len(g.args) > 2*maxList || len(p.args) > 2*maxList {
		return unsure("too many cases")
	}
	if g.op != opCases || p.op != opCases {
		return c.casesAgainstOne(g, p)
	}
	if len(g.args) != len(p.args) {
		return unsure("another number of cases")
	}
	a, b := c.conditions(g), c.conditions(p)
	used := make([]bool, len(b))
	all := yes("the same cases")
	for i := range a {
		k := -1
		for j := range b {
			if !used[j] && c.sameCondition(a[i], b[j]) {
				k = j
				break
			}
		}
		if k < 0 {
			return unsure("a case with another condition")
		}
		used[k] = true
		r := c.same(g.args[2*i], p.args[2*k])
		if !r.equal {
			r.why = "a case: " + r.why
			return r
		}
		all.sure = all.sure && r.sure
	}
	return all
}

// condition is a condition as written, and as a set of real numbers if it is one of one variable.
type condition struct {
	x      *expr
	pieces []piece
	known  bool
}

// conditions reads the conditions of a function by cases; "otherwise" is what the others leave.
func (c *comparer) conditions(x *expr) []condition {
	var list []condition
	var others []piece
	rest, known := -1, true
	for i := 1; i < len(x.args); i += 2 {
		d := condition{x: x.args[i]}
		if isOtherwise(d.x) {
			rest = len(list)
		} else if len(variables(d.x)) == 1 && d.x.op != opText {
			d.pieces, d.known = c.region(d.x)
			known = known && d.known
			others = append(others, d.pieces...)
		} else {
			known = false
		}
		list = append(list, d)
	}
	if rest >= 0 && known {
		list[rest].pieces, list[rest].known = complement(merge(others)), true
	}
	return list
}

func isOtherwise(x *expr) bool {
	return x.op == opText && slices.Contains([]string{"otherwise", "else", "in other cases", "elsewhere"}, x.name)
}

func (c *comparer) sameCondition(a, b condition) bool {
	switch {
	case a.known && b.known:
		return c.samePieces(a.pieces, b.pieces).equal
	case a.x.op == opText && b.x.op == opText:
		return words(a.x.name) == words(b.x.name) || isOtherwise(a.x) && isOtherwise(b.x)
	}
	return c.same(a.x, b.x).equal
}

// casesAgainstOne compares at points inside each case; it proves a difference, not equality.
func (c *comparer) casesAgainstOne(g, p *expr) result {
	x, other := g, p
	if p.op == opCases {
		x, other = p, g
	}
	vars := variables(x.args...)
	if !other.isScalar() || len(vars) != 1 {
		return unsure("cases against one expression")
	}
	tried := 0
	for i, d := range c.conditions(x) {
		if !d.known {
			return unsure("cases against one expression")
		}
		for _, s := range d.pieces {
			for _, f := range [...]float64{between(s.lo, s.hi), between(s.lo, between(s.lo, s.hi)),
				between(between(s.lo, s.hi), s.hi)} {
				at := new(big.Rat)
				if at.SetFloat64(f) == nil {
					return unsure("cases without points")
				}
				place := &point{values: map[string]*big.Rat{vars[0]: at}}
				if r := c.values(substitute(x.args[2*i], place), substitute(other, place)); !r.equal {
					return r
				}
				tried++
			}
		}
	}
	if tried < 3 {
		return unsure("cases without points")
	}
	return result{true, false, "equal at points of every case"}
}
