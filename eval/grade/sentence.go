package grade

import (
	"regexp"
	"slices"
	"strings"
)

// The value that a sentence gives.

// conclusion matches "5 is the answer", after the value.
var conclusion = regexp.MustCompile(`(?i)^(.*?\S) +(?:is|are) +((?:the|our|your|my) [a-z -]+)[.!*]*$`)

// aside matches what may follow a value between delimiters.
var aside = regexp.MustCompile(`^[,;.]? +(as|which|because|since|by|so|that|where|when we)\b`)

// opening matches connectives before a value, and a label with a colon.
var opening = regexp.MustCompile(`(?i)^((so|thus|hence|therefore|then|finally|consequently|in conclusion|as a result)\b,? +|` +
	`(the )?(final |grand )?(total|result|sum|solution|area|volume|probability|value|number)( [a-z]+){0,4}: *)`)

// reduce extracts the answer from a sentence.
func reduce(s string) string {
	s = statement(opening.ReplaceAllString(statement(s), ""))
	if m := leadingMath(s); m != "" && aside.MatchString(s[min(len(s), leadingLength(s)):]) {
		return m
	}
	if t := concluded(s); t != "" {
		return t
	}
	if s == "" || len(s) < 400 && readable(s) {
		return s
	}
	if m := leadingMath(s); m != "" && !unsettled(s[min(len(s), leadingLength(s)):]) {
		return m
	}
	if t := bold(s); t != "" {
		return t
	}
	// "12 because …", "12. The rest": the first sentence, if it is an answer.
	for _, cut := range []string{". ", " because ", " since ", "。", " which ", "; "} {
		if k := strings.Index(s, cut); k > 0 && strings.ContainsAny(s[:k], "0123456789\\$") {
			if t := statement(s[:k]); t != "" && !proseWord(t) && readable(t) {
				return t
			}
		}
	}
	if t := afterVerb(s); t != "" {
		return t
	}
	if !isProse(s) {
		if m := lastMath(s); m != "" {
			return m
		}
		return s // a formula we cannot parse may still be spelled like the gold answer
	}
	return lastClause(s)
}

// concluded returns the value of "Therefore, 5 is the answer".
func concluded(s string) string {
	if len(s) > 400 {
		s = lastSentence(s)
	}
	last := lastSentence(s)
	m := conclusion.FindStringSubmatch(last)
	if m == nil || unsettled(m[1]) || unsettled(m[2]) {
		return ""
	}
	if t := bold(m[1]); t != "" {
		return t
	}
	if t := lastMath(m[1]); t != "" {
		return t
	}
	words := strings.Fields(m[1])
	if t := statement(words[len(words)-1]); strings.ContainsAny(t, "0123456789") && readable(t) {
		return t
	}
	return ""
}

// lastSentence returns the text after the last full stop that another sentence follows.
func lastSentence(s string) string {
	if k := strings.LastIndex(strings.TrimRight(s, " .!*"), ". "); k >= 0 {
		return s[k+2:]
	}
	return s
}

// bold returns what is emphasised, if it is one value.
func bold(s string) string {
	open := strings.LastIndex(s, "**")
	if open < 0 {
		return ""
	}
	start := strings.LastIndex(s[:open], "**")
	if start < 0 || open-start > 100 {
		return ""
	}
	before := lower(s[:start])
	if k := strings.LastIndexAny(before, ",;"); k >= 0 {
		before = before[k:]
	}
	rest, _, _ := strings.Cut(s[open+2:], ",")
	t := statement(s[start+2 : open])
	_, letter := choiceIn(t)
	if t == "" || !letter && !strings.ContainsAny(t, "0123456789$\\") || !readable(t) || unsettled(before) || unsettled(rest) {
		return ""
	}
	return t
}

// afterVerb returns what follows the last "is" or "=".
func afterVerb(s string) string {
	low := lower(s)
	for _, verb := range []string{" is ", " are ", " equals ", " be ", " = ", "："} {
		k := strings.LastIndex(low, verb)
		if k < 0 {
			continue
		}
		t := statement(s[k+len(verb):])
		if m := leadingMath(t); m != "" && !unsettled(t[min(len(t), leadingLength(t)):]) {
			return m
		}
		if readable(t) && !proseWord(t) && !startsNegated(t) {
			return t
		}
	}
	return ""
}

func startsNegated(s string) bool {
	first, _, _ := strings.Cut(lower(s), " ")
	return slices.Contains(negations, first)
}

// unsettling are words that keep the value in their clause from being the answer.
var unsettling = []string{"or", "nor", "neither", "either", "than", "between", "except", "without", "unless", "maybe",
	"perhaps", "possibly", "probably", "least", "most", "wrong", "incorrect", "but", "squared", "cubed", "factorial", "dozen",
	"not", "isn", "never", "cannot", "if", "guess", "about", "approximately", "roughly"}

func unsettled(s string) bool {
	for _, w := range strings.FieldsFunc(lower(s), func(r rune) bool { return (r < 'a' || r > 'z') && r < 0x80 }) {
		if slices.Contains(unsettling[:len(unsettling)-3], w) {
			return true
		}
	}
	return false
}

// clauseEnds separate clauses.
var clauseEnds = regexp.MustCompile(`[,;:] | (so|thus|hence|therefore|which means|giving) `)

// lastClause returns the last value of the last clause that has one. Clauses that say what the value is not are
// skipped; one that leaves it open gives none.
func lastClause(s string) string {
	ends := clauseEnds.FindAllStringIndex(s, -1)
	for i := len(ends); i >= 0; i-- {
		from := 0
		if i > 0 {
			from = ends[i-1][1]
		}
		clause := s[from:]
		if i < len(ends) {
			clause = s[from:ends[i][0]]
		}
		value := lastMath(clause)
		if value == "" {
			value = lastNumber(clause)
		}
		if value == "" {
			continue
		}
		low := " " + lower(clause)
		switch {
		case strings.Contains(low, " not ") || strings.Contains(low, "n't "):
			continue
		case unsettled(clause):
			return s
		}
		return numberWithWords(clause, value)
	}
	return ""
}

// numberWithWords adds the words after the last number if they are a unit that changes the value.
func numberWithWords(clause, value string) string {
	k := strings.LastIndex(clause, value)
	if k < 0 {
		return value
	}
	rest := strings.TrimSpace(strings.Trim(clause[k+len(value):], " .*$!"))
	first, _, _ := strings.Cut(rest, " ")
	if scales[lower(first)] != 0 {
		return value + " " + first
	}
	return value
}
