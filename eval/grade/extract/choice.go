package extract

import (
	"strings"

	"exp/eval/grade/latex"
	"exp/eval/grade/pattern"
	"exp/eval/grade/wording"
)

// Choice is a multiple-choice letter, with the value that it stands for: (B) 12.
type Choice struct {
	Letter byte
	Value  string // LaTeX; empty if not given
	Marked bool   // brackets or a colon mark the letter: it is not a variable
}

// ChoiceIn reads B, (B), B., (B) 12, option B, \textbf{(B)}\ 12.
func ChoiceIn(s string) (Choice, bool) {
	s = withoutOtherLetters(strings.TrimSpace(Unwrapped(s)))
	for _, p := range []string{"option ", "choice ", "answer "} {
		if len(s) > len(p) && strings.EqualFold(s[:len(p)], p) {
			s = strings.TrimSpace(s[len(p):])
		}
	}
	open := strings.HasPrefix(s, "(")
	s = strings.TrimSpace(strings.TrimPrefix(s, "("))
	if s == "" || s[0] < 'A' || s[0] > 'J' {
		return Choice{}, false
	}
	c := Choice{Letter: s[0], Marked: open}
	rest := strings.TrimSpace(s[1:])
	switch {
	case rest == "" && !open || rest == ".":
		return c, true
	case strings.HasPrefix(rest, ")") || strings.HasPrefix(rest, ":") && !open,
		strings.HasPrefix(rest, ".") && len(rest) > 1 && rest[1] == ' ':
		c.Marked = true
		if after := rest[1:]; after != "" && strings.IndexByte("+*/^=-_!", after[0]) >= 0 {
			return Choice{}, false // (B)+1
		}
		c.Value = strings.Trim(rest[1:], " .:;~")
	default:
		return Choice{}, false
	}
	if several(c.Value) || otherLetter.MatchString(c.Value) || refusing.MatchString(c.Value) ||
		withdrawing.MatchString(c.Value) {
		return Choice{}, false
	}
	return c, true
}

// reasonedLetter matches a letter, perhaps with a number, and a reason that may name other letters: (B) because (A) is
// wrong.
var reasonedLetter = lazy(`^((?:\*\*)?\(?[A-J]\)?(?: \$?[0-9][^ ,]*)?(?:\*\*)?)(?:,? (?:because|since|while|whereas)\b|` +
	`,? as (?:\(?[A-J]\)?|none|no|all|the|it) |,? (?:and |but )?(?:not|rather than) \(?[A-J]\)?(?: (?:and|or|nor) \(?[A-J]\)?)*[.!]*$|` +
	`[.;] (?:[Oo]ptions? |[Cc]hoices? |[Aa]nswers? )?\(?[A-J]\)?(?:,| (?:and|or|is|are|was|cannot|can|does|do|fails?|would|has|gives)\b)|` +
	`[.;] (?:[Tt]he |[Aa]ll |[Nn]one of the )?(?:others?|remaining|rest)\b)`)

// otherOptions matches a sentence about the options that are not chosen: Option (A) is wrong because it is
// too small.
var otherOptions = lazy(`^(?:(?:[Oo]ptions?|[Cc]hoices?|[Aa]nswers?) )?\(?[A-J]\)?(?:(?:,| and|, and| or) \(?[A-J]\)?)* ` +
	`(?:all |both |also )?(?:fails?\b|(?:is|are|was|were|does|do|cannot|would|contradicts?|ignores?)\b.*` +
	`(?:wrong|incorrect|false|impossible|too|not|fail|contradict|cannot|ignore))|^(?:[Tt]he |[Aa]ll |[Nn]one of the )(?:others?|remaining|rest)\b`)

// withoutOtherLetters drops the reason for a letter.
func withoutOtherLetters(s string) string {
	if m := reasonedLetter.FindStringSubmatch(s); m != nil {
		return m[1]
	}
	return s
}

// otherLetter matches another letter after the value of one, refusing words that deny the letter.
var (
	otherLetter = lazy(`\([A-J]\)|\b(?:or|and) [A-J](?:[^a-zA-Z_^]|$)`)
	refusing    = lazy(`(?i)^(?:is|are|was|can|could|would|does|did|has|must|should)(?: ?not|n't)\b|^(?:cannot|fails?)\b|` +
		`^(?:is |are |was )?(?:clearly |obviously |also )?(?:wrong|incorrect|false|impossible|out|ruled out|eliminated|rejected|` +
		`excluded)\b`)
)

