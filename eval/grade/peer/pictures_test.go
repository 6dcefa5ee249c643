package peer

import "testing"

// Relaxed accuracy as lmms-eval's chartqa computes it of these responses, traps included, and then of the answer within a
// longer one.
func TestChartQA(t *testing.T) {
	for _, tt := range []struct {
		response, gold string
		want           bool
	}{
		{"14", "14", true},
		{"14.7", "14", true},
		{"14.71", "14", false},
		{"13.3", "14", true},
		{"2010", "2019", true}, // years are numbers
		{"5%", "0.05", true},
		{"5%", "5", false},
		{"0.14", "14%", true},
		{"14", "14%", false},
		{"0", "0", true},
		{"0.0", "0", false}, // a gold 0 is a text
		{"0.001", "0", false},
		{"Yes", "yes", true},
		{"1,400", "1400", false}, // no number with a comma, and so a text
		{"1,400", "1,400", true},
		{" 14 ", "14", true},
		{"-14", "14", false},
		{"nan", "14", false},
		{"inf", "14", false},
		{"1_4", "14", true}, // as Python reads it
		{"", "14", false},
		{"The sum of both bars is \\boxed{14.5}.", "14", true},
		{"The sum of both bars is \\boxed{15}.", "14", false},
		{"<think>7 + 7</think> Answer: 14", "14", true},
		{"So the answer is Blue.", "blue", true},
	} {
		if v := ChartQA(tt.gold, tt.response); v.Correct != tt.want {
			t.Errorf("%q against %q: %+v", tt.response, tt.gold, v)
		}
	}
}

// MathVista's comparison of an answer, by calculate_score.py, and where ours finds one in a response.
func TestMathVista(t *testing.T) {
	options := []string{"3/11", "8/11", "6/11", "A"}
	choice := Question{Golds: []string{"B", "(B) 8/11"}, Options: options, Right: 1}
	number := func(gold string, decimals int) Question {
		return Question{Golds: []string{gold}, Decimals: &decimals, Right: -1}
	}
	list := Question{Golds: []string{"[2007, 2008]"}, Right: -1}
	for _, tt := range []struct {
		q        Question
		response string
		want     bool
	}{
		{choice, "8/11", true},
		{choice, "B", true},
		{choice, "The correct answer is (B) 8/11.", true},
		{choice, "Answer: B", true},
		{choice, "Answer: A", false},    // the letter, though D's text is A
		{choice, "\\boxed{8/12}", true}, // the nearest option
		{choice, "\\boxed{6/12}", false},
		{choice, "", false},
		{number("5", 0), "5", true},
		{number("5", 0), "5.9", true}, // cut, not rounded
		{number("5", 0), "Answer: 5 apples", true},
		{number("5", 0), "Answer: 6 apples", false},
		{number("1000", 0), "Answer: 1,000", true},
		{number("-3", 0), "\\boxed{-3}", true},
		{number("5", 0), "inf", false},
		{number("1.2", 1), "1.17", true},
		{number("1.2", 1), "1.25", true}, // the decimal of 1.25 rounds to even
		{number("1.3", 1), "1.25", false},
		{number("1.45", 2), "Luca needs $1.45 to buy both.", true},
		{number("1.4", 2), "1.44", false}, // two decimals are asked for
		{number("1.4", 1), "1.44", true},
		{number("0.0", 1), "0", true},
		{list, "Answer: [2007, 2008]", true},
		{list, "Answer: [2007, 2009]", false},
		{bare("B"), "Answer: B", true},
		{bare("1.4"), "1.44", true}, // the decimals of the gold answer
		{bare("7"), "7.2", true},
		{bare("blue"), "Answer: blue", true},
	} {
		if v := MathVista(tt.q, tt.response); v.Correct != tt.want {
			t.Errorf("%q against %v: %+v", tt.response, tt.q.Golds, v)
		}
	}
	for _, tt := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "", 3}, {"", "ab", 2}, {"kitten", "sitting", 3}, {"ab", "ba", 2}, {"é", "e", 1}, {"abcd", "bcd", 1}} {
		if got := edits(tt.a, tt.b); got != tt.want {
			t.Errorf("edits of %q to %q: %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}

// MATH-Vision's evaluate.py under Python 3.11 on these responses.
func TestMathVision(t *testing.T) {
	choice := Question{Golds: []string{"B"}, Options: []string{"4", "4.5", "5", "6", "7"}, Right: 1}
	open := func(gold string) Question { return Question{Golds: []string{gold}, Right: -1} }
	for _, tt := range []struct {
		q        Question
		response string
		want     bool
	}{
		{choice, "B", true},
		{choice, "So it must be B.", true},
		{choice, "So it must be (B).", true},
		{choice, "B\nBecause.", true},
		{choice, "\\boxed{B}", true},
		{choice, "\\boxed{4.5}", true}, // the option's value
		{choice, "\\boxed{9/2}", true},
		{choice, "\\boxed{\\text{(B)}}", true},
		{choice, "The answer is B) 4.5", false},
		{choice, "the correct answer is B", true},
		{choice, "The answer is 4.5.", true},
		{choice, "\\boxed{A} or rather \\boxed{B}", true},
		{choice, "\\boxed{B} or rather \\boxed{A}", false},
		{choice, "", false},
		{open("60"), "The missing number is 60.", true},
		{open("60"), "x = 60", true},
		{open("60"), "\\boxed{60^\\circ}", true},
		{open("60"), "\\boxed{60.004}", true}, // two decimals
		{open("60"), "\\boxed{60.01}", false},
		{open("60"), "\\boxed{60 \\text{ km}}", true},
		{open("$4 \\pi$"), "\\boxed{4\\pi}", true},
		{open("$4 \\pi$"), "\\boxed{12.57}", true},
		{open("$\\frac{\\sqrt{6}}{6}$"), "\\boxed{\\frac{1}{\\sqrt6}}", true},
		{open("7/3"), "\\boxed{\\dfrac{7}{3}}", true},
		{open("(3,-4)"), "\\boxed{(3, -4)}", true},
		{open("(3,-4)"), "\\boxed{(-4, 3)}", false},
		{open("1:2"), "\\boxed{2:4}", true},
		{open("144"), "Answer: 144", false}, // which the program does not read
		{open("C"), "\\boxed{c}", true},
		{open("C"), "\\boxed{D}", false},
	} {
		if v := MathVision(tt.q, tt.response); v.Correct != tt.want {
			t.Errorf("%q against %v: %+v", tt.response, tt.q.Golds, v)
		}
	}
}
