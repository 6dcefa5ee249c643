package instruct

import (
	_ "embed"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
)

// markMakers are IFBench's instructions about marks, lines and lists within a response.
func markMakers() map[string]maker {
	return map[string]maker{
		"format:parentheses":        func(*arguments) Check { return nestedBrackets },
		"format:quotes":             func(*arguments) Check { return nestedQuotes },
		"format:options":            option,
		"format:newline":            func(*arguments) Check { return wordPerLine },
		"format:emoji":              func(*arguments) Check { return emojiEnds },
		"format:line_indent":        func(*arguments) Check { return stairs },
		"format:quote_unquote":      func(*arguments) Check { return explainedQuotes },
		"format:list":               separators,
		"format:thesis":             func(*arguments) Check { return thesis },
		"format:sub-bullets":        func(*arguments) Check { return subBullets },
		"format:no_bullets_bullets": func(*arguments) Check { return sentencesThenBullets },
		"format:title_case":         func(*arguments) Check { return titleCase },
		"format:output_template":    func(*arguments) Check { return template },
		"format:no_whitespace": func(*arguments) Check {
			return func(s string) bool { return !strings.ContainsFunc(s, isSpace) }
		},
		"punctuation:punctuation_dot":         func(*arguments) Check { return lacks(".") },
		"punctuation:punctuation_exclamation": func(*arguments) Check { return lacks("!") },
	}
}

func lacks(mark string) Check { return func(s string) bool { return !strings.Contains(s, mark) } }

// nestedBrackets wants brackets five deep; the innermost must close.
func nestedBrackets(s string) bool {
	var open []rune
	deepest := 0
	for _, r := range s {
		switch i := strings.IndexRune(")]}", r); {
		case strings.ContainsRune("([{", r):
			open = append(open, r)
			deepest = max(deepest, len(open))
		case i < 0:
		case len(open) > 0 && open[len(open)-1] == rune("([{"[i]):
			open = open[:len(open)-1]
			if deepest >= 5 {
				return true
			}
		default:
			open, deepest = nil, 0
		}
	}
	return false
}

// nestedQuotes wants " and ' in turn three deep, and all three to close. An apostrophe opens one, as in the published
// program.
func nestedQuotes(s string) bool {
	var open []rune
	deepest := 0
	for _, r := range s {
		switch {
		case len(open) > 0 && open[len(open)-1] == r:
			open = open[:len(open)-1]
			if deepest-len(open) >= 3 {
				return true
			}
		case r == '"' || r == '\'':
			open = append(open, r)
			deepest = max(deepest, len(open))
		}
	}
	return false
}

// option wants the response to be one of the options, which / or "or" or commas part. Those that look like a), b), c)
// must stand there to the letter; others in any letter case and punctuation.
func option(a *arguments) Check {
	all := a.verbatim("options")
	strict := regexp.MustCompile(`\A[^\p{L}\p{N}_]*[aA][^\p{L}\p{N}_]*[bB][^\p{L}\p{N}_]*[cC]`).MatchString(all)
	separator := ","
	for _, s := range []string{"or", "/"} {
		if strings.Contains(all, s) {
			separator = s
		}
	}
	var options []string
	for o := range strings.SplitSeq(all, separator) {
		o = strip(o)
		if !strict {
			o = lowered(trimmed(o))
		}
		options = append(options, o)
	}
	return func(s string) bool {
		if !strict {
			s = lowered(trimmed(s))
		}
		return slices.Contains(options, s)
	}
}

// wordPerLine wants as many lines as words. An empty line does not count, one of blanks does.
func wordPerLine(s string) bool {
	s = bare(s)
	n := 0
	for line := range strings.SplitSeq(strip(s), "\n") {
		if line != "" {
			n++
		}
	}
	return n == len(fields(s))
}

//go:embed emoji.txt
var emojiLines string

// emoji are the emoji of one character each of Unicode 17 (emoji-test.txt), as ranges in hexadecimal.
var emoji = sync.OnceValue(func() *unicode.RangeTable {
	table := &unicode.RangeTable{}
	for _, f := range strings.Fields(emojiLines) {
		first, last, _ := strings.Cut(f, "-")
		lo, err := strconv.ParseUint(first, 16, 32)
		if err != nil {
			panic(err) // it is part of the program
		}
		hi := lo
		if last != "" {
			if hi, err = strconv.ParseUint(last, 16, 32); err != nil {
				panic(err)
			}
		}
		table.R32 = append(table.R32, unicode.Range32{Lo: uint32(lo), Hi: uint32(hi), Stride: 1})
	}
	return table
})

