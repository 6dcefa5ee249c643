package grade

import (
	"math/big"
	"strings"
)

// currencies maps currency signs to their units.
var currencies = map[string]string{"$": "dollar", "€": "euro", "£": "pound sterling", "¥": "yen"}

// temperature names the degrees that are not angles.
var temperature = map[string]string{"c": "celsius", "f": "fahrenheit", "celsius": "celsius",
	"fahrenheit": "fahrenheit"}

// scales are words that multiply the value before them.
var scales = map[string]int64{"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}

// scaled multiplies out the scale at the start of a unit: 5 million dollars.
func scaled(x *expr) *expr {
	if x.op != opUnit {
		return x
	}
	word, rest, _ := strings.Cut(strings.TrimSpace(x.name), " ")
	n := scales[strings.ToLower(word)]
	if n == 0 {
		return x
	}
	v := product(x.args[0], integer(n))
	if rest = strings.TrimSpace(rest); rest == "" {
		return v
	}
	return &expr{op: opUnit, name: rest, args: []*expr{v}}
}

// measure is a unit as a multiple of its dimension's base unit.
type measure struct {
	dimension string
	factor    *big.Rat
}

// units are the spellings, lower case and singular, of units that convert.
var units = makeUnits()

func makeUnits() map[string]measure {
	m := map[string]measure{}
	add := func(dimension string, num, den int64, names ...string) {
		for _, n := range names {
			m[n] = measure{dimension, big.NewRat(num, den)}
		}
	}
	add("length", 1, 1, "m", "meter", "metre")
	add("length", 1, 100, "cm", "centimeter", "centimetre")
	add("length", 1, 1000, "mm", "millimeter", "millimetre")
	add("length", 1000, 1, "km", "kilometer", "kilometre")
	add("length", 254, 10000, "in", "inch", "inche")
	add("length", 3048, 10000, "ft", "foot", "feet")
	add("length", 9144, 10000, "yd", "yard")
	add("length", 1609344, 1000, "mi", "mile")
	add("time", 1, 1, "s", "sec", "second")
	add("time", 60, 1, "min", "minute")
	add("time", 3600, 1, "h", "hr", "hour")
	add("time", 86400, 1, "day")
	add("time", 604800, 1, "week")
	add("month", 1, 1, "month")
	add("month", 12, 1, "year")
	add("mass", 1, 1, "g", "gram")
	add("mass", 1, 1000, "mg", "milligram")
	add("mass", 1000, 1, "kg", "kilogram")
	add("weight", 1, 1, "oz", "ounce")
	add("weight", 16, 1, "lb", "pound")
	add("volume", 1, 1, "l", "liter", "litre")
	add("volume", 1, 1000, "ml", "milliliter", "millilitre")
	add("gallon", 1, 4, "qt", "quart")
	add("gallon", 1, 1, "gal", "gallon")
	add("money", 1, 1, "dollar", "usd", "$", "buck")
	add("money", 1, 100, "cent", "¢")
	add("length/time", 1609344, 3600*1000, "mph")
	add("length/time", 1000, 3600, "kph", "kmh")
	for _, n := range []string{"m", "s", "h", "g", "l", "in", "min"} { // also letters and words
		m["\x00"+n] = m[n]
		delete(m, n)
	}
	return m
}

// unitWord normalises the name of a unit: lower case, singular, no spaces around operators, "square" and
// "cubic" as exponents.
func unitWord(s string) string {
	s = strings.ToLower(strings.NewReplacer("\\", " ", "~", " ", "{", "", "}", "", ".", "").Replace(s))
	var words []string
	exponent := ""
	for _, w := range strings.Fields(strings.NewReplacer("^", " ^", "/", " / ").Replace(s)) {
		switch w {
		case "square", "squared", "sq":
			exponent = "^2"
			continue
		case "cubic", "cubed", "cu":
			exponent = "^3"
			continue
		case "the", "a", "an", "of", "each", "total":
			continue
		case "per":
			w = "/"
		}
		if w[0] == '^' {
			exponent = w
			continue
		}
		words = append(words, singular(w))
	}
	return strings.Join(words, " ") + exponent
}

func singular(w string) string {
	switch {
	case len(w) > 4 && strings.HasSuffix(w, "ies"):
		return w[:len(w)-3] + "y"
	case len(w) > 2 && strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss"):
		return w[:len(w)-1]
	}
	return w
}

// measureOf looks up a unit; exponents raise the factor.
func measureOf(name string) (measure, bool) {
	above, below, per := strings.Cut(unitWord(name), "/")
	m, ok := simpleMeasure(strings.TrimSpace(above))
	if !per || !ok {
		return m, ok
	}
	n, ok := simpleMeasure(strings.TrimSpace(below))
	if !ok {
		return measure{}, false
	}
	return measure{m.dimension + "/" + n.dimension, new(big.Rat).Quo(m.factor, n.factor)}, true
}

// simpleMeasure looks up one word with its exponent.
func simpleMeasure(name string) (measure, bool) {
	word, exp, _ := strings.Cut(name, "^")
	m, ok := units[word]
	if !ok {
		if m, ok = units["\x00"+word]; !ok {
			return measure{}, false
		}
	}
	f := new(big.Rat).Set(m.factor)
	switch exp {
	case "":
	case "2":
		f.Mul(f, m.factor)
	case "3":
		f.Mul(f, m.factor).Mul(f, m.factor)
	default:
		return measure{}, false
	}
	return measure{m.dimension + exp, f}, true
}

// conversion returns the factor that converts a value from one unit to another, and whether the two are
// known to be of the same or of different kinds.
func conversion(from, to string) (factor *big.Rat, same, known bool) {
	a, b := unitWord(from), unitWord(to)
	if strings.ReplaceAll(a, " ", "") == strings.ReplaceAll(b, " ", "") {
		return big.NewRat(1, 1), true, true
	}
	m, ok := measureOf(from)
	n, ok2 := measureOf(to)
	switch {
	case ok && ok2 && m.dimension == n.dimension:
		return new(big.Rat).Quo(m.factor, n.factor), true, true
	case ok && ok2:
		return nil, false, true
	}
	for _, w := range strings.Fields(a) { // "pieces of fruit" and "fruits"
		if len(w) > 2 && strings.Contains(" "+b+" ", " "+w+" ") {
			return big.NewRat(1, 1), true, true
		}
	}
	return nil, false, false
}

// smallerUnits adds the 30 minutes of "2 hours and 30 minutes".
func (p *parser) smallerUnits(x *expr) *expr {
	for {
		start := p.i
		if !p.accept("and") {
			p.accept(",")
		}
		if p.peek().kind != tokNum {
			p.i = start
			return x
		}
		n, err := p.number(p.tokens[p.i].text)
		p.i++
		unit := ""
		if err == nil {
			unit = p.unit()
		}
		factor, same, _ := conversion(unit, x.name)
		if unit == "" || !same || factor.Cmp(big.NewRat(1, 1)) >= 0 {
			p.i = start
			return x
		}
		x = &expr{op: opUnit, name: x.name, args: []*expr{sum(x.args[0], product(n, number(factor)))}}
	}
}

// unit reads the words after a value: \text{ cm}^2, meters per second, km/h.
func (p *parser) unit() string {
	if u, ok := p.unitFraction(); ok {
		return u
	}
	if p.peek().kind != tokText {
		return ""
	}
	var b strings.Builder
	for p.i < len(p.tokens) {
		t := p.tokens[p.i]
		switch {
		case t.kind == tokText:
			if b.Len() > 0 && t.text != "$" {
				b.WriteByte(' ')
			}
			b.WriteString(t.text)
		case t.kind == tokOp && (t.text == "^" || t.text == "/" || t.text == "*" || t.text == "-" || t.text == "in" ||
			t.text == "{" || t.text == "}" || t.text == "(" || t.text == ")"):
			if t.text != "{" && t.text != "}" && t.text != "(" && t.text != ")" {
				b.WriteString(t.text)
			}
		case t.kind == tokNum && len(t.text) == 1, t.kind == tokSym && isLetter(t.text[0]):
			if t.kind == tokSym {
				b.WriteByte(' ')
			}
			b.WriteString(t.text)
		default:
			return b.String()
		}
		p.i++
	}
	return b.String()
}

// atUnitFraction reports whether \frac{\text{m}}{\text{s}} comes next.
func (p *parser) atUnitFraction() bool {
	t := p.tokens[p.i:]
	return len(t) >= 7 && p.isOp("frac") && t[1].text == "{" && t[2].kind == tokText && t[3].text == "}" &&
		t[4].text == "{" && t[5].kind == tokText && t[6].text == "}"
}

func (p *parser) unitFraction() (string, bool) {
	if !p.atUnitFraction() {
		return "", false
	}
	u := p.tokens[p.i+2].text + "/" + p.tokens[p.i+5].text
	p.i += 7
	return u, true
}

var relations = []string{"=", "<", ">", "<=", ">=", "!=", "in", "->"}
