package peer

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"exp/eval/grade"
)

// MMMU grades as eval_utils.py of MMMU does: a letter in brackets, a letter alone, or an option's text in a response
// of more than five words, the last one of several; without options, numbers and words in the response's key phrases.
// Where the source draws an option, because it finds none, the response is wrong here.
func MMMU(q Question, response string) grade.Verdict {
	if q.hasLetters() {
		return q.chose(mmmuLetter(response, q.letters(), q.Options, false))
	}
	return mmmuOpen(q.Golds, response)
}

// MMMUPro grades as evaluate.py of MMMU-Pro does: the only letter after the last "Answer:", or else as MMMU, with
// letters that a space or a point follows.
func MMMUPro(q Question, response string) grade.Verdict {
	if !q.hasLetters() {
		return mmmuOpen(q.Golds, response)
	}
	letters := q.letters()
	const mark = "Answer:"
	if i := strings.LastIndex(response, mark); i >= 0 {
		behind := response[i+len(mark):]
		found := slices.DeleteFunc(slices.Clone(letters), func(c string) bool { return !strings.Contains(behind, c) })
		if len(found) == 1 {
			return q.chose(found[0])
		}
	}
	return q.chose(mmmuLetter(response, letters, q.Options, true))
}

// chose returns the verdict for a letter; empty: none.
func (q *Question) chose(letter string) grade.Verdict {
	if letter == "" {
		return verdict(false, "", "no letter, and no option's text")
	}
	right := q.Golds[0]
	if q.hasOptions() {
		right = q.letters()[q.Right]
	}
	return verdict(letter == right, letter, equalText(letter == right))
}

// mmmuLetter is parse_multi_choice_response, of MMMU-Pro if pro is set.
func mmmuLetter(response string, letters, texts []string, pro bool) string {
	for _, c := range []string{",", ".", "!", "?", ";", ":", "'"} {
		response = strings.Trim(response, c)
	}
	response = " " + response + " "
	among := func(before, after string) (found []int) {
		for i, c := range letters {
			if strings.Contains(response, before+c+after) {
				found = append(found, i)
			}
		}
		return found
	}
	last := func(i int) int { return strings.LastIndex(response, " "+letters[i]+" ") }
	found := among("(", ")")
	switch {
	case len(found) > 0:
		last = func(i int) int { return strings.LastIndex(response, "("+letters[i]+")") }
	case pro:
		if found = among("", " "); len(found) == 0 {
			found = among("", ".")
		}
	default:
		found = among(" ", " ")
	}
	const fewest = 5 // words of a response that may hold an option's text, and one more
	if len(found) == 0 && len(strings.FieldsFunc(response, isPythonSpace)) > fewest {
		lower := pythonLower(response)
		last = func(i int) int { return strings.LastIndex(lower, pythonLower(texts[i])) }
		for i := range texts {
			if last(i) >= 0 {
				found = append(found, i)
			}
		}
	}
	if len(found) == 0 {
		return ""
	}
	best := found[0]
	for _, i := range found[1:] {
		if last(i) > last(best) {
			best = i
		}
	}
	return letters[best]
}

// mmmuOpen is parse_open_response and eval_open: one of the gold numbers is among the response's, or a gold text is
// part of one of its texts.
func mmmuOpen(golds []string, response string) grade.Verdict {
	said := mmmuKeys(response)
	for _, key := range slices.Clone(said) {
		said = append(said, mmmuNumbers(key)...)
	}
	for _, s := range said {
		texts, number, isNumber := mmmuNormal(s)
		for _, gold := range golds {
			wanted, want, wantsNumber := mmmuNormal(gold)
			if isNumber && wantsNumber && number == want {
				return verdict(true, s, "equal number")
			}
			for _, text := range texts {
				if slices.ContainsFunc(wanted, func(w string) bool { return strings.Contains(text, w) }) {
					return verdict(true, s, "the gold answer is part of it")
				}
			}
		}
	}
	answer := ""
	if len(said) > 0 {
		answer = said[0]
	}
	return verdict(false, answer, "neither the number nor the text")
}

