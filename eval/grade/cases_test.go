package grade

import "testing"

// TestAnswer has pairs whose verdicts follow from mathematics or from the convention noted with them.
func TestAnswer(t *testing.T) {
	for _, tt := range []struct {
		gold, prediction string
		want             bool
	}{
		// Numbers.
		{"42", "42.", true}, {"42", "042", true}, {"-7", "−7", true}, {"1000", "1,000", true}, {"1000", "1{,}000",
			true}, {"1000", "1\\,000", true}, {"10000", "10 000", true},
		{"100000", "1e5", true}, {"4.5e33", "4.5\\times 10^{33}", true}, {"0.001", "10^{-3}", true},
		{"123456789012345678901234567890", "123456789012345678901234567891", false},
		{"\\frac{7}{2}", "3\\frac12", true}, {"7/2", "3 1/2", true}, {"31/2", "3 1/2", false}, {"\\frac{1}{3}",
			"0.\\overline{3}", true}, {"\\frac16", "0.1\\overline{6}", true},
		{"\\frac{1}{3}", "0.333", false}, {"\\frac{1}{3}", "0.333333", true}, {"\\frac{1}{3}", "0.333433", false},
		{"8/3", "2.6666666666666665", true}, {"245", "245.00000000000003", true}, {"\\frac23", "0.666666", true},
		{"\\frac23", "0.666668", false}, {"0.142857", "0.142858", false}, {"306956.63", "306956.64", false}, {"245",
			"245.0000004", false}, // rounding
		{"\\pi", "3.14159", false}, {"\\pi", "3.141593", true}, {"\\frac{15}{2}", "7.5", true}, {"11", "11.5", false},
		{".5", "0.5", true}, {"5!", "120", true}, {"\\binom{5}{2}", "10", true}, {"2^{10}", "1024", true},
		{"0.5", "50\\%", true}, {"50", "50\\%", true}, {"20\\%", "0.2", true}, {"20\\%", "200\\%", false}, {"0.5",
			"0.5\\%", false}, // only one side with a per cent sign
		{"25_6", "17_{10}", true}, {"25_6", "25_7", false}, {"25_6", "25", true}, {"1011_2", "11", false},
		// Radicals, constants, functions.
		{"2\\sqrt{2}", "\\sqrt8", true}, {"\\frac{1}{\\sqrt{2}}", "\\frac{\\sqrt2}{2}", true}, {"\\sqrt{5+2\\sqrt6}",
			"\\sqrt2+\\sqrt3", true}, {"\\sqrt[3]{-8}", "-2", true}, {"\\sqrt[3]{54}", "3\\sqrt[3]{2}", true},
		{"\\sqrt{2}+\\sqrt{3}", "\\sqrt{5}", false}, {"2\\pi", "\\pi\\cdot2", true}, {"\\sqrt{10^{40}+1}", "10^{20}",
			false}, {"e^{i\\pi}", "-1", true}, {"\\sin\\frac{\\pi}{6}", "\\frac12", true}, {"\\log_2 8", "3", true},
		{"\\ln 6", "\\ln2+\\ln3", true}, {"\\arctan 1", "\\frac{\\pi}{4}", true},
		{"\\cos 20^\\circ", "\\cos\\frac{\\pi}{9}", true}, {"\\frac{\\log x}{\\log a}", "\\log_a x", true},
		{"\\sin^2 x+\\cos^2 x", "1", true}, {"\\tan x", "\\frac{\\sin x}{\\cos x}", true}, {"\\sqrt{x^2}", "x",
			false}, {"\\sqrt{x^2}", "|x|", true},
		{"1+2i", "i(2-i)", true}, {"3+4i", "4i+3", true}, {"3+4i", "3-4i", false}, {"\\frac{1}{i}", "-i", true},
		{"\\sqrt{-4}", "2i", true},
		// log is the natural logarithm or that to the base 10.
		{"2", "\\log 100", true}, {"\\log 100", "2", true}, {"2\\ln 10", "\\log 100", true}, {"2", "\\ln 100", false},
		{"3", "\\log 100", false}, {"1+\\log 2", "\\log 20", true}, {"\\lg 100", "2", true}, {"\\log_2 100", "2",
			false},
		// Algebra.
		{"(x+1)^2", "x^2+2x+1", true}, {"x^2-1", "(x-1)(x+1)", true}, {"\\frac{x^2-1}{x-1}", "x+1", true}, {"2^{n+1}",
			"2\\cdot2^n", true}, {"n(n+1)/2", "\\binom{n+1}{2}", true}, {"(-1)^n", "(-1)^{n+2}", true}, {"(-1)^n",
			"(-1)^{n+1}", false},
		{"3x", "3y", false}, {"x_1+x_2", "x_2+x_1", true}, {"x^2 y", "xy^2", false}, {"a^{b+c}", "a^b a^c", true},
		{"\\frac{(n+1)!}{n!}", "n+1", true}, {"x^{10}", "x^10", true},
		// Equations and inequalities.
		{"5", "x=5", true}, {"x=5", "5", true}, {"x=5", "x=6", false}, {"y=2x+1", "2x+1", true}, {"y=2x+1",
			"2x-y+1=0", true}, {"x>3", "3<x", true}, {"x>3", "x\\ge3", false}, {"(3,\\infty)", "x>3", true}, {"x>3",
			"x<3", false}, {"-x>-3", "x<3", true},
		{"-2\\le x<5", "[-2,5)", true}, {"x\\ne1", "(-\\infty,1)\\cup(1,\\infty)", true}, {"x<1\\text{ or }x>2",
			"(-\\infty,1)\\cup(2,\\infty)", true}, {"6", "2x=6", false}, {"f(x)=x^2", "x^2", true},
		{"\\begin{cases} x & \\text{if } x \\ge 0 \\\\ -x & \\text{if } x < 0 \\end{cases}", "|x|", true},
		{"\\begin{cases} x & \\text{if } x \\ge 0 \\\\ -x & \\text{if } x < 0 \\end{cases}", "\\sqrt{x^2}", true},
		// It has the values 1/2, 1, 2 of x there.
		{"\\begin{cases} x & \\text{if } x \\ge 0 \\\\ -x & \\text{if } x < 0 \\end{cases}",
			"|x|+(x^2-\\frac14)(x^2-1)(x^2-4)", false},
		{"\\begin{cases} x & \\text{if } x \\ge 0 \\\\ -x & \\text{if } x < 0 \\end{cases}",
			"|x|+(|x|-1)(|x|-\\frac12)(|x|-3)", false},
		// Collections.
		{"(1,2)", "(1, 2)", true}, {"(1,2)", "(2,1)", false}, {"(1,2)", "[1,2]", false}, {"(1,2)", "1,2", true},
		{"\\{1,2\\}", "\\{2,1\\}", true}, {"\\{1,2\\}", "1,2", true}, {"1,2", "2,1", true}, {"1,2", "1,2,3", false},
		{"1\\pm\\sqrt2", "1-\\sqrt2, 1+\\sqrt2", true},
		{"[0,1]\\cup[1,2]", "[0,2]", true}, {"(-\\infty,\\infty)", "\\mathbb{R}", true},
		{"\\mathbb{R}\\setminus\\{0\\}", "(-\\infty,0)\\cup(0,\\infty)", true}, {"(0,1)\\cup(2,3)", "(0,1)\\cup(2,4)",
			false}, {"\\emptyset", "\\{\\}", true}, {"100,200", "200, 100", true}, {"1:2", "2:4", true}, {"1:2",
			"2:1", false}, {"5:00", "6:00", false},
		{"\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}", "\\begin{bmatrix}1&2\\\\3&4\\end{bmatrix}", true},
		{"\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}", "\\begin{pmatrix}1&3\\\\2&4\\end{pmatrix}", false},
		{"\\begin{pmatrix}7\\\\15\\end{pmatrix}",
			"\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}\\begin{pmatrix}1\\\\3\\end{pmatrix}", true}, {"-2",
			"\\begin{vmatrix}1&2\\\\3&4\\end{vmatrix}", true},
		{"x=1,y=2", "(1,2)", true}, {"x=1,y=2", "y=2,x=1", true}, {"x=1,y=2", "x=2,y=1", false},
		// Units and words.
		{"5\\text{ cm}", "5", true}, {"5\\text{ cm}", "50\\text{ mm}", true}, {"5\\text{ cm}", "5\\text{ m}", false},
		{"40\\text{ points}", "40\\text{ meters}", false}, {"\\$5", "5 dollars", true}, {"\\$5", "\\$6", false},
		{"90^\\circ", "90", true}, {"90^\\circ", "90 degrees", true}, {"12\\text{ cm}^2", "12 square centimeters",
			true}, {"90^\\circ", "90\\%", false},
		{"\\text{Yes}", "yes", true}, {"\\text{even}", "\\text{odd}", false}, {"\\text{(B)}", "B", true}, {"B",
			"(B) 12", true}, {"B", "C", false}, {"\\text{east}", "East.", true}, {"A,B", "B", false},
		{"8:34 \\text{ PM}", "20:34", true}, {"\\text{Evelyn}", "Evelyn", true},
		// An answer that cannot be parsed is right only if it has the same text.
		{"\\sum_{k=1}^n k^2", "\\sum_{k=1}^{n} k^2", true}, {"\\sum_{k|n} k^2", "\\sum_{k|m} k^2", false},
		{"\\sum_{k=1}^n k^2", "\\sum_{k=1}^n  k^2", true}, {"10^{10^{10}}", "10^{10^{10}}", true}, {"10^{10^{10}}",
			"10^{10^{11}}", false}, {"5", "", false}, {"5", "{{{{", false},
	} {
		if v := Answer(tt.gold, tt.prediction); v.Correct != tt.want || v.Reason == "" {
			t.Errorf("gold %q, prediction %q: want %v, got %+v", tt.gold, tt.prediction, tt.want, v)
		}
	}
}

func TestNotSure(t *testing.T) {
	for _, tt := range [][2]string{
		{"5", "\\int_0^1 x dx"}, {"10^{10^{10}}", "10^{10^{11}}"}, {"40\\text{ points}", "40\\text{ widgets}"},
		{"(1,2,3)", "[1,2,3]"}, {"A \\subset B", "A \\subseteq B"}, {"A \\subsetneq B", "A \\subset B"},
		{"A \\subset B", "B \\supseteq A"},
	} {
		if v := Answer(tt[0], tt[1]); v.Sure {
			t.Errorf("gold %q, prediction %q: %+v is sure", tt[0], tt[1], v)
		}
	}
}
