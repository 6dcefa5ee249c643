package latex

import (
	"slices"
	"strings"

	"exp/eval/grade/formula"
	"exp/eval/grade/wording"
)

// item reads one relation and the unit after it.
func (p *parser) item() (*formula.Expr, error) {
	if p.isOp("=") || p.isOp("≈") { // \approx 8.24
		p.i++
	} else if p.atRelation() && !p.isOp("in") && !p.isOp("->") { // at least 7
		return p.relationFrom(formula.Symbol(AnyName))
	}
	if err := p.before(); err != nil {
		return nil, err
	}
	if name := p.nameInWords(); name != nil {
		return p.relationFrom(name)
	}
	money, minus := "", false
	if p.isOp("-") && p.i+1 < len(p.tokens) && wording.Currencies[p.tokens[p.i+1].text] != "" {
		minus = true // -$5
		p.i++
	}
	if t := p.peek(); t.kind == tokText && wording.Currencies[t.text] != "" {
		money = wording.Currencies[t.text]
		p.i++
	}
	if p.accept("…") {
		return formula.Symbol("…"), nil
	}
	x, err := p.relation()
	if err != nil {
		return nil, err
	}
	if minus {
		x = formula.Negative(x)
	}
	if money != "" {
		x = &formula.Expr{Op: formula.Unit, Name: money, Args: []*formula.Expr{x}}
	}
	unit := p.unit()
	words := strings.ToLower(strings.TrimSpace(unit))
	if t := temperature(x, words); t != nil {
		return t, nil
	}
	if unit == "" {
		return x, nil
	}
	if money != "" { // $5 each, but $5 million
		first, rest, _ := strings.Cut(words, " ")
		switch q := wording.QuantityOf(words); {
		case wording.Scales[first] != 0 && q.Known:
			x = &formula.Expr{Op: formula.Unit, Name: first + " " + money, Args: x.Args}
		case !q.Known && !strings.HasPrefix(words, "per ") && first != "a" && first != "an":
			x = &formula.Expr{Op: formula.Unit, Name: money + " " + first + " " + rest, Args: x.Args}
		}
		return x, nil
	}
	if x.Op == formula.Relation && len(x.Args) == 2 { // x = 5 cm
		r := *x
		r.Args = []*formula.Expr{x.Args[0], {Op: formula.Unit, Name: unit, Args: []*formula.Expr{x.Args[1]}}}
		return &r, nil
	}
	return p.smallerUnits(&formula.Expr{Op: formula.Unit, Name: strings.TrimSuffix(unit, " and"),
		Args: []*formula.Expr{x}}), nil
}

// temperature reads a value in degrees with the scale after it, in a text or as a letter: 5^\circ\text{C}, -5°F. It
// returns nil for anything else.
func temperature(x *formula.Expr, scale string) *formula.Expr {
	if x.Op == formula.Mul && len(x.Args) == 2 && x.Args[0].Op == formula.Num {
		t := temperature(x.Args[1], scale)
		if t != nil {
			t.Args = []*formula.Expr{formula.Product(x.Args[0], t.Args[0])}
		}
		return t
	}
	if x.Op == formula.Mul && len(x.Args) == 2 && x.Args[1].Op == formula.Sym && scale == "" &&
		(x.Args[1].Name == "C" || x.Args[1].Name == "F") {
		x, scale = x.Args[0], strings.ToLower(x.Args[1].Name)
	}
	if x.Op != formula.Degree || wording.Temperature[scale] == "" {
		return nil
	}
	return &formula.Expr{Op: formula.Unit, Name: wording.Temperature[scale], Args: slices.Clone(x.Args)}
}

// relationFrom reads the rest of a relation after its first side, with the units of its values.
func (p *parser) relationFrom(first *formula.Expr) (*formula.Expr, error) {
	return p.sides(first, func() (*formula.Expr, error) {
		next, err := p.region()
		if err != nil {
			return nil, err
		}
		if unit := p.unit(); unit != "" {
			next = p.smallerUnits(&formula.Expr{Op: formula.Unit, Name: strings.TrimSuffix(unit, " and"),
				Args: []*formula.Expr{next}})
		}
		return next, nil
	})
}

// skipCurrency skips the currency sign of a value in a relation.
func (p *parser) skipCurrency() {
	if t := p.peek(); t.kind == tokText && wording.Currencies[t.text] != "" {
		p.i++
	}
}

// hedges are words before a value that do not change it.
var hedges = []string{"about", "approximately", "approx", "roughly", "around", "exactly", "precisely", "only", "just",
	"simply", "thus", "hence", "so", "therefore", "equals", "is", "the answer is", "answer", "final answer", "result",
	"the point", "point", "the pair", "the ordered pair", "the triple", "the ordered triple", "the interval",
	"interval", "the set",
	"the vector", "the matrix", "the line", "the equation", "the function", "the number", "the value",
	"the coordinates"}

// before skips words before a value.
func (p *parser) before() error {
	for t := p.peek(); t.kind == tokText && p.i+1 < len(p.tokens); t = p.peek() {
		word := strings.ToLower(strings.Trim(t.text, " .,:"))
		if !slices.Contains(hedges, word) && !introduces(t.text) {
			return nil
		}
		p.i++
		if !p.accept(",") {
			p.accept(":")
		}
		if p.i == len(p.tokens) {
			return errEnd
		}
	}
	return nil
}

// introduces reports whether words name the value after them: "The total is", "Answer:".
func introduces(text string) bool {
	text = strings.TrimSpace(text)
	if !strings.HasSuffix(text, " is") && !strings.HasSuffix(text, " are") && !strings.HasSuffix(text, ":") &&
		!strings.HasSuffix(text, " equals") {
		return false
	}
	return !wording.Unsettled(text) && !slices.ContainsFunc(strings.Fields(wording.Normal(text)),
		func(w string) bool { return slices.Contains(wording.Negations, w) })
}

// nameInWords reads \text{Area of }ABC before an equals sign.
func (p *parser) nameInWords() *formula.Expr {
	if p.peek().kind != tokText {
		return nil
	}
	var name []string
	for k := p.i; k < len(p.tokens) && k < p.i+12; k++ {
		t := p.tokens[k]
		switch {
		case t.kind == tokText || t.kind == tokSym || t.kind == tokNum && k > p.i:
			name = append(name, t.text)
		case t.kind == tokOp && (t.text == "=" || t.text == "≈"):
			joined := strings.Join(name, " ")
			for _, w := range strings.Fields(wording.Normal(joined)) {
				if slices.Contains(wording.Negations, w) {
					return nil
				}
			}
			p.i = k
			return formula.Symbol(wording.Normal(joined))
		case t.kind == tokOp && slices.Contains([]string{"(", ")", "{", "}", "_", "^", "in", "'"}, t.text):
		default:
			return nil
		}
	}
	return nil
}
