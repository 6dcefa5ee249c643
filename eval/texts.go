package eval

import (
	"regexp"
	"strings"
	"unicode"

	"exp/eval/stat"
)

// Texts says how much the texts of a problem's samples differ.
type Texts struct {
	Distinct [4]float64 `json:"distinct"`  // different n-grams of tokens / n-grams, n = 1 … 4
	SelfBLEU float64    `json:"self_bleu"` // stat.SelfBLEU of the tokens
	// Clusters is the effective number of groups of similar solutions (see solutionGroups); CorrectClusters
	// is the number of groups among the correct ones.
	Clusters        float64 `json:"clusters"`
	CorrectClusters int     `json:"correct_clusters"`
}

// newTexts compares the samples at list; nil with fewer than two. correct [len(list)].
func newTexts(samples []Sample, list []int, correct []bool) *Texts {
	if len(list) < 2 {
		return nil
	}
	var t Texts
	tokens := tokensOf(samples, list)
	for n := range t.Distinct {
		t.Distinct[n] = stat.DistinctN(tokens, n+1)
	}
	t.SelfBLEU, _ = stat.SelfBLEU(tokens)
	var all, right []string
	for i, j := range list {
		all = append(all, samples[j].Completion.Text)
		if correct[i] {
			right = append(right, samples[j].Completion.Text)
		}
	}
	group, _ := solutionGroups(all)
	t.Clusters = stat.EffectiveNumber(group)
	_, t.CorrectClusters = solutionGroups(right)
	return &t
}

// tokensOf returns the tokens of the samples. If no sample has tokens, as in other programs' files, it
// numbers their words by first appearance instead.
func tokensOf(samples []Sample, list []int) [][]int32 {
	out := make([][]int32, len(list))
	some := false
	for i, j := range list {
		out[i] = samples[j].Completion.Tokens
		some = some || len(out[i]) > 0
	}
	if some {
		return out
	}
	ids := make(map[string]int32)
	for i, j := range list {
		for _, w := range strings.Fields(samples[j].Completion.Text) {
			id, ok := ids[w]
			if !ok {
				id = int32(len(ids))
				ids[w] = id
			}
			out[i] = append(out[i], id)
		}
	}
	return out
}

// Shingle lengths in words of the skeleton, and the Jaccard index from which two solutions belong to one
// group.
const (
	textShingle, textSimilar = 5, 0.5
	codeShingle, codeSimilar = 4, 0.7
)

// solutionGroups groups texts by single linkage. If every text has a code fence it compares the code with
// names and literals erased, otherwise the words without markup.
func solutionGroups(texts []string) (group []int, groups int) {
	programs := make([]string, len(texts))
	code := len(texts) > 0
	for i, t := range texts {
		var ok bool
		programs[i], ok = lastFence(t)
		code = code && ok
	}
	sets := make([][]uint64, len(texts))
	for i, t := range texts {
		if code {
			sets[i] = stat.Shingles(codeSkeleton(programs[i]), codeShingle)
		} else {
			sets[i] = stat.Shingles(textSkeleton(t), textShingle)
		}
	}
	if code {
		return stat.SimilarGroups(sets, codeSimilar)
	}
	return stat.SimilarGroups(sets, textSimilar)
}

// lastFence returns the content of the last closed code fence without its language tag.
func lastFence(text string) (code string, ok bool) {
	parts := strings.Split(text, "```")
	if len(parts) < 3 {
		return "", false
	}
	last := (len(parts)-1)/2*2 - 1 // odd parts are inside a fence
	_, code, ok = strings.Cut(parts[last], "\n")
	return code, ok
}

var markup = regexp.MustCompile(
	`\\(left|right|displaystyle|text|mathrm|boxed|quad|qquad|begin|end|,|;|!|\(|\)|\[|\])|\$|\*\*|#+|[{}]`)

// textSkeleton returns the words of a text in lower case, without LaTeX and Markdown markup: runs of
// letters, numbers, and single other characters.
func textSkeleton(text string) []string {
	return words(strings.ToLower(markup.ReplaceAllString(text, " ")))
}

var (
	comment = regexp.MustCompile(`(?m)#.*$|//.*$`)
	literal = regexp.MustCompile(`(?s)"""(.*?)"""|'''(.*?)'''|"(\\.|[^"\\\n])*"|'(\\.|[^'\\\n])*'`)
)

// codeSkeleton returns the words of a program without comments. String literals become one word; each name
// that is not a keyword becomes the index of its first appearance, so renaming changes nothing.
func codeSkeleton(code string) []string {
	code = comment.ReplaceAllString(literal.ReplaceAllString(code, `""`), "")
	list := words(code)
	names := make(map[string]string)
	for i, w := range list {
		if first := rune(w[0]); first != '_' && !unicode.IsLetter(first) || keywords[w] {
			continue
		}
		if names[w] == "" {
			names[w] = "n" + string(rune('0'+len(names)))
		}
		list[i] = names[w]
	}
	return list
}

// keywords are Python's control words, which give a program its shape.
var keywords = setOf(`and as assert break class continue def del elif else except finally for from global if import in is lambda
	nonlocal not or pass raise return try while with yield True False None`)

func setOf(text string) map[string]bool {
	set := make(map[string]bool)
	for _, w := range strings.Fields(text) {
		set[w] = true
	}
	return set
}

// words cuts a text into identifiers, numbers and single other characters, dropping white space.
func words(text string) []string {
	var out []string
	start, number := -1, false
	flush := func(end int) {
		if start >= 0 {
			out = append(out, text[start:end])
			start = -1
		}
	}
	for i, r := range text {
		digit := unicode.IsDigit(r)
		letter := unicode.IsLetter(r) || r == '_'
		switch {
		case start >= 0 && (digit || letter && !number):
		case digit || letter:
			flush(i)
			start, number = i, digit
		default:
			flush(i)
			if !unicode.IsSpace(r) {
				out = append(out, string(r))
			}
		}
	}
	flush(len(text))
	return out
}
