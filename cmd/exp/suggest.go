package main

// nearest returns the candidate that word was probably meant to be: the one
// with the fewest edits, at most 2 or a third of the longer word; of equals the
// first. It is empty where none is near.
func nearest(word string, candidates []string) string {
	best, bestEdits := "", -1
	for _, c := range candidates {
		n := edits(word, c)
		limit := max(2, max(len(word), len(c))/3)
		if n > limit || n >= len(c) || len(c) < 2 {
			continue
		}
		if bestEdits < 0 || n < bestEdits {
			best, bestEdits = c, n
		}
	}
	return best
}

// edits is the Damerau–Levenshtein distance in its restricted form (optimal
// string alignment): insertions, deletions, substitutions and swaps of
// neighbours, each place edited at most once. It counts bytes.
func edits(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row = last, row, before
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
