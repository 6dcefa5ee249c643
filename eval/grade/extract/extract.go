// Package extract finds the final answer in a whole response, or in a text that is an answer among words.
//
// It decides where an answer is, never whether it is right.
package extract

import (
	"strings"
	"unicode/utf8"

	"exp/eval/grade/formula"
	"exp/eval/grade/latex"
	"exp/eval/grade/wording"
)

// Found is the final answer found in a text.
type Found struct {
	Text string // the answer without delimiters; empty if none
	How  string // where it was: "box", "answer phrase", …; or why none was found
	Sure bool   // the place marks it as the answer; or the text certainly has none
	Also string // another reading of Text: 15 of "15!", 3 of "there are 3 roots: -1, 0 and 1"
}

// AfterThought returns what follows the thinking of a response, up to its last </think>; without any it is all of the
// response. ended is false if thinking begins and does not end.
func AfterThought(response string) (answer string, ended bool) {
	if k := lastIndex(response, "</think>"); k >= 0 {
		return response[k+len("</think>"):], true
	}
	return response, !strings.Contains(response, "<think>")
}

// maxStatement bounds how much text after an answer phrase is read.
const maxStatement = 2000

// FromResponse finds the final answer in a whole response. It drops thinking up to </think>, then tries in
// order: the last <answer>…</answer>; the last balanced \boxed{…}, with those before it that only a comma
// or "and" separates from it; the text after the last "answer is", "Answer:" or "####"; a closing
// statement, which is not sure. A response cut off before its answer has none. Time is linear in the
// length.
func FromResponse(response string) Found {
	s, ended := AfterThought(Unfenced(FirstTurn(latex.PlainCharacters(response))))
	if !ended {
		return Found{How: "the thinking does not end", Sure: true}
	}
	s = strings.ReplaceAll(s, "final_answer>", "answer>")
	if k := lastIndex(s, "</answer>"); k >= 0 {
		if open := strings.LastIndex(s[:k], "<answer>"); open >= 0 {
			return within(s[open+len("<answer>"):k], "<answer>")
		}
	} else if k := lastIndex(s, "<answer>"); k >= 0 && len(s)-k < maxStatement {
		return within(s[k+len("<answer>"):], "<answer>")
	}
	if box, refused, ok := answerBox(s); refused {
		return Found{How: "the last box is denied"}
	} else if ok {
		return Found{Text: Statement(sentenceInBox.ReplaceAllString(Statement(box), "")), How: "box", Sure: true}
	}
	if t, ok := answerField(s); ok {
		return Found{Text: t, How: "a field of JSON", Sure: true}
	}
	if f, ok := answerPhrase(s); ok {
		return f
	}
	if box, ok := lastBareBox(s); ok {
		return Found{Text: box, How: "a box without backslash"}
	}
	return closing(s)
}

// sentenceInBox matches words in a box that only say that the answer follows.
var sentenceInBox = lazy(`^(?i)(?:(?:so|thus|hence|therefore),? )?(?:the |our )?(?:final |correct )?answer is:? `)

// within extracts the answer from a marked place.
func within(s, how string) Found {
	if box, ok := LastBox(s); ok {
		s = box
	} else if f, ok := answerPhrase(s); ok {
		return f
	} else if box, ok := lastBareBox(s); ok {
		return Found{Text: box, How: "a box without backslash"}
	}
	return Found{Text: reduceMarked(s), How: how, Sure: true}
}

// FromAnswer extracts an answer from text that is either the answer or prose with one.
func FromAnswer(s string) Found {
	if box, refused, ok := answerBox(s); refused {
		return Found{How: "the last box is denied"}
	} else if ok {
		return Found{Text: Statement(box), How: "box", Sure: true}
	}
	if box, ok := lastBareBox(s); ok && strings.HasPrefix(Statement(s), "boxed{") {
		return Found{Text: box, How: "a box without backslash"}
	}
	if t := affirmedBriefly(strings.TrimSpace(s)); t != "" {
		return Found{Text: t, How: "a yes or no", Sure: true}
	}
	if namedAnswer.MatchString(s) {
		if f, ok := answerPhrase(s); ok {
			return f
		}
	}
	if len(s) <= latex.MaxAnswer {
		t := withoutContrast(Statement(ended.ReplaceAllString(s, "")))
		t = withoutBrackets(calledNumber.ReplaceAllString(t, "$1"))
		if v := concluded(t); v != "" {
			return Found{Text: v, How: "the value in a sentence", Sure: true}
		}
		if readable(t) && !(isSentence(t) && hasUnknownWords(t)) {
			return Found{Text: t, How: "the whole", Sure: true}
		}
	}
	if t, ok := answerField(s); ok {
		return Found{Text: t, How: "a field of JSON", Sure: true}
	}
	if f, ok := answerPhrase(s); ok {
		return f
	}
	value := reduce(withDelimiters(tail(s, maxStatement)))
	if t := opening.ReplaceAllString(Statement(s), ""); strings.Trim(value, "0123456789.,/-−$%") == "" &&
		!strings.ContainsAny(t, "\\\n") && !totalOf.MatchString(t) &&
		(strange(t, value) || rangeInChinese.MatchString(t)) {
		return Found{Text: t, How: "a value among words that may change it"}
	}
	return Found{Text: value, How: "the value in a sentence"}
}

