package tokenizer

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Hugging Face's library (tokenizers 0.23) has the character classes of Unicode 16 in
// its regular expressions, an old table of punctuation, and decompositions of Unicode
// 9 to 12. These ranges are where Go's tables, of Unicode 15, differ.

// runeRanges are characters from the first to the second of each pair, in order.
type runeRanges [][2]rune

func (t runeRanges) has(r rune) bool {
	_, found := slices.BinarySearchFunc(t, r, func(e [2]rune, r rune) int {
		switch {
		case e[1] < r:
			return -1
		case e[0] > r:
			return 1
		}
		return 0
	})
	return found
}

// members are the ranges as members of a class.
func (t runeRanges) members() string {
	var b strings.Builder
	for _, e := range t {
		fmt.Fprintf(&b, "%c-%c", e[0], e[1])
	}
	return b.String()
}

// newer has the characters of Unicode 16 by general category.
var newer = map[string]runeRanges{
	"Lu": {
		{0x1C89, 0x1C89}, {0xA7CB, 0xA7CC}, {0xA7DA, 0xA7DA}, {0xA7DC, 0xA7DC}, {0x10D50, 0x10D65},
	},
	"Ll": {
		{0x1C8A, 0x1C8A}, {0xA7CD, 0xA7CD}, {0xA7DB, 0xA7DB}, {0x10D70, 0x10D85},
	},
	"Lm": {
		{0x10D4E, 0x10D4E}, {0x10D6F, 0x10D6F}, {0x16D40, 0x16D42}, {0x16D6B, 0x16D6C},
	},
	"Lo": {
		{0x105C0, 0x105F3}, {0x10D4A, 0x10D4D}, {0x10D4F, 0x10D4F}, {0x10EC2, 0x10EC4}, {0x11380, 0x11389}, {0x1138B, 0x1138B},
		{0x1138E, 0x1138E}, {0x11390, 0x113B5}, {0x113B7, 0x113B7}, {0x113D1, 0x113D1}, {0x113D3, 0x113D3}, {0x11BC0, 0x11BE0},
		{0x13460, 0x143FA}, {0x16100, 0x1611D}, {0x16D43, 0x16D6A}, {0x18CFF, 0x18CFF}, {0x1E5D0, 0x1E5ED}, {0x1E5F0, 0x1E5F0},
		{0x2EBF0, 0x2EE5D},
	},
	"N": {
		{0x10D40, 0x10D49}, {0x116D0, 0x116E3}, {0x11BF0, 0x11BF9}, {0x16130, 0x16139}, {0x16D70, 0x16D79}, {0x1CCF0, 0x1CCF9},
		{0x1E5F1, 0x1E5FA},
	},
	"P": {
		{0x1B4E, 0x1B4F}, {0x1B7F, 0x1B7F}, {0x10D6E, 0x10D6E}, {0x113D4, 0x113D5}, {0x113D7, 0x113D8}, {0x11BE1, 0x11BE1},
		{0x16D6D, 0x16D6F}, {0x1E5FF, 0x1E5FF},
	},
	"S": {
		{0x2427, 0x2429}, {0x2FFC, 0x2FFF}, {0x31E4, 0x31E5}, {0x31EF, 0x31EF}, {0x10D8E, 0x10D8F}, {0x1CC00, 0x1CCEF},
		{0x1CD00, 0x1CEB3}, {0x1F8B2, 0x1F8BB}, {0x1F8C0, 0x1F8C1}, {0x1FA89, 0x1FA89}, {0x1FA8F, 0x1FA8F}, {0x1FABE, 0x1FABE},
		{0x1FAC6, 0x1FAC6}, {0x1FADC, 0x1FADC}, {0x1FADF, 0x1FADF}, {0x1FAE9, 0x1FAE9}, {0x1FBCB, 0x1FBEF},
	},
	"M": {
		{0x897, 0x897}, {0x10D69, 0x10D6D}, {0x10EFC, 0x10EFC}, {0x113B8, 0x113C0}, {0x113C2, 0x113C2}, {0x113C5, 0x113C5},
		{0x113C7, 0x113CA}, {0x113CC, 0x113D0}, {0x113D2, 0x113D2}, {0x113E1, 0x113E2}, {0x11F5A, 0x11F5A}, {0x1611E, 0x1612F},
		{0x1E5EE, 0x1E5EF},
	},
}

