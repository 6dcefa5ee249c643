package grade

import (
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// parser is a recursive-descent parser over tokens:
//
//	list     = item {(","|";"|"and"|"or") item}
//	item     = relation [unit]
//	relation = region {("="|"<"|…|"in") region}
//	region   = sum {("∪"|"∩"|"\") sum}
//	sum      = ["+"|"-"|"±"] term {("+"|"-"|"±") term}
//	term     = factor {["*"|"/"] factor}
//	factor   = ["-"] primary {"!"|"%"|"°"|"_"…} ["^" exponent]
//
// Depth and number of nodes are bounded, so parsing is linear in the tokens.
type parser struct {
	tokens []token
	i      int
	depth  int
	bars   int // open | signs
	nodes  int

	integrals int  // number of open ones; a dx closes one
	inRatio   bool // a colon ends a term
}

const (
	maxDepth = 120
	maxNodes = 4000
)

var errEnd = errors.New("ends too early")

// parse reads a whole answer: a formula, or a number, set or bound in words. With thousands set, 1,234 is one
// number.
func parse(s string, thousands bool) (*expr, error) {
	if x := wordsOnly(s); x != nil {
		return x, nil
	}
	return parseFormula(boundsAsSigns(separated(s)), thousands)
}

// wideSpace matches the space between two equations, x = 1 \quad y = 2.
var wideSpace = regexp.MustCompile(`(=[^=,;&]*[^=,;&\s])\s*\\q?quad\s*([a-zA-Z](?:_\{?\w+\}?)?\s*=)`)

// separated writes the wide space between two equations as a comma.
func separated(s string) string {
	if !strings.Contains(s, "quad") || len(s) > 1000 {
		return s
	}
	return wideSpace.ReplaceAllString(s, "$1, $2")
}

// wordsOnly reads a number or a set in words.
func wordsOnly(s string) *expr {
	if len(s) > 200 || strings.ContainsAny(s, "0123456789=+^_") {
		return nil
	}
	t := strings.Trim(bare(s), " .")
	if t == "" || len(t) == 1 || strings.ContainsAny(t, "\\") {
		return nil
	}
	if x := setInWords(words(t)); x != nil {
		return x
	}
	return numeralOf(t)
}

// parseFormula reads a formula.
func parseFormula(s string, thousands bool) (*expr, error) {
	m := lettersInBase.FindStringSubmatch(s)
	if m != nil && (m[2] == "16" || strings.ContainsAny(m[1], "0123456789")) {
		base, _ := strconv.Atoi(m[2])
		if _, ok := new(big.Int).SetString(m[1], base); ok {
			return &expr{op: opBase, name: strings.ToLower(m[1]), args: []*expr{integer(int64(base))}}, nil
		}
	}
	tokens, err := tokenize(outward(s), thousands)
	if err != nil {
		return nil, err
	}
	for len(tokens) > 0 {
		last := tokens[len(tokens)-1]
		if last.kind != tokOp || last.text != "," && last.text != ";" && last.text != "\\\\" && last.text != ":" {
			break
		}
		tokens = tokens[:len(tokens)-1]
	}
	if len(tokens) == 0 {
		return nil, errors.New("nothing to read")
	}
	if x := onlyText(tokens); x != nil {
		return x, nil
	}
	p := parser{tokens: tokens}
	x, err := p.list()
	if err != nil {
		return nil, err
	}
	if p.i < len(p.tokens) {
		return nil, fmt.Errorf("%q is unexpected", p.tokens[p.i].text)
	}
	return x, nil
}

// lettersInBase matches a number with letters among its digits, 2A_{16}.
var lettersInBase = regexp.MustCompile(`^([0-9]+[A-Fa-f][0-9A-Fa-f]*|[A-Fa-f]+[0-9][0-9A-Fa-f]*|[A-Fa-f]{2,})` +
	`_\{?(1[1-6])\}?$`)

var (
	opensOutward  = regexp.MustCompile(`\]([^\[\]()]*,[^\[\]()]*)([\[\]])`)
	closesOutward = regexp.MustCompile(`\[([^\[\]()]*,[^\[\]()]*)\[`)
)

// outward rewrites open interval ends written as outward brackets, ]a,b[, with round brackets.
func outward(s string) string {
	if t := strings.TrimSpace(s); !strings.HasPrefix(t, "]") && !strings.HasSuffix(t, "[") {
		return s
	}
	s = opensOutward.ReplaceAllStringFunc(s, func(m string) string {
		if m[len(m)-1] == '[' {
			return "(" + m[1:len(m)-1] + ")"
		}
		return "(" + m[1:]
	})
	return closesOutward.ReplaceAllString(s, "[$1)")
}

// months start a date, which is words.
const months = " january february march april may june july august september october november december "

// onlyText returns the text of an answer that consists of words only.
func onlyText(tokens []token) *expr {
	var words []string
	text := false
	for _, t := range tokens {
		switch {
		case t.kind == tokText && t.text != "$":
			text = true
		case t.kind == tokOp && (t.text == "and" || t.text == "or" || t.text == "in" || t.text == "'" ||
			t.text == "-"):
		case t.kind == tokOp && (t.text == "(" || t.text == ")" || t.text == "," || t.text == "{" || t.text == "}"):
			continue
		case t.kind == tokSym && isLetter(t.text[0]):
		case t.kind == tokNum && text && strings.Contains(months, " "+strings.ToLower(words[0])+" "):
		default:
			return nil
		}
		words = append(words, t.text)
	}
	if !text {
		return nil
	}
	return &expr{op: opText, name: strings.Join(words, " ")}
}

func (p *parser) peek() token {
	if p.i < len(p.tokens) {
		return p.tokens[p.i]
	}
	return token{}
}

func (p *parser) isOp(text string) bool {
	return p.i < len(p.tokens) && p.tokens[p.i].kind == tokOp && p.tokens[p.i].text == text
}

func (p *parser) accept(text string) bool {
	if p.isOp(text) {
		p.i++
		return true
	}
	return false
}

func (p *parser) expect(text string) error {
	if p.accept(text) {
		return nil
	}
	if p.i == len(p.tokens) {
		return errEnd
	}
	return fmt.Errorf("%q where %q should be", p.peek().text, text)
}

// enter counts depth and nodes; the caller calls p.leave.
func (p *parser) enter() error {
	p.depth++
	p.nodes++
	if p.depth > maxDepth || p.nodes > maxNodes {
		return errors.New("too deep or too long")
	}
	return nil
}

func (p *parser) leave() { p.depth-- }

// list reads items up to the end or a closing bracket.
func (p *parser) list() (*expr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	first, err := p.item()
	if err != nil {
		return nil, err
	}
	items, word := []*expr{first}, ""
	for {
		joined := false
		for p.isOp(",") || p.isOp(";") || p.isOp("and") || p.isOp("or") {
			if t := p.peek().text; t == "and" || t == "or" {
				word = t
			}
			p.i++
			joined = true
		}
		if !joined {
			break
		}
		if p.i == len(p.tokens) || p.isOp("&") || p.isOp("\\\\") || p.peek().kind == tokFinish {
			break
		}
		x, err := p.item()
		if err != nil {
			return nil, err
		}
		items = append(items, x)
	}
	if len(items) == 1 {
		return first, nil
	}
	return &expr{op: opList, name: word, args: items}, nil
}

func (p *parser) relation() (*expr, error) {
	first, err := p.region()
	if err != nil {
		return nil, err
	}
	if !p.atRelation() {
		return first, nil
	}
	return p.sides(first, p.region)
}

// sides reads the signs of a relation after its first side, each with the side that follows.
func (p *parser) sides(first *expr, side func() (*expr, error)) (*expr, error) {
	x := &expr{op: opRelation, args: []*expr{first}}
	for p.atRelation() {
		x.rels = append(x.rels, p.peek().text)
		p.i++
		p.skipCurrency()
		next, err := side()
		if err != nil {
			return nil, err
		}
		x.args = append(x.args, next)
	}
	return x, nil
}

// relations are the signs between the sides of a relation.
var relations = []string{"=", "≈", "<", ">", "<=", ">=", "!=", "in", "->"}

func (p *parser) atRelation() bool {
	t := p.peek()
	return t.kind == tokOp && slices.Contains(relations, t.text)
}

func (p *parser) region() (*expr, error) {
	x, err := p.sum()
	for err == nil {
		o := opUnion
		switch {
		case p.accept("cup"):
		case p.accept("cap"):
			o = opCap
		case p.accept("setminus"):
			o = opWithout
		default:
			return x, nil
		}
		var y *expr
		y, err = p.sum()
		x = &expr{op: o, args: []*expr{x, y}}
	}
	return nil, err
}

func (p *parser) sum() (*expr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	var x *expr
	sign := p.sign()
	t, err := p.term()
	if err != nil {
		return nil, err
	}
	switch sign {
	case "±", "∓":
		x = &expr{op: opPM, name: sign, args: []*expr{integer(0), t}}
	case "-":
		x = negative(t)
	default:
		x = t
	}
	var terms []*expr
	for {
		sign := p.sign()
		if sign == "" {
			break
		}
		t, err := p.term()
		if err != nil {
			return nil, err
		}
		switch sign {
		case "±", "∓":
			if len(terms) > 0 {
				x, terms = sum(append([]*expr{x}, terms...)...), nil
			}
			x = &expr{op: opPM, name: sign, args: []*expr{x, t}}
		case "-":
			if t.op == opSet && len(terms) == 0 && isCollection(x) { // ℝ - {2}
				x = &expr{op: opWithout, args: []*expr{x, t}}
				continue
			}
			terms = append(terms, negative(t))
		default:
			terms = append(terms, t)
		}
	}
	if len(terms) > 0 {
		x = sum(append([]*expr{x}, terms...)...)
	}
	return x, nil
}

// sign reads + - ± ∓ and combines several.
func (p *parser) sign() string {
	sign := ""
	for {
		t := p.peek()
		if t.kind != tokOp {
			return sign
		}
		switch t.text {
		case "+":
			if sign == "" {
				sign = "+"
			}
		case "-":
			if sign == "-" {
				sign = "+"
			} else {
				sign = "-"
			}
		case "±", "∓":
			sign = t.text
		default:
			return sign
		}
		p.i++
	}
}

// term reads a product. A ratio a:b:c is a term of its own.
func (p *parser) term() (*expr, error) {
	x, err := p.factor()
	if err != nil {
		return nil, err
	}
	factors := []*expr{x}
	for {
		switch {
		case p.accept("*"):
			y, err := p.factor()
			if err != nil {
				return nil, err
			}
			factors = append(factors, y)
		case p.accept("×"):
			y, err := p.factor()
			if err != nil {
				return nil, err
			}
			factors[len(factors)-1] = cross(factors[len(factors)-1], y)
		case p.accept("/"), p.accept("over"):
			y, err := p.factor()
			if err != nil {
				return nil, err
			}
			factors = append(factors, power(y, integer(-1)))
			p.mixed(&factors)
		case p.isOp(":") && !p.inRatio:
			return p.ratio(product1(factors))
		case p.accept("choose"):
			y, err := p.factor()
			if err != nil {
				return nil, err
			}
			factors = []*expr{call("binom", product1(factors), y)}
		case p.startsFactor() && !p.atUnitFraction():
			before := factors[len(factors)-1]
			y, err := p.implicit(before)
			if err != nil {
				return nil, err
			}
			if before.op == opDegree && y.op == opDegree && y.name == "'" { // 22° 30'
				factors[len(factors)-1] = &expr{op: opDegree, args: []*expr{sum(before.args[0], y.args[0])}}
				continue
			}
			factors = append(factors, y)
		default:
			return product1(factors), nil
		}
	}
}

func product1(factors []*expr) *expr {
	if len(factors) == 1 {
		return factors[0]
	}
	return product(factors...)
}

func (p *parser) ratio(first *expr) (*expr, error) {
	x := &expr{op: opRatio, args: []*expr{first}}
	p.inRatio = true
	defer func() { p.inRatio = false }()
	for p.accept(":") {
		y, err := p.term()
		if err != nil {
			return nil, err
		}
		x.args = append(x.args, y)
	}
	return x, nil
}

// mixed joins 3 1/2 into a number after the division was read: factors are 3, 1, 2^-1, where 3 and 1 are
// integer literals with a space between them.
func (p *parser) mixed(factors *[]*expr) {
	f := *factors
	n := len(f)
	if n < 3 || !isNatural(f[n-3]) || !isNatural(f[n-2]) || f[n-2].name != "spaced" {
		return
	}
	den := f[n-1].args[0]
	if !isNatural(den) {
		return
	}
	*factors = append(f[:n-3:n-3], sum(f[n-3], product(f[n-2], f[n-1])))
}

func isNatural(x *expr) bool {
	return x.op == opNum && !x.decimal && x.num.IsInt() && x.num.Sign() >= 0
}

// implicit reads the next factor of a product without a sign. Two adjacent numbers are a mixed number or an
// error.
func (p *parser) implicit(before *expr) (*expr, error) {
	t := p.peek()
	y, err := p.factor()
	if err != nil {
		return nil, err
	}
	if t.kind == tokNum && before.op == opNum {
		if before.name == "spaced" || !isNatural(before) {
			return nil, errors.New("two numbers side by side")
		}
		switch {
		case y.op == opNum && t.spaced && (p.isOp("/") || p.isOp("frac")) && isNatural(y):
			s := *y
			s.name = "spaced"
			return &s, nil
		case y.op == opAdd: // 3 1\frac{1}{2}
			return y, nil
		}
		return nil, errors.New("two numbers side by side")
	}
	if t.kind == tokNum && before.op == opSym && !t.spaced && len(before.name) == 1 {
		return nil, fmt.Errorf("%s%s is neither a name nor a product", before.name, t.text)
	}
	return y, nil
}

func (p *parser) startsFactor() bool {
	t := p.peek()
	switch t.kind {
	case tokNum, tokSym, tokFunc:
		return true
	case tokBegin:
		return true
	case tokOp:
		switch t.text {
		case "(", "{", "\\{", "frac", "√", "∛", "binom", "⌊", "⌈", "|(", "overline", "[", "∑", "∏", "∫", "lim":
			return true
		case "|":
			return p.bars == 0
		}
	}
	return false
}

// factor reads a primary with its postfixes and exponent. -x^2 is -(x^2).
func (p *parser) factor() (*expr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	if p.accept("-") {
		x, err := p.factor()
		if err != nil {
			return nil, err
		}
		return negative(x), nil
	}
	if p.accept("+") {
		return p.factor()
	}
	x, err := p.primary()
	if err != nil {
		return nil, err
	}
	return p.postfix(x)
}
