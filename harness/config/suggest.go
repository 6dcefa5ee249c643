package config

import (
	"strings"
	"unicode/utf8"
)

// editDistance is the Damerau-Levenshtein distance in its restricted form
// (optimal string alignment): insertions, deletions, substitutions and swaps of
// neighbours, no part edited twice.
func editDistance(a, b string) int {
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

// maxSuggestInput bounds the time spent on nonsense.
const maxSuggestInput = 80

// closest returns the word nearest to s within 2 edits or a third of its length;
// empty if there is none. The first of equally near words wins. In a word of less
// than five letters only one edit counts: with two, beta would be data.
func closest(s string, words []string) string {
	n := utf8.RuneCountInString(s)
	if n < 2 || n > maxSuggestInput {
		return ""
	}
	limit := max(2, n/3)
	if n < 5 {
		limit = 1
	}
	best, at := "", limit+1
	for _, w := range words {
		if d := editDistance(strings.ToLower(s), strings.ToLower(w)); d < at {
			best, at = w, d
		}
	}
	return best
}

// enumerate joins words by commas, at most n of them.
func enumerate(words []string, n int) string {
	if len(words) > n {
		return strings.Join(words[:n], ", ") + ", ..."
	}
	return strings.Join(words, ", ")
}

// didYouMean is the help for an unknown key name in a block: a sibling, else keys
// elsewhere. It also returns the path that it suggests.
func didYouMean(g *group, name, path string, full bool) (help, suggested string) {
	join := func(name string) string {
		if g.path == "" {
			return name
		}
		return g.path + "." + name
	}
	show := func(name string) string {
		if full {
			return join(name)
		}
		return name
	}
	here := ""
	if g.path != "" || !full {
		here = "keys here: " + enumerate(g.names, 14)
	}
	if near := closest(name, g.names); near != "" {
		help = `did you mean "` + show(near) + `"?`
		if !full {
			help += " " + here
		}
		return help, join(near)
	}
	if paths := elsewhere(name, path); len(paths) > 0 {
		return `did you mean "` + strings.Join(paths, `" or "`) + `"?`, paths[0]
	}
	return here, ""
}

// elsewhere finds keys and blocks under other blocks: those with the very name, at
// most three, else the path nearest to the one given.
func elsewhere(name, path string) []string {
	all := append(paths(), blocks()...)
	var same []string
	for _, p := range all {
		if _, last := cutLast(p); last == name && len(same) < 3 {
			same = append(same, p)
		}
	}
	if len(same) > 0 {
		return same
	}
	if near := closest(path, all); near != "" {
		return []string{near}
	}
	return nil
}
