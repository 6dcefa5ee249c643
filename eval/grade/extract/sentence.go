package extract

import (
	"slices"
	"strings"
	"unicode"

	"exp/eval/grade/formula"
	"exp/eval/grade/latex"
	"exp/eval/grade/wording"
)

// The value that a sentence gives.

// conclusion matches "5 is the answer", after the value.
var conclusion = lazy(`(?i)^(.*?\S) +(?:is|are) +((?:the|our|your|my) [a-z -]+)[.!*]*$`)

// aside matches what may follow a value between delimiters.
var aside = lazy(`^[,;.]? +(as|which|because|since|by|so|that|where|when we)\b`)

// consequence matches an aside that may go on to the answer: $a=3$, so the sum is $7$.
var consequence = lazy(`^[,;.]? +(?:so|which (?:is|equals|gives))\b`)

// opening matches connectives before a value, and a label with a colon.
var opening = lazy(`(?i)^((so|thus|hence|therefore|then|finally|consequently|ergo|accordingly|overall|in conclusion|` +
	`as a result|in total|in all|in short|yes,|i\.e\.,?|that is,)(?:\b,? +| +)|` +
	`(?:giving|leaving|yielding|making)(?: us)? |(we|i) (get|got|find|found|obtain|have) (that )?|` +
	`(the )?(final |grand )?(total|result|sum|solution|area|volume|probability|value|number)( [a-z]+){0,4}: *)`)

// resultOf matches a sentence that gives the result of the one before it, without words: This gives 2^{10}.
var resultOf = lazy(`(?i)^(?:this|that|which) (?:gives|yields)(?: us)? ([^a-z].*|[a-z]\b.*)$`)

// unopened drops what opens a sentence before its value: So we get.
func unopened(s string) string {
	for range 2 {
		s = Statement(opening.ReplaceAllString(Statement(s), ""))
	}
	if m := resultOf.FindStringSubmatch(s); m != nil {
		return Statement(m[1])
	}
	return s
}

// correction matches a value after the one that it replaces.
var correction = lazy(`^[Nn]ot [^ ]+,? but (?:rather )?([^ ].*)$`)

// asAnswer matches what only calls a value the answer.
var asAnswer = lazy(` (?:as (?:the|our|my) (?:final )?(?:answer|result)|it is)$`)

// chance matches a sentence about a share, and outOf a share in words: 3 out of 8.
var (
	chance = lazy(`(?i)\b(?:chances?|probability|odds|likelihood|fraction|proportion)\b`)
	outOf  = lazy(`\b([0-9]+) (?:in|out of) (?:every )?([0-9]+)\b`)
)

// reduce extracts the answer from a sentence.
func reduce(s string) string {
	if m := wholeBareBox.FindStringSubmatch(s); m != nil {
		s = m[1]
	}
	if m := truthAndReason.FindStringSubmatch(s); m != nil && !opposite.MatchString(s) {
		return m[1]
	}
	s = withoutCalculation(s)
	if s = withoutDenied(withoutContrast(withoutWithdrawn(withoutRounding(s)))); s == "" {
		return ""
	}
	if m := onlyOne.FindStringSubmatch(s); m != nil {
		return Statement(m[1])
	}
	switch {
	case anyOf.MatchString(s):
		return ""
	case labelledList.MatchString(s):
		return enumeration(s)
	case counterfactual.MatchString(s) || disbelieved(s):
		return s
	}
	s = withoutAside(restatedAsChoice(s))
	s = unopened(s)
	s = withoutOtherLetters(adverbs.ReplaceAllString(asAnswer.ReplaceAllString(s, ""), ""))
	if m := letterAndValue.FindStringSubmatch(s); m != nil && !wording.Unsettled(m[2]) {
		s = "(" + m[1] + ") " + m[2]
	}
	if chance.MatchString(s) {
		s = outOf.ReplaceAllString(s, "$1/$2")
	}
	if m, rest := leadingMath(s), s[min(len(s), leadingLength(s)):]; m != "" && aside.MatchString(rest) &&
		!(consequence.MatchString(rest) && hasValue(rest)) {
		return m
	}
	if t := concluded(s); t != "" {
		return t
	}
	if t := chosen(s); t != "" {
		return t
	}
	if c, ok := ChoiceIn(s); ok && c.Marked && c.Value != "" {
		return s
	}
	if strings.Contains(s, " $") {
		if v := enumeration(s); v != "" {
			return v
		}
	}
	sentence := isSentence(s)
	understood := s == "" || len(s) < 400 && readable(s)
	if understood && !hasUnknownWords(s) && !(sentence && (verbEnd(s) > 0 || strings.Contains(s, " $"))) {
		return s
	}
	if t := bold(s); t != "" {
		return t
	}
	if sentence {
		switch t, open := sentenceValue(lastSentence(s)); {
		case t != "":
			return t
		case open && !strings.ContainsAny(s, "$\\"):
			return s // 14 times as many as before
		}
	}
	if understood {
		return s
	}
	return likeliest(s)
}

