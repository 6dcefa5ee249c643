// Package wording knows the words of an answer: units, counted nouns, numbers in words, and words that take a value
// back.
package wording

import (
	"math/big"
	"slices"
	"strings"
	"unicode"
)

// Quantity is the meaning of the words after a value.
type Quantity struct {
	Known    bool     // every word is a unit or a counted noun, or changes nothing
	Scale    *big.Rat // dozen, million
	Measured bool     // the words name units of measure
	Measure           // if measured
	nouns    []string // counted things: apples, ways; "unit" with its exponent
	words    []string // all words
	Notation bool     // the words say how a number is read: \pmod 9, digits
}

// Tails are words after a noun, or after a bare value, that change nothing.
var Tails = []string{"in total", "in all", "total", "altogether", "overall", "left", "left over", "remaining", "each",
	"old", "tall", "long", "wide", "high", "deep", "apart", "away", "combined", "exactly", "only", "per person",
	"in length", "in area", "in width", "in height", "in volume", "approximately", "of these", "of them",
	"of age", "pm", "am", "base ten", "base 10"}

// fillers may stand before any noun.
var fillers = []string{"of", "the", "a", "an", "more", "and"}

// QuantityOf reads the words after a value.
func QuantityOf(name string) Quantity {
	q := Quantity{Scale: big.NewRat(1, 1), Measure: Measure{Factor: big.NewRat(1, 1)}}
	q.words = unitWords(name)
	list := q.words
	for len(list) > 0 && Scales[list[0]] != 0 {
		q.Scale.Mul(q.Scale, big.NewRat(Scales[list[0]], 1))
		list = list[1:]
	}
	list = withoutTails(list)
	if len(list) > 0 && strings.HasPrefix(list[0], "mod") && AllDigits(list[0][3:]) { // \pmod 9
		q.nouns, q.Notation = append(q.nouns, list[0]), true
		list = list[1:]
	}
	if len(list) == 0 {
		q.Known = len(q.words) > 0
		return q
	}
	above, below, per := list, []string(nil), false
	for i, w := range list {
		if w == "/" && i > 0 {
			above, below, per = list[:i], list[i+1:], true
			break
		}
	}
	q.Known = q.read(above, 1) && (!per || len(below) > 0 && q.read(below, -1))
	return q
}

// withoutTails cuts "left" and "of them in total" off the end.
func withoutTails(list []string) []string {
	for i := max(0, len(list)-4); i < len(list); i++ {
		if slices.Contains(Tails, strings.Join(list[i:], " ")) {
			return withoutTails(list[:i])
		}
	}
	return list
}

// unitWords splits a name into words: "per" becomes a slash, exponents stand alone.
func unitWords(name string) []string {
	s := strings.NewReplacer("\\", " ", "~", " ", "{", "", "}", "", ". ", " ", ".", "", "^", " ^", "/", " / ",
		"*", " ", "·", " ", "²", " ^2", "³", " ^3", ",", " ", "(", " ", ")", " ").Replace(name)
	list := strings.Fields(s)
	for i, w := range list {
		if len(w) > 2 || unicode.IsLower(rune(w[0])) {
			if _, ok := Units[w]; !ok {
				list[i] = strings.ToLower(w)
			}
		}
		if list[i] == "per" {
			list[i] = "/"
		}
	}
	return list
}

// read reads units and nouns above or below the fraction bar.
func (q *Quantity) read(list []string, sign int8) bool {
	exponent, last, found := 1, -1, false
	var lastMeasure Measure
	for i, w := range list {
		switch w {
		case "squared", "cubed": // meters squared; before a unit it may square the value
			if last != i-1 || lastMeasure.Factor == nil {
				return false
			}
			q.raise(lastMeasure, map[string]int{"squared": 1, "cubed": 2}[w], sign)
			continue
		case "square", "sq":
			exponent = 2
			continue
		case "cubic", "cu":
			exponent = 3
			continue
		}
		if w[0] == '^' {
			n := strings.IndexByte("123456789", w[len(w)-1]) + 1
			if len(w) == 3 && w[1] == '-' && n > 0 && last == i-1 && lastMeasure.Factor != nil { // s^{-1}
				q.raise(lastMeasure, n+1, -sign)
				continue
			}
			if last != i-1 || len(w) != 2 || n == 0 || last < 0 {
				return false
			}
			if lastMeasure.Factor != nil {
				q.raise(lastMeasure, n-1, sign)
			} else {
				q.nouns[len(q.nouns)-1] += w
			}
			continue
		}
		m, ok := unitNamed(w)
		switch {
		case ok && (last < 0 || last == i-1 || sign < 0 || exponent > 1):
			lastMeasure = m
			q.raise(m, exponent, sign)
			q.Measured = true
		case IsCounted(w) || w == "unit" || w == "units":
			lastMeasure = Measure{}
			noun := Singular(w)
			q.Notation = q.Notation || noun == "digit"
			if exponent > 1 {
				noun += "^" + string(rune('0'+exponent))
			}
			if sign < 0 {
				noun = "/" + noun
			}
			q.nouns = append(q.nouns, noun)
		case i+1 < len(list) && (Adjectives[w] || slices.Contains(fillers, w) || isCompound(w)):
			continue
		case Adjectives[w] && found:
			continue
		default:
			return false
		}
		exponent, last, found = 1, i, true
	}
	return found && exponent == 1
}

// isCompound reports whether w is made of known words, as in two-digit and third-grade.
func isCompound(w string) bool {
	first, second, ok := strings.Cut(w, "-")
	return ok && (IsNumeral(first) || Adjectives[first] || IsCounted(first)) &&
		(Adjectives[second] || IsCounted(second))
}

func (q *Quantity) raise(m Measure, n int, sign int8) {
	for range n {
		q.Measure = q.Measure.times(m, sign)
	}
}

// SameAs reports whether two quantities are of one kind, whether that is known, and the factor from p to q.
func (q Quantity) SameAs(p Quantity) (factor *big.Rat, same, known bool) {
	one := big.NewRat(1, 1)
	bothKnown := q.Known && p.Known
	switch {
	case bothKnown && q.Measured && p.Measured && q.Dim == p.Dim:
		return one.Quo(p.Factor, q.Factor), true, true
	case bothKnown && q.Measured && p.Measured:
		return one, false, true
	case slices.Equal(q.words, p.words):
		return one, true, true
	case len(q.nouns) == 0 && !q.Measured || len(p.nouns) == 0 && !p.Measured: // a scale or "in total" only
		return one, bothKnown, false
	case !bothKnown:
		return one, false, false
	}
	for _, n := range q.nouns {
		if slices.Contains(p.nouns, n) {
			return one, true, true
		}
	}
	return one, q.isPlainUnit(p) || p.isPlainUnit(q), false
}

// isPlainUnit reports whether q says "units" or "square units" where p has a unit of that power.
func (q Quantity) isPlainUnit(p Quantity) bool {
	if len(q.nouns) != 1 || q.Measured || !p.Measured {
		return false
	}
	name, exp, _ := strings.Cut(q.nouns[0], "^")
	power := Dimension{}
	power[lengthDim] = 1
	if exp != "" {
		power[lengthDim] = int8(exp[0] - '0')
	}
	return name == "unit" && (exp == "" || p.Dim == power)
}
