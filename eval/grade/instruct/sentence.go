package instruct

import (
	"regexp"
	"strings"
	"sync"
	"unicode"

	"github.com/neurosnap/sentences"
	"github.com/neurosnap/sentences/data"
)

// punkt is the sentence splitter of Kiss and Strunk (2006), Unsupervised Multilingual Sentence Boundary Detection,
// with the rules for tokens of NLTK 3.10: published scores count sentences with NLTK. The model of English comes with
// Go's port; the port's own tokens end at white space alone, which hides the ends of sentences before markdown.
type punkt struct {
	*sentences.Storage
	number *regexp.Regexp
	curly  bool // “ ‘ « and their like are quotation marks, as of NLTK 3.10
}

// english returns the splitter for English, which IFEval uses for every language.
var english = sync.OnceValue(func() *punkt { return &punkt{trained(), numbersRead(), true} })

// english39 returns the splitter with the rules of NLTK 3.9, which IFBench and open-instruct pin.
var english39 = sync.OnceValue(func() *punkt { return &punkt{trained(), numbersRead(), false} })

func numbersRead() *regexp.Regexp { return regexp.MustCompile(`^-?[.,]?\p{Nd}[\p{Nd},.-]*\.?$`) }

var trained = sync.OnceValue(func() *sentences.Storage {
	training, err := data.Asset("data/english.json")
	if err != nil {
		panic(err) // it is part of the program
	}
	model, err := sentences.LoadTraining(training)
	if err != nil {
		panic(err)
	}
	return model
})

// count returns the number of sentences of a text.
func (p *punkt) count(text string) int { return len(p.split(text)) }

// split returns the sentences of a text. Closing quotation marks and brackets at the beginning of a sentence belong to
// the one before, and may be all of it.
func (p *punkt) split(text string) (list []string) {
	s := []rune(text)
	var breaks []context
	for _, c := range p.contexts(s) {
		if p.breaks(c.words) {
			breaks = append(breaks, c)
		}
	}
	end := len([]rune(strings.TrimRightFunc(text, isSpace)))
	from := 0
	for i, c := range breaks {
		stop := end // of the next sentence
		if i+1 < len(breaks) {
			stop = breaks[i+1].at + 1
		}
		to, n := c.at+1, p.closing(s[c.next:max(c.next, stop)])
		if n > 0 {
			to = c.next + len([]rune(strings.TrimRightFunc(string(s[c.next:c.next+n]), isSpace)))
		}
		if from < to {
			list = append(list, string(s[from:to]))
		}
		from = c.next + n
	}
	if from < end {
		list = append(list, string(s[from:end]))
	}
	return list
}

// closing returns the length of closing marks, and of the white space after them, at the beginning.
func (p *punkt) closing(s []rune) (n int) {
	for n < len(s) && (strings.ContainsRune(`"')]}`, s[n]) || p.curly && isCurly(s[n])) {
		n++
	}
	marks := n
	for n < len(s) && isSpace(s[n]) {
		n++
	}
	if marks == 0 || marks == n && n < len(s) && !strings.HasPrefix(string(s[n:]), "--") {
		return 0
	}
	return n
}

// context is a mark that may end a sentence, with what tells whether it does.
type context struct {
	at, next int    // the mark; where the next sentence would begin
	words    []rune // the word before the mark, the mark, and what follows: a mark, or white space and a word
}

// contexts finds the marks . ? ! before white space and a word, or before other punctuation. Of marks within one word
// only the last counts.
func (p *punkt) contexts(s []rune) (list []context) {
	var last context
	from, to := 0, 0 // the word before the last mark
	for at, r := range s {
		if !isEnd(r) {
			continue
		}
		after, next, ok := p.following(s, at+1)
		if !ok {
			continue
		}
		begin := from
		for i := at - 1; i > to; i-- {
			if isSpace(s[i]) {
				begin = i + 1
				break
			}
		}
		if last.words != nil && to <= begin {
			list = append(list, last)
		}
		from, to = begin, at
		last = context{at, next, s[begin:after]}
	}
	if last.words != nil {
		list = append(list, last)
	}
	return list
}

// following finds what comes after a mark: where it ends, and where a sentence that follows would begin.
func (p *punkt) following(s []rune, i int) (end, next int, ok bool) {
	if i < len(s) && p.isMark(s[i]) {
		return i + 1, i, true
	}
	next = i
	for next < len(s) && isSpace(s[next]) {
		next++
	}
	if next == i || next == len(s) {
		return 0, 0, false
	}
	for end = next; end < len(s) && !isSpace(s[end]); {
		end++
	}
	return end, next, true
}

func isEnd(r rune) bool { return r == '.' || r == '?' || r == '!' }

// isMark reports whether a rune stands alone and ends the word before it.
func (p *punkt) isMark(r rune) bool {
	return strings.ContainsRune(`)";}]*:@'({[!?`, r) || p.curly && isCurly(r)
}

func isCurly(r rune) bool { return strings.ContainsRune("‘’“”«»", r) }

