package extract

import "strings"

// mathFence matches a fenced block of LaTeX: ```math.
var mathFence = lazy("```[ \t]*(?:math|katex|[Ll]a[Tt]e[Xx]|tex)[ \t]*\n([^`]+)```")

// ownDelimiters begin the formulas of a block that needs none around it.
var ownDelimiters = []string{"$", `\(`, `\[`, `\begin{equation`, `\begin{align`, `\begin{gather`}

// Unfenced writes fenced blocks of LaTeX as displayed formulas, and drops the back-ticks inside dollar signs. A block
// with delimiters of its own only loses its fence.
func Unfenced(s string) string {
	if !strings.Contains(s, "`") {
		return s
	}
	if strings.Contains(s, "$`") && strings.Contains(s, "`$") {
		s = backticks.Replace(s)
	}
	if !strings.Contains(s, "```") {
		return s
	}
	var b strings.Builder
	end := 0
	for _, m := range mathFence.FindAllStringSubmatchIndex(s, -1) {
		inside := strings.TrimSpace(s[m[2]:m[3]])
		if inside == "" {
			continue
		}
		if !delimited(inside) {
			inside = "$$\n" + inside + "\n$$"
		}
		b.WriteString(s[end:m[0]] + inside)
		end = m[1]
	}
	if end == 0 {
		return s
	}
	b.WriteString(s[end:])
	return b.String()
}

// delimited reports whether a text has delimiters of formulas.
func delimited(s string) bool {
	for _, d := range ownDelimiters {
		if strings.Contains(s, d) {
			return true
		}
	}
	return false
}

// backticks drops those inside dollar signs: $`x^2`$.
var backticks = strings.NewReplacer("$`", "$", "`$", "$")