// mmmuKeys is get_key_subresponses: of each line the shortest text behind an indicator, or the whole response. The
// source would also cut at ends of sentences, but it has put everything in lower case before it looks for capitals.
func mmmuKeys(response string) (keys []string) {
	trim := func(s string) string { return strings.TrimFunc(s, isPythonSpace) }
	response = pythonLower(strings.Trim(trim(response), "."))
	lines := strings.Split(response, "\n")
	indicators := []string{"could be ", "so ", "is ", "thus ", "therefore ", "final ", "answer ", "result "}
	for i, line := range lines {
		if i == len(lines)-1 {
			indicators = append(indicators, "=")
		}
		shortest := ""
		for _, mark := range indicators {
			if !strings.Contains(line, mark) {
				continue
			}
			s := trim(afterLast(line, mark))
			if shortest == "" || utf8.RuneCountInString(s) < utf8.RuneCountInString(shortest) {
				shortest = s
			}
		}
		if shortest != "" && !slices.Contains([]string{":", ",", ".", "!", "?", ";", "'"}, shortest) {
			keys = append(keys, shortest)
		}
	}
	if len(keys) == 0 {
		return []string{response}
	}
	return keys
}

// Two of the patterns of extract_numbers, for ASCII.
var (
	mmmuCommas     = regexp.MustCompile(`-?\b[0-9]{1,3}(?:,[0-9]{3})+\b`)
	mmmuScientific = regexp.MustCompile(`-?[0-9]+(?:\.[0-9]+)?[eE][+-]?[0-9]+`)
)

// mmmuNumbers is extract_numbers.
func mmmuNumbers(s string) []string {
	list := append(mmmuCommas.FindAllString(s, -1), mmmuScientific.FindAllString(s, -1)...)
	for i := 0; i < len(s); {
		n := simpleNumber(s[i:])
		if n > 0 {
			list = append(list, s[i:i+n])
		}
		i += max(1, n)
	}
	return list
}

// simpleNumber returns the length of what the third pattern of extract_numbers matches at the beginning of s: an
// optional minus, then 1.5, .5 or a whole number that ends a word, with no exponent, comma or digit behind it.
func simpleNumber(s string) int {
	start := len(s) - len(strings.TrimPrefix(s, "-"))
	whole := start + digitsOf(s[start:])
	free := func(n int) bool {
		rest := s[n:]
		if strings.HasPrefix(rest, ",") {
			return false
		}
		if rest == "" || rest[0] != 'e' && rest[0] != 'E' {
			return true
		}
		return digitsOf(strings.TrimLeft(rest[1:min(2, len(rest))], "+-")+rest[min(2, len(rest)):]) == 0
	}
	if whole < len(s) && s[whole] == '.' {
		if n := digitsOf(s[whole+1:]); n > 0 && free(whole+1+n) {
			return whole + 1 + n
		}
	}
	if whole == start || !free(whole) {
		return 0
	}
	if c, _ := utf8.DecodeRuneInString(s[whole:]); whole < len(s) && isPythonWord(c) {
		return 0
	}
	return whole
}

// digitsOf counts the digits that s begins with.
func digitsOf(s string) int { return len(s) - len(strings.TrimLeft(s, "0123456789")) }

// mmmuNormal is normalize_str: a number with two decimals, or else a text in lower case. One character alone needs a
// space next to it.
func mmmuNormal(s string) (texts []string, number float64, isNumber bool) {
	s = strings.TrimFunc(s, isPythonSpace)
	if x, ok := pythonFloat(strings.ReplaceAll(s, ",", "")); ok {
		return nil, pythonRound(x, 2), true
	}
	s = pythonLower(s)
	if utf8.RuneCountInString(s) == 1 {
		return []string{" " + s, s + " "}, 0, false
	}
	return []string{s}, 0, false
}