// equalsInChinese matches the value after the last verb of a Chinese sentence: $n$的最大值是12.
var equalsInChinese = lazy(`[^不非能许吗若果](?:是|为|等于) ?\**(\$[^$]+\$|[-−]?[0-9][0-9.,/]*)\** ?` +
	`[^0-9$\\\p{Han}]*(?:[个元种人天名只岁米度次条分][^\P{Han}以左多或至到不]{0,3}[。.]?)?$`)

// likeliest guesses at the answer of a text that is neither a value nor a sentence that gives one.
func likeliest(s string) string {
	if m := equalsInChinese.FindStringSubmatch(s); m != nil {
		return Statement(m[1])
	}
	if m := leadingMath(s); m != "" && !wording.Unsettled(s[min(len(s), leadingLength(s)):]) {
		if besides.MatchString(s[min(len(s), leadingLength(s)):]) {
			return s
		}
		return m
	}
	// "12 because …", "12. The rest": the first sentence, if it is an answer.
	for _, cut := range []string{". ", " because ", " since ", "。", " which ", "; "} {
		if k := strings.Index(s, cut); k > 0 && strings.ContainsAny(s[:k], "0123456789\\$") &&
			!(cut == ". " && startsWithDigit(s[k+len(cut):]) && !endsBeforeNumber(s[:k], s[k+len(cut):])) {
			if t := Statement(s[:k]); t != "" && !proseWord(t) && readable(t) {
				if alternative.MatchString(s[k+len(cut):]) {
					return s // 12; alternatively 13
				}
				return t
			}
		}
	}
	if t := afterVerb(s); t != "" {
		return t
	}
	if !isProse(s) {
		if m := lastMath(s); m != "" {
			if isOpen(s, m) {
				return s
			}
			return m
		}
		return s // a formula we cannot parse may still be spelled like the gold answer
	}
	return lastClause(s)
}

// alternative matches a sentence that only gives another value: Or 13; it could also be 13.
var alternative = lazy(`(?i)^(?:(?:or|alternatively|otherwise|else|if not|maybe|perhaps|possibly|probably)\b[,:]? *|` +
	`(?:an)?other (?:possible )?(?:answer|possibility|option|value|solution) (?:is|would be) |` +
	`an alternative(?: answer)? is )*(?:it(?:'s| is)|(?:it|the answer) (?:could|might|may)(?: also| well)* be)? *` +
	`(?:\$[^$]+\$|[-−$€£]*[0-9][0-9.,/]*%?|[-−]?\\[a-z]+\S*)[.!]?$`)

// besides matches a sign between a formula and another.
var besides = lazy(`^ *(?:[|/&;]|vs\.?|versus) *\$`)

func startsWithDigit(s string) bool { return s != "" && wording.IsDigit(s[0]) }

// anyOf matches values that a sentence does not choose from: one of 12, 13; a range from 12 to 13.
var anyOf = lazy(`(?i)\b(?:one|any|some|none) of (?:(?:the )?(?:numbers|values|integers|following|these|` +
	`options|candidates):? *)?\$?[-−]?[0-9][^ ]* (?:[$0-9-]|(?:or|and) )|` +
	`\b(?:range|interval|domain)s?\b[^.]* from [^ ]+ to [^ ]+$`)

// hasUnknownWords reports whether words that are not a unit follow a value.
func hasUnknownWords(s string) bool {
	x, err := latex.Parse(s, true)
	return err != nil || x.Has(func(n *formula.Expr) bool {
		return n.Op == formula.Unit &&
			!wording.QuantityOf(n.Name).Known
	})
}

// countedAtStart matches a sentence that begins with what it counts: 26 students did not …, 40% of them walk.
var countedAtStart = lazy(`^[0-9][0-9.,/]*(?:(%| percent| of the| of her| of his| of all)(?: of)? [a-z]+|` +
	` ([A-Za-z]+)) [a-z]+ [a-z]`)

// placedAtStart matches a sentence that begins with its value: 27 for this one.
var placedAtStart = lazy(`^[0-9][0-9.,/]* (?:(?:for|in|on|from|after|during|as) [a-z]+|of (?:the|a|an|her|his|their|its|all) [a-z]+ [a-z])`)

