package instruct

import (
	"regexp"
	"strings"
	"sync"
)

// tokens splits a text into words and punctuation: NLTK's word_tokenize of 3.9, the Penn Treebank's rules (Marcus et
// al. 1993) within each sentence. Quotation marks become “ and ”.
func tokens(text string) (list []string) {
	for _, s := range english39().split(text) {
		for _, r := range tokenRules() {
			s = r.apply(s)
		}
		s = " " + strings.Join(fields(s), " ") + " "
		for _, r := range endingRules() {
			s = r.apply(s)
		}
		for _, c := range contractions() {
			s = c.split(s)
		}
		list = append(list, fields(s)...)
	}
	return list
}

// wordTokens are the tokens with a letter or a digit.
func wordTokens(text string) (list []string) {
	for _, t := range tokens(text) {
		if strings.ContainsFunc(t, func(r rune) bool { return r != '_' && isWord(r) }) {
			list = append(list, t)
		}
	}
	return list
}

type tokenRule struct {
	of   string // the rule finds something only in a text with one of these characters
	find *regexp.Regexp
	put  string
}

func (r tokenRule) apply(s string) string {
	if !strings.ContainsAny(s, r.of) {
		return s
	}
	return r.find.ReplaceAllString(s, r.put)
}

func compiled(list [][3]string) (rules []tokenRule) {
	for _, r := range list {
		rules = append(rules, tokenRule{r[0], regexp.MustCompile(r[1]), r[2]})
	}
	return rules
}

// loneLetter matches an apostrophe before a word of one character, such as 'a, unless it is an ending, such as 's.
const loneLetter = `'([^mMtTsSdDnN\PL]|[\p{N}_])(\z|[^\p{L}\p{N}_])`

// tokenRules put spaces around marks, in this order. What \s, \d and \w mean is Python's, see python.go.
var tokenRules = sync.OnceValue(func() []tokenRule {
	return compiled([][3]string{
		{"«“‘„`", "[«“‘„]|`+", " ${0} "},
		{`"`, `\A"`, "``"},
		{"`", "``", " `` "},
		{`"'`, `([ (\[{<])("|'')`, "${1} `` "},
		{"'", loneLetter, "' ${1}${2}"},
		{"'", loneLetter, "' ${1}${2}"}, // again: two may share the mark between them
		{".", `([^.])\.([\])}>"'»”’ ]*)` + space + `*\z`, "${1} . ${2} "}, // the period at the end of the sentence
		{":,", `([:,])([^\p{Nd}])`, " ${1} ${2}"},
		{":,", `[:,]\z`, " ${0} "},
		{".", `\.{2,}`, " ${0} "},
		{";@#$%&", `[;@#$%&]`, " ${0} "},
		{".", `([^.])\.([\])}>"']*)` + space + `*\z`, "${1} .${2} "},
		{"?!", `[?!]`, " ${0} "},
		{"'", `([^'])' `, "${1} ' "},
		{"*", `[*]`, " ${0} "},
		{"][(){}<>", `[\]\[(){}<>]`, " ${0} "},
		{"-", `--`, " -- "},
		{"»”’", `[»”’]`, " ${0} "},
		{"'", `''`, " '' "},
		{`"`, `"`, " '' "},
	})
})

// endingRules part words like it's and don't, in a text with single spaces.
var endingRules = sync.OnceValue(func() []tokenRule {
	return compiled([][3]string{
		{"'", `([^' ])('[sSmMdD]|') `, "${1} ${2} "},
		{"'", `([^' ])('ll|'LL|'re|'RE|'ve|'VE|n't|N'T) `, "${1} ${2} "},
	})
})

// contraction is a word that is two.
type contraction struct {
	find  *regexp.Regexp
	first int                           // length of the first word in bytes
	whole func(s string, at []int) bool // whether the find stands alone
}

var contractions = sync.OnceValue(func() (list []contraction) {
	alone := func(s string, at []int) bool { return atBoundary(s, at[0]) && atBoundary(s, at[1]) }
	for _, w := range [][2]string{{"can", "not"}, {"d", "'ye"}, {"gim", "me"}, {"gon", "na"}, {"got", "ta"},
		{"lem", "me"}, {"more", "'n"}} {
		list = append(list, contraction{regexp.MustCompile("(?i)" + w[0] + w[1]), len(w[0]), alone})
	}
	return append(list,
		contraction{regexp.MustCompile("(?i)wanna"), 3, func(s string, at []int) bool {
			return atBoundary(s, at[0]) && at[1] < len(s) && s[at[1]] == ' '
		}},
		contraction{regexp.MustCompile("(?i) '(?:tis|twas)"), 3, func(s string, at []int) bool {
			return atBoundary(s, at[1])
		}})
})

// split parts the contraction wherever it stands alone.
func (c contraction) split(s string) string {
	var out strings.Builder
	done := 0
	for _, at := range c.find.FindAllStringIndex(s, -1) {
		if c.whole(s, at) {
			out.WriteString(s[done:at[0]] + " " + s[at[0]:at[0]+c.first] + " " + s[at[0]+c.first:at[1]] + " ")
			done = at[1]
		}
	}
	if done == 0 {
		return s
	}
	return out.String() + s[done:]
}
