package grade

import (
	"fmt"
	"slices"
	"strings"

	"exp/eval/grade/extract"
	"exp/eval/grade/pattern"
	"exp/eval/grade/wording"
)

// choices compares multiple-choice letters if the gold answer is one. The gold answer (B) 12 is the letter B; the
// value 12 is right too. For the gold answer 12, a letter with the value 12 is right.
func choices(gold, prediction string) (result, bool) {
	if r, ok := letterSets(gold, prediction); ok {
		return r, true
	}
	g, ok := extract.ChoiceIn(gold)
	if !ok {
		p, ok := extract.ChoiceIn(prediction)
		if !ok || p.Value == "" {
			return result{}, false
		}
		r := compareTexts(gold, extract.Statement(p.Value))
		r.why = fmt.Sprintf("letter %c with a value: %s", p.Letter, r.why)
		return r, true
	}
	if g.Value != "" && !g.Marked {
		return result{}, false
	}
	p, ok := extract.ChoiceIn(prediction)
	if k := strings.LastIndex(prediction, " is "); !ok && k >= 0 && namesChoice.MatchString(prediction[:k]) {
		p, ok = extract.ChoiceIn(prediction[k+len(" is "):])
	}
	if m := lowerLetter.FindStringSubmatch(prediction); m != nil && len(gold) == 1 && m[1][0]-'a'+'A' == gold[0] &&
		prediction != "e" && prediction != "i" { // which are constants
		return yes("the same letter in lower case").by(Convention), true
	}
	if m := explainedLetter.FindStringSubmatch(extract.Unwrapped(prediction)); m != nil && !ok && g.Value == "" {
		if words := m[2] + m[3] + m[4]; !wording.Unsettled(words) && !otherLetter.MatchString(words) {
			p, ok = extract.ChoiceIn("(" + m[1] + ") " + words)
		}
	}
	switch {
	case ok && p.Letter == g.Letter:
		if g.Value != "" && p.Value != "" {
			if r := compareTexts(extract.Statement(g.Value), extract.Statement(p.Value)); !r.equal && r.sure {
				return no("the same letter with another value: " + r.why), true
			}
		}
		return yes("the same letter"), true
	case ok:
		return no(fmt.Sprintf("letter %c against %c", p.Letter, g.Letter)), true
	case g.Value != "":
		r := compareTexts(extract.Statement(g.Value), prediction)
		r.why = "the value of the letter: " + r.why
		return r.by(Convention), true
	case g.Marked && len(lettersIn(prediction)) > 0:
		return no("several letters"), true
	}
	return result{}, false
}

// lowerLetter matches a letter in lower case, perhaps with the brackets of a choice.
var lowerLetter = pattern.New(`^\(?([a-j])\)?$`)

// explainedLetter matches a letter and its explanation: B (Paris), B – Paris, B, Paris.
var explainedLetter = pattern.New(`^\(?([A-J])\)? ?` +
	`(?:\(((?:[A-Z0-9$\\-]|i\.e)[^()]+)\)|(?: [–—-] |—)([A-Za-z][a-z]{2,}.*)|, ?([A-Z][a-z].*))$`)

// otherLetter matches another letter in such an explanation.
var otherLetter = pattern.New(`(?:^|[ (])[A-J](?:[ ).,]|$)`)

// namesChoice matches what a letter after "is" is: the correct option is B.
var namesChoice = pattern.New(`(?i)^(?:[a-z]+,? )?(?:the |our |my )?(?:[a-z]+ )?(?:option|choice|answer|letter)$`)

// lettersIn returns the letters of A, B, D or A and B, sorted; nil if s is anything else.
func lettersIn(s string) []string {
	list := lettersListed(s)
	slices.Sort(list)
	return list
}

// lettersListed returns them in the order of the text.
func lettersListed(s string) []string {
	f := strings.FieldsFunc(extract.Unwrapped(s), func(r rune) bool { return strings.ContainsRune(" ,;()&.", r) })
	var list []string
	for _, w := range f {
		switch {
		case w == "and":
		case len(w) == 1 && 'A' <= w[0] && w[0] <= 'J':
			list = append(list, w)
		default:
			return nil
		}
	}
	return list
}

// letterSets compares ABD with A, B, D.
func letterSets(gold, prediction string) (result, bool) {
	together, apart := strings.Trim(extract.Unwrapped(gold), " ()."), lettersIn(prediction)
	if len(apart) < 2 {
		together, apart = strings.Trim(extract.Unwrapped(prediction), " ()."), lettersIn(gold)
	}
	if listed := lettersListed(gold); len(listed) > 1 && slices.Equal(listed, lettersListed(prediction)) {
		return yes("the same letters"), true
	}
	if len(together) < 2 || len(together) > 6 || len(apart) < 2 || strings.Trim(together, "ABCDEFGHIJ") != "" {
		return result{}, false
	}
	letters := strings.Split(together, "")
	if together == strings.Trim(extract.Unwrapped(gold), " ().") && !slices.IsSorted(letters) {
		// an order, not a choice
		apart = lettersListed(prediction)
	} else {
		slices.Sort(letters)
	}
	if slices.Equal(letters, apart) {
		return yes("the same letters"), true
	}
	return no("other letters"), true
}
