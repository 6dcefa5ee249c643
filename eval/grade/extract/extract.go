// Package extract finds the final answer in a whole response, or in a text that is an answer among words.
//
// It decides where an answer is, never whether it is right.
package extract

import (
	"encoding/json"
	"regexp"
	"strings"
	"unicode/utf8"

	"exp/eval/grade/formula"
	"exp/eval/grade/latex"
	"exp/eval/grade/wording"
)

// Found is the final answer found in a text.
type Found struct {
	Text string // the answer without delimiters; empty if none
	How  string // where it was: "box", "answer phrase", …; or why there is none
	Sure bool   // the place marks it as the answer; or there certainly is none
}

// maxStatement bounds how much text after an answer phrase is read.
const maxStatement = 2000

// FromResponse finds the final answer in a whole response. It drops thinking up to </think>, then tries in
// order: the last <answer>…</answer>; the last balanced \boxed{…}, with those before it that only a comma
// or "and" separates from it; the text after the last "answer is", "Answer:" or "####"; a closing
// statement, which is not sure. A response cut off before its answer has none. Time is linear in the
// length.
func FromResponse(response string) Found {
	s := FirstTurn(latex.PlainCharacters(response))
	if k := lastIndex(s, "</think>"); k >= 0 {
		s = s[k+len("</think>"):]
	} else if strings.Contains(s, "<think>") {
		return Found{How: "the thinking does not end", Sure: true}
	}
	if k := lastIndex(s, "</answer>"); k >= 0 {
		if open := strings.LastIndex(s[:k], "<answer>"); open >= 0 {
			return within(s[open+len("<answer>"):k], "<answer>")
		}
	} else if k := lastIndex(s, "<answer>"); k >= 0 && len(s)-k < maxStatement {
		return within(s[k+len("<answer>"):], "<answer>")
	}
	if box, ok := LastBox(s); ok {
		return Found{Text: Statement(box), How: "box", Sure: true}
	}
	if t, ok := answerField(s); ok {
		return Found{Text: t, How: "a field of JSON", Sure: true}
	}
	if f, ok := answerPhrase(s); ok {
		return f
	}
	return closing(s)
}

// fields matches the answer in JSON.
var fields = regexp.MustCompile(`"(?:final[_ ]?)?(?:answer|result)"\s*:\s*("(?:[^"\\\n]|\\.)*"|-?[0-9][0-9.]*)\s*[,}]`)

// answerField returns the last {"answer": …} of a text.
func answerField(s string) (string, bool) {
	if !strings.Contains(s, "answer\"") && !strings.Contains(s, "result\"") {
		return "", false
	}
	all := fields.FindAllStringSubmatch(tail(s, maxStatement), -1)
	if len(all) == 0 {
		return "", false
	}
	value := all[len(all)-1][1]
	var text string
	if json.Unmarshal([]byte(value), &text) == nil {
		value = text
	}
	value = reduce(value)
	return value, value != ""
}

// within extracts the answer from a marked place.
func within(s, how string) Found {
	if box, ok := LastBox(s); ok {
		s = box
	} else if f, ok := answerPhrase(s); ok {
		return f
	}
	return Found{Text: reduce(s), How: how, Sure: true}
}

// FromAnswer extracts an answer from text that is either the answer or prose with one.
func FromAnswer(s string) Found {
	if box, ok := LastBox(s); ok {
		return Found{Text: Statement(box), How: "box", Sure: true}
	}
	if len(s) <= latex.MaxAnswer {
		if t := concluded(Statement(s)); t != "" {
			return Found{Text: t, How: "the value in a sentence", Sure: true}
		}
		if t := Statement(s); readable(t) && !(isSentence(t) && hasUnknownWords(t)) {
			return Found{Text: t, How: "the whole", Sure: true}
		}
	}
	if t, ok := answerField(s); ok {
		return Found{Text: t, How: "a field of JSON", Sure: true}
	}
	if f, ok := answerPhrase(s); ok {
		return f
	}
	return Found{Text: reduce(tail(s, maxStatement)), How: "the value in a sentence"}
}

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
	s = strings.TrimSpace(s)
	if block, ok := strings.CutSuffix(s, "```"); ok {
		if k := strings.LastIndex(block, "```"); k >= 0 && strings.HasPrefix(block[k:], "```output\n") {
			lines := strings.Split(strings.TrimSpace(block[k+len("```output\n"):]), "\n")
			return Found{Text: reduce(tail(lines[len(lines)-1], maxStatement)), How: "what a program prints"}
		}
	}
	if d := lastDisplay(tail(s, latex.MaxAnswer)); d != "" {
		return Found{Text: Statement(lastSide(d)), How: "no answer phrase, the last formula"}
	}
	whole := s
	if k := strings.LastIndexByte(s, '\n'); k >= 0 {
		s = strings.TrimPrefix(s[k+1:], "\\]")
	}
	if s == whole && len(s) <= 200 {
		if t := Statement(opening.ReplaceAllString(Statement(s), "")); concluded(t) == "" && readable(t) &&
			!(isSentence(t) && hasUnknownWords(t)) {
			return Found{Text: t, How: "the whole response", Sure: true}
		}
	}
	if !finished(tail(s, maxStatement)) {
		return Found{How: "no answer: cut off", Sure: true}
	}
	t := reduce(tail(s, maxStatement))
	if t == "" {
		return Found{How: "no answer", Sure: true}
	}
	return Found{Text: t, How: "no answer phrase, the last value"}
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
			display = strings.TrimSuffix(display[:max(strings.LastIndex(display, "\\end{"), 0)], "\\\\")
			display = strings.ReplaceAll(display[strings.LastIndex(display, "\\\\")+1:], "&", "")
			display = strings.TrimPrefix(display, "\\")
			if k := strings.LastIndexByte(display, '='); k >= 0 {
				display = display[k+1:]
			}
		}
		return display
	}
	return ""
}

// assumption matches words that begin a thought rather than end it.
var assumption = regexp.MustCompile(`(?i)\b(note|let|consider|suppose|assume|recall|first|since|if|` +
	`because|when|using|try)\b`)

// finished reports whether a last line is complete: it ends in a sign that ends sentences or formulas, or in a
// value, with its unit if it has one.
func finished(line string) bool {
	line = strings.TrimRight(line, "*\"' ")
	end, _ := utf8.DecodeLastRuneInString(line)
	if strings.ContainsRune(".!。！$)]}", end) {
		return true
	}
	k := strings.LastIndexFunc(line, func(r rune) bool { return '0' <= r && r <= '9' })
	if k < 0 || assumption.MatchString(line) {
		return false
	}
	rest := strings.TrimSpace(strings.TrimLeft(line[k+1:], "*%°"))
	return rest == "" || wording.QuantityOf(rest).Known
}
