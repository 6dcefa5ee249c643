package extract

import (
	"strings"

	"exp/eval/grade/latex"
)

// A box may be a part of something else: of another box, or of a formula that calculates with it.

// maxAround bounds the text around a box that may belong to it.
const maxAround = 60

// outermost returns the box around the one at s[k:end] that is little more than it, or that one.
func outermost(s string, k, end int, content string) (int, int, string) {
	for from, tries := k, 0; tries < 20; tries++ {
		if from = lastBoxCommand(s[:from]); from < 0 {
			break
		}
		if c, e, ok := boxAt(s, from); ok && e > end && len(c) <= end-k+maxAround {
			k, end, content = from, e, c
		}
	}
	return k, end, content
}

// sideAround returns the side of a formula that calculates with the box at s[k:end]: {12}+1 of x=\boxed{12}+1. It is
// empty if the box stands alone or cannot be read in its formula. Relations do not count: in x\ge\boxed{4} the box
// is the answer.
func sideAround(s string, k, end int, content string) string {
	from, to := formulaAround(s, k, end)
	if from < 0 {
		return ""
	}
	before, after := tail(s[from:k], maxAround), s[end:min(to, end+maxAround)]
	if all := sideEnd.FindAllStringIndex(before, -1); len(all) > 0 {
		before = before[all[len(all)-1][1]:]
	}
	if m := sideEnd.FindStringIndex(after); m != nil {
		after = after[:m[0]]
	}
	if !operatesBefore.MatchString(before) && (!operatesAfter.MatchString(after) || unitAfter.MatchString(after)) {
		return ""
	}
	side := strings.TrimSpace(before + "{" + content + "}" + after)
	if _, err := latex.Parse(side, true); err != nil {
		return ""
	}
	return side
}

// formulaAround returns the bounds of the formula that s[k:end] is in, from -1 if it is in none. A text without words
// is a formula.
func formulaAround(s string, k, end int) (from, to int) {
	line, last := strings.LastIndexByte(s[:k], '\n')+1, len(s)
	if n := strings.IndexByte(s[end:], '\n'); n >= 0 {
		last = end + n
	}
	for _, d := range [][2]string{{"\\(", "\\)"}, {"\\[", "\\]"}} {
		open := strings.LastIndex(s[:k], d[0])
		if n := strings.Index(s[end:], d[1]); open >= 0 && n >= 0 && !strings.Contains(s[open:k], d[1]) {
			return open + len(d[0]), end + n
		}
	}
	if n := strings.IndexByte(s[end:last], '$'); n >= 0 && strings.Count(s[line:k], "$")%2 == 1 {
		return strings.LastIndexByte(s[:k], '$') + 1, end + n
	}
	if strings.HasPrefix(s[line:], "$$") && strings.HasSuffix(strings.TrimRight(s[end:last], " ."), "$$") {
		return line + 2, last - 2
	}
	if !inWords.MatchString(s[line:k]) && !inWords.MatchString(s[end:last]) && strings.TrimSpace(s[:line]) == "" {
		return line, last
	}
	return -1, 0
}

var (
	// sideEnd matches what ends a side of a formula.
	sideEnd = lazy(`[=≈≡<>≤≥≠&,;:→⇒∈]|\\(?:approx|equiv|to|(?:long)?rightarrow|(?:Long)?[Rr]ightarrow|implies|iff|therefore|in|` +
		`leq?|geq?|leqslant|geqslant|lt|gt|neq?|sim|cong|q?quad|text[a-z]*|mathrm|mbox|begin|end|[bp]?mod|tag)\b|\\\\|\\pmod`)
	// operatesBefore and operatesAfter match a sign at the end and at the start of a side that calculates.
	operatesBefore = lazy(`(?:[-+*/^±−×·]|\\(?:cdot|times|div|pm|mp|sqrt|[dt]?frac)|[0-9]|[{\[])\s*$`)
	operatesAfter  = lazy(`^\s*(?:[-+*/^±−×·²³]|\\(?:cdot|times|div|pm|mp|sqrt|[dt]?frac|pi)\b|[0-9}])`)
	// unitAfter matches a power that is a degree sign or ends an ordinal number.
	unitAfter = lazy(`^\s*\^\s*\{?\s*(?:\\circ|°|\\text|\\mathrm|\\prime|')`)
	// inWords matches a word or a list mark outside commands.
	inWords = lazy(`(?:^|[^\\a-zA-Z])[a-zA-Z]{2,}|^\s*(?:[-*+]|[0-9]+[.)])\s`)
)
