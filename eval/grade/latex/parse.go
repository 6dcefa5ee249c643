// Package latex reads answers in LaTeX, plain notation and words into expressions.
//
// Depth and number of nodes are bounded, so time and memory are for any input.
package latex

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"exp/eval/grade/formula"
	"exp/eval/grade/pattern"
	"exp/eval/grade/wording"
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
	dots      int  // number of dots read
}

// MaxAnswer is the longest answer, in bytes, that is parsed. Longer ones are compared as text.
const MaxAnswer = 6000

const (
	maxDepth = 120
	maxNodes = 4000
)

var errEnd = errors.New("ends too early")

// Parse reads a whole answer: a formula, or a number, set or bound in words. With thousands set, 1,234 is one
// number.
func Parse(s string, thousands bool) (*formula.Expr, error) {
	s = inUsualNotation(s)
	if x := wordsOnly(s); x != nil {
		return x, nil
	}
	return ParseFormula(minusInWords.ReplaceAllString(boundsAsSigns(separated(s)), "-$1"), thousands)
}

// minusInWords matches a minus sign in words: negative 8.
var minusInWords = pattern.New(`^ *(?:\\text\{ *(?i:negative|minus) *\}|(?i:negative|minus)\b) *([0-9]|\\[dt]?frac|\\sqrt|\\pi)`)

// metres matches the m of 150 m², a unit rather than a variable.
var metres = pattern.New(`([0-9]) m([²³])`)

// wideSpace matches the space between two equations, x = 1 \quad y = 2.
var wideSpace = pattern.New(`(=[^=,;&]*[^=,;&\s])\s*\\q?quad\s*([a-zA-Z](?:_\{?\w+\}?)?\s*=)`)

// hoursAndMinutes matches a duration written together: 3h 20min.
var hoursAndMinutes = pattern.New(`\b([0-9]+) ?h ?([0-9]+) ?(?:min\b|\\text\{ min\})`)

// separated writes the wide space between two equations as a comma, and square metres, hours and minutes as units.
func separated(s string) string {
	if strings.Contains(s, " m²") || strings.Contains(s, " m³") {
		s = metres.ReplaceAllString(s, `$1\text{ m}$2`)
	}
	if strings.Contains(s, "min") {
		s = hoursAndMinutes.ReplaceAllString(s, `$1\text{ h }$2\text{ min}`)
	}
	if !strings.Contains(s, "quad") || len(s) > 1000 {
		return s
	}
	return valuesApart.ReplaceAllString(wideSpace.ReplaceAllString(s, "$1, $2"), "$1, $2")
}

// valuesApart matches the wide space between two values: 2+3i \quad 2-3i.
var valuesApart = pattern.New(`([0-9a-zA-Z)}])\s*\\q?quad\s*(-?(?:[0-9]|\\[dt]?frac|\\sqrt))`)

// ParseFormula reads a formula.
func ParseFormula(s string, thousands bool) (*formula.Expr, error) {
	if x := lettersAsDigits(s); x != nil {
		return x, nil
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
var lettersInBase = pattern.New(`^([0-9]+[A-Fa-f][0-9A-Fa-f]*|[A-Fa-f]+[0-9][0-9A-Fa-f]*|[A-Fa-f]{2,})_(.+)$`)

// lettersAsDigits reads such a number, or returns nil. Letters without a digit among them may be a name unless the
// base is 16.
func lettersAsDigits(s string) *formula.Expr {
	m := lettersInBase.FindStringSubmatch(s)
	if m == nil {
		return nil
	}
	base, ok := baseNamed(inSubscript.Replace(m[2]))
	if !ok || base <= 10 || base > 16 || base != 16 && !strings.ContainsAny(m[1], "0123456789") {
		return nil
	}
	if _, ok := new(big.Int).SetString(m[1], base); !ok {
		return nil
	}
	return &formula.Expr{Op: formula.Base, Name: strings.ToLower(m[1]),
		Args: []*formula.Expr{formula.Integer(int64(base))}}
}

// inSubscript drops what may stand around the name of a base.
var inSubscript = strings.NewReplacer(`\text`, "", `\mathrm`, "", `\rm`, "", "{", "", "}", "")

// baseNamed reads the name of a base: 16, sixteen, hex, (base 16).
func baseNamed(name string) (base int, ok bool) {
	name = strings.Trim(name, " ~()")
	name = strings.Trim(strings.TrimPrefix(name, "base"), " ~-")
	if base, ok = baseNames[name]; ok {
		return base, true
	}
	base, err := strconv.Atoi(name)
	return base, err == nil && 2 <= base && base <= 36
}

// baseNames are bases in words.
var baseNames = map[string]int{"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
	"ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16,
	"bin": 2, "binary": 2, "oct": 8, "octal": 8, "dec": 10, "decimal": 10, "hex": 16, "hexadecimal": 16}

var (
	opensOutward  = pattern.New(`\]([^\[\]()]*[,;][^\[\]()]*)([\[\]])`)
	closesOutward = pattern.New(`\[([^\[\]()]*[,;][^\[\]()]*)\[`)
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
func onlyText(tokens []token) *formula.Expr {
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
		case t.kind == tokSym && wording.IsLetter(t.text[0]):
		case t.kind == tokNum && text && strings.Contains(months, " "+strings.ToLower(words[0])+" "):
		default:
			return nil
		}
		words = append(words, t.text)
	}
	if !text {
		return nil
	}
	return &formula.Expr{Op: formula.Text, Name: strings.Join(words, " ")}
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
func (p *parser) list() (*formula.Expr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	first, err := p.item()
	if err != nil {
		return nil, err
	}
	items, word := []*formula.Expr{first}, ""
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
	return &formula.Expr{Op: formula.List, Name: word, Args: items}, nil
}

func (p *parser) relation() (*formula.Expr, error) {
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
func (p *parser) sides(first *formula.Expr, side func() (*formula.Expr, error)) (*formula.Expr, error) {
	x := &formula.Expr{Op: formula.Relation, Args: []*formula.Expr{first}}
	for p.atRelation() {
		x.Rels = append(x.Rels, p.peek().text)
		p.i++
		p.skipCurrency()
		next, err := side()
		if err != nil {
			return nil, err
		}
		x.Args = append(x.Args, next)
	}
	return x, nil
}

func (p *parser) atRelation() bool {
	t := p.peek()
	return t.kind == tokOp && slices.Contains(relations, t.text)
}

func (p *parser) region() (*formula.Expr, error) {
	x, err := p.sum()
	for err == nil {
		o := formula.Union
		switch {
		case p.accept("cup"):
		case p.accept("cap"):
			o = formula.Intersection
		case x.Op != formula.Num && p.accept("setminus"):
			o = formula.Without
		default:
			return x, nil
		}
		var y *formula.Expr
		y, err = p.sum()
		x = &formula.Expr{Op: o, Args: []*formula.Expr{x, y}}
	}
	return nil, err
}
