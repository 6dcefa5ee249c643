package grade

import (
	"math/big"
	"os"
	"strconv"
	"strings"
	"testing"

	"exp/eval/grade/formula"
	"exp/eval/grade/latex"
)

// mutation turns a gold answer into an answer that is known to be right or wrong.
type mutation struct {
	name  string
	right bool
	// of returns the answer; "" if the mutation does not fit the gold answer.
	of func(g mutated) string
}

// mutated is a gold answer with the facts that mutations need.
type mutated struct {
	text  string
	x     *formula.Expr
	value *big.Rat // nil if the answer is not a rational number
	words bool     // it has words
}

func (g mutated) scalar() bool {
	return !g.words && g.x.IsScalar() && g.x.Op != formula.Unit && g.x.Op != formula.Base
}

func (g mutated) number() bool { return g.scalar() && g.value != nil }

// natural returns the gold answer as a small natural number.
func (g mutated) natural() (int, bool) {
	if !g.number() || strings.Trim(g.text, "0123456789") != "" {
		return 0, false
	}
	return formula.SmallNatural(g.value, 99)
}

// when returns s if the condition holds.
func when(ok bool, s string) string {
	if !ok {
		return ""
	}
	return s
}

// mutations have known verdicts: negating, adding, hedging and calculating give wrong answers; wrapping, naming
// and respelling give right ones.
var mutations = []mutation{
	{"boxed", true, func(g mutated) string { return "\\boxed{" + g.text + "}" }},
	{"between dollars", true, func(g mutated) string { return when(!strings.Contains(g.text, "$"), "$"+g.text+"$") }},
	{"named", true, func(g mutated) string { return when(g.number(), "\\text{Total}="+g.text) }},
	{"about", true, func(g mutated) string { return when(g.number(), "exactly "+g.text) }},
	{"colored", true, func(g mutated) string { return when(g.scalar(), "\\textcolor{blue}{"+g.text+"}") }},
	{"concluded", true, func(g mutated) string { return when(g.number(), "So $"+g.text+"$ is the final answer.") }},
	{"counted", true, func(g mutated) string { _, ok := g.natural(); return when(ok, g.text+"\\text{ marbles}") }},
	{"full width", true, func(g mutated) string {
		n, ok := g.natural()
		return when(ok, strings.Map(func(r rune) rune { return r - '0' + '０' }, strconv.Itoa(n)))
	}},
	{"in JSON", true, func(g mutated) string { _, ok := g.natural(); return when(ok, `{"answer": `+g.text+`}`) }},
	{"a chain", true, func(g mutated) string { return when(g.number(), "S=("+g.text+")+3-3="+g.text) }},
	{"a sum", true, func(g mutated) string { return when(g.scalar(), "("+g.text+")+5-5") }},

	{"or", false, func(g mutated) string { return when(!g.words, g.text+"\\text{ or 987654}") }},
	{"or in a text", false, func(g mutated) string {
		_, ok := g.natural()
		return when(ok,
			"\\text{"+g.text+" or 987654}")
	}},
	{"or, plain", false, func(g mutated) string { return when(g.scalar(), g.text+" or 987654") }},
	{"and", false, func(g mutated) string { return when(g.scalar(), g.text+"\\text{ and }987654") }},
	{"to", false, func(g mutated) string { return when(g.number(), g.text+"\\text{ to }987654") }},
	{"a list", false, func(g mutated) string { return when(g.scalar(), g.text+", 987654") }},
	{"a set", false, func(g mutated) string { return when(g.scalar(), "\\{"+g.text+",987654\\}") }},
	{"a pair", false, func(g mutated) string { return when(g.scalar(), "("+g.text+",987654)") }},
	{"not", false, func(g mutated) string { return when(!g.words, "\\text{not }"+g.text) }},
	{"is not", false, func(g mutated) string { return when(!g.words, g.text+"\\text{ is not the answer}") }},
	{"at least", false, func(g mutated) string { return when(g.number(), "at least "+g.text) }},
	{"less than", false, func(g mutated) string { return when(g.number(), "\\text{less than }"+g.text) }},
	{"above", false, func(g mutated) string { return when(g.number(), "x>"+g.text) }},
	{"unequal", false, func(g mutated) string { return when(g.number(), "x\\ne"+g.text) }},
	{"squared", false, func(g mutated) string {
		return when(g.number() && !idempotent(g.value),
			g.text+"\\text{ squared}")
	}},
	{"factorial", false, func(g mutated) string {
		return when(g.number() && !factorialOfItself(g.value),
			g.text+" factorial")
	}},
	{"dozen", false, func(g mutated) string {
		return when(g.number() && g.value.Sign() != 0,
			g.text+"\\text{ dozen}")
	}},
	{"percent of", false, func(g mutated) string { return when(g.number(), g.text+"\\text{ percent of 50}") }},
	{"divided by", false, func(g mutated) string { return when(g.number(), g.text+"\\text{ divided by 5}") }},
	{"remainder", false, func(g mutated) string { return when(g.number(), g.text+"\\text{ remainder 3}") }},
	{"if", false, func(g mutated) string { return when(g.scalar(), g.text+"\\text{ if }n\\text{ is even}") }},
	{"maybe", false, func(g mutated) string { return when(g.number(), g.text+", or maybe 987654") }},
	{"negated", false, func(g mutated) string { return when(g.number() && g.value.Sign() != 0, "-("+g.text+")") }},
	{"one more", false, func(g mutated) string { return when(g.scalar(), "("+g.text+")+1") }},
	{"doubled", false, func(g mutated) string {
		return when(g.number() && g.value.Sign() != 0,
			"2\\cdot("+g.text+")")
	}},
	{"a wrong chain", false, func(g mutated) string { return when(g.number(), g.text+"=987654") }},
	{"a wrong approximation", false, func(g mutated) string { return when(g.number(), g.text+"\\approx 987654.3") }},
	{"plus or minus", false, func(g mutated) string {
		return when(g.number() && g.value.Sign() != 0,
			g.text+"\\pm 1")
	}},
	{"another letter", false, func(g mutated) string {
		return when(g.x.Op == formula.Sym && g.text == "A",
			"(A)(B)")
	}},
	{"swapped", false, func(g mutated) string { return swapped(g.x, g.text) }},
	{"an open end", false, func(g mutated) string {
		return when(g.x.Op == formula.Tuple && g.x.Open == '[' && strings.HasPrefix(g.text, "["),
			"("+strings.TrimPrefix(g.text, "["))
	}},
	{"another base", false, func(g mutated) string {
		n, ok := g.natural()
		return when(ok && n >= 10 && strings.Trim(g.text, "0123456") == "", g.text+"\\text{ base 7}")
	}},
	{"feet and inches", false, func(g mutated) string {
		_, ok := g.natural()
		return when(ok,
			g.text+" feet 3 inches")
	}},
}

