package instruct

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// languageLines has a language per line: its code, its script, and frequent words without a meaning of their own, such
// as articles, prepositions, pronouns and auxiliary verbs. Only languages that share their script need them.
//
//go:embed languages.txt
var languageLines string

// language is one that a response can be written in.
type language struct {
	code   string // of ISO 639-1
	script string // one of scripts
	words  []string
}

// languages lists those that are told apart.
var languages = sync.OnceValue(func() (list []language) {
	for line := range strings.Lines(languageLines) {
		f := strings.Fields(line)
		list = append(list, language{f[0], f[1], f[2:]})
	}
	return list
})

// aliases are other codes of languages, which published rows have.
func aliases() map[string]string {
	return map[string]string{"zh-cn": "zh", "zh-tw": "zh", "nb": "no", "iw": "he"}
}

func languageCodes() []string {
	var codes []string
	for _, l := range languages() {
		codes = append(codes, l.code)
	}
	slices.Sort(codes)
	return codes
}

func knownLanguage(code string) bool {
	code = strings.ToLower(code)
	return aliases()[code] != "" || slices.Contains(languageCodes(), code)
}

// tooFew is the number of words below which a text without any function word tells nothing about its language.
const tooFew = 8

// written reports whether a text is in a language. The script of most letters decides, and among the languages of one
// script the number of words that are function words of each. A text without letters passes, as in the published
// program, and so do a few words that tell nothing.
func written(text, code string) bool {
	code = strings.ToLower(code)
	if other, ok := aliases()[code]; ok {
		code = other
	}
	script := scriptOf(text)
	if script == "" {
		return true
	}
	own := slices.ContainsFunc(languages(), func(l language) bool { return l.code == code && l.script == script })
	if !own || len(speakers()[script]) == 0 {
		return own
	}
	counts := map[string]int{} // of function words, by language
	most := 0
	tokens := strings.FieldsFunc(strings.ToLower(text),
		func(r rune) bool { return !unicode.In(r, unicode.L, unicode.M) })
	for _, t := range tokens {
		for _, l := range speakers()[script][t] {
			counts[l]++
			most = max(most, counts[l])
		}
	}
	return counts[code] == most && (most > 0 || len(tokens) < tooFew)
}

// speakers maps a script and a function word to the languages that have it.
var speakers = sync.OnceValue(func() map[string]map[string][]string {
	all := map[string]map[string][]string{}
	for _, l := range languages() {
		if all[l.script] == nil {
			all[l.script] = map[string][]string{}
		}
		for _, w := range l.words {
			all[l.script][w] = append(all[l.script][w], l.code)
		}
	}
	return all
})

// script is a way of writing.
type script struct {
	name  string
	table *unicode.RangeTable
}

func scripts() []script {
	return []script{{"Latin", unicode.Latin}, {"Cyrillic", unicode.Cyrillic}, {"Arabic", unicode.Arabic},
		{"Devanagari", unicode.Devanagari}, {"Hebrew", unicode.Hebrew}, {"Greek", unicode.Greek},
		{"Bengali", unicode.Bengali}, {"Gujarati", unicode.Gujarati}, {"Gurmukhi", unicode.Gurmukhi},
		{"Kannada", unicode.Kannada}, {"Malayalam", unicode.Malayalam}, {"Tamil", unicode.Tamil},
		{"Telugu", unicode.Telugu}, {"Thai", unicode.Thai}, {"Hangul", unicode.Hangul}, {"Han", unicode.Han},
		{"Kana", unicode.Hiragana}, {"Kana", unicode.Katakana}}
}

// scriptOf returns the script of most letters of a text, or "". Japanese is told from Chinese by its kana, and real
// texts have many.
func scriptOf(text string) string {
	counts := map[string]int{}
	list := scripts()
	for _, r := range text {
		if !unicode.In(r, unicode.L, unicode.M) {
			continue
		}
		if i := slices.IndexFunc(list, func(s script) bool { return unicode.Is(s.table, r) }); i >= 0 {
			counts[list[i].name]++
		}
	}
	if kana := counts["Kana"]; kana > 0 && 10*kana >= counts["Han"] {
		counts["Kana"] += counts["Han"]
		delete(counts, "Han")
	}
	best := ""
	for _, s := range list {
		if counts[s.name] > counts[best] {
			best = s.name
		}
	}
	return best
}
