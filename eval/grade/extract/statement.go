package extract

import (
	"strings"
	"unicode"

	"exp/eval/grade/latex"
	"exp/eval/grade/wording"
)

// ungrouped drops the braces of a group that is the whole answer, or the last side of a calculation.
func ungrouped(s string) string {
	if !strings.HasSuffix(s, "}") {
		return s
	}
	k := strings.LastIndexByte(s, '=') + 1
	side := strings.TrimLeft(s[k:], " ")
	if strings.HasPrefix(side, "{") && latex.MatchBrace(side, 0) == len(side)-1 {
		return s[:k] + side[1:len(side)-1]
	}
	return s
}

// arrows may stand before an answer.
var arrows = []string{"\\Rightarrow", "\\Longrightarrow", "\\implies", "\\therefore", "⇒", "∴", "⟹", "=>", "→", "->"}

// Statement strips delimiters, emphasis and full stops around an answer.
func Statement(s string) string {
	for {
		t := strings.TrimSpace(s)
		t = strings.Trim(t, "`\t\r\n")
		for _, arrow := range arrows {
			t = strings.TrimSpace(strings.TrimPrefix(t, arrow))
		}
		for _, d := range [][2]string{{"<b>", "</b>"}, {"<strong>", "</strong>"}, {"**", "**"},
			{"__", "__"}, {"*", "*"}, {"$$", "$$"}, {"\\(", "\\)"},
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
		t = ungrouped(t)
		if strings.Count(t, "**")%2 == 1 {
			t = strings.TrimSuffix(t, "**")
		}
		if strings.Count(t, "*") == 1 && !strings.HasSuffix(t, "^*") {
			t = strings.Trim(t, "*")
		}
		if t = strings.TrimSuffix(t, "。"); !strings.HasSuffix(t, "...") {
			t = strings.TrimSuffix(t, ".")
		}
		for _, closing := range []string{"$!", "\\)!", "**!"} { // the answer is $5$!
			if strings.HasSuffix(t, closing) && len(t) > len(closing) {
				t = strings.TrimSuffix(t, "!")
			}
		}
		t = withoutSpacing(t)
		t = strings.TrimRight(t, ",;: \n")
		if t == s {
			return t
		}
		s = t
	}
}

// withoutSpacing removes a space of LaTeX behind the full stop of an answer: 5.\, and 5.\quad.
func withoutSpacing(s string) string {
	for _, space := range []string{"\\,", "\\;", "\\:", "\\!", "\\quad", "\\qquad", "~"} {
		if t, ok := strings.CutSuffix(s, "."+space); ok {
			return t + "."
		}
	}
	return s
}

// proseWord reports whether the text is words without a value.
func proseWord(s string) bool {
	if strings.IndexFunc(s, unicode.IsDigit) >= 0 {
		return false
	}
	return len(strings.Fields(s)) > 4 || strings.IndexFunc(s, func(r rune) bool {
		return r > 127 &&
			unicode.IsLetter(r) && !latex.IsSymbol(r)
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

// leadingMath returns the formula at the start, with formulas that a comma, "and" or "or" joins to it.
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
		content, n = content+conjunction(rest[:k])+next, n+k+m
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
	return Statement(last)
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
		foreign = foreign || r >= 0x400
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
	for start > 0 && (wording.IsDigit(s[start-1]) || strings.IndexByte(".,/", s[start-1]) >= 0) {
		start--
	}
	for start < end && !wording.IsDigit(s[start]) && s[start] != '.' {
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