// namedAnswer matches an answer that begins by saying so: The answer is $y = 3$.
var namedAnswer = lazy(`(?i)^\s*(?:(?:so|thus|hence|therefore),? )?(?:the|my|our) (?:final |correct )?answers? (?:is|are)\b`)

// totalOf and calledNumber match words before a value that only call it a total or a number.
var (
	totalOf      = lazy(`(?i)^(?:an? |the )?(?:grand )?total of `)
	calledNumber = lazy(`(?i)^(?:the )?(?:number|value|integer) (-?[0-9][0-9.,]*)$`)
)

// readable reports whether the text is an answer as it stands.
func readable(s string) bool {
	x, err := latex.Parse(s, true)
	if err != nil || x.Op != formula.Text {
		return err == nil
	}
	long := 0
	for _, w := range strings.Fields(x.Name) {
		if len(w) > 2 {
			long++
		}
	}
	return long <= 4
}

// tail returns the last n bytes of s, starting at a full character.
func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	s = s[len(s)-n:]
	for len(s) > 0 && !utf8.RuneStart(s[0]) {
		s = s[1:]
	}
	return s
}

// closing looks at the last line of a response that names no answer. It must be a finished sentence; the
// answer is its last value.
func closing(s string) Found {
	s = withoutOrnament(withoutDrawings(s))
	if k := lastBoxCommand(tail(s, maxStatement)); k >= 0 && strings.Contains(tail(s, maxStatement)[k:], "boxed{") {
		return Found{How: "no answer: the box does not end", Sure: true}
	}
	if block, ok := strings.CutSuffix(s, "```"); ok {
		if t := printed(block); t != "" {
			return Found{Text: t, How: "what a program prints"}
		}
	}
	if d := lastDisplay(tail(s, latex.MaxAnswer)); d != "" {
		return Found{Text: Statement(lastSide(d)), How: "no answer phrase, the last formula"}
	}
	s = punctuation.Replace(withDelimiters(s))
	whole := s
	s = short.Replace(withoutMarker(strings.TrimPrefix(lastLine(s), "\\]")))
	s = boldLabel.ReplaceAllString(s, "$1")
	if t := affirmedBriefly(s); t != "" {
		return Found{Text: t, How: "a yes or no in the last line"}
	}
	if strings.HasSuffix(s, "?") {
		s = tag.ReplaceAllString(s, "$1.")
	}
	list := sentencesOf(s)
	if n := len(list); n > 1 && declined.MatchString(plain(list[n-2])) {
		return Found{How: "no answer: the response declines to give one"}
	}
	if !asserts(list[len(list)-1]) && !recalled.MatchString(list[len(list)-1]) &&
		!(len(list) > 1 && addsOnly(list[len(list)-1], list[len(list)-2])) {
		return Found{How: "no answer: the last sentence does not assert its value"}
	}
	if c, ok := ChoiceIn(whole); ok && c.Marked && c.Value != "" && !strings.Contains(whole, "\n") {
		return Found{Text: whole, How: "a choice with its text"}
	}
	if m := limiting.FindStringSubmatch(Statement(s)); m != nil {
		return Found{Text: m[1], How: "a sentence about convergence"}
	}
	if t := chosen(s); t != "" {
		return Found{Text: t, How: "the choice in the last line", Sure: true}
	}
	if hasDenyingLabel(s) {
		return Found{How: "no answer: the label denies the value"}
	}
	s = withoutContrast(exclaimed.ReplaceAllString(s, "$1$2."))
	if len(whole) <= 200 && !strings.Contains(whole, "\n") && enumeration(s) == "" {
		if t := asAnswer.ReplaceAllString(unopened(withoutAside(s)), ""); concluded(t) == "" && readable(t) &&
			!concluding.MatchString(t) &&
			!(isSentence(t) && (hasUnknownWords(t) || strings.Contains(t, " $"))) &&
			!(isSentence(t) && verbEnd(t) > 0) && !wordsOnly(t) && !described.MatchString(t) && !falls.MatchString(t) {
			return Found{Text: t, How: "the whole response", Sure: !strings.ContainsAny(t, "=≡") &&
				!strings.Contains(t, "\\equiv")}
		}
	}
	s = tail(s, maxStatement)
	valued, first := hasValue(s), firstChoice(whole)
	if !finished(s) && first == "" {
		return Found{How: "no answer: cut off", Sure: true}
	}
	s = finalSentence(s)
	t := givenBy(s)
	switch {
	case first != "":
		return Found{Text: first, How: "the choice in the first line", Also: valueOfChoice(first, t)}
	case t == "":
		return Found{How: "no answer", Sure: !valued}
	}
	return Found{Text: t, How: "no answer phrase, the last value", Also: howMany(s)}
}