// withdrawing matches words after a letter that take it back: B. No wait, 12.
var withdrawing = lazy(`(?i)^(?:no,? )?wait\b|^(?:nope|sorry|oops|hmm+|just kidding|correction|scratch that|i mean)\b`)

// several reports whether what follows a letter is another letter.
func several(rest string) bool {
	rest = strings.TrimLeft(rest, " ,;&/.)")
	for _, w := range []string{"and ", "or "} {
		if strings.HasPrefix(rest, w) {
			return true
		}
	}
	if rest == "" {
		return false
	}
	if _, ok := ChoiceIn(rest); ok {
		return true
	}
	return false
}

// fontCommands change only the font of what a multiple-choice answer says.
var fontCommands = strings.NewReplacer("\\textbf", "", "\\textit", "", "\\textrm", "", "\\textnormal", "", "\\text",
	"", "\\mathrm", "", "\\mathbf", "", "\\mbox", "", "\\bf", "", "\\rm", "",
	"\\ ", " ", "\\,", " ", "\\quad", " ", "~", " ",
	"$", " ", "**", " ", "\\left", "", "\\right", "", "\\!", "", "\\;", " ", "\\:", " ", "\\qquad", " ")

// Unwrapped strips fonts from the letter at the start; the braces of a formula after it stay.
func Unwrapped(s string) string {
	if !strings.ContainsAny(s, "ABCDEFGHIJ") || len(s) > 400 {
		return s
	}
	s = strings.TrimSpace(fontCommands.Replace(s))
	for strings.HasPrefix(s, "{") {
		end := latex.MatchBrace(s, 0)
		if end < 0 {
			return s
		}
		s = strings.TrimSpace(s[1:end]) + " " + strings.TrimSpace(s[end+1:])
		s = strings.TrimSpace(s)
	}
	return s
}

// chosenLetter matches a sentence that names one choice: option C is correct; the correct option is (C).
var chosenLetter = lazy(`(?i:^(?:(?:so|thus|hence|therefore|then),? +)?(?:the )?(?:correct |right |best )?` +
	`(?:option|choice|answer)? ?(?:is )?)(?:\*\*)?\(?([A-J])\)?(?:\*\*)?(?: is (?:the |our )?(?:only |final )?` +
	`(?:(?:correct|right|best|true)(?: (?:one|answer|option|choice))?|answer|choice))?[.!]*(?:\*\*)?$`)

// labelledLetter matches a letter behind a label that calls it the choice: My choice: C.
var labelledLetter = lazy(`^\**(?i:(?:(?:my|our|the) )?(?:final |correct |right |best )?(?:option|choice|pick|letter)` +
	`(?: is|:))\**:? \**\(?([A-J])\)?[.!]*\**$`)

// pickedLetter matches the choice of a letter in the first person.
var pickedLetter = lazy(`(?i:\b(?:choose|pick|select|go with|option|choice)) \(?([A-J])\)?[.!]*$`)

// sentenceAbout begins a sentence about an option, reasonAfter ends it with a reason or with the others.
const (
	sentenceAbout = `^(?:(?:[Ss]o|[Tt]hus|[Hh]ence|[Tt]herefore),? +)?(?:[Tt]he )?`
	reasonAfter   = `(?:(?:,? (?:and|but|while|whereas|because|since|as)|;) (.*))?[.!]*$`
)

// letterPatterns match sentences that call one option right: A is correct because …; the correct option is C, as …;
// only C fits.
var letterPatterns = []*pattern.Pattern{
	lazy(sentenceAbout + `(?:(?:[Oo]ption|[Cc]hoice|[Aa]nswer) )?\(?([A-J])\)? is ` +
		`(?:(?:the )?(?:correct|right|best)(?: (?:one|answer|option|choice))?|` +
		`the only (?:one|option|choice|answer) (?:that|which) (?:works|fits|holds|is (?:correct|right|true)))` + reasonAfter),
	lazy(sentenceAbout + `(?:correct|right|best) (?:option|choice|answer) is \(?([A-J])\)?` + reasonAfter),
	lazy(sentenceAbout + calledChoice + `\**\(?([A-J])\)?\**(?::\**| [–—-]) (.*)$`),
	lazy(`\b[Oo]nly (?:option |choice )?\(?([A-J])\)? (?:fits|works|matches|remains|satisfies|` +
		`is (?:correct|right|true|possible|left))` + reasonAfter),
}

