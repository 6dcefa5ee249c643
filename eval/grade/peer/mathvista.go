package peer

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"exp/eval/grade"
)

// MathVista compares answers as evaluation/calculate_score.py of MathVista does. A letter is its option, and so is the
// option that needs the fewest edits; an integer is cut, and a decimal rounded to what the problem asks for. Its
// extract_answer.py asks GPT-4 for the answer within a response, unless the response is one. Here our own grader finds
// it (package extract), and of words with one number the number counts. A response without an answer is wrong, where
// the source takes the shortest option.
func MathVista(q Question, response string) grade.Verdict {
	said := strings.TrimFunc(response, isPythonSpace)
	if q.hasOptions() {
		if !slices.Contains(q.Options, said) {
			said = grade.Response(q.Golds[0], response).Extracted
		}
		if said == "" {
			return verdict(false, "", "no answer in the text")
		}
		i := mathVistaOption(said, q.Options)
		right := q.Options[i] == q.Options[q.Right]
		return verdict(right, said, fmt.Sprintf("option %c", 'A'+i))
	}
	if !isPythonFloat(said) {
		said = grade.Response(q.Golds[0], response).Extracted
	}
	if said == "" {
		return verdict(false, "", "no answer in the text")
	}
	for _, gold := range q.Golds {
		if mathVistaEqual(gold, said, q.decimals(gold)) {
			return verdict(true, said, "equal as asked")
		}
	}
	return verdict(false, said, "another value or text")
}

// mathVistaLetter matches a letter in brackets.
var mathVistaLetter = regexp.MustCompile(`\(([a-zA-Z])\)`)

// mathVistaOption is normalize_extracted_answer for options: the number of the one that an answer names, or is nearest
// to.
func mathVistaOption(said string, options []string) int {
	if m := mathVistaLetter.FindStringSubmatch(said); m != nil {
		said = strings.ToUpper(m[1])
	}
	if len(said) == 1 && said[0] >= 'A' && int(said[0]-'A') < len(options) {
		return int(said[0] - 'A')
	}
	best, least := 0, math.MaxInt
	for i, text := range options {
		if d := edits(said, text); d < least {
			best, least = i, d
		}
	}
	return best
}

// edits returns the Levenshtein distance: the fewest insertions, deletions and replacements of code points.
func edits(a, b string) int {
	const longest = 4000 // code points; more are cut
	x, y := []rune(a), []rune(b)
	x, y = x[:min(len(x), longest)], y[:min(len(y), longest)]
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i, c := range x {
		diagonal := row[0]
		row[0] = i + 1
		for j, d := range y {
			cost := diagonal
			if c != d {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(y)]
}

// loneNumber matches a number among words.
var loneNumber = regexp.MustCompile(`-?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?|-?\.[0-9]+`)

// mathVistaEqual compares an answer with a gold one that has so many decimals; negative: it is not a number.
func mathVistaEqual(gold, said string, decimals int) bool {
	if decimals < 0 {
		return said == strings.TrimFunc(gold, isPythonSpace)
	}
	x, ok := pythonFloat(said)
	if !ok {
		numbers := loneNumber.FindAllString(said, -1)
		if len(numbers) != 1 {
			return false
		}
		if x, ok = pythonFloat(strings.ReplaceAll(numbers[0], ",", "")); !ok {
			return false
		}
	}
	want, ok := pythonFloat(gold)
	if decimals == 0 {
		return ok && !math.IsInf(x, 0) && math.Trunc(x) == want
	}
	return ok && pythonRound(x, decimals) == want
}

// pythonRound is round(x, n): the nearest number with n decimals, of two the one with an even digit.
func pythonRound(x float64, n int) float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return x
	}
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'f', n, 64), 64) // a number as Go writes it
	return rounded
}

// decimals returns how many decimals an answer has: as the problem asks, or else as the gold answer has; -1 if that is
// not a number.
func (q *Question) decimals(gold string) int {
	if q.Decimals != nil {
		return *q.Decimals
	}
	gold = strings.TrimFunc(gold, isPythonSpace)
	if !isPythonFloat(gold) {
		return -1
	}
	_, fraction, _ := strings.Cut(gold, ".")
	return utf8.RuneCountInString(fraction)
}