// idempotent reports whether a square has the value itself.
func idempotent(v *big.Rat) bool { return new(big.Rat).Mul(v, v).Cmp(v) == 0 }

func factorialOfItself(v *big.Rat) bool {
	return v.IsInt() && (v.Num().Int64() == 1 || v.Num().Int64() == 2)
}

// swapped exchanges the two different values of a pair.
func swapped(x *formula.Expr, text string) string {
	if x.Op != formula.Tuple || x.Open != '(' || x.Close != ')' || len(x.Args) != 2 || strings.Count(text, ",") != 1 {
		return ""
	}
	c := comparer{Budget: formula.NewBudget(formula.MaxWork)}
	if c.same(x.Args[0], x.Args[1]).equal || x.Args[0].IsInfinite() || x.Args[1].IsInfinite() {
		return ""
	}
	inner := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(strings.NewReplacer("\\left", "", "\\right",
		"").Replace(text)), "("), ")")
	a, b, _ := strings.Cut(inner, ",")
	return "(" + b + "," + a + ")"
}

// TestMutatedGolds looks for verdicts that contradict the truth of a mutation, over a sample of the benchmarks' gold
// answers, with EXP_TEST_ALL=1 over all.
func TestMutatedGolds(t *testing.T) {
	golds := benchmarkGolds(t)
	step := 12
	if os.Getenv("EXP_TEST_ALL") == "1" {
		step = 1
	}
	kinds := map[string]*tally{}
	for i := 0; i < len(golds); i += step {
		gold := goldAnswer(golds[i])
		x, err := latex.Parse(gold, true)
		if err != nil || strings.Contains(gold, ",") && x.Op != formula.Tuple {
			continue
		}
		g := mutated{text: gold, x: x, words: strings.Contains(gold, "\\text") || strings.Contains(gold, "\\mbox") ||
			x.Op == formula.Text || x.Op == formula.List}
		b := formula.NewBudget(formula.MaxWork)
		if v, ok := b.Rational(x); ok {
			g.value = v
		}
		for _, m := range mutations {
			answer := m.of(g)
			if answer == "" {
				continue
			}
			if kinds[m.name] == nil {
				kinds[m.name] = &tally{}
			}
			v := Answer(gold, answer)
			kinds[m.name].add(v.Correct, m.right)
			if v.Correct != m.right {
				t.Logf("%s: gold %q, %q: want %v, got %+v", m.name, gold, answer, m.right, v)
			}
		}
	}
	all := logTallies(t, kinds)
	if all.accepted > 0 || (all.pairs-all.right)*200 > all.pairs {
		t.Errorf("%d wrong mutations accepted of %d, %d of %d verdicts right", all.accepted, all.negatives, all.right,
			all.pairs)
	}
}
