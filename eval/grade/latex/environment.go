package latex

import (
	"errors"
	"slices"
	"strings"

	"exp/eval/grade/formula"
)

// Functions by cases: a Cases holds a value and a condition in turn.

// conditionWords introduce a condition.
var conditionWords = []string{"if", "for", "when", "where", "whenever", "is", "are", "all"}

// cases reads value & condition rows up to the end of the environment; the first value has been read.
func (p *parser) cases(first *formula.Expr) (*formula.Expr, error) {
	x := &formula.Expr{Op: formula.Cases}
	for value := first; ; {
		condition, err := p.condition()
		if err != nil {
			return nil, err
		}
		x.Args = append(x.Args, value, condition)
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
func (p *parser) condition() (*formula.Expr, error) {
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
		return &formula.Expr{Op: formula.Text, Name: strings.Join(text, " ")}, nil
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

// system reads an array after a brace that need not be closed: cases or equations.
func (p *parser) system() (*formula.Expr, error) {
	p.tokens[p.i].text = "cases"
	x, err := p.primary()
	if err == nil {
		p.accept("\\}")
	}
	return x, err
}

// environment reads a matrix or a system.
func (p *parser) environment(name string) (*formula.Expr, error) {
	if slices.Contains([]string{"aligned", "align", "split", "eqnarray", "alignat"}, name) {
		p.dropAlignment()
	}
	x := &formula.Expr{Op: formula.Matrix}
	row := 0
	for {
		for p.accept("\\\\") {
		}
		if p.peek().kind == tokFinish {
			break
		}
		n := 0
		for {
			cell, err := p.list()
			if err != nil {
				return nil, err
			}
			x.Args = append(x.Args, cell)
			n++
			if !p.accept("&") {
				break
			}
			if len(x.Args) == 1 && strings.HasSuffix(name, "cases") {
				if x, err = p.cases(cell); err != nil {
					return nil, err
				}
				p.i++
				return x, nil
			}
		}
		if row++; row == 1 {
			x.Cols = n
		} else if n != x.Cols {
			return nil, errors.New("rows of different lengths")
		}
		if !p.isOp("\\\\") {
			break
		}
	}
	if t := p.peek(); t.kind != tokFinish {
		return nil, errEnd
	}
	p.i++
	switch {
	case len(x.Args) == 0:
		return nil, errors.New("an empty environment")
	case name == "array" && len(x.Args) == 1:
		return x.Args[0], nil
	case name == "vmatrix":
		return determinantOf(x)
	case name == "Vmatrix":
		return nil, errors.New("a norm of a matrix")
	case x.Cols == 1 && (name != "array" && !strings.Contains(name, "matrix") || x.Args[0].Op == formula.Relation):
		return &formula.Expr{Op: formula.List, Name: "and", Args: x.Args}, nil
	}
	return x, nil
}

// dropAlignment removes the & of an environment that has no cells.
func (p *parser) dropAlignment() {
	depth, end := 0, p.i
	for ; end < len(p.tokens); end++ {
		if k := p.tokens[end].kind; k == tokBegin {
			depth++
		} else if k == tokFinish {
			if depth--; depth < 0 {
				break
			}
		}
	}
	inside := slices.DeleteFunc(slices.Clone(p.tokens[p.i:end]), func(t token) bool {
		return t.kind == tokOp && t.text == "&"
	})
	p.tokens = slices.Concat(p.tokens[:p.i], inside, p.tokens[end:])
}

func determinantOf(x *formula.Expr) (*formula.Expr, error) {
	if d, ok := formula.Determinant(formula.Grid{Rows: len(x.Args) / x.Cols, Cols: x.Cols, At: x.Args}); ok &&
		d.Size(maxNodes) < maxNodes {
		return d, nil
	}
	return nil, errors.New("a determinant of that size")
}