// calledChoice matches what calls the letter after it the answer.
const calledChoice = `(?:correct |right |best |final )*(?:option|choice|answer) is (?:option |choice )?`

// letterAndValue matches a letter and the value that it stands for: B, which is 42.
var letterAndValue = lazy(`^\**\(?([A-J])\)?\**,? (?:which (?:is|equals)|i\.e\.,?|namely) +([^ ].*)$`)

// remainingLetter matches the option that is left after others are called wrong: A is wrong, so B.
var remainingLetter = lazy(`^(?:(?:[Oo]ptions? |[Cc]hoices? )?\(?[A-J]\)?(?:,| and|, and)? )+(?:is|are) (?:wrong|incorrect|false|impossible|out)` +
	`,? (?:so|hence|thus|therefore),? (?:(?:it is|it must be|the answer is|(?:I|we) (?:choose|pick)) )?(?:option |choice )?` +
	`\(?([A-J])\)?(?: is (?:correct|right))?[.!]*$`)

// firstChoice returns the choice that is the first line of a text, if the last line names no other one.
func firstChoice(s string) string {
	first, rest, ok := strings.Cut(s, "\n")
	c, choice := ChoiceIn(first)
	if !ok || !choice || len(first) > 40 ||
		c.Value == "" && strings.Trim(Unwrapped(first), "() .*") != string(c.Letter) {
		return ""
	}
	last := lastLine(rest)
	m := strings.Trim(anyLetter.FindString(last), " ().,")
	denied := wording.Unsettled(last) || unfit.MatchString(last)
	if m != "" && denied == (m == string(c.Letter)) || takesBack.MatchString(strings.TrimSpace(rest)) {
		return ""
	}
	return first
}

// valueOfChoice returns the last value of a text whose first line is a letter alone. It returns "" if the last value
// is a letter, too.
func valueOfChoice(first, last string) string {
	c, _ := ChoiceIn(first)
	if _, letter := ChoiceIn(last); letter || c.Value != "" {
		return ""
	}
	return last
}

// anyLetter matches an option.
var anyLetter = lazy(`(?:^|[ (])[A-J](?:[ ).,]|$)`)

// calledRight returns the letter of such a sentence, which may deny other letters in its reason.
func calledRight(s string) string {
	for _, p := range letterPatterns {
		m := p.FindStringSubmatch(s)
		if m != nil && (!anyLetter.MatchString(m[2]) || unfit.MatchString(m[2]) || strings.Contains(m[2], " false") ||
			strings.HasSuffix(strings.TrimRight(m[2], "."), " not")) {
			return m[1]
		}
	}
	return ""
}

// chosen returns the letter of a sentence that names one choice, with its value if that is given.
func chosen(s string) string {
	if len(s) == 2 && s[1] == '!' && 'A' <= s[0] && s[0] <= 'J' {
		return s[:1]
	}
	if letter := calledRight(s); letter != "" {
		return letter
	}
	if m := remainingLetter.FindStringSubmatch(s); m != nil {
		return m[1]
	}
	if len(s) > 80 || !strings.Contains(s, " ") || wording.Unsettled(s) {
		return ""
	}
	for _, p := range []*pattern.Pattern{chosenLetter, labelledLetter, pickedLetter} {
		if m := p.FindStringSubmatch(s); m != nil {
			return m[1]
		}
	}
	k := strings.LastIndex(s, " is ")
	if k < 0 || !asked.MatchString(s[:k]) {
		return ""
	}
	if c, ok := ChoiceIn(s[k+len(" is "):]); ok && c.Marked && c.Value != "" {
		return s[k+len(" is "):]
	}
	return ""
}

// asked matches what a sentence calls the right choice.
var asked = lazy(`(?i)\b(?:option|choice|answer)$`)