// isSentence reports whether s has at least three words outside formulas, and two of them or an equals sign
// before a value.
func isSentence(s string) bool {
	if n := leadingLength(s); n > 0 && (len(strings.Fields(s[n:])) >= 3 || equalTo.MatchString(s[n:])) {
		return true // $n=16$ works and no smaller number does
	}
	if someOf.MatchString(s) || placedAtStart.MatchString(s) {
		return true
	}
	if m := countedAtStart.FindStringSubmatch(s); m != nil && (m[1] != "" || wording.IsCounted(wording.Lower(m[2]))) {
		return true
	}
	words, before, value := 0, 0, false
	for _, f := range strings.Fields(s) {
		if plain := strings.Trim(f, ".,;:!'’()*"); plain != "" && strings.IndexFunc(plain, notLetter) < 0 &&
			!isVariable(plain) {
			words++
			if !value {
				before++
			}
			continue
		}
		value = value || strings.ContainsAny(f, "0123456789$\\")
	}
	return words >= 3 && (before >= 2 || before >= 1 && words >= 4 || strings.Contains(masked(s), "=") ||
		clauses.MatchString(s))
}

// isVariable reports whether a word is a minus or a letter, except the words a and I.
func isVariable(word string) bool { return len(word) == 1 && !strings.Contains("aAI", word) }

// clauses matches a sentence whose first clause has a value early: Since 3 of them broke, 27 are whole.
var clauses = lazy(`^[A-Z][a-z]+[ ,].*, `)

// equalTo matches a verb after a formula, and the start of its value.
var equalTo = lazy(`^ (?:equals|is|becomes|gives?|yields?|makes?) [$\\0-9(-]`)

func notLetter(r rune) bool { return !unicode.IsLetter(r) && r != '\'' && r != '-' && r != '’' }

// masked replaces each formula with a placeholder, so its letters do not count as words.
func masked(s string) string {
	formulas := strings.ContainsAny(s, "$\\") && !isMoney(s)
	if !formulas && !strings.ContainsAny(s, "([") {
		return s
	}
	b := []byte(s)
	for i := 0; i < len(s); {
		n := 0
		switch {
		case s[i] == '(' || s[i] == '[':
			n = len(pair.FindString(s[i:]))
		case formulas && (s[i] == '$' || s[i] == '\\'):
			_, n = mathAt(s[i:])
		}
		for k := range n {
			b[i+k] = 1
		}
		i += max(n, 1)
	}
	return string(b)
}

// isMoney reports whether every dollar sign of a text without LaTeX stands before a number.
func isMoney(s string) bool {
	if strings.Contains(s, "\\") {
		return false
	}
	for i := range len(s) {
		if s[i] != '$' {
			continue
		}
		rest := strings.TrimPrefix(strings.TrimPrefix(s[i+1:], " "), ".")
		if rest == "" || !wording.IsDigit(rest[0]) {
			return false
		}
	}
	return strings.Contains(s, "$")
}

// defined matches a sentence that begins with its value: 36 is the least common multiple of 12 and 18.
var defined = lazy(`^([-−]?[0-9][0-9,.]*) is (?:the|our) (?:[a-z-]+ )*(?:of|for|in|that|which|whose|such|to) [^=;]*$`)

// concluded returns the value of "Therefore, 5 is the answer".
func concluded(s string) string {
	if !strings.Contains(s, " is ") && !strings.Contains(s, " are ") && !strings.Contains(s, " IS ") {
		return ""
	}
	last := lastSentence(s)
	if m := defined.FindStringSubmatch(last); m != nil && !wording.Uncertain(last) {
		return m[1]
	}
	m := conclusion.FindStringSubmatch(last)
	if m != nil {
		if k := strings.LastIndex(masked(m[1]), ", "); k > 0 && reason.MatchString(m[1][k+2:]) &&
			hasValue(m[1][:k]) {
			return "" // it is 9, since 7 is the number of the others
		}
	}
	if m == nil || wording.Unsettled(m[1]) || wording.Unsettled(m[2]) {
		return ""
	}
	if t := bold(m[1]); t != "" {
		return t
	}
	if t := lastMath(m[1]); t != "" {
		return t
	}
	if t := unopened(m[1]); strings.ContainsAny(t, "0123456789\\") && readable(t) && !isSentence(t) &&
		!hasUnknownWords(t) {
		return t
	}
	words := strings.Fields(m[1])
	if t := Statement(words[len(words)-1]); strings.ContainsAny(t, "0123456789") && readable(t) {
		return t
	}
	return ""
}

