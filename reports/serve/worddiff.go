package serve

import (
	"strings"
	"unicode"
)

// wordSpan is a stretch of words that another text shares, or that only this text has.
type wordSpan struct {
	Text string
	Own  bool
}

// mostWords bounds the texts that are compared word by word: the time is the product of their
// lengths.
const mostWords = 1500

// wordDiff marks the words of two texts that are not in their longest common subsequence. It
// returns nil for texts that are too long, equal, or have no word in common.
func wordDiff(a, b string) (left, right []wordSpan) {
	x, y := splitWords(a), splitWords(b)
	if a == b || len(x) > mostWords || len(y) > mostWords {
		return nil, nil
	}
	// common[i][k] is the length of the longest common subsequence of x[i:] and y[k:].
	common := make([][]int16, len(x)+1)
	for i := range common {
		common[i] = make([]int16, len(y)+1)
	}
	for i := len(x) - 1; i >= 0; i-- {
		for k := len(y) - 1; k >= 0; k-- {
			if x[i] == y[k] {
				common[i][k] = common[i+1][k+1] + 1
			} else {
				common[i][k] = max(common[i+1][k], common[i][k+1])
			}
		}
	}
	if common[0][0] == 0 {
		return nil, nil
	}
	i, k := 0, 0
	for i < len(x) || k < len(y) {
		switch {
		case i < len(x) && k < len(y) && x[i] == y[k]:
			left, right = addSpan(left, x[i], false), addSpan(right, y[k], false)
			i, k = i+1, k+1
		case k == len(y) || i < len(x) && common[i+1][k] >= common[i][k+1]:
			left = addSpan(left, x[i], true)
			i++
		default:
			right = addSpan(right, y[k], true)
			k++
		}
	}
	return left, right
}

// splitWords cuts a text into words, runs of white space and single signs, which together are the
// text.
func splitWords(text string) []string {
	kind := func(r rune) int {
		switch {
		case unicode.IsSpace(r):
			return 0
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '_':
			return 1
		}
		return 2
	}
	var words []string
	start, last := 0, -1
	for i, r := range text {
		now := kind(r)
		if i > 0 && (now != last || now == 2) {
			words = append(words, text[start:i])
			start = i
		}
		last = now
	}
	if start < len(text) {
		words = append(words, text[start:])
	}
	return words
}

func addSpan(list []wordSpan, word string, own bool) []wordSpan {
	if n := len(list); n > 0 && list[n-1].Own == own {
		list[n-1].Text += word
		return list
	}
	return append(list, wordSpan{strings.Clone(word), own})
}

// markDifferences marks in each run's most frequent completion of a problem what the first run's
// does not have, and in the first run's what the second's does not have.
func markDifferences(sides []problemSide) {
	for i := 1; i < len(sides); i++ {
		if len(sides[0].Rows) == 0 || len(sides[i].Rows) == 0 {
			continue
		}
		first, other := &sides[0].Rows[0], &sides[i].Rows[0]
		left, right := wordDiff(first.Text, other.Text)
		other.Spans = right
		if i == 1 {
			first.Spans = left
		}
	}
}
