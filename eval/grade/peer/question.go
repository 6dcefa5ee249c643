package peer

import "exp/eval/grade"

// Question is what some graders need to know of a problem besides the response.
type Question struct {
	Golds    []string // equally right answers, one at least; of a question with options the first is the letter
	Options  []string // of a multiple-choice question; nil: it has none, or nobody says
	Right    int      // number of the right option
	Decimals *int     // how many decimals the problem asks its number with, 0 for an integer; nil: it does not say
	Letter   bool     // the gold answer is a letter of options that nobody says
}

func (q *Question) hasOptions() bool { return q.Right >= 0 && q.Right < len(q.Options) }

// hasLetters reports whether the answer is a letter.
func (q *Question) hasLetters() bool { return q.hasOptions() || q.Letter }

// mostLetters is how many letters an answer may have if nobody says how many options there are: A to J.
const mostLetters = 10

// letters returns the letters of the options.
func (q *Question) letters() []string {
	n := len(q.Options)
	if n == 0 {
		n = mostLetters
	}
	list := make([]string, n)
	for i := range list {
		list[i] = string(rune('A' + i))
	}
	return list
}

// bare returns a question with nothing but a gold answer.
func bare(gold string) Question {
	return Question{Golds: []string{gold}, Letter: len(gold) == 1 && gold[0] >= 'A' && gold[0] < 'A'+mostLetters}
}

// posed is wrapped for a grader of questions.
func posed(name, about string, judge func(q Question, s string) grade.Verdict, before, after string) Grader {
	g := wrapped(name, about, func(gold, s string) grade.Verdict { return judge(bare(gold), s) }, before, after)
	g.Posed = judge
	return g
}
