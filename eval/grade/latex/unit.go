package latex

import (
	"math/big"
	"slices"
	"strings"

	"exp/eval/grade/formula"
	"exp/eval/grade/wording"
)

// smallerUnits adds the 30 minutes of "2 hours and 30 minutes".
func (p *parser) smallerUnits(x *formula.Expr) *formula.Expr {
	for {
		start := p.i
		if !p.accept("and") {
			p.accept(",")
		}
		if p.peek().kind != tokNum {
			p.i = start
			return x
		}
		n, err := readNumber(strings.TrimSuffix(p.peek().text, "."))
		p.i++
		if err != nil || p.peek().kind != tokText {
			p.i = start
			return x
		}
		small, large := wording.QuantityOf(p.unit()), wording.QuantityOf(x.Name)
		if !small.Known || !small.Measured || !large.Measured || small.Dim != large.Dim ||
			small.Factor.Cmp(large.Factor) >= 0 {
			p.i = start
			return x
		}
		part := formula.Product(n, formula.Number(new(big.Rat).Quo(small.Factor, large.Factor)))
		x = &formula.Expr{Op: formula.Unit, Name: x.Name, Parts: x.Parts + 1,
			Args: []*formula.Expr{formula.Sum(x.Args[0], part)}}
	}
}

// unit reads the words after a value: \text{ cm}^2, meters per second, km/h. It stops at a number that is not
// an exponent.
func (p *parser) unit() string {
	if u, ok := p.unitFraction(); ok {
		return u
	}
	if p.peek().kind != tokText {
		return ""
	}
	var b strings.Builder
	power := false
	for p.i < len(p.tokens) {
		t := p.tokens[p.i]
		switch {
		case t.kind == tokText:
			if b.Len() > 0 && t.text != "$" {
				b.WriteByte(' ')
			}
			b.WriteString(t.text)
		case t.kind == tokOp && slices.Contains([]string{"^", "/", "*", "-"}, t.text):
			b.WriteString(t.text)
		case t.kind == tokOp && t.text == "in":
			b.WriteString(" in ")
		case t.kind == tokOp && slices.Contains([]string{"{", "}", "(", ")"}, t.text):
		case t.kind == tokNum && len(t.text) == 1 && power:
			b.WriteString(t.text)
		case t.kind == tokSym && wording.IsLetter(t.text[0]):
			b.WriteString(" " + t.text)
		default:
			return b.String()
		}
		power = t.kind == tokOp && (t.text == "^" || power && (t.text == "{" || t.text == "-"))
		p.i++
	}
	return b.String()
}

// atUnitFraction reports whether \frac{\text{m}}{\text{s}^2} comes next.
func (p *parser) atUnitFraction() bool {
	if !p.isOp("frac") {
		return false
	}
	_, k := p.unitGroup(p.i + 1)
	_, k = p.unitGroup(k)
	return k > 0
}

func (p *parser) unitFraction() (string, bool) {
	if !p.atUnitFraction() {
		return "", false
	}
	above, k := p.unitGroup(p.i + 1)
	below, k := p.unitGroup(k)
	p.i = k
	return above + "/" + below, true
}

// unitGroup reads words with exponents in braces from token k. It returns the index after them, or 0.
func (p *parser) unitGroup(k int) (name string, after int) {
	if k == 0 || k+1 >= len(p.tokens) || p.tokens[k].text != "{" || p.tokens[k+1].kind != tokText {
		return "", 0
	}
	for k++; k < len(p.tokens); k++ {
		switch t := p.tokens[k]; {
		case t.kind == tokText:
			name += " " + t.text
		case t.kind == tokOp && t.text == "^" && k+1 < len(p.tokens) && p.tokens[k+1].kind == tokNum:
			k++
			name += "^" + p.tokens[k].text
		case t.kind == tokOp && t.text == "}":
			return name, k + 1
		case t.kind != tokOp || t.text != "*":
			return "", 0
		}
	}
	return "", 0
}
