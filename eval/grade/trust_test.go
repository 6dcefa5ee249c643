package grade

import (
	"fmt"
	"strings"
	"testing"
)

// trustCase is a pair with its verdict.
type trustCase struct {
	gold, answer string
	want         bool
}

// TestTrust has, for each demand on the verdicts, the pairs that it names.
func TestTrust(t *testing.T) {
	for _, tt := range []struct {
		demand string
		cases  []trustCase
	}{
		{"unknown words after a value are no or unsure", []trustCase{
			{"12", "12\\text{ or 13}", false}, {"12", "12 and 13", false}, {"12", "12 to 13", false},
			{"12", "12 is not the answer", false}, {"12", "12 squared", false}, {"12", "12 factorial", false},
			{"12", "12 choose 5", false}, {"12", "12 divided by 5", false}, {"12", "12 base 5", false},
			{"12", "12 remainder 3", false}, {"12", "12 dozen", false}, {"12", "12 feet 3 inches", false},
		}},
		{"in the gold answer too", []trustCase{
			{"12\\text{ or 13}", "12", false}, {"12 and 13", "12", false}, {"12 to 13", "12", false},
			{"12 is not the answer", "12", false}, {"12 squared", "12", false}, {"12 factorial", "12", false},
			{"12 choose 5", "12", false}, {"12 divided by 5", "12", false}, {"12 base 5", "17", false},
			{"12 remainder 3", "12", false}, {"12 dozen", "12", false}, {"12 feet 3 inches", "12", false},
		}},
		{"after expressions and tuples", []trustCase{
			{"x^2+1", "x^2+1\\text{ or }x^2", false}, {"x^2+1", "x^2+1 squared", false},
			{"(1,2)", "(1,2)\\text{ or }(2,1)", false}, {"(1,2)", "(1,2) and (3,4)", false},
			{"\\frac{1}{2}", "\\frac{1}{2} is not the answer", false}, {"\\sqrt{2}", "\\sqrt{2} dozen", false},
		}},
		{"compound units are computed", []trustCase{
			{"5 feet 6 inches", "66 inches", true}, {"5 feet 6 inches", "5.5 feet", true},
			{"5 feet 6 inches", "5.6 feet", false}, {"2 hours 30 minutes", "150 minutes", true},
			{"2 hours 30 minutes", "2.3 hours", false}, {"24", "2 dozen", true}, {"2 dozen", "24", true},
		}},
		{"two different letters are no", []trustCase{
			{"B", "A or B", false}, {"B", "(A)(B)", false}, {"B", "A, B", false}, {"B", "B", true}, {"B", "(C)", false},
		}},
		{"a gold choice with its value is the letter", []trustCase{
			{"\\textbf{(B)}\\ 12", "B", true}, {"\\textbf{(B)}\\ 12", "\\textbf{(B)}", true},
			{"\\textbf{(B)}\\ 12", "12", true}, {"\\textbf{(B)}\\ 12", "D", false}, {"\\textbf{(B)}\\ 12", "13", false},
		}},
		{"order and direction", []trustCase{
			{"\\vec{AB}", "\\vec{BA}", false}, {"\\vec{AB}", "-\\vec{BA}", true},
			{"\\vec{a}\\times\\vec{b}", "\\vec{b}\\times\\vec{a}", false},
			{"\\vec{a}\\times\\vec{b}", "-\\vec{b}\\times\\vec{a}", true},
			{"\\{\\{1\\},2\\}", "\\{1,\\{2\\}\\}", false}, {"\\{\\{1\\},2\\}", "\\{2,\\{1\\}\\}", true},
			{"x\\ge12", "at least 12", true}, {"12", "at least 12", false}, {"at least 12", "x>12", false},
		}},
		{"A ≈ B is A where B is A rounded", []trustCase{
			{"\\sqrt2", "\\sqrt2\\approx1.414", true}, {"\\sqrt2", "\\sqrt2\\approx1.5", false},
			{"\\frac23", "0.66\\approx\\frac23", false},
		}},
		{"a decimal A stays, a decimal B answers only for an A that does not end", []trustCase{
			{"0.54", "0.54 ≈ 0.5", true}, {"0.5", "0.54 ≈ 0.5", false}, {"9.99", "9.99 ≈ 9.9", true},
			{"9.9", "9.99 ≈ 9.9", false}, {"9.95", "9.95·1 ≈ 10.0", true}, {"10.0", "9.95·1 ≈ 10.0", false},
			{"0.5449", "0.5449≈0.545≈0.54≈0.5", true}, {"0.5", "0.5449≈0.545≈0.54≈0.5", false},
			{"0.13", "\\frac18 \\approx 0.13", false}, {"0.5", "x = 0.54 ≈ 0.5", false},
			{"12.5", "12.46\\text{ cm} ≈ 12.5\\text{ cm}", false}, {"12.5", "12.46 cm ≈ 12.5 cm", false},
			{"12.46", "12.46 cm ≈ 12.5 cm", true}, {"0.333", "\\frac13 \\approx 0.333", true},
			{"-0.33", "-\\frac13 \\approx -0.33", true}, {"33.3\\%", "\\frac13 \\approx 33.3\\%", true},
			{"6.28", "2\\pi \\approx 6.28", true}, {"1.41", "\\sqrt2 \\approx 1.41", true},
			{"0.66", "\\frac23 \\approx 0.66", false}, {"0.67", "\\frac23 \\approx 0.67", true},
			{"33.3", "7 = \\frac{100}{3} \\approx 33.3", false}, {"2", "√5≈2.24=2", false},
			{"2.24", "√5≈2.24=2", false}, {"0.333", "\\frac13 \\approx 0.333 = 0.33", false},
		}},
		{"a base, a modulus or digits that only the answer names", []trustCase{
			{"12", "12_8", false}, {"12_8", "12", true}, {"12", "12_{8}", false}, {"3", "3 \\pmod{13}", false},
			{"3", "3 \\bmod 13", false}, {"3 \\pmod{13}", "3", true}, {"3", "n \\equiv 3 \\pmod{13}", true},
			{"3\\pmod{13}", "n \\equiv 3 \\pmod{14}", false}, {"4", "n \\equiv 3 \\pmod{13}", false},
			{"36", "36\\text{ digits}", false}, {"5\\text{ digits}", "5", true}, {"36", "36\\text{ short}", false},
			{"12", "12 squared cm", false}, {"12", "12 cm squared", true}, {"12", "12 cubed meters", false},
			{"24", "24 radians", true},
		}},
		{"a constant and the size of an unknown are not names", []trustCase{
			{"9", "\\pi \\approx 9", false}, {"9", "\\pi = 9", false}, {"24", "|x|=24", false}, {"24", "|z|=24", true},
			{"24", "x=24", true},
		}},
		{"regions", []trustCase{
			{"(1,2)\\cup(4,5)", "1<|x-3|<2", true}, {"(1,2)\\cup(4,5)", "1\\le|x-3|<2", false},
			{"(-\\infty,-2)\\cup(2,\\infty)", "x^2>4", true}, {"(-\\infty,-2)\\cup(2,\\infty)", "x^2\\ge4", false},
		}},
		{"piecewise functions", []trustCase{
			{"\\begin{cases}1&x>0\\\\0&x\\le0\\end{cases}", "\\begin{cases}0&x\\le0\\\\1&x>0\\end{cases}", true},
			{"\\begin{cases}1&x>0\\\\0&x\\le0\\end{cases}", "\\begin{cases}0&x<0\\\\1&x\\ge0\\end{cases}", false},
		}},
		{"functions and names", []trustCase{
			{"72", "f'(3)=72", true}, {"72", "P(X=1)=72", true}, {"72", "\\text{Area}=72", true},
			{"x+y", "f(x,y)=x+y", true}, {"x+y", "f(x,y)=x-y", false}, {"72", "8\\cdot9=72", true},
			{"72", "8\\cdot9=72=73", false}, {"72", "6\\cdot12=8\\cdot9=72", true},
		}},
		{"rare functions", []trustCase{
			{"\\frac{1}{\\sinh x}", "\\operatorname{csch}x", true}, {"\\frac{1}{\\cosh x}", "\\operatorname{sech}x", true},
			{"\\frac{\\cosh x}{\\sinh x}", "\\coth x", true}, {"\\coth x", "\\tanh x", false},
			{"\\frac{\\pi}{4}", "\\operatorname{arccot}1", true}, {"7", "\\gcd(0,7)", true}, {"7", "\\gcd(7,0)", true},
			{"\\Psi(2)", "\\Psi(2)", true}, {"\\Psi(2)", "\\Psi(3)", false}, {"\\mathfrak{p}", "\\mathfrak{q}", false},
		}},
		{"spelling", []trustCase{
			{"12", "１２", true}, {"(1,2)", "（１，２）", true}, {"12", "1\u200b2", true}, {"1000", "1\u00a0000", true},
			{"12", "\\textcolor{red}{12}", true}, {"1234", "1,\\! 234", true}, {"\\frac12", "\\\\frac{1}{2}", true},
			{"x", "\\quadx", true}, {"\\frac13", "0.(3)", true}, {"\\frac13", "0.\\dot3", true}, {"12", "twelve", true},
			{"12", `{"answer": 12}`, true}, {"12", `{"answer": 13}`, false},
		}},
	} {
		t.Run(tt.demand, func(t *testing.T) {
			for _, c := range tt.cases {
				if v := Answer(c.gold, c.answer); v.Correct != c.want {
					t.Errorf("gold %q, %q: want %v, got %+v", c.gold, c.answer, c.want, v)
				}
				if v := Response(c.gold, "So \\boxed{"+c.answer+"}."); v.Correct && !c.want {
					t.Errorf("gold %q, in a box %q: got %+v", c.gold, c.answer, v)
				}
			}
		})
	}
}

