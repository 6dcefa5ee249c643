package instruct

import (
	"regexp"
	"strings"
	"sync"
)

// stopped splits a text into sentences as open-instruct's training constraints do: by rules on periods, without a
// model of the language. Blank sentences between others count.
func stopped(text string) []string {
	text = " " + strings.ReplaceAll(text, "\n", " ") + "  "
	for _, r := range stopRules() {
		if r.dots {
			text = r.find.ReplaceAllStringFunc(text, func(dots string) string {
				return strings.Repeat("<prd>", len(dots)) + "<stop>"
			})
			text = strings.ReplaceAll(text, "Ph.D.", "Ph<prd>D<prd>")
		} else {
			text = r.find.ReplaceAllString(text, r.put)
		}
	}
	for _, swap := range [][2]string{{".”", "”."}, {`."`, `".`}, {`!"`, `"!`}, {`?"`, `"?`}, {".", ".<stop>"},
		{"?", "?<stop>"}, {"!", "!<stop>"}, {"<prd>", "."}} {
		text = strings.ReplaceAll(text, swap[0], swap[1])
	}
	list := strings.Split(text, "<stop>")
	for i, s := range list {
		list[i] = strip(s)
	}
	if last := len(list) - 1; list[last] == "" {
		list = list[:last]
	}
	return list
}

type stopRule struct {
	find *regexp.Regexp
	put  string
	dots bool // ... ends a sentence
}

// stopRules mark periods that end nothing as <prd>, and ends as <stop>.
var stopRules = sync.OnceValue(func() (rules []stopRule) {
	const (
		letter   = `([A-Za-z])`
		initials = `([A-Z]\.[A-Z]\.(?:[A-Z]\.)?)`
		suffix   = ` (Inc|Ltd|Jr|Sr|Co)\.`
		starter  = ` (Mr|Mrs|Ms|Dr|Prof|Capt|Cpt|Lt|` +
			`(?:He|She|It|They|Their|Our|We|But|However|That|This)` + space + `|Wherever)`
	)
	for _, r := range [][2]string{
		{`(Mr|St|Mrs|Ms|Dr)\.`, "${1}<prd>"},
		{`\.(com|net|org|io|gov|edu|me)`, "<prd>${1}"},
		{`([0-9])\.([0-9])`, "${1}<prd>${2}"},
		{`\.{2,}`, ""},
		{space + letter + `\. `, " ${1}<prd> "},
		{initials + starter, "${1}<stop> ${2}"},
		{letter + `\.` + letter + `\.` + letter + `\.`, "${1}<prd>${2}<prd>${3}<prd>"},
		{letter + `\.` + letter + `\.`, "${1}<prd>${2}<prd>"},
		{suffix + starter, " ${1}<stop> ${2}"},
		{suffix, " ${1}<prd>"},
		{` ` + letter + `\.`, " ${1}<prd>"},
	} {
		rules = append(rules, stopRule{regexp.MustCompile(r[0]), r[1], r[1] == ""})
	}
	return rules
})
