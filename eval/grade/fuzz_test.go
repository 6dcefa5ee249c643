package grade

import (
	"strings"
	"testing"
	"unicode/utf8"

	"exp/eval/grade/extract"
)

// hostile lists inputs that have broken graders: towers, deep and long nestings, sums that multiply out to
// millions of terms, unclosed brackets.
func hostile() []string {
	repeat := strings.Repeat
	return []string{
		"10^{10^{10}}", "9^{9^{9^{9^9}}}", "((10^{4000})^{4000})^{4000}", "1e999999", "1e-999999", "(10^{10})!",
		"1000!", "((100!)!)!", "2^{-10^{9}}",
		repeat("{", 100_000), repeat("(", 100_000), repeat("\\frac{", 20_000), repeat("\\sqrt", 20_000), repeat("-",
			5000) + "1", repeat("|", 5000), repeat("$", 5000), repeat("\\boxed{", 10_000), repeat("\\boxed", 10_000),
		"(a+b+c+d+e+f+g+h)^{40}", repeat("(x+y+z+1)", 400), repeat("(x+1)^{39}", 100), repeat("\\sqrt{x+", 100) +
			"1" + repeat("}", 100), repeat("\\sin(", 100) + "x" + repeat(")", 100), repeat("2^", 100) + "2",
		repeat("x!", 500),
		repeat("1,", 2000), repeat("1,2,", 25) + "3", "\\{" + repeat("x,", 500) + "y\\}", repeat("\\pm 1", 300),
		repeat("(1,2)\\cup", 500) + "(3,4)", repeat("x=", 500) + "1", repeat("a<", 500) + "b", repeat("1:", 500) + "2",
		"\\begin{pmatrix}" + repeat("1&", 900) + "1\\end{pmatrix}", repeat("\\begin{pmatrix}a&b\\\\c&d\\end{pmatrix}",
			60), repeat("\\begin{vmatrix}", 50), "\\begin{vmatrix}" + repeat(repeat("x+y&", 4)+"z\\\\", 5) +
			"\\end{vmatrix}",
		repeat("7", 5900), repeat("7", 100_000), "0." + repeat("3", 5900), repeat("\\sqrt{2}+", 400) + "1",
		"\\sqrt{" + repeat("9", 3000) + "}", repeat("\\sin 1\\cdot", 300) + "1", repeat("\\ln ", 400) + "2", "e^{" +
			repeat("e^{", 100) + "1" + repeat("}", 101),
		repeat("1+\\dots+", 300) + "n", "1\\cdot2" + repeat("\\cdots n", 300), repeat("1+2+\\dots+n\\cdot(", 60) + "1" +
			repeat(")", 60), "1+2+\\dots+10^{400}", "1\\cdot2\\cdots10^{9}", "x_1+\\dots+x_{" + repeat("n", 900) + "}",
		"\\Gamma(" + repeat("\\Gamma(", 60) + "9" + repeat(")", 61), "\\binom{10^6}{" + repeat("1,", 300) + "1}",
		repeat("```math\n", 3000), repeat("\\frac{1}{2} is ", 1500), repeat("A\\cup B\\cap ", 100) + "C",
		"\\gcd(" + repeat("9", 2000) + "," + repeat("8", 2000) + ")", "\\binom{10^9}{10^9}", "1/0", "0^0", "0/0",
		"\\tan\\frac{\\pi}{2}", "\\infty-\\infty", "x_{" + repeat("i", 2000) + "}", repeat("and ", 1000),
		repeat("answer: ", 3000), repeat("answer is ", 3000), "\xff\xfe\\boxed{\xff}",
	}
}

// typical are plain inputs, as seeds for fuzzing.
var typical = []string{"42", "\\frac{1}{2}", "x=5", "(1,2]", "\\{1,2\\}", "3\\text{ cm}^2", "50\\%", "1\\pm\\sqrt2",
	"\\begin{pmatrix}1\\\\2\\end{pmatrix}", "x\\ge3", "\\text{(B)}", "25_6", "3 1/2", "\\left|x\\right|",
	"The answer is \\boxed{\\frac12}.", "a:b", "0.\\overline{3}", "\\sin^2 x", "1,234", "−½"}

// FuzzAnswer: no input makes a grading panic or depend on anything but the input, and every answer equals
// itself.
func FuzzAnswer(f *testing.F) {
	for _, s := range append(hostile(), typical...) {
		f.Add(s, s)
		f.Add("5", s)
		f.Add(s, "x^2+1")
	}
	f.Fuzz(func(t *testing.T, gold, prediction string) {
		v := Answer(gold, prediction)
		if w := Answer(gold, prediction); v != w {
			t.Errorf("two verdicts: %.200v, %.200v", v, w)
		}
		if v.Reason == "" {
			t.Errorf("no reason: %.200v", v)
		}
		if g := goldAnswer(gold); g != "" {
			if w := Answer(gold, g); !w.Correct && g == extract.Statement(g) {
				if _, ok := extract.LastBox(g); !ok {
					t.Errorf("%.60q is not right against itself: %.200s", gold, w.Reason)
				}
			}
		}
	})
}

// FuzzResponse: the extracted answer is text of the response except for joints between two formulas, and no
// response makes it panic.
func FuzzResponse(f *testing.F) {
	for _, s := range append(hostile(), typical...) {
		f.Add("work\nAnswer: " + s)
		f.Add("<think>" + s + "</think>\\boxed{" + s + "}")
	}
	f.Fuzz(func(t *testing.T, response string) {
		found := extract.FromResponse(response)
		if found.How == "" {
			t.Error("no place")
		}
		if utf8.ValidString(response) && !utf8.ValidString(found.Text) {
			t.Errorf("half a character in %q", found.Text)
		}
		Response("5", response)
	})
}

// TestHostile: every hostile input, against each other and itself, ends with a verdict, and none equals a
// number it should not.
func TestHostile(t *testing.T) {
	list := hostile()
	for i, s := range list {
		for _, gold := range []string{"5", "x^2+1", "(1,2)", list[(i+1)%len(list)]} {
			if v := Answer(gold, s); v.Correct && v.Sure {
				t.Errorf("gold %.40q: %.40q is right: %s", gold, s, v.Reason)
			}
			Response(gold, s)
		}
		Answer(s, s+" ")
	}
}
