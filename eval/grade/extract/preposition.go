package extract

import (
	"slices"
	"strings"

	"exp/eval/grade/wording"
)

// Values that belong to a preposition or another word before them, not to the sentence.

// governor matches a preposition before a value, with articles and the like between them.
var governor = lazy(`\b(?:of|in|for|with|from|by|at|on|after|before|per|between|over|under|within|during|` +
	`among|into)(?: (?:the|a|an|all|these|those|each|every|her|his|its|their|our|my|only|just|first|last|next|of|other|` +
	`remaining))* \$?\\?\(?$`)

// definite matches an article before a value that the question gave: the 18 plants.
var definite = lazy(`\bthe \$?$`)

// stated matches words before the value that a sentence states: a total of 36, adds up to 36.
var stated = lazy(`\b(?:(?:grand |final )?(?:total|sum|result|answer|count)(?: [a-z]+)? of|` +
	`(?:adds? up|comes? (?:out )?|amounts?|sums?(?: up)?|simplif(?:y|ies)|reduces?|evaluates?|works? out|equal|rounds?|` +
	`multipl(?:y|ies)) to)(?: exactly| about| a total of| approximately)? \$?\\?\(?$`)

// ungoverned drops the values that a preposition governs, or that were given, unless all are. The last value that
// the words call a total stands alone.
func ungoverned(clause string, list []span) []span {
	low := wording.Lower(clause)
	for i := len(list) - 1; i >= 0; i-- {
		if !list[i].name && stated.MatchString(low[:list[i].start]) {
			if verbEnd(low[list[i].end:]) > 0 {
				break // the digits that add up to 18 are 9 and 9
			}
			return []span{calculated(clause, list[i:])}
		}
	}
	var free, governed []span
	for i, v := range list {
		if definite.MatchString(low[:v.start]) && !strings.Contains(clause[v.start:v.end], "=") {
			continue
		}
		governed = append(governed, v)
		joined := i > 0 && step.MatchString(clause[list[i-1].end:v.start]) && slices.Contains(free, list[i-1])
		shown := strings.Contains(clause[v.start:v.end], "=") // a calculation with its result
		if v.name || joined || shown || !governor.MatchString(low[:v.start]) || quantityOf.MatchString(low[:v.start]) {
			free = append(free, v)
		}
	}
	for _, some := range [][]span{free, governed} {
		if slices.ContainsFunc(some, func(v span) bool { return !v.name }) {
			return some
		}
	}
	return list
}

// quantityOf matches a quantity whose amount follows: an area of 36.
var quantityOf = lazy(`\b(?:` + strings.Join(quantities, "|") + `)(?: (?:value|values))? of \$?\\?\(?$`)

// partOfPhrase reports whether the words between the last verb, or value, and a value make something else of it: a
// third of 8, a prime below 8, a number with 8 digits.
func partOfPhrase(before string) bool {
	from := max(strings.LastIndexByte(before, '='), strings.LastIndexAny(before, "0123456789")) + 1
	from = max(from, verbEnd(before))
	words := strings.FieldsFunc(before[min(from, len(before)):], func(r rune) bool {
		return (r < 'a' || r > 'z') && r < 0x80
	})
	const most = 6 // words of such a phrase; a longer start without a verb is a sentence of another kind
	switch {
	case len(words) > 0 && words[len(words)-1] == "from":
		return true
	case from == 0 && len(words) > most:
		return false
	}
	all := strings.Fields(before[:min(from, len(before))])
	for i, w := range words {
		head := ""
		if i > 0 {
			head = words[i-1]
		} else if len(all) > 0 {
			head = all[len(all)-1] // is made of
		}
		if i+1 < len(words) && slices.Contains([]string{"them", "us", "it", "these", "those"}, words[i+1]) {
			continue // the two of them
		}
		if w == "of" && !slices.Contains(quantities, head) {
			return true
		}
		if heads, ok := prepositions[w]; ok && (heads == nil || slices.Contains(heads, head)) {
			return true
		}
	}
	return false
}

// insidePhrase reports whether the words around the last place of a value in a clause make something else of it: a
// third of 8, an 8-digit number.
func insidePhrase(clause, value string) bool {
	k := strings.LastIndex(clause, value)
	if k < 0 {
		return false
	}
	after := clause[k+len(value):]
	before := wording.Lower(clause[:k])
	next := wording.Lower(strings.TrimLeft(after, " $"))
	return partOfPhrase(before) || doubted(before) || failing.MatchString(next) || continued.MatchString(next) ||
		len(after) > 1 && after[0] == '-' && wording.IsLetter(after[1])
}

// quantities take their amount after "of": a total of 8. After other words, "of 8" names an argument or a whole: the
// reciprocal of 8, a third of 8.
var quantities = []string{"total", "value", "values", "area", "volume", "length", "width", "height", "perimeter",
	"circumference", "distance", "cost", "price", "maximum", "minimum", "speed", "rate", "probability", "average",
	"score",
	"radius", "diameter", "profit", "amount", "weight", "mass", "age", "measure", "time", "temperature", "answer",
	"result",
	"form", "consists", "set", "pair", "pairs", "salary", "balance", "slope", "angle", "range", "count", "sum", "bill",
	"loss", "gain", "discount", "tip", "fee", "tax", "share", "side", "depth", "capacity", "mean", "median", "mode",
	"degree", "period", "change", "size", "least", "population", "income", "interest", "remainder", "quotient",
	"ratio",
	"made", "composed", "comprised",
	"payment", "revenue", "savings", "debt", "deposit", "fine", "wage", "pay", "rent", "budget", "increase",
	"decrease",
	"raise", "reduction", "growth", "surplus", "quantity", "expense", "grade", "percentage", "chance", "product"}

// prepositions lists, for each, the words before it that tie the value after it to something else: divided by 8,
// close to 8. A preposition without a list always does.
var prepositions = map[string][]string{
	"to": {"close", "closer", "next", "prior", "similar", "compared", "added", "applied", "due", "related", "opposed",
		"parallel", "perpendicular", "tangent", "proportional", "near", "nearer", "up", "back", "contrary", "add"},
	"by": {"divided", "divisible", "multiplied", "followed", "preceded", "separated", "exceeded", "scaled", "off"},
	"with": {"number", "numbers", "integer", "integers", "polygon", "set", "figure", "string", "word", "begins",
		"beginning"},
	"below": nil, "above": nil, "under": nil, "over": nil, "base": nil, "than": nil,
	"half": nil, "twice": nil, "double": nil, "thrice": nil, "root": nil, "logarithm": nil, "digits": nil,
}