// concluding matches a value after a calculation that gives it: 20 + 22 = 42, so 42 apples.
var concluding = lazy(`^[^$\\]*=[^=]*[0-9],? (?:so|hence|thus|therefore),? `)

// exclaimed matches a sentence whose last number has an exclamation mark, not a factorial sign: That is 27!
var exclaimed = lazy(`(?i)^((?:(?:so|that|this|it|there|and|in|the|he|she|we|i)\b.*[a-z, ])[$€£]?[0-9][0-9.,]*)!+$|^([0-9][0-9.,]*)!!+$`)

// wordsOnly reports whether a text states something in words alone: the probability is one half.
func wordsOnly(s string) bool {
	return !strings.ContainsAny(s, "0123456789$\\") && verbEnd(s) > 0
}

// label matches a label in any language before a value.
var label = lazy(`^\**[\p{L} ]{2,30}\**: ?\**([-−$\\(0-9.]\S*\.?|[(\[][^()\[\]]+[)\]])\**$`)

// boldLabel matches an emphasised label before a value: **Result:** 65 miles.
var boldLabel = lazy(`^\*\*([\p{L} ]{2,30}:)\*\*`)

// labelledFormula returns the formula without delimiters after a label, or an empty text.
func labelledFormula(s string) string {
	name, rest, ok := strings.Cut(Statement(s), ": ")
	if !ok || strings.ContainsAny(name, "0123456789$\\=") || !isFormula(Statement(rest)) || wording.Unsettled(name) {
		return ""
	}
	return Statement(rest)
}

// described matches a sentence that gives a formula a quality.
var described = lazy(`\$ is (?:an? [a-z]+(?: [a-z]+)?|[a-z]+)\.?$`)

// quality matches a sentence that says in words what follows from a formula: Since $f(-x)=-f(x)$, the function is odd.
var quality = lazy(`^(?:Since|Because|As) .*, ((?:the|this) [a-z ]+ is (?:an? )?[a-z]+(?: [a-z]+)?\.?)$`)

// subject matches a sentence that says what its subject is: Bob is the fastest runner.
var subject = lazy(`^(?:(?:So|Thus|Hence|Therefore|Then|Clearly),? )?([A-Z][a-z]+) is (?:the|our) [a-z]`)

// falls matches a sentence that ends in a day of the week.
var falls = lazy(`\b(?:is|was|be|falls? on|place on|lands on)(?: an?)? ((?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day)\.?$`)

// dates matches the names of days and months.
var dates = lazy(`\b(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|January|February|March|April|May|June|July|` +
	`August|September|October|November|December)\b`)

// said returns the words that a sentence without a value ends in: the function is odd.
func said(s string) string {
	s = Statement(s)
	if m := unsolvable.FindStringSubmatch(s); m != nil {
		return m[1]
	}
	if all := dates.FindAllString(s, -1); len(all) == 1 && len(strings.Fields(s)) > 2 &&
		!wording.Unsettled(s) ||
		len(all) > 1 && strings.HasSuffix(s, all[len(all)-1]) && !wording.Unsettled(lastPart(s)) {
		return all[len(all)-1]
	}
	if m := subject.FindStringSubmatch(s); m != nil {
		return m[1]
	}
	for _, verb := range []string{" is ", " are "} {
		if k := strings.LastIndex(s, verb); k > 0 && len(strings.Fields(s[k:])) <= 5 {
			return article.ReplaceAllString(Statement(s[k+len(verb):]), "$1")
		}
	}
	return reduce(article.ReplaceAllString(s, "$1"))
}

// lastPart returns what follows the last comma.
func lastPart(s string) string { return s[strings.LastIndexByte(s, ',')+1:] }

