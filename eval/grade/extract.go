package grade

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Found is the final answer found in a text.
type Found struct {
	Text string // the answer without delimiters; empty if none
	How  string // where it was: "box", "answer phrase", …; or why there is none
	Sure bool   // the place marks it as the answer; or there certainly is none
}

// maxStatement bounds how much text after an answer phrase is read.
const maxStatement = 2000

// Extract finds the final answer in a whole response. It drops thinking up to </think>, then tries in
// order: the last <answer>…</answer>; the last balanced \boxed{…}, with those before it that only a comma
// or "and" separates from it; the text after the last "answer is", "Answer:" or "####"; a closing
// statement, which is not sure. A response cut off before its answer has none. Time is linear in the
// length.
func Extract(response string) Found {
	s := firstTurn(plainCharacters(response))
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
	if box, ok := lastBox(s); ok {
		return Found{Text: statement(box), How: "box", Sure: true}
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
	if box, ok := lastBox(s); ok {
		s = box
	} else if f, ok := answerPhrase(s); ok {
		return f
	}
	return Found{Text: reduce(s), How: how, Sure: true}
}

// answerIn extracts an answer from text that is either the answer or prose with one.
func answerIn(s string) Found {
	if box, ok := lastBox(s); ok {
		return Found{Text: statement(box), How: "box", Sure: true}
	}
	if len(s) <= maxAnswer {
		if t := concluded(statement(s)); t != "" {
			return Found{Text: t, How: "the value in a sentence", Sure: true}
		}
		if t := statement(s); readable(t) && !(isSentence(t) && hasUnknownWords(t)) {
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
	x, err := parse(s, true)
	if err != nil || x.op != opText {
		return err == nil
	}
	long := 0
	for _, w := range strings.Fields(x.name) {
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

// lastBox returns the content of the last closed \boxed{…} or \fbox{…} and of the boxes right before it.
func lastBox(s string) (string, bool) {
	boxes, starts := "", len(s)
	for tries := 0; tries < 20; tries++ {
		k := lastBoxCommand(s[:starts])
		if k < 0 {
			break
		}
		content, end, ok := boxAt(s, k)
		if boxes == "" {
			if ok {
				boxes = content
			}
			starts = k
			continue
		}
		if !ok || end > starts || !joins(s[end:starts]) {
			break
		}
		if strings.TrimSpace(content) != strings.TrimSpace(boxes) {
			boxes = content + ", " + boxes
		}
		starts = k
	}
	// A box inside a box.
	for range 4 {
		t := strings.TrimSpace(boxes)
		if !strings.HasPrefix(t, "\\boxed{") || !strings.HasSuffix(t, "}") {
			break
		}
		boxes = strings.TrimSuffix(strings.TrimPrefix(t, "\\boxed{"), "}")
	}
	return boxes, boxes != ""
}

// lastBoxCommand returns the index of the last \boxed or \fbox.
func lastBoxCommand(s string) int {
	for end := len(s); end > 0; {
		k := strings.LastIndexByte(s[:end], '\\')
		if k < 0 || strings.HasPrefix(s[k:], "\\boxed") || strings.HasPrefix(s[k:], "\\fbox") {
			return k
		}
		end = k
	}
	return -1
}

// boxAt reads the box at s[k:]: \boxed{…}, or \boxed 5 up to a $ or a space.
func boxAt(s string, k int) (content string, end int, ok bool) {
	i := k + len("\\boxed")
	if strings.HasPrefix(s[k:], "\\fbox") {
		i = k + len("\\fbox")
	}
	for i < len(s) && s[i] == ' ' {
		i++
	}
	if i == len(s) {
		return "", 0, false
	}
	if s[i] == '{' {
		// A box holds an answer, not a chapter: bound the search for its end.
		e := matchBrace(s[:min(len(s), i+maxAnswer)], i)
		if e < 0 {
			return "", 0, false
		}
		return s[i+1 : e], e + 1, true
	}
	e := strings.IndexAny(s[i:], " $\n,")
	if e < 0 {
		e = len(s) - i
	}
	return s[i : i+e], i + e, e > 0
}

// joins reports whether the text between two boxes makes them one answer.
func joins(s string) bool {
	if len(s) > 40 {
		return false
	}
	s = strings.ToLower(textWrappers.Replace(s))
	if !strings.ContainsAny(s, ",;&") && !strings.Contains(s, "and") && !strings.Contains(s, "or") {
		return false
	}
	s = strings.Trim(strings.NewReplacer("and", "", "or", "", "quad", "").Replace(s), " ,;&$\\()[]\n\t")
	return s == "" || len(s) >= 2 && isLetter(s[0]) && strings.TrimSpace(s[1:]) == "=" // x=\boxed{2} and y=\boxed{3}
}

// phrases introduce an answer, in lower case. "a:" and "ans:" count only at the start of a line, "answer"
// without a colon only as a heading.
var phrases = []string{"answer is", "answers are", "answer:**", "answer**:", "answer**", "answer\n", "answer:",
	"answer :", "answer =", "answer equals", "answer would be", "answer must be", "answer to the problem is", "####",
	"答案是", "答案为", "答案:", "答案：", "a:", "ans:"}

// answerPhrase takes the text after the last phrase that has any after it.
func answerPhrase(s string) (Found, bool) {
	end := len(s)
	for range 6 {
		start, after := lastPhrase(s[:end])
		if start < 0 {
			break
		}
		if t := reduce(sentence(s[after:])); t != "" && !doubted(s[:start]) {
			return Found{Text: t, How: "answer phrase", Sure: true}, true
		}
		end = start
	}
	return Found{}, false
}

// doubted reports whether the words before an answer phrase take it back: I doubt the answer is, half the answer is.
func doubted(before string) bool {
	words := strings.FieldsFunc(lower(lastWords(before[strings.LastIndexAny(before, ".!?\n:")+1:], 5)), notLetter)
	return slices.ContainsFunc(words, func(w string) bool {
		return slices.Contains([]string{"doubt", "nobody", "half", "twice", "unlikely", "whether"}, w)
	})
}

// lastPhrase finds the last phrase in one pass from the end.
func lastPhrase(s string) (start, after int) {
	for i := len(s) - 1; i >= 0; i-- {
		switch s[i] {
		case 'a', 'A':
			if i+2 >= len(s) || (s[i+1]|0x20 != 'n' || s[i+2]|0x20 != 's') && s[i+1] != ':' {
				continue // most positions; |0x20 is lower case
			}
		case '#', "答"[0]:
		default:
			continue
		}
		best := 0
		for _, p := range phrases {
			if len(p) <= best || len(s)-i < len(p) || lower(s[i:i+len(p)]) != p {
				continue
			}
			start := true
			switch p {
			case "a:", "ans:":
				start = i == 0 || s[i-1] == '\n'
			case "answer\n": // a heading
				start = strings.HasPrefix(strings.TrimLeft(s[strings.LastIndexByte(s[:i], '\n')+1:], " "), "#")
			}
			if start {
				best = len(p)
			}
		}
		if best > 0 {
			return i, i + best
		}
	}
	return -1, 0
}

// lower is strings.ToLower for ASCII, which keeps byte offsets.
func lower(s string) string {
	upper := false
	for i := 0; i < len(s) && !upper; i++ {
		upper = 'A' <= s[i] && s[i] <= 'Z'
	}
	if !upper {
		return s
	}
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// lastIndex is strings.LastIndex with a fast check for texts without sub.
func lastIndex(s, sub string) int {
	if !strings.Contains(s, sub) {
		return -1
	}
	return strings.LastIndex(s, sub)
}

// sentence returns what follows an answer phrase: the first nonblank line or a displayed formula, up to "I
// hope it is correct".
func sentence(s string) string {
	s = strings.TrimLeft(s, " \t\r\n*:：_")
	if len(s) > maxStatement {
		s = s[:maxStatement]
	}
	for _, d := range [][2]string{{"$$", "$$"}, {"\\[", "\\]"}} {
		if after, ok := strings.CutPrefix(s, d[0]); ok {
			if k := strings.Index(after, d[1]); k >= 0 {
				return after[:k]
			}
		}
	}
	if strings.HasPrefix(s, "\\begin") {
		return s
	}
	if k := strings.Index(s, "I hope"); k >= 0 {
		s = s[:k]
	}
	if k := strings.IndexByte(s, '\n'); k >= 0 {
		line := strings.TrimSpace(s[:k])
		if line == "\\(" || line == "$" || strings.HasSuffix(line, "\\\\") ||
			strings.Count(line, "{") > strings.Count(line, "}") {
			return s
		}
		s = line
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
	if d := lastDisplay(tail(s, maxAnswer)); d != "" {
		return Found{Text: statement(lastSide(d)), How: "no answer phrase, the last formula"}
	}
	whole := s
	if k := strings.LastIndexByte(s, '\n'); k >= 0 {
		s = strings.TrimPrefix(s[k+1:], "\\]")
	}
	if s == whole && len(s) <= 200 {
		if t := statement(opening.ReplaceAllString(statement(s), "")); concluded(t) == "" && readable(t) &&
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
		formula := strings.TrimSpace(inside[k+len(d[0]):])
		if strings.HasPrefix(formula, "\\begin{align") {
			formula = strings.TrimSuffix(formula[:max(strings.LastIndex(formula, "\\end{"), 0)], "\\\\")
			formula = strings.ReplaceAll(formula[strings.LastIndex(formula, "\\\\")+1:], "&", "")
			formula = strings.TrimPrefix(formula, "\\")
			if k := strings.LastIndexByte(formula, '='); k >= 0 {
				formula = formula[k+1:]
			}
		}
		return formula
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
	return rest == "" || quantityOf(rest).known
}

// statement strips delimiters, emphasis and full stops around an answer.
func statement(s string) string {
	for {
		t := strings.TrimSpace(s)
		t = strings.Trim(t, "`\t\r\n")
		for _, arrow := range []string{"\\Rightarrow", "\\Longrightarrow", "\\implies", "\\therefore", "⇒", "∴"} {
			t = strings.TrimSpace(strings.TrimPrefix(t, arrow))
		}
		for _, d := range [][2]string{{"**", "**"}, {"__", "__"}, {"*", "*"}, {"$$", "$$"}, {"\\(", "\\)"},
			{"\\[", "\\]"}, {"\"", "\""}, {"<answer>", "</answer>"}} {
			if len(t) >= len(d[0])+len(d[1]) && strings.HasPrefix(t, d[0]) && strings.HasSuffix(t, d[1]) &&
				!strings.Contains(t[len(d[0]):len(t)-len(d[1])], d[1]) {
				t = t[len(d[0]) : len(t)-len(d[1])]
			}
		}
		if len(t) >= 2 && t[0] == '$' && t[len(t)-1] == '$' && t[len(t)-2] != '\\' &&
			strings.Count(t, "$")-strings.Count(t, "\\$") == 2 {
			t = t[1 : len(t)-1]
		}
		if strings.Count(t, "**")%2 == 1 {
			t = strings.TrimSuffix(t, "**")
		}
		if t = strings.TrimSuffix(t, "。"); !strings.HasSuffix(t, "...") {
			t = strings.TrimSuffix(t, ".")
		}
		t = strings.TrimRight(t, ",;: \n")
		if t == s {
			return t
		}
		s = t
	}
}

// proseWord reports whether the text is words without a value.
func proseWord(s string) bool {
	if strings.IndexFunc(s, unicode.IsDigit) >= 0 {
		return false
	}
	return len(strings.Fields(s)) > 4 || strings.IndexFunc(s, func(r rune) bool {
		return r > 127 &&
			unicode.IsLetter(r) && symbolRunes[r].text == ""
	}) >= 0
}

// mathAt reads a formula between delimiters at the start of s.
func mathAt(s string) (content string, length int) {
	for _, d := range [][2]string{{"$$", "$$"}, {"\\(", "\\)"}, {"\\[", "\\]"}, {"$", "$"}} {
		after, ok := strings.CutPrefix(s, d[0])
		if !ok {
			continue
		}
		from := 0
		for {
			k := strings.Index(after[from:], d[1])
			if k < 0 {
				break
			}
			if k += from; d[1] != "$" || k == 0 || after[k-1] != '\\' {
				return strings.TrimSpace(after[:k]), len(d[0]) + k + len(d[1])
			}
			from = k + 1
		}
	}
	return "", 0
}

// leadingMath returns the formula at the start, with those that a comma, "and" or "or" joins to it.
func leadingMath(s string) string {
	content, _ := leadingFormulas(s)
	return content
}

// leadingLength returns the length of what leadingMath reads.
func leadingLength(s string) int {
	_, n := leadingFormulas(s)
	return n
}

func leadingFormulas(s string) (content string, n int) {
	if content, n = mathAt(s); n == 0 {
		return "", 0
	}
	for n < len(s) {
		rest := s[n:]
		k := strings.IndexAny(rest, "$\\")
		if k < 0 || !joins(rest[:k]) {
			break
		}
		next, m := mathAt(rest[k:])
		if m == 0 {
			break
		}
		word := ", "
		if strings.Contains(rest[:k], "or") {
			word = " or "
		}
		content, n = content+word+next, n+k+m
	}
	return content, n
}

// lastMath returns the last formula between delimiters, with those joined to it.
func lastMath(s string) string {
	last := ""
	for i := 0; i < len(s); {
		k := strings.IndexAny(s[i:], "$\\")
		if k < 0 {
			break
		}
		i += k
		if _, n := mathAt(s[i:]); n > 0 {
			content := leadingMath(s[i:])
			last = content
			i += max(n, len(content))
			continue
		}
		i++
	}
	if last != "" {
		// An equation shows how the value was found; the value is at its end.
		if k := strings.LastIndex(last, "="); k >= 0 && strings.Count(last, "=") > 1 {
			last = last[k+1:]
		}
	}
	return statement(last)
}

// isProse reports whether s is words without LaTeX other than money and percent signs. A formula we cannot
// parse must not be reduced to its last number.
func isProse(s string) bool {
	if plain := strings.NewReplacer("\\$", "", "\\%", "").Replace(s); strings.ContainsAny(plain, "\\^_{}|") {
		return false
	}
	run, foreign := 0, false
	long := 0
	for _, r := range s {
		if !unicode.IsLetter(r) {
			run = 0
			continue
		}
		foreign = foreign || r > 0x2e80
		if run++; run == 2 {
			long++
		}
	}
	return foreign || long >= 2
}

// lastNumber returns the last number in prose, with sign, fraction and percent sign.
func lastNumber(s string) string {
	end := strings.LastIndexFunc(s, func(r rune) bool { return '0' <= r && r <= '9' }) + 1
	if end == 0 {
		return ""
	}
	start := end
	for start > 0 && (isDigit(s[start-1]) || strings.IndexByte(".,/", s[start-1]) >= 0) {
		start--
	}
	for start < end && !isDigit(s[start]) && s[start] != '.' {
		start++
	}
	if start > 0 && s[start-1] == '-' && (start == 1 || s[start-2] == ' ' || s[start-2] == '$' || s[start-2] == '(') {
		start--
	}
	if end < len(s) && s[end] == '%' {
		end++
	}
	return s[start:end]
}