// reason matches the start of a clause that says why, or what else holds.
var reason = lazy(`(?i)^(?:since|because|as|where|whereas|while|although|though) `)

// lastSentence returns the last sentence of a text.
func lastSentence(s string) string {
	list := sentencesOf(s)
	return list[len(list)-1]
}

// bold returns the emphasised text if it is one value.
func bold(s string) string {
	open := strings.LastIndex(s, "**")
	if open < 0 {
		return ""
	}
	start := strings.LastIndex(s[:open], "**")
	if start < 0 || open-start > 100 {
		return ""
	}
	before := wording.Lower(s[:start])
	if k := strings.LastIndexAny(before, ",;"); k >= 0 {
		before = before[k:]
	}
	rest, _, _ := strings.Cut(s[open+2:], ",")
	t := Statement(s[start+2 : open])
	_, letter := ChoiceIn(t)
	if t == "" || !letter && !strings.ContainsAny(t, "0123456789$\\") || !readable(t) || wording.Unsettled(before) ||
		wording.Unsettled(rest) {
		return ""
	}
	return t
}

// afterVerb returns what follows the last "is" or "=".
func afterVerb(s string) string {
	low := wording.Lower(s)
	for _, verb := range []string{" is ", " are ", " equals ", " be ", " = ", "："} {
		k := strings.LastIndex(low, verb)
		if k < 0 || wording.Unsettled(lastWords(low[:k], 6)) || doubted(low[:k]) {
			continue
		}
		t := Statement(s[k+len(verb):])
		if m := leadingMath(t); m != "" {
			switch rest := t[min(len(t), leadingLength(t)):]; {
			case anotherFormula.MatchString(rest), increased.MatchString(strings.TrimLeft(wording.Lower(rest), " ")),
				another.MatchString(strings.TrimLeft(wording.Lower(wording.WithoutFonts(rest)), " ")):
				return ""
			case !wording.Unsettled(rest):
				return m
			}
		}
		if hasValue(s) && !hasValue(t) && !isFormula(t) {
			continue // 27 eggs are whole
		}
		if readable(t) && !proseWord(t) && !startsNegated(t) {
			return t
		}
	}
	return ""
}

func startsNegated(s string) bool {
	first, _, _ := strings.Cut(wording.Lower(s), " ")
	return slices.Contains(wording.Negations, first)
}

// adverbs may stand between a verb and a formula.
var adverbs = lazy(`^(?:(?:therefore|thus|hence|then|simply|just|exactly|precisely|also|indeed|clearly|obviously|certainly|surely|equal to|` +
	`given by),? )+`)

// functions are the words of a formula without delimiters.
var functions = []string{"sin", "cos", "tan", "sec", "csc", "cot", "log", "ln", "exp", "sqrt", "pi"}

// isFormula reports whether a text without delimiters is a formula rather than words or a number.
func isFormula(s string) bool {
	if len(s) > 200 || strings.ContainsAny(s, "$\\") || !strings.ContainsAny(s, "+*^=<>≤≥√π²³/−-xyzn") {
		return false
	}
	for _, w := range strings.FieldsFunc(s, func(r rune) bool { return r >= 0x80 || !wording.IsLetter(byte(r)) }) {
		if len(w) > 1 && !slices.Contains(functions, w) {
			return false
		}
	}
	x, err := latex.Parse(s, true)
	return err == nil && x.Op != formula.Text && x.Op != formula.Num &&
		(x.Op != formula.List || strings.Contains(s, "=")) &&
		!x.Has(func(n *formula.Expr) bool { return n.Op == formula.Unit || n.Op == formula.Text })
}

// allNumbers matches a set in words: all numbers greater than 4.
var allNumbers = lazy(`\b(?:all|any|every) (?:real )?(?:numbers?|values?|reals?|x) (?:that are |which are |that is )?` +
	`((?:greater|less|more|smaller|larger|at least|at most) [^,;]*)$`)

// plainFormula returns the formula without delimiters that a sentence ends in, after a verb: f(x) is therefore 2x + 3.
func plainFormula(s string) string {
	if m := allNumbers.FindStringSubmatch(s); m != nil {
		return m[1]
	}
	for _, verb := range []string{" is ", " equals ", " are ", " get ", " have ", " obtain ", " find ",
		" simplifies to ", " reduces to ", " equal to "} {
		k := strings.LastIndex(s, verb)
		if k < 0 || unsettledBefore(wording.Lower(s[:k+len(verb)])) || doubted(s[:k]) {
			continue
		}
		if t := Statement(adverbs.ReplaceAllString(s[k+len(verb):], "")); isFormula(t) {
			return t
		}
	}
	return ""
}