// unsolvable matches a sentence that denies a solution.
var unsolvable = lazy(`(?i)\b(?:has|have|is|are|exists?) (no (?:real |integer )?solutions?)$`)

// limiting matches a sentence about convergence.
var limiting = lazy(`^[A-Z][^0-9]*[a-z] ((?:converges|diverges)(?: absolutely| conditionally)?)$`)

// article matches an article at the start, before a word.
var article = lazy(`^(?:an?|An|[Tt]he) ([a-z])`)

// printed returns the last line of a block of output, and a block of a single value.
func printed(block string) string {
	k := strings.LastIndex(block, "```")
	if k < 0 {
		return ""
	}
	kind, text, ok := strings.Cut(block[k+len("```"):], "\n")
	text = strings.TrimSpace(text)
	switch {
	case !ok || text == "":
		return ""
	case kind == "output":
		return reduce(tail(text[strings.LastIndexByte(text, '\n')+1:], maxStatement))
	case isPlainText(kind) && !strings.Contains(text, "\n") && readable(text) && !hasUnknownWords(text):
		return Statement(text)
	}
	return ""
}

// isPlainText reports whether a fence marks its block as text, or says nothing about it.
func isPlainText(kind string) bool {
	switch strings.ToLower(strings.TrimSpace(kind)) {
	case "", "text", "txt", "plaintext":
		return true
	}
	return false
}

// lastLine returns the last line of a text that does not only take leave.
func lastLine(s string) string {
	for range 2 {
		k := strings.LastIndexByte(s, '\n')
		if k < 0 || !isRemark(s[k+1:]) &&
			(!courtesy.MatchString(s[k+1:]) || strings.ContainsAny(s[k+1:], "0123456789$\\")) {
			break
		}
		s = strings.TrimSpace(s[:k])
	}
	return s[strings.LastIndexByte(s, '\n')+1:]
}

// lastDisplay returns the displayed formula that ends a text, from its last line; empty if none does.
func lastDisplay(s string) string {
	for _, d := range [][2]string{{"\\[", "\\]"}, {"$$", "$$"}} {
		inside, ok := strings.CutSuffix(strings.TrimRight(s, " .\n"), d[1])
		k := strings.LastIndex(inside, d[0])
		if !ok || k < 0 || len(inside)-k > maxStatement {
			continue
		}
		display := strings.TrimSpace(inside[k+len(d[0]):])
		if strings.HasPrefix(display, "\\begin{align") {
			display = lastRow(display)
		}
		return display
	}
	for _, env := range []string{"align*", "align", "equation*", "equation", "gather*", "gather"} {
		inside, ok := strings.CutSuffix(strings.TrimRight(s, " .\n$"), "\\end{"+env+"}")
		if k := strings.LastIndex(inside, "\\begin{"+env+"}"); ok && k >= 0 && len(inside)-k < maxStatement {
			return strings.TrimRight(strings.TrimSpace(lastRow(inside[k+len("\\begin{}"+env):]+"\\end{")), ".")
		}
	}
	return ""
}

// lastRow returns the right side of the last row of aligned equations.
func lastRow(rows string) string {
	rows = strings.TrimSpace(rows[:max(strings.LastIndex(rows, "\\end{"), 0)])
	rows = strings.TrimSpace(strings.TrimSuffix(rows, "\\\\"))
	rows = strings.ReplaceAll(rows[strings.LastIndex(rows, "\\\\")+1:], "&", "")
	rows = strings.TrimPrefix(rows, "\\")
	left, right, _ := cutLast(rows, "=")
	if isName(strings.Trim(right, " .\n")) && strings.ContainsAny(left, "0123456789") {
		return left // 18 = x
	}
	return right
}

// cutLast is strings.Cut at the last separator; without one, after is the whole text.
func cutLast(s, sep string) (before, after string, found bool) {
	k := strings.LastIndex(s, sep)
	if k < 0 {
		return "", s, false
	}
	return s[:k], s[k+len(sep):], true
}

// punctuation moves the signs of a sentence out of its formulas: $x = 5.$
var punctuation = strings.NewReplacer(",$ ", "$, ", ".$ ", "$. ", ";$ ", "$; ", ".$\n", "$.\n",
	",\\) ", "\\), ", ".\\) ", "\\). ")

// withoutDrawings drops the code of drawings.
func withoutDrawings(s string) string {
	for range 20 {
		k := strings.LastIndex(s, "[asy]")
		if k < 0 {
			break
		}
		end := strings.Index(s[k:], "[/asy]")
		if end < 0 {
			break
		}
		s = s[:k] + s[k+end+len("[/asy]"):]
	}
	return strings.TrimSpace(s)
}
