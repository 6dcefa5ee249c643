// Package spelling suggests the word that a misspelt one probably meant. It is under
// experiments only because harness, reports and cmd may import that.
package spelling

import (
	"strings"
	"unicode/utf8"
)

// longest is the longest word, in letters, that gets suggestions.
const longest = 80

// Nearest returns the candidate nearest to word within 2 edits or a third of its letters,
// ignoring case, or "". The first of equally near candidates wins. Words
// of fewer than five letters allow one edit: with two, beta would match data. At least
// one letter of a candidate must match.
func Nearest(word string, candidates []string) string {
	best, least := "", longest
	for _, c := range candidates {
		if d, ok := Near(word, c); ok && d < least {
			best, least = c, d
		}
	}
	return best
}

// Near counts the edits from word to candidate, ignoring case, and says whether they are few enough for Nearest.
func Near(word, candidate string) (edited int, ok bool) {
	n := utf8.RuneCountInString(word)
	if n < 2 || n > longest {
		return 0, false
	}
	limit := max(2, n/3)
	if n < 5 {
		limit = 1
	}
	edited = edits(strings.ToLower(word), strings.ToLower(candidate))
	return edited, edited <= limit && edited < utf8.RuneCountInString(candidate)
}

// edits returns the restricted Damerau-Levenshtein distance (optimal string alignment):
// insertions, deletions, substitutions and swaps of neighbours, with no part edited
// twice.
func edits(a, b string) int {
	x, y := []rune(a), []rune(b)
	before, prev, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row[0] = i
		for j := 1; j <= len(y); j++ {
			change := 1
			if x[i-1] == y[j-1] {
				change = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+change)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, prev, row = prev, row, before
	}
	return prev[len(y)]
}
