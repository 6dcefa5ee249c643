package peer

import (
	"slices"
	"strings"
	"unicode"
)

// mostEdited is the least likeness that ANLS counts; below it an answer scores 0.
const mostEdited = 0.5

// anls is the average normalized Levenshtein similarity of DocVQA and InfographicVQA (arXiv:1907.00490 eq. 1), as
// lmms-eval computes it (api/metrics.py): of all gold answers the best
//
//	1 - edits / longer length
//
// or 0 if that is less than half. Edits are counted in lower case with single spaces, lengths in upper case with the
// spaces as they are.
func anls(golds []string, said string) float64 {
	text, length := spacedLower(said), upperLength(said)
	least := 1.0
	for _, gold := range golds {
		if n := max(upperLength(gold), length); n > 0 {
			least = min(least, float64(edits(spacedLower(gold), text))/float64(n))
		} else {
			least = 0
		}
	}
	if like := 1 - least; like >= mostEdited {
		return like
	}
	return 0
}

// spacedLower is " ".join(s.lower().split()).
func spacedLower(s string) string {
	return strings.Join(strings.FieldsFunc(pythonLower(s), isPythonSpace), " ")
}

// upperLength is len(s.upper()) in code points.
func upperLength(s string) int {
	n := 0
	for _, c := range s {
		n++
		if c < 0xdf {
			continue
		}
		if unicode.Is(upperToTwo, c) {
			n++
		} else if slices.Contains(upperToThree, c) {
			n += 2
		}
	}
	return n
}

// upperToTwo holds the letters that two make in upper case, such as ß (Unicode's SpecialCasing.txt).
var upperToTwo = &unicode.RangeTable{R16: []unicode.Range16{
	{Lo: 0xdf, Hi: 0xdf, Stride: 1}, {Lo: 0x149, Hi: 0x149, Stride: 1}, {Lo: 0x1f0, Hi: 0x1f0, Stride: 1},
	{Lo: 0x587, Hi: 0x587, Stride: 1}, {Lo: 0x1e96, Hi: 0x1e9a, Stride: 1}, {Lo: 0x1f50, Hi: 0x1f50, Stride: 1},
	{Lo: 0x1f80, Hi: 0x1faf, Stride: 1}, {Lo: 0x1fb2, Hi: 0x1fb4, Stride: 1}, {Lo: 0x1fb6, Hi: 0x1fb6, Stride: 1},
	{Lo: 0x1fbc, Hi: 0x1fbc, Stride: 1}, {Lo: 0x1fc2, Hi: 0x1fc4, Stride: 1}, {Lo: 0x1fc6, Hi: 0x1fc6, Stride: 1},
	{Lo: 0x1fcc, Hi: 0x1fcc, Stride: 1}, {Lo: 0x1fd6, Hi: 0x1fd6, Stride: 1}, {Lo: 0x1fe4, Hi: 0x1fe4, Stride: 1},
	{Lo: 0x1fe6, Hi: 0x1fe6, Stride: 1}, {Lo: 0x1ff2, Hi: 0x1ff4, Stride: 1}, {Lo: 0x1ff6, Hi: 0x1ff6, Stride: 1},
	{Lo: 0x1ffc, Hi: 0x1ffc, Stride: 1}, {Lo: 0xfb00, Hi: 0xfb02, Stride: 1}, {Lo: 0xfb05, Hi: 0xfb06, Stride: 1},
	{Lo: 0xfb13, Hi: 0xfb17, Stride: 1}}}

// upperToThree holds the letters that three make.
var upperToThree = []rune("\u0390\u03b0\u1f52\u1f54\u1f56\u1fb7\u1fc7\u1fd2\u1fd3\u1fd7" +
	"\u1fe2\u1fe3\u1fe7\u1ff7\ufb03\ufb04")