// emojiEnds wants an emoji as the last or the last but one character of each sentence, or as the first of the next.
func emojiEnds(s string) bool {
	list := english39().split(s)
	for i, sentence := range list {
		r := []rune(strip(bare(sentence)))
		if len(r) == 0 {
			return false
		}
		if unicode.Is(emoji(), r[len(r)-1]) || unicode.Is(emoji(), r[max(0, len(r)-2)]) {
			continue
		}
		if i+1 == len(list) {
			return false
		}
		if next := strip(bare(list[i+1])); next == "" || !unicode.Is(emoji(), initial(next)) {
			return false
		}
	}
	return true
}

// stairs wants each line further in than the one before. The published program drops blank lines while it walks along
// them, so that it passes over the line after each, and drops the first of equal ones; a second blank line stays and
// fails.
func stairs(s string) bool {
	lines := strings.Split(s, "\n")
	dropped := map[string]int{}
	for i := 0; i < len(lines); i++ {
		if strip(lines[i]) == "" {
			dropped[lines[i]]++
			i++
		}
	}
	before := -1
	for _, line := range lines {
		if dropped[line] > 0 {
			dropped[line]--
			continue
		}
		indent := len(line) - len(strings.TrimLeft(line, " "))
		if indent <= before {
			return false
		}
		before = indent
	}
	return true
}

// explainedQuotes wants text between any two quotations in ", and after the last.
func explainedQuotes(s string) bool {
	s = strings.Join(fields(strings.ReplaceAll(s, `'"'`, "")), "")
	end := strings.TrimRightFunc(s, func(r rune) bool { return r != '"' && isPunctuation(r) || '0' <= r && r <= '9' })
	return !strings.Contains(s, `""`) && !strings.HasSuffix(end, `"`)
}

// separators wants a separator of list items twice, anywhere.
func separators(a *arguments) Check {
	separator := a.verbatim("sep")
	return func(s string) bool { return strings.Count(s, separator) >= 2 }
}

// thesis wants one text in italics of HTML, and more after it.
func thesis(s string) bool {
	from := strings.Index(s, "<i>")
	if from < 0 {
		from = strings.Index(s, "<em>")
	}
	if from < 0 {
		return false
	}
	s = s[from:]
	to := strings.Index(s, "</i>")
	if to < 0 {
		to = strings.Index(s, "</em>")
	}
	// As in the published program, the > of <em> is text to it, and so is </em>'s.
	return to >= 0 && strip(s[len("<i>"):to]) != "" && strip(s[to+len("</i>"):]) != ""
}

// subBullets wants a - after each *, anywhere, before the next. As in the published program, a text without any *
// follows.
func subBullets(s string) bool {
	bullets := strings.Split(s, "*")
	return !slices.ContainsFunc(bullets[1:], func(b string) bool { return !strings.Contains(b, "-") })
}

// sentencesThenBullets wants two sentences, and then lines with * alone, two at least. An empty line may end the
// sentences, and not stand after a bullet.
func sentencesThenBullets(s string) bool {
	sentences, bullets, prose := 0, 0, true
	for line := range strings.SplitSeq(s, "\n") {
		line = strip(line)
		switch {
		case strings.HasPrefix(line, "*"):
			if sentences < 2 {
				return false
			}
			bullets, prose = bullets+1, false
		case !prose:
			return false
		default:
			n := english39().count(line)
			sentences, prose = sentences+n, n > 0
		}
	}
	return bullets >= 2
}

// titleCase wants no word in small letters, nor one with a small letter before capitals.
func titleCase(s string) bool {
	return !slices.ContainsFunc(tokens(s), func(t string) bool {
		r := []rune(t)
		if !isLower(string(r[0])) || !unicode.IsLetter(r[0]) {
			return false
		}
		rest := string(r[1:])
		return rest == "" || isUpper(rest) || isLower(rest)
	})
}

func template(s string) bool {
	return strings.Contains(s, "My Answer:") && strings.Contains(s, "My Conclusion:") &&
		strings.Contains(s, "Future Outlook:")
}
