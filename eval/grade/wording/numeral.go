package wording

import (
	"math/big"
	"strings"
)

// Numbers in words: twelve, twenty-one, one hundred and five, two thirds, 二十.

var smallNumbers = map[string]int64{"zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6,
	"seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14,
	"fifteen": 15, "sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19}

var tens = map[string]int64{"twenty": 20, "thirty": 30, "forty": 40, "fourty": 40, "fifty": 50, "sixty": 60,
	"seventy": 70, "eighty": 80, "ninety": 90}

// parts are the names of fractions' denominators.
var parts = map[string]int64{"half": 2, "halves": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6,
	"seventh": 7, "eighth": 8, "ninth": 9, "tenth": 10, "eleventh": 11, "twelfth": 12, "sixteenth": 16,
	"twentieth": 20, "hundredth": 100, "thousandth": 1000}

// Scales are words that multiply the value before them.
var Scales = map[string]int64{"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12,
	"dozen": 12}

// IsNumeral reports whether a word is part of a number in words.
func IsNumeral(w string) bool {
	_, small := smallNumbers[w]
	return small || tens[w] != 0 || Scales[w] != 0 || parts[w] != 0 || parts[strings.TrimSuffix(w, "s")] != 0
}

// Numeral reads a number at the start of a list of words in lower case and returns how many words it has.
func Numeral(words []string) (value *big.Rat, n int) {
	whole, n := cardinal(words)
	if n == 0 && len(words) == 1 && words[0] == "half" {
		return big.NewRat(1, 2), 1
	}
	if n == 0 && len(words) > 1 && words[0] == "a" && (Scales[words[1]] != 0 || partOf(words[1]) != 0) {
		whole, n = 1, 1
		if k := Scales[words[1]]; k != 0 {
			whole, n = k, 2
		}
	}
	if n == 0 {
		return nil, 0
	}
	value = big.NewRat(whole, 1)
	if n < len(words) {
		if d := partOf(words[n]); d != 0 {
			return value.SetFrac64(whole, d), n + 1
		}
	}
	if n+1 < len(words) && words[n] == "and" { // three and a half
		if f, k := fractionWords(words[n+1:]); k > 0 {
			return value.Add(value, f), n + 1 + k
		}
	}
	return value, n
}

// fractionWords reads "a half" or "three quarters".
func fractionWords(words []string) (*big.Rat, int) {
	top, n := cardinal(words)
	if n == 0 && len(words) > 1 && words[0] == "a" {
		top, n = 1, 1
	}
	if n == 0 || n >= len(words) {
		return nil, 0
	}
	d := partOf(words[n])
	if d == 0 || top >= d {
		return nil, 0
	}
	return big.NewRat(top, d), n + 1
}

func partOf(w string) int64 {
	if d := parts[w]; d != 0 {
		return d
	}
	return parts[strings.TrimSuffix(w, "s")]
}

// cardinal reads a natural number below 10^15.
func cardinal(words []string) (value int64, n int) {
	total, group, last := int64(0), int64(-1), int64(1000) // group: the part below the next thousand
	for i := 0; i < len(words); i++ {
		w := words[i]
		if w == "and" && i > 0 && last == 100 && i+1 < len(words) && below100(words[i+1]) {
			continue
		}
		v, small := smallNumbers[w]
		switch {
		case small && (group < 0 || last == 100 || last == 10 && v > 0 && v < 10):
			group, last = max(group, 0)+v, 1
		case tens[w] != 0 && (group < 0 || last == 100):
			group, last = max(group, 0)+tens[w], 10
		case w == "hundred" && group > 0 && group < 100 && last != 100:
			group, last = group*100, 100
		case Scales[w] >= 1000 && group > 0 && (total == 0 || Scales[w] < 1e9):
			total, group, last = total+group*Scales[w], -1, 1000
		case w == "dozen" && group > 0 && total == 0:
			return group * 12, i + 1
		default:
			return total + max(group, 0), i
		}
		n = i + 1
	}
	return total + max(group, 0), n
}

func below100(w string) bool {
	_, ok := smallNumbers[w]
	return ok || tens[w] != 0
}

// HanNumeral reads a number in Chinese characters: 十二, 一百零五.
func HanNumeral(s string) (int64, bool) {
	total, digit, any := int64(0), int64(0), false
	for _, r := range s {
		switch unit := map[rune]int64{'十': 10, '百': 100, '千': 1000}[r]; {
		case unit != 0:
			total += max(digit, 1) * unit
			digit, any = 0, true
		case r == '零' || r == '〇':
			any = true
		default:
			k := int64(strings.IndexRune("一二三四五六七八九", r)) / int64(len("一"))
			if r == '两' {
				k = 1
			}
			if !strings.ContainsRune("一二三四五六七八九两", r) || digit != 0 {
				return 0, false
			}
			digit, any = k+1, true
		}
	}
	return total + digit, any
}
