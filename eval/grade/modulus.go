package grade

import (
	"math/big"
	"strings"

	"exp/eval/grade/formula"
	"exp/eval/grade/pattern"
	"exp/eval/grade/wording"
)

// Residues: x ≡ 2 (mod 10), which is also 12 (mod 10) and 10k + 2.

// modulusInText matches a modulus at the end of an answer, in all notations.
var modulusInText = pattern.New(`(?:\\[ ,;:]|\\q?quad|[ ~,])*\(? *(?:\\[pb]?mod\b|\bmod(?:ulo)?\b|` +
	`\\(?:text|mathrm|operatorname|mbox|textrm) ?\{ *mod(?:ulo)? *\}|\\text ?\{ *\(?mod(?:ulo)? +([0-9]+|[a-z])\)? *\})` +
	`(?:\\[ ,;:]|[ ~])*(?:\{ *([0-9]+|[a-z]) *\}|([0-9]+|[a-z]))? *\)?[ $.]*$`)

// withModulus writes a modulus at the end as \pmod{10}.
func withModulus(s string) string {
	m := modulusInText.FindStringSubmatchIndex(s)
	if m == nil {
		return s
	}
	n := ""
	for i := 2; i < len(m); i += 2 {
		if m[i] >= 0 {
			n += s[m[i]:m[i+1]]
		}
	}
	if n == "" {
		return s
	}
	return strings.ReplaceAll(s[:m[0]], "≡", `\equiv `) + ` \pmod{` + n + "}"
}

// modulus returns the modulus that the words after a value give, nil if none.
func modulus(name string) *big.Int {
	if q := wording.QuantityOf(name); !q.Notation || !strings.HasPrefix(name, "mod") {
		return nil
	}
	n, ok := new(big.Int).SetString(name[len("mod"):], 10)
	if !ok || n.Sign() == 0 {
		return nil
	}
	return n
}

func hasModulus(x *formula.Expr) bool { return x.Op == formula.Unit && modulus(x.Name) != nil }

// residues compares two values modulo n.
func (c *comparer) residues(g, p *formula.Expr, n *big.Int) result {
	a, ok := c.Rational(g)
	b, ok2 := c.Rational(p)
	if !ok || !ok2 || !a.IsInt() || !b.IsInt() {
		return c.same(g, p)
	}
	d := new(big.Int).Sub(a.Num(), b.Num())
	if d.Mod(d, n).Sign() != 0 {
		return no("different residues")
	}
	return yes("the same residue")
}

// progression compares v modulo n with a k + b, whose residue is b if a is n.
func (c *comparer) progression(v, p *formula.Expr, n *big.Int) (result, bool) {
	vars := formula.Variables(p)
	if len(vars) != 1 || !p.IsScalar() {
		return result{}, false
	}
	f, ok := c.Canonical(p)
	if !ok {
		return result{}, false
	}
	list, ok := coefficients(f.Num, vars[0])
	if _, whole := f.Den[""]; !ok || !whole || len(f.Den) != 1 {
		return result{}, false
	}
	for i, x := range list {
		if x.Quo(x, f.Den[""].Coef); i > 1 && x.Sign() != 0 {
			return result{}, false
		}
	}
	if !list[1].IsInt() || list[1].Num().CmpAbs(n) != 0 {
		return no("not that modulus"), true
	}
	return c.residues(v, formula.Number(list[0]), n).by(Convention), true
}
