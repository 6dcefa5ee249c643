package instruct

import (
	"regexp"
	"sync"
	"unicode/utf8"
)

// ratioMakers are the instructions about shares of a response, and about sentences in proportion to others.
func ratioMakers() map[string]maker {
	return map[string]maker{
		"ratio:stop_words":       stopWordShare,
		"ratio:sentence_type":    func(*arguments) Check { return twoToOne },
		"ratio:sentence_balance": func(*arguments) Check { return balanced },
		"ratio:overlap":          overlap,
		"ratio:sentence_words":   func(*arguments) Check { return threeOfOneLength },
	}
}

// stopWords are the words of NLTK's list for English that the published program can find, since it splits at
// apostrophes.
var stopWords = sync.OnceValue(func() map[string]bool {
	return setOf("i me my myself we our ours ourselves you your yours yourself yourselves he him his himself she " +
		"her hers herself it its itself they them their theirs themselves what which who whom this that " +
		"these those am is are was were be been being have has had having do does did doing a an the and " +
		"but if or because as until while of at by for with about against between into through during " +
		"before after above below to from up down in out on off over under again further then once here " +
		"there when where why how all any both each few more most other some such no nor not only own same " +
		"so than too very s t can will just don should now d ll m o re ve y ain aren couldn didn doesn " +
		"hadn hasn haven isn ma mightn mustn needn shan shouldn wasn weren won wouldn")
})

func stopWordShare(a *arguments) Check {
	most := a.share("percentage")
	one := regexp.MustCompile(word + "+")
	return func(s string) bool {
		words := one.FindAllString(s, -1)
		n := 0
		for _, w := range words {
			if stopWords()[lowered(w)] {
				n++
			}
		}
		return len(words) > 0 && float64(n)/float64(len(words))*100 <= most
	}
}

// endings counts the sentences that end with each of . ? !
func endings(s string) (stops, questions, exclamations int) {
	for _, sentence := range english39().split(s) {
		switch sentence[len(sentence)-1] {
		case '.':
			stops++
		case '?':
			questions++
		case '!':
			exclamations++
		}
	}
	return stops, questions, exclamations
}

// twoToOne wants two statements for each question. As in the published program, a text with neither follows.
func twoToOne(s string) bool {
	stops, questions, _ := endings(s)
	return stops == 2*questions
}

// balanced wants as many statements as questions and exclamations. As in the published program, a text with none of
// them follows.
func balanced(s string) bool {
	stops, questions, exclamations := endings(s)
	return stops == questions && questions == exclamations
}

// overlap wants a share of the response's different trigrams, of characters, in a text, 2 % more or less.
func overlap(a *arguments) Check {
	percent := a.share("percentage")
	reference := trigrams(a.verbatim("reference_text"))
	return func(s string) bool {
		own := trigrams(s)
		shared := 0
		for t := range own {
			if reference[t] {
				shared++
			}
		}
		share := float64(shared) / float64(len(own))
		return len(own) > 0 && percent-2 <= share*100 && share*100 <= percent+2
	}
}

func trigrams(s string) map[[3]rune]bool {
	set := map[[3]rune]bool{}
	r := []rune(s)
	for i := range len(r) - 2 {
		set[[3]rune(r[i:])] = true
	}
	return set
}

// threeOfOneLength wants three sentences of as many characters each. As in the published program, their words may be
// the same, though the prompt asks for different ones.
func threeOfOneLength(s string) bool {
	list := english39().split(s)
	if len(list) != 3 {
		return false
	}
	length := func(s string) int { return utf8.RuneCountInString(strip(s)) }
	return length(list[0]) == length(list[1]) && length(list[1]) == length(list[2])
}
