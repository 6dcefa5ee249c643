package grade

import (
	"slices"
	"strconv"
	"strings"

	"exp/eval/grade/pattern"
	"exp/eval/grade/wording"
)

// ordinalNumber matches an ordinal number in digits: 5th, 5^{\text{th}}, 23\text{rd}.
var ordinalNumber = pattern.New(`^([0-9]+) ?\^?\{?` +
	`(?:\\(?:text|mathrm|textrm|textsuperscript)\{)? ?(?:st|nd|rd|th) ?\}{0,2}$`)

// ordinalWords are those in words, from first.
var ordinalWords = []string{"", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth",
	"tenth", "eleventh", "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth",
	"nineteenth", "twentieth"}

// ordinals compares two answers if one is an ordinal number in digits and the other is one too, in digits or in
// words. A whole number answers a gold ordinal number, but no ordinal number answers how many there are.
func ordinals(gold, prediction string) (result, bool) {
	if len(gold) > 40 || len(prediction) > 40 {
		return result{}, false
	}
	g, inDigits := ordinal(gold)
	p, inDigits2 := ordinal(prediction)
	switch {
	case !inDigits && !inDigits2:
		return result{}, false
	case g != "" && g == p:
		return yes("the same ordinal number"), true
	case g != "" && p != "":
		return no("another ordinal number"), true
	case g != "" && g == strings.TrimSpace(prediction):
		return yes("the number of the place").by(Convention), true
	}
	return result{}, false
}

// ordinal returns the number of an ordinal number, and whether it is in digits.
func ordinal(s string) (number string, inDigits bool) {
	if m := ordinalNumber.FindStringSubmatch(strings.TrimSpace(s)); m != nil {
		return m[1], true
	}
	if k := slices.Index(ordinalWords, wording.Normal(wording.Bare(s))); k > 0 {
		return strconv.Itoa(k), false
	}
	return "", false
}
