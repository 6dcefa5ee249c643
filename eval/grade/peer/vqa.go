package peer

import (
	"strings"
	"unicode"
)

// vqav2 is the accuracy of VQAv2 (arXiv:1505.00468 §4), as lmms-eval computes it: an answer that three people gave
// scores 1, of two 2/3, of one 1/3, on average over all sets of nine of the ten people.
func vqav2(golds []string, said string) float64 {
	return agreed(golds, said, func(s string) string {
		s = strings.TrimFunc(strings.NewReplacer("\n", " ", "\t", " ").Replace(s), isPythonSpace)
		return vqaWords(withoutMarks(s))
	})
}

// textvqa is the same for TextVQA, OK-VQA and VizWiz, whose programs (EvalAIAnswerProcessor of Pythia) drop commas and
// question marks first, and part 's from its word.
func textvqa(golds []string, said string) float64 {
	return agreed(golds, said, func(s string) string {
		s = strings.NewReplacer(",", "", "?", "").Replace(pythonLower(s))
		s = strings.NewReplacer("\n", " ", "\t", " ").Replace(strings.TrimFunc(strings.ReplaceAll(s, "'s", " 's"),
			isPythonSpace))
		return vqaWords(withoutMarks(strings.TrimFunc(s, isPythonSpace)))
	})
}

// manyEnough is how many people must give an answer for the full score.
const manyEnough = 3

// agreed scores an answer by how many people gave it, after normal. The sources score a single gold answer 0, since
// nobody else is left to agree; here it scores 1 if it is equal.
func agreed(golds []string, said string, normal func(string) string) float64 {
	said = normal(said)
	same := 0
	for _, gold := range golds {
		if normal(gold) == said {
			same++
		}
	}
	if len(golds) == 1 {
		return float64(same)
	}
	without := func(others int) float64 { return min(1, float64(others)/manyEnough) }
	sum := float64(same)*without(same-1) + float64(len(golds)-same)*without(same)
	return sum / float64(len(golds))
}

const (
	vqaMarks    = `;/[]"{}()=+\_-><@` + "`,?!"
	mostPeriods = 32 // the source passes a flag, whose value is 32, as the number of replacements
)

// withoutMarks is process_punctuation: a mark next to a space, or any in a text with a comma between digits, goes, and
// another becomes a space. Periods go unless a digit follows, but no more than 32.
func withoutMarks(text string) string {
	out, commas := text, commaBetweenDigits(text)
	for _, mark := range strings.Split(vqaMarks, "") {
		instead := " "
		if commas || strings.Contains(text, mark+" ") || strings.Contains(text, " "+mark) {
			instead = ""
		}
		out = strings.ReplaceAll(out, mark, instead)
	}
	r := []rune(out)
	var b strings.Builder
	gone := 0
	for i, c := range r {
		if c == '.' && gone < mostPeriods && (i+1 == len(r) || !unicode.IsDigit(r[i+1])) {
			gone++
			continue
		}
		b.WriteRune(c)
	}
	return b.String()
}

func commaBetweenDigits(text string) bool {
	digit, comma := false, false // the last character but for commas is a digit; commas follow it
	for _, c := range text {
		switch {
		case c == ',':
			comma = true
			continue
		case unicode.IsDigit(c):
			if digit && comma {
				return true
			}
			digit = true
		default:
			digit = false
		}
		comma = false
	}
	return false
}

// vqaNumbers are the words that become numbers; none is 0.
var vqaNumbers = map[string]string{"none": "0", "zero": "0", "one": "1", "two": "2", "three": "3", "four": "4",
	"five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9", "ten": "10"}

// vqaWords is process_digit_article: lower case, digits for number words, no articles, contractions with their
// apostrophes, single spaces.
func vqaWords(text string) string {
	var out []string
	for _, w := range strings.FieldsFunc(pythonLower(text), isPythonSpace) {
		if n, ok := vqaNumbers[w]; ok {
			w = n
		}
		switch whole, ok := contractions[w]; {
		case w == "a", w == "an", w == "the":
		case ok:
			out = append(out, whole)
		default:
			out = append(out, w)
		}
	}
	return strings.Join(out, " ")
}

// contracted lists the contractions that are mended where one apostrophe is left out: "couldnt've" and "couldn'tve",
// but not "couldntve".
const contracted = `'ow's'at 'twas ain't aren't can't could've couldn't couldn't've didn't doesn't don't hadn't
	hadn't've hasn't haven't he'd he'd've he's how'd how'll how's isn't it'd it'd've it'll ma'am might've mightn't
	mightn't've must've mustn't needn't not've o'clock oughtn't shan't she'd've should've shouldn't shouldn't've
	somebody'd've somebody'll somebody's someone'd someone'd've someone'll someone's something'd something'd've
	something'll that's there'd there'd've there're there's they'd they'd've they'll they're they've wasn't we'd've
	we've weren't what'll what're what's what've when's where'd where's where've who'd who'd've who'll who's who've
	why'll why're why's won't would've wouldn't wouldn't've y'all y'all'd've y'all'll you'd you'd've you'll you're
	you've`

// contractions maps a contraction without an apostrophe to the whole one. The source has somebody'd the wrong way
// round.
var contractions = func() map[string]string {
	m := map[string]string{"somebody'd": "somebodyd"}
	for _, whole := range strings.Fields(contracted) {
		for i, c := range whole {
			if c == '\'' {
				m[whole[:i]+whole[i+1:]] = whole
			}
		}
	}
	return m
}()