// TestTrustInResponses: each demand on responses, with responses that it names.
func TestTrustInResponses(t *testing.T) {
	for _, tt := range []struct {
		demand string
		cases  []trustCase
	}{
		{"the first end of a turn cuts", []trustCase{
			{"12", "\\boxed{12}<|im_end|>\\boxed{13}", true}, {"12", "\\boxed{12}<|im_start|>\\boxed{13}", true},
			{"12", "\\boxed{12}<|endoftext|>\\boxed{13}", true}, {"12", "\\boxed{12}<|eot_id|>\\boxed{13}", true},
			{"12", "\\boxed{12}</s>\\boxed{13}", true}, {"13", "\\boxed{12}</s>\\boxed{13}", false},
		}},
		{"an answer without a full stop", []trustCase{
			{"7", "We add.\nThe sum is **7**", true}, {"7", "We add.\nThe sum is 7", true}, {"7", "We add.\nSo 3 + 4 = 7", true},
			{"7", "We add.\nThe sum is **8**", false}, {"7", "We add 7 and", false},
		}},
		{"an inequality that is the solution", []trustCase{
			{"x\\ge5", "We solve.\nTherefore $x\\ge5$ is the solution.", true},
			{"x\\ge5", "We solve.\nTherefore $x>5$ is the solution.", false},
		}},
		{"several boxes joined by words", []trustCase{
			{"2,3", "The roots are $\\boxed{2}$ and $\\boxed{3}$.", true}, {"3", "The roots are $\\boxed{2}$ and $\\boxed{3}$.", false},
		}},
		{"a rounded decimal is not a second answer", []trustCase{
			{"12.46", "The answer is 12.46 ≈ 12.5", true}, {"12.5", "The answer is 12.46 ≈ 12.5", false},
			{"12.46", "The answer is $12.46 \\approx 12.5$.", true},
			{"12.5", "The answer is $12.46 \\approx 12.5$.", false},
			{"12.5", "So we get 12.46 ≈ 12.5.", false}, {"12.5", "So we get $12.46 \\approx 12.5$.", false},
			{"12.5", "Thus the total is 12.46 which is ≈ 12.5.", false},
			{"12.46", "The answer is 12.46 (approximately 12.5).", true},
			{"12.5", "The answer is 12.46 (approximately 12.5).", false},
			{"12.5", "The answer is 12.46, or about 12.5", false},
		}},
		{"a degree sign without an answer phrase", []trustCase{
			{"\\frac{\\pi}{4}", "45°", true}, {"\\frac{\\pi}{4}", "We find the angle.\n45°", true},
			{"\\frac{\\pi}{4}", "We find the angle.\nIt is 45°", true}, {"\\frac{\\pi}{4}", "We find the angle.\nIt is 45", false},
			{"\\frac{\\pi}{4}", "We find the angle.\nThe angle is 45°.", true}, {"\\frac{\\pi}{4}", "We find the angle.\nThe angle is 46°.", false},
		}},
	} {
		t.Run(tt.demand, func(t *testing.T) {
			for _, c := range tt.cases {
				if v := Response(c.gold, c.answer); v.Correct != c.want {
					t.Errorf("gold %q, %q: want %v, got %+v", c.gold, c.answer, c.want, v)
				}
			}
		})
	}
}

// A union of many intervals in reverse order is right or unsure, never surely wrong.
func TestManyIntervals(t *testing.T) {
	var forward, backward []string
	for i := range 400 {
		forward = append(forward, fmt.Sprintf("(%d,%d)", 2*i, 2*i+1))
		backward = append([]string{forward[i]}, backward...)
	}
	v := Answer(strings.Join(forward, "\\cup"), strings.Join(backward, "\\cup"))
	if !v.Correct && v.Sure {
		t.Errorf("%+v", v)
	}
}