// newerClass is the class of a character that Go's tables do not have.
func newerClass(r rune) class {
	if r < 0x897 { // the first of them
		return classOther
	}
	switch {
	case newerLetter(r):
		return classLetter
	case newer["N"].has(r):
		return classNumber
	case newer["P"].has(r) || newer["S"].has(r):
		return classSign
	}
	return classOther
}

func newerLetter(r rune) bool {
	return newer["Lo"].has(r) || newer["Ll"].has(r) || newer["Lu"].has(r) || newer["Lm"].has(r)
}

// newerMembers are the newer characters of a general category, for a class.
func newerMembers(category string) string {
	switch category {
	case "L":
		return newer["Lu"].members() + newer["Ll"].members() + newer["Lm"].members() + newer["Lo"].members()
	case "Nd": // all newer numbers are decimal
		category = "N"
	}
	return newer[category].members()
}

func isMark(r rune) bool   { return unicode.IsMark(r) || newer["M"].has(r) }
func isNumber(r rune) bool { return unicode.IsNumber(r) || newer["N"].has(r) }

// laterSigns are punctuation that the library's table does not have.
var laterSigns = runeRanges{
	{0x61D, 0x61D}, {0x9FD, 0x9FD}, {0xA76, 0xA76}, {0xC77, 0xC77}, {0xC84, 0xC84}, {0x1B7D, 0x1B7E},
	{0x2E43, 0x2E4F}, {0x2E52, 0x2E5D}, {0x10EAD, 0x10EAD}, {0x10F55, 0x10F59}, {0x10F86, 0x10F89}, {0x1144B, 0x1144F},
	{0x1145A, 0x1145B}, {0x1145D, 0x1145D}, {0x11660, 0x1166C}, {0x116B9, 0x116B9}, {0x1183B, 0x1183B}, {0x11944, 0x11946},
	{0x119E2, 0x119E2}, {0x11A3F, 0x11A46}, {0x11A9A, 0x11A9C}, {0x11A9E, 0x11AA2}, {0x11B00, 0x11B09}, {0x11C41, 0x11C45},
	{0x11C70, 0x11C71}, {0x11EF7, 0x11EF8}, {0x11F43, 0x11F4F}, {0x11FFF, 0x11FFF}, {0x12FF1, 0x12FF2}, {0x16E97, 0x16E9A},
	{0x16FE2, 0x16FE2}, {0x1E95E, 0x1E95F},
}

// undecomposed are characters with a decomposition that the library does not have.
var undecomposed = runeRanges{
	{0x32FF, 0x32FF}, {0xA7F2, 0xA7F4}, {0xAB69, 0xAB69}, {0x10781, 0x10785}, {0x10787, 0x107B0}, {0x107B2, 0x107BA},
	{0x11938, 0x11938}, {0x1E030, 0x1E06D}, {0x1F16C, 0x1F16C}, {0x1FBF0, 0x1FBF9},
}

// decompositionForm is f.String as the library's tables have it: undecomposed
// characters, which combine with nothing, stay.
func decompositionForm(f norm.Form, s string) string {
	at := strings.IndexFunc(s, undecomposed.has)
	if at < 0 {
		return f.String(s)
	}
	var b strings.Builder
	for at >= 0 {
		b.WriteString(f.String(s[:at]))
		r := []rune(s[at : at+min(4, len(s)-at)])[0]
		b.WriteRune(r)
		s = s[at+len(string(r)):]
		at = strings.IndexFunc(s, undecomposed.has)
	}
	b.WriteString(f.String(s))
	return b.String()
}
