package grade

import (
	"slices"
	"strings"

	"exp/eval/grade/pattern"
	"exp/eval/grade/wording"
)

// Sets of integers in words: all odd n, every positive integer, n must be prime.

// integerSet is such a set.
type integerSet struct {
	kind string // odd, even, prime, composite; empty: all
	sign string // positive, negative, nonnegative, natural; empty: not said
}

// setSign matches ℤ or ℕ with its sign.
var setSign = pattern.New(`^\$?(?:[a-z] *(?:\\in|∈) *)?(?:\\mathbb ?\{?([ZN])\}?|([ℤℕ]))` +
	`(?:[\^_]\{?\s*(\+|(?:>|\\gt) ?0|(?:\\geq?|≥) ?0)\s*\}?)?\$?$`)

// ofIntegers are words that do not limit such a set.
var ofIntegers = []string{"all", "every", "any", "each", "integer", "integers", "number", "numbers", "is", "are",
	"must", "be", "values", "value", "of", "which", "that"}

// integersIn reads a set of integers.
func integersIn(s string) (set integerSet, ok bool) {
	if m := setSign.FindStringSubmatch(s); m != nil {
		switch {
		case m[1] == "N" || m[2] == "ℕ":
			return integerSet{sign: "natural"}, m[3] == ""
		case m[3] == "":
			return integerSet{}, true
		case strings.HasSuffix(m[3], "0") && !strings.Contains(m[3], ">") && !strings.Contains(m[3], "gt"):
			return integerSet{sign: "nonnegative"}, true
		}
		return integerSet{sign: "positive"}, true
	}
	if len(s) > 100 {
		return integerSet{}, false
	}
	s = wording.Bare(s)
	if strings.ContainsAny(s, "0123456789\\=<>+^,/") {
		return integerSet{}, false
	}
	integers := false
	for _, w := range strings.Fields(wording.Normal(strings.ReplaceAll(s, "non-negative", "nonnegative"))) {
		field, value := &set.kind, strings.TrimSuffix(w, "s")
		switch w {
		case "odd", "even", "composite", "prime", "primes":
		case "positive", "negative", "nonnegative", "natural":
			field = &set.sign
		default:
			if !slices.Contains(ofIntegers, w) && !(len(w) == 1 && strings.Contains("nmkpx", w)) {
				return integerSet{}, false
			}
			integers = integers || strings.HasPrefix(w, "integer")
			continue
		}
		if *field != "" {
			return integerSet{}, false
		}
		*field = value
	}
	return set, set.kind != "" || integers || set.sign == "natural"
}

// integerSets compares two of them; ok is false if one is something else.
func integerSets(gold, prediction string) (r result, ok bool) {
	g, ok := integersIn(gold)
	p, ok2 := integersIn(prediction)
	switch {
	case !ok || !ok2:
		return result{}, false
	case g == p:
		return yes("the same integers"), true
	case g.kind != p.kind:
		return no("other integers"), true
	case g.sign == "natural" && p.sign != "negative" && p.sign != "",
		p.sign == "natural" && g.sign != "negative" && g.sign != "":
		return yes("the same integers, if 0 counts alike").by(Convention), true
	case g.kind != "" && (g.sign == "" && p.sign != "negative" || p.sign == "" && g.sign != "negative"):
		return yes("the same integers; only one side says their sign").by(Convention), true
	}
	return no("other integers"), true
}

// victory matches what a text says of a winner.
var victory = pattern.New(`^(.+?) (?:wins?(?: game)?|has (?:a )?winning strategy|will win|can(?: always)? (?:win|force win)|` +
	`is winner|can guarantee (?:a )?win)$`)

// winner drops it from words in the form of wording.Normal.
func winner(s string) string {
	if m := victory.FindStringSubmatch(s); m != nil && len(strings.Fields(m[1])) <= 3 && !wording.Unsettled(m[1]) {
		return m[1]
	}
	return s
}

// permuted matches tuples and the words that add their permutations.
var permuted = pattern.New(`^(?:(?:\\text\{ *)?(?:all |the )*permutations? of *\}? *(\([^()]+\))|` +
	`(?:\([a-z](?:, ?[a-z])+\) *= *)?(\([^()]+\)(?:, *\([^()]+\))*),? *(?:\\text\{ *,? *)?(?:and|or)? *(?:all |its |their |the |any )*` +
	`(cyclic )?permutations?(?: thereof| of (?:it|them|this|these))? *\}?)\.?$`)

// permutationsInWords writes out (1, 2, 3) and its permutations.
func permutationsInWords(s string) string {
	if !strings.Contains(s, "permutation") {
		return s
	}
	m := permuted.FindStringSubmatch(strings.Trim(s, "$ "))
	if m == nil {
		return s
	}
	var all []string
	for _, tuple := range strings.Split(m[1]+m[2], "(")[1:] {
		tuple, _, _ = strings.Cut(tuple, ")")
		values := strings.Split(tuple, ",")
		if len(values) > 4 {
			return s
		}
		orders := [][]string{values}
		if m[3] != "" {
			for k := 1; k < len(values); k++ {
				orders = append(orders, append(slices.Clone(values[k:]), values[:k]...))
			}
		} else {
			orders = permutations(values)
		}
		for _, order := range orders {
			if t := "(" + strings.Join(order, ",") + ")"; !slices.Contains(all, t) {
				all = append(all, t)
			}
		}
	}
	return strings.Join(all, ", ")
}

// permutations lists the orders of values.
func permutations(values []string) [][]string {
	if len(values) == 1 {
		return [][]string{values}
	}
	var all [][]string
	for i, v := range values {
		rest := append(slices.Clone(values[:i]), values[i+1:]...)
		for _, order := range permutations(rest) {
			all = append(all, append([]string{v}, order...))
		}
	}
	return all
}
