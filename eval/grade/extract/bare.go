package extract

import (
	"strings"

	"exp/eval/grade/latex"
	"exp/eval/grade/wording"
)

// Formulas of LaTeX among words, without delimiters: The probability is \frac{3}{4}.

// proseCommands are commands that begin no formula by themselves.
var proseCommands = []string{"text", "textbf", "textit", "textrm", "emph", "mathrm", "mathbf", "boxed", "fbox",
	"begin", "end", "item", "n", "t", "quad", "qquad", "left", "right", "section", "par", "newline", "therefore",
	"because", "implies", "Rightarrow", "rightarrow", "to", "checkmark", "square", "blacksquare", "label", "tag"}

// withDelimiters puts formulas without delimiters between dollar signs, in lines near the end that have none and begin
// with two words.
func withDelimiters(s string) string {
	if !strings.ContainsAny(s, `\^!`) && !strings.Contains(s, "{,}") {
		return s
	}
	end := tail(s, maxStatement)
	head := s[:len(s)-len(end)]
	lines := strings.Split(end, "\n")
	for i, line := range lines {
		if !delimited(line) &&
			!strings.Contains(line, `\]`) && !strings.Contains(line, `\begin`) && !strings.Contains(line, `\end`) &&
			!strings.Contains(line, `\\`) && !strings.Contains(line, "boxed") {
			lines[i] = lineWithDelimiters(factorialAtEnd.ReplaceAllString(line, " $$${1}!$$${2}"))
		}
	}
	return head + strings.Join(lines, "\n")
}

// factorialAtEnd matches a factorial before a full stop, which no emphasis is.
var factorialAtEnd = lazy(` ([0-9]+)!(\.(?: |$))`)

func lineWithDelimiters(line string) string {
	var b strings.Builder
	words := 0
	done := 0
	for i := 0; i < len(line); {
		n, ok := bareFormula(line[i:])
		if n == 0 {
			n = wordLength(line[i:])
			if n > 1 {
				words++
			}
			i += n
			continue
		}
		if ok && words < 2 {
			return line
		}
		if ok {
			b.WriteString(line[done:i] + "$" + line[i:i+n] + "$")
			done = i + n
		}
		i += n
	}
	return b.String() + line[done:]
}

// wordLength returns the length of the word at the start of s, at least 1.
func wordLength(s string) int {
	n := 0
	for n < len(s) && (wording.IsLetter(s[n]) || s[n] == '\'' || s[n] == '-' && n > 0) {
		n++
	}
	return max(n, 1)
}

// bareFormula returns the length of the formula that s begins with, and whether it has a command.
func bareFormula(s string) (n int, ok bool) {
	depth := 0 // of brackets
	end := 0   // of the formula, without spaces and signs of the sentence after it
	for n < len(s) {
		k, command := atomLength(s[n:])
		switch c := s[n]; {
		case k > 0:
			ok = ok || command
			n += k
			end = n
			depth += nesting(s[n-k:])
			if depth < 0 {
				return n - k, ok
			}
			continue
		case c == ' ' && n > 0, c == ',' && depth > 0:
			n++
			continue
		}
		break
	}
	if depth != 0 {
		return 0, false
	}
	if strings.HasSuffix(s[:end], "}!") && end == len(strings.TrimRight(s, " *")) { // the end of the sentence
		end--
	}
	return end, ok
}

// nesting returns 1 if s begins with a bracket that opens, -1 if with one that closes.
func nesting(s string) int {
	switch {
	case s[0] == '(' || s[0] == '[' || strings.HasPrefix(s, `\{`):
		return 1
	case s[0] == ')' || s[0] == ']' || strings.HasPrefix(s, `\}`):
		return -1
	}
	return 0
}

// atomLength returns the length of the part of a formula that s begins with, or 0, and whether it is a command of
// mathematics. A single letter that is not a word is a variable.
func atomLength(s string) (n int, command bool) {
	switch c := s[0]; {
	case wording.IsDigit(c):
		for n < len(s) && (wording.IsDigit(s[n]) || strings.IndexByte(".,", s[n]) >= 0 && n+1 < len(s) &&
			wording.IsDigit(s[n+1])) {
			n++
		}
		return n, false
	case wording.IsLetter(c):
		if wordLength(s) > 1 || (c == 'a' || c == 'A' || c == 'I') && len(s) > 1 && s[1] == ' ' {
			return 0, false
		}
		return 1, false
	case c == '{':
		return max(latex.MatchBrace(s, 0)+1, 0), strings.HasPrefix(s, "{,}")
	case c == '\\':
		return commandLength(s)
	case strings.IndexByte("+-/^_=<>|()[]!'%", c) >= 0:
		return 1, c == '^'
	}
	return 0, false
}

// commandLength returns the length of a command with the groups that follow it.
func commandLength(s string) (n int, command bool) {
	for n = 1; n < len(s) && wording.IsLetter(s[n]); n++ {
	}
	name := s[1:n]
	if name == "" {
		if len(s) > 1 && strings.IndexByte("%{}|,;:! $", s[1]) >= 0 {
			return 2, s[1] == '%' || s[1] == '{'
		}
		return 0, false
	}
	for n < len(s) && (s[n] == '{' || s[n] == '[') {
		k := latex.MatchBrace(s[n:], 0)
		if s[n] == '[' {
			k = strings.IndexByte(s[n:], ']')
		}
		if k < 0 {
			return 0, false
		}
		n += k + 1
	}
	for _, word := range proseCommands {
		if name == word {
			return n, false
		}
	}
	return n, true
}