// token is a word or a mark within a context.
type token struct {
	text        string
	end         bool // of a sentence
	abbreviated bool
	dots        bool // ...
}

// breaks reports whether a sentence ends within the words of a context, before its last token.
func (p *punkt) breaks(words []rune) bool {
	tokens := p.tokens(words)
	for i := range tokens {
		if i+1 < len(tokens) {
			p.reclassify(&tokens[i], tokens[i+1])
			if tokens[i].end {
				return true
			}
		}
	}
	return false
}

// tokens splits words and marks apart, and finds ends, abbreviations and dots without a look at the next token.
func (p *punkt) tokens(s []rune) (list []token) {
	for i := 0; i < len(s); {
		n := run(s[i:])
		switch {
		case isSpace(s[i]):
			i++
			continue
		case n > 0:
		case strings.ContainsRune("(\"`{[:;&#*@)}]-,", s[i]):
			n = 1
		default:
			for n = 1; i+n < len(s) && !p.endsWord(s[i+n:]); {
				n++
			}
		}
		t := token{text: string(s[i : i+n])}
		i += n
		switch word, period := strings.CutSuffix(strings.ToLower(t.text), "."); {
		case t.text == "." || t.text == "?" || t.text == "!":
			t.end = true
		case strings.Trim(t.text, ".") == "":
			t.dots = true
		case period && !strings.HasSuffix(word, "."):
			part := word[strings.LastIndexByte(word, '-')+1:]
			t.abbreviated = p.AbbrevTypes.Has(word) || p.AbbrevTypes.Has(part)
			t.end = !t.abbreviated
		}
		list = append(list, t)
	}
	return list
}

// endsWord reports whether a word ends where s begins.
func (p *punkt) endsWord(s []rune) bool {
	if isSpace(s[0]) || p.isMark(s[0]) || run(s) > 0 {
		return true
	}
	return s[0] == ',' && (len(s) == 1 || isSpace(s[1]) || p.isMark(s[1]) || run(s[1:]) > 0)
}

// run returns the length of --, of .., or of ". . ." at the beginning, or 0.
func run(s []rune) (n int) {
	if s[0] != '-' && s[0] != '.' {
		return 0
	}
	for n < len(s) && s[n] == s[0] {
		n++
	}
	if n > 1 {
		return n
	}
	for n = 0; s[0] == '.' && n+2 < len(s) && s[n] == '.' && isSpace(s[n+1]) && s[n+2] == '.'; {
		n += 2
	}
	if n < 4 {
		return 0
	}
	return n + 1
}

// reclassify decides again on a token with a period at its end, by the token after it (section 4 of the paper).
func (p *punkt) reclassify(t *token, next token) {
	if !strings.HasSuffix(t.text, ".") {
		return
	}
	kind, nextKind := withoutPeriod(p.kind(*t)), p.kind(next)
	if next.end {
		nextKind = withoutPeriod(nextKind)
	}
	initial := isInitial(t.text)
	starts, known := p.starts(next, nextKind)
	switch {
	case p.Collocations.Has(kind + "," + nextKind):
		t.end = false
	case (t.abbreviated || t.dots) && !initial &&
		(known && starts || isUpperFirst(next) && p.SentStarters.Has(nextKind)):
		t.end = true
	case !initial && kind != "##number##":
	case known && !starts:
		t.end = false
	case !known && initial && isUpperFirst(next) && p.OrthoContext[nextKind]&anyLower == 0:
		t.end = false
	}
}

// Where a word was seen, in bits of OrthoContext: with a capital or without, at the beginning of a sentence, within
// one, or in an unknown place.
const (
	midUpper   = 1 << 2
	anyUpper   = 1<<1 | midUpper | 1<<3
	beginLower = 1 << 4
	anyLower   = beginLower | 1<<5 | 1<<6
)

// starts reports whether the case of a token tells that it begins a sentence; known is false if it tells nothing.
func (p *punkt) starts(t token, kind string) (starts, known bool) {
	if len(t.text) == 1 && strings.ContainsAny(t.text, ";:,.!?") {
		return false, true
	}
	seen := p.OrthoContext[kind]
	switch first := []rune(t.text)[0]; {
	case upper(first) && seen&anyLower != 0 && seen&midUpper == 0:
		return true, true
	case lower(first) && (seen&anyUpper != 0 || seen&beginLower == 0):
		return false, true
	}
	return false, false
}

func isUpperFirst(t token) bool { return upper([]rune(t.text)[0]) }

// kind is the name under which the model knows a token.
func (p *punkt) kind(t token) string {
	if p.number.MatchString(t.text) {
		return "##number##"
	}
	return strings.ToLower(t.text)
}

func withoutPeriod(kind string) string {
	if len(kind) > 1 {
		return strings.TrimSuffix(kind, ".")
	}
	return kind
}

// isInitial reports whether a token is a letter and a period.
func isInitial(text string) bool {
	r := []rune(text)
	return len(r) == 2 && r[1] == '.' && isWord(r[0]) && !unicode.Is(unicode.Nd, r[0])
}
