package peer

import (
	"testing"

	"exp/eval/grade"
)

// TestGeo3K: the boxes that mathruler 0.1.0 finds and its verdicts, run with SymPy 1.14 and pylatexenc 2.11, and the
// matches of the pattern in verl's geo3k.py, drawn from 4359 pairs. Of all these 9 verdicts are other than mathruler's:
// it divides by 11.0 with rounding (30/11 is not 30/11.0), does not see that 8^0.5 is √8 nor that n(n-1)! is n!, and
// reads ħ and names in bold as letters that commute.
func TestGeo3K(t *testing.T) {
	for _, tt := range []struct {
		gold, response, answer string
		correct, form          bool
	}{
		{"113", "<think>Hm.</think> So \\boxed{\\boxed{113}}.", "113", true, true},
		{"\\frac { 13 } { 8 }", "<think>\nLet {a}\n</think>\n\\boxed{\\frac{13}{8}}", "\\frac{13}{8}", true, true},
		{"\\log_{2}{8}", "<think>Hm.</think> So \\boxed{\\frac{\\ln 8}{\\ln 2}}.", "\\frac{\\ln 8}{\\ln 2}", false, true},
		{"2,003", "<think>Hm.</think> So \\boxed{2,003}.", "2,003", true, true},
		{"19.3", "<think>Hm.</think> So \\boxed{\\frac{193}{10}}.", "\\frac{193}{10}", true, true},
		{"\\{1,2,3\\}", "<think>Hm.</think> So \\boxed{\\{1,1,2,3\\}}.", "\\{1,1,2,3\\}", false, true},
		{"64,\\frac{1}{4}", "So \\boxed{1} no \\boxed{ \\frac{1}{4}, 64 }", "\\frac{1}{4}, 64", false, false},
		{"1", "\\boxed{\\boxed{1}", "1", true, false},
		{"x = 17, y = 9", "<think>Hm.</think> So \\boxed{(17, 9)}.", "(17, 9)", false, true},
		{"\\frac { 15 } { 6 }", "<think>Hm.</think> So \\boxed{\\frac{15}{6}}.", "\\frac{15}{6}", true, true},
		{"36 \\sqrt { 2 }", "<think>Hm.</think> So \\boxed{\\sqrt{2592}}.", "\\sqrt{2592}", true, true},
		{"\\pm3", "<think>\nLet {a}\n</think>\n\\boxed{-3}", "-3", false, true},
		{"18", "<think>\\boxed{18}</think>", "18", true, false},
		{"\\frac { 11 } { 5 }", "<think>Hm.</think> So \\boxed{\\frac{22}{10}}.", "\\frac{22}{10}", false, true},
		{"1 \\sqrt { 13 }", "<think>Hm.</think> So \\boxed{1\\sqrt{13}}.", "1\\sqrt{13}", true, true},
		{"32 \\pi", " <think>a</think>\\boxed{100.53}", "100.53", false, false},
		{"( 1, -6 )", "<think>\\boxed{(1, - 6)}</think>", "(1, - 6)", true, false},
		{"2.\\overline{34}", "<think>\\boxed{2.34\\overline{34}}</think>", "2.34\\overline{34}", false, false},
		{"23 + 6 \\sqrt { 7 }", "<think>Hm.</think> So \\boxed{23-6\\sqrt{7}}.", "23-6\\sqrt{7}", false, true},
		{"\\frac { 6 } { 8 }", "\\boxed{0.750", "None", false, false},
		{"\\sqrt2+\\sqrt3", " <think>a</think>\\boxed{\\sqrt5}", "\\sqrt5", false, false},
		{"\\frac{5\\sqrt{5}}{3}", "<think>Hm.</think> So \\boxed{\\frac{5\\sqrt{5}}{3}^\\circ}.", "\\frac{5\\sqrt{5}}{3}^\\circ", true, true},
		{"( 3, -8 )", "\\boxed{(3,8)", "None", false, false},
		{"8", "The answer is 8 degrees", "None", false, false},
		{"3+4i", "<think>\\boxed{3-4i}</think>", "3-4i", false, false},
		{"\\text{B,C}", "So \\boxed{1} no \\boxed{ x=\\text{B,C} }", "x=\\text{B,C}", false, false},
		{"20 + 8 \\sqrt { 13 }", "\\boxed{20+8\\sqrt{13}} and \\boxed {3}", "20+8\\sqrt{13}", true, false},
		{"\\frac{127}{64}", "So \\boxed{1} no \\boxed{ \\frac{127}{64}^\\circ }", "\\frac{127}{64}^\\circ", true, false},
		{"$\\frac{4}{17}$", "So \\boxed{1} no \\boxed{ $\\frac{4}{17}$ }", "$\\frac{4}{17}$", true, false},
		{"36 \\pi", "<think>\\boxed{113.10}</think>", "113.10", false, false},
		{"18,010", "<think>\\boxed{18,010}</think>", "18,010", true, false},
		{"25 \\sqrt { 221 }", "\\boxed{\\sqrt{138125}", "None", false, false},
		{"x = 16, y = 5", "<think>Hm.</think> So \\boxed{x=16,y=5}.", "x=16,y=5", true, true},
		{"36 + 5 \\sqrt { 221 }", "<think>Hm.</think> So \\boxed{36-5\\sqrt{221}}.", "36-5\\sqrt{221}", false, true},
		{"\\frac { 22 } { 2 }", "The answer is \\dfrac{22}{2}", "None", false, false},
		{"x = 33, y = 6", "\\boxed{(33, 6)} and \\boxed {3}", "(33, 6)", false, false},
		{"39 + 8 \\sqrt { 2 }", "The answer is 39+8\\sqrt{2}", "None", false, false},
		{"\\frac { 25 } { 11 }", "<think>Hm.</think> So \\boxed{2.273}.", "2.273", false, true},
		{"18 \\pi", "\\boxed{18 pi", "None", false, false},
		{"40", "\\boxed{040", "None", false, false},
		{"-2,-1,1,2", "\\boxed{-2,-1,1,2^\\circ", "None", false, false},
		{"14 \\pi", "<think>Hm.</think> So \\boxed{\\pi\\cdot14}.", "\\pi\\cdot14", true, true},
		{"2 \\sqrt { 5 }", "<think>\\boxed{2\\cdot\\sqrt{5}}</think>", "2\\cdot\\sqrt{5}", true, false},
		{"16 \\pi", "<think>Hm.</think> So \\boxed{\\pi\\cdot16}.", "\\pi\\cdot16", true, true},
		{"\\frac{\\sqrt3}{3}", "<think>Hm.</think> So \\boxed{x=\\frac{\\sqrt3}{3}\\approx0.577}.",
			"x=\\frac{\\sqrt3}{3}\\approx0.577", false, true},
		{"\\frac{3}{\\sqrt{10}}", "<think>Hm.</think> So \\boxed{x=\\frac{3}{\\sqrt{10}}}.", "x=\\frac{3}{\\sqrt{10}}", true, true},
		{"25 \\pi", "\\boxed{\\pi\\cdot25} and \\boxed {3}", "\\pi\\cdot25", true, false},
		{"0, \\frac{1}{2}", "<think>Hm.</think> So \\boxed{x=0, \\frac{1}{2}}.", "x=0, \\frac{1}{2}", true, true},
		{"\\frac{9 \\sqrt{2}}{10}", "<think>Hm.</think> So \\boxed{\\frac{0 \\sqrt{2}}{10}}.", "\\frac{0 \\sqrt{2}}{10}", false, true},
		{"35 \\sqrt { 3 }", "\\boxed{36\\sqrt{3}} and \\boxed {3}", "36\\sqrt{3}", false, false},
		{"\\frac{1}{2}", "<think>\\boxed{\\frac{2}{2}}</think>", "\\frac{2}{2}", false, false},
		{"27 \\pi", "<think>Hm.</think> So \\boxed{27π}.", "27π", false, true},
		{"\\frac{\\pi}{12}", "<think>Hm.</think> So \\boxed{\\frac{\\pi}{12}}.", "\\frac{\\pi}{12}", true, true},
		{"$\\frac{\\pi^{2}-9}{9}$", "<think>\\boxed{$\\frac{\\pi^{2}-9}{9}$ cm}</think>", "$\\frac{\\pi^{2}-9}{9}$ cm", true, false},
		{"12 \\pi", "So \\boxed{1} no \\boxed{ 12 pi }", "12 pi", true, false},
		{"(2, -2 \\sqrt{3}, 0)", "<think>Hm.</think> So \\boxed{\\text{(2, -2 \\sqrt{3}, 0)}}.", "\\text{(2, -2 \\sqrt{3}, 0)}", true, true},
	} {
		v, want := Geo3K(tt.gold, tt.response), tt.answer
		if want == "None" { // mathruler's word for no answer
			want = ""
		}
		if v.Correct != tt.correct || (v.Form == grade.InForm) != tt.form || v.Extracted != want {
			t.Errorf("gold %q, response %q: %q, %t, %v; want %q, %t, %t", tt.gold, tt.response, v.Extracted, v.Correct, v.Form,
				want, tt.correct, tt.form)
		}
		if box, ok := mathrulerBox(tt.response); box != tt.answer || ok != (want != "") {
			t.Errorf("response %q: box %q, %t; want %q", tt.response, box, ok, tt.answer)
		}
	}
}

// verl gives 0.9 for the answer and 0.1 for the form.
func TestGeo3KScore(t *testing.T) {
	for response, want := range map[string]float64{
		"<think>a</think>\\boxed{3}": 1, "\\boxed{3}": 0.9, "<think>a</think>\\boxed{4}": 0.1, "3": 0,
		"<think>\\boxed{3}</think>": 0.9, " <think>a</think>\\boxed{3}": 0.9, "<think>a</think>\n\\boxed{3}\n": 1,
		"<think>a</think> b </think> \\boxed{3} {": 1, "<think>a</think>\\boxed{3": 0,
	} {
		_, score, err := DefaultScore("hiyouga/geometry3k", []string{"3"}, response)
		if err != nil || score != want {
			t.Errorf("%q: %g, %v; want %g", response, score, err, want)
		}
	}
}
