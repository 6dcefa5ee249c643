package grade

import (
	"slices"
	"strings"
)

// item reads one relation and the unit after it.
func (p *parser) item() (*expr, error) {
	if p.isOp("=") || p.isOp("≈") { // \approx 8.24
		p.i++
	} else if p.atRelation() && !p.isOp("in") && !p.isOp("->") { // at least 7
		return p.relationFrom(symbol(anyName))
	}
	if err := p.before(); err != nil {
		return nil, err
	}
	if name := p.nameInWords(); name != nil {
		return p.relationFrom(name)
	}
	money, minus := "", false
	if p.isOp("-") && p.i+1 < len(p.tokens) && currencies[p.tokens[p.i+1].text] != "" {
		minus = true // -$5
		p.i++
	}
	if t := p.peek(); t.kind == tokText && currencies[t.text] != "" {
		money = currencies[t.text]
		p.i++
	}
	if p.accept("…") {
		return symbol("…"), nil
	}
	x, err := p.relation()
	if err != nil {
		return nil, err
	}
	if minus {
		x = negative(x)
	}
	if money != "" {
		x = &expr{op: opUnit, name: money, args: []*expr{x}}
	}
	unit := p.unit()
	if unit == "" {
		return x, nil
	}
	words := strings.ToLower(strings.TrimSpace(unit))
	if x.op == opDegree && temperature[words] != "" { // 5^\circ\text{C}
		return &expr{op: opUnit, name: temperature[words], args: x.args}, nil
	}
	if money != "" { // $5 each, but $5 million
		first, rest, _ := strings.Cut(words, " ")
		switch q := quantityOf(words); {
		case scales[first] != 0 && q.known:
			x = &expr{op: opUnit, name: first + " " + money, args: x.args}
		case !q.known && !strings.HasPrefix(words, "per ") && first != "a" && first != "an":
			x = &expr{op: opUnit, name: money + " " + first + " " + rest, args: x.args}
		}
		return x, nil
	}
	if x.op == opRelation && len(x.args) == 2 { // x = 5 cm
		r := *x
		r.args = []*expr{x.args[0], {op: opUnit, name: unit, args: []*expr{x.args[1]}}}
		return &r, nil
	}
	return p.smallerUnits(&expr{op: opUnit, name: strings.TrimSuffix(unit, " and"), args: []*expr{x}}), nil
}

// relationFrom reads the rest of a relation after its first side, with the units of its values.
func (p *parser) relationFrom(first *expr) (*expr, error) {
	return p.sides(first, func() (*expr, error) {
		next, err := p.region()
		if err != nil {
			return nil, err
		}
		if unit := p.unit(); unit != "" {
			next = p.smallerUnits(&expr{op: opUnit, name: strings.TrimSuffix(unit, " and"), args: []*expr{next}})
		}
		return next, nil
	})
}

// skipCurrency skips the currency sign of a value in a relation.
func (p *parser) skipCurrency() {
	if t := p.peek(); t.kind == tokText && currencies[t.text] != "" {
		p.i++
	}
}

// hedges are words before a value that do not change it.
var hedges = []string{"about", "approximately", "approx", "roughly", "around", "exactly", "precisely", "only", "just",
	"simply", "thus", "hence", "so", "therefore", "equals", "is", "the answer is"}

// before skips words before a value.
func (p *parser) before() error {
	for t := p.peek(); t.kind == tokText && p.i+1 < len(p.tokens); t = p.peek() {
		word := strings.ToLower(strings.Trim(t.text, " .,:"))
		if !slices.Contains(hedges, word) && !introduces(t.text) {
			return nil
		}
		p.i++
		p.accept(",")
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
	return !unsettled(text) && !slices.ContainsFunc(strings.Fields(words(text)),
		func(w string) bool { return slices.Contains(negations, w) })
}

// negations are words that make what follows something else than the answer.
var negations = []string{"not", "no", "never", "wrong", "incorrect", "except", "isn", "without", "unless",
	"false", "other"}

// nameInWords reads \text{Area of }ABC before an equals sign.
func (p *parser) nameInWords() *expr {
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
			for _, w := range strings.Fields(words(joined)) {
				if slices.Contains(negations, w) {
					return nil
				}
			}
			p.i = k
			return symbol(words(joined))
		case t.kind == tokOp && slices.Contains([]string{"(", ")", "{", "}", "_", "^", "in", "'"}, t.text):
		default:
			return nil
		}
	}
	return nil
}
