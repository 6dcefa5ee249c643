package peer

import (
	"strings"
	"testing"
	"time"
)

// TestPrimeBranches: verdicts of rllm's grade_answer_mathd and grade_answer_sympy, run with SymPy 1.14 and pylatexenc
// 2.11, with cases of our own for each branch.
func TestPrimeBranches(t *testing.T) {
	for _, tt := range []struct {
		answer, gold    string
		mathd, symbolic bool
	}{
		{"\\text{5} cm", "5", false, true}, {"\\text{east}", "east", true, true},
		{"[8\\sqrt{2}]", "8\\sqrt{2}", false, false}, {"(8)", "8", false, true}, {"(16_8)", "16_8", false, true},
		{"(025)", "025", false, false}, {"6.125.", "6.125", false, false}, {"6.", "6", false, true}, {"(0.25)", "0.25", false, true},
		{"\\text{ east }", "east", true, true}, {"\\text{5}x", "5", false, false}, {"5\\text{ cm}", "5", true, true},
		{"5\\text{ cm}\\text{ x}", "5", false, false}, {"\\frac12", "\\frac{1}{2}", true, true},
		{"\\frac1{72}", "\\frac{1}{72}", true, true}, {"\\frac{72}1", "72", false, false},
		{"\\frac1", "\\frac1", true, true}, {"\\sqrt3", "\\sqrt{3}", true, true}, {"\\sqrt", "\\sqrt", true, true},
		{"k=5", "5", true, false}, {"kk=5", "5", true, false}, {"kkk=5", "5", false, false},
		{"a=b=5", "5", false, false}, {"a/b", "a/b", true, true}, {"3/4", "\\frac{3}{4}", true, true},
		{"03/4", "\\frac{3}{4}", false, false}, {"1/2/3", "1/2/3", true, true}, {".5", "0.5", true, true},
		{"x .5", "x 0.5", true, false}, {"{.5}", "{0.5}", true, true}, {"0.5", "\\frac12", true, true},
		{"", "", true, true}, {"\\%", "5", false, false}, {"5\\%", "5", true, true}, {"1,000", "1000", false, true},
		{"10,00", "1000", false, false}, {"1,000,000", "1000000", false, true}, {"1,0000", "10000", false, false},
		{"12,345.0", "12345", false, true}, {"3.0", "3", false, true}, {"3.00000001", "3", false, true},
		{"-0", "0", false, true}, {"1e5", "100000", false, true}, {"inf", "inf", true, true},
		{"nan", "nan", true, true}, {"1_000", "1000", false, true}, {" 5 ", "5", true, true},
		{"5.", "5", false, true}, {"1 million", "10^6", false, true}, {"2 billion", "2000000000", false, false},
		{"3 or 4", "3,4", false, true}, {"3 and 4", "3 , 4", false, true}, {"5 degrees", "5", false, true},
		{"5 meters^2", "5", false, true}, {"5 yards", "5", false, true}, {"90^\\circ", "90", true, true},
		{"90^{\\circ}", "90", true, false}, {"{5}", "5", false, true}, {"{", "{", true, true},
		{"5,\\! 000", "5000", false, true}, {"- 5", "-5", true, true}, {"7 3/4", "31/4", false, true},
		{"7 3/4", "7.75", false, true}, {"1 2", "1+2", false, true}, {"X", "x", false, true},
		{"2/4", "1/2", false, false}, {"1/2", "0.5", true, true}, {"1/2.", "1/2", false, false},
		{"1/0", "1/0", true, true}, {"6/1", "6", false, false}, {"4/2", "2", false, false},
		{"2.0/4", "1/2", false, true}, {"(1,2)", "(1,2)", true, true}, {"(1,2]", "(1,2)", false, false},
		{"[1,2)", "(1,2)", false, false}, {"(1,2,3)", "(1,2)", false, false}, {"(1/2,3)", "(0.5,3)", false, true},
		{"(2/4,3)", "(1/2,3)", false, false}, {"(a,b)", "(b,a)", false, false},
		{"((1,2),3)", "((1,2),3)", true, true}, {"(1,000,2)", "(1000,2)", false, true}, {"()", "()", true, true},
		{"(1)", "1", false, true}, {"(1)", "(1)", true, true}, {"(5)", "5", false, true},
		{"x^2+x", "x(x+1)", false, true}, {"x^{2}", "x^2", false, true}, {"2^10", "1024", false, false},
		{"2^5", "32", false, false}, {"x^2^3", "x^8", false, false}, {"a+b+c", "c+b+a", false, false},
		{"xyz", "zyx", false, false}, {"xy", "yx", false, true}, {"2x", "x*2", false, true},
		{"sqrt(4)", "2", false, false}, {"\\sqrt{4}", "2", false, false}, {"\\sqrt{x^2}", "x", false, false},
		{"\\frac{x+1}{2}", "(x+1)/2", false, false}, {"\\frac{x}{y}+1", "x/y+1", false, true},
		{"\\pi", "pi", false, true}, {"2\\pi", "pi*2", false, true}, {"\\infty", "inf", false, true},
		{"\\cdot", "*", false, true}, {"3\\cdot4", "12", false, false}, {"3\\times4", "12", false, false},
		{"\\left(1,2\\right)", "(1,2)", true, true}, {"\\{1,2\\}", "1,2", false, true},
		{"\\alpha", "alpha", false, false}, {"sin(x)", "sin(x)", true, true}, {"\\sin x", "sin x", false, true},
		{"\\tan x", "\\frac{\\sin x}{\\cos x}", false, false}, {"5!", "120", false, false},
		{"|x|", "|x|", true, true}, {"x=5", "x=5", true, true}, {"5=x", "x=5", false, false},
		{"é", "É", false, true}, {"İ", "i̇", false, true}, {"0.333", "1/3", false, false},
		{"0.50", "1/2", false, true}, {"0.5", "0.50", false, true}, {"100", "1e2", false, true},
		{"1.5", "3/2", false, true}, {"\\$5.00", "5", false, true}, {"5\\$", "5", true, true},
		{"five", "5", false, false}, {"\\text{(A)}", "A", false, true}, {"(A)", "a", false, true},
		{"A.", "A", false, false}, {"1,2", "2,1", false, false}, {"1, 2", "1,2", true, true},
		{"1;2", "1;2", true, true}, {"x\\le5", "x<=5", false, false}, {"x\\leq 5", "x≤5", false, true},
		{"3\\frac{1}{2}", "7/2", false, true}, {"-\\frac{1}{2}", "-0.5", false, true},
		{"\\frac{-1}{2}", "-1/2", true, true}, {"--5", "5", false, false}, {"+5", "5", false, true},
		{"1.0e0", "1", false, true}, {"½", "1/2", false, false}, {"10 %", "10", false, true},
		{"\\mathrm{x}", "x", false, true}, {"\\mathbf{5}", "5", false, true},
		{"\\frac{\\sqrt{3}}{2}", "sqrt(3)/2", false, true}, {"\\binom{4}{2}", "6", false, false},
		{"4 choose 2", "6", false, false}, {"\\ln 2", "ln 2", false, true}, {"e^2", "e**2", false, true},
		{"I", "i", false, true}, {"2i", "2*i", false, true}, {"oo", "inf", false, false},
		{"1/3", "0.3333333", false, false}, {"\\sqrt[3]{8}", "2", false, false},
	} {
		if got := PrimeMathd(tt.answer, tt.gold); got != tt.mathd {
			t.Errorf("mathd: %q, gold %q: %v, want %v", tt.answer, tt.gold, got, tt.mathd)
		}
		if got := PrimeSymbolic(tt.answer, tt.gold); got != tt.symbolic {
			t.Errorf("symbolic: %q, gold %q: %v, want %v", tt.answer, tt.gold, got, tt.symbolic)
		}
	}
}

// TestRepeatedCommands: an output that repeats a command takes time in proportion to its length.
func TestRepeatedCommands(t *testing.T) {
	start := time.Now()
	for _, command := range []string{"\\sqrt[", "\\frac12"} {
		if _, err := StripString(strings.Repeat(command, 200_000)); err != nil {
			t.Error(err)
		}
	}
	if d := time.Since(start); d > 20*time.Second {
		t.Errorf("two answers of 1 MB took %v", d)
	}
}

// TestPrimeLaTeX: the same for LaTeX that pylatexenc turns into signs, letters of other alphabets and matrices, and for
// texts that SymPy reads in its own way.
func TestPrimeLaTeX(t *testing.T) {
	for _, tt := range []struct {
		answer, gold    string
		mathd, symbolic bool
	}{
		{`\left( 6, \  3 \pi / 2\right)`, `\left( 6, \frac{3 \pi}{2}\right)`, false, true},
		{`\textbf{(E)}`, `E`, false, true},
		{`\textbf{parabola}`, `\text{parabola}`, false, true},
		{`\Rightarrow 12`, `12`, false, false},
		{`B\to A`, `A\to B`, false, false},
		{`\pm55`, `55`, false, false},
		{`\lnot 12`, `12`, false, false},
		{`\Delta 24`, `24`, false, false},
		{`5√2`, `\sqrt{50}`, false, false},
		{`5\sqrt{2}`, `\sqrt{50}`, false, true},
		{`\bar{z}`, `z`, false, false},
		{`\vec{BA}`, `\vec{AB}`, false, false},
		{`\begin{bmatrix}3\\4\end{bmatrix}`, `\begin{pmatrix}3\\4\end{pmatrix}`, false, true},
		{`\begin{vmatrix}1&2\\3&4\end{vmatrix}`, `\begin{pmatrix}1&2\\3&4\end{pmatrix}`, false, false},
		{`\begin{pmatrix} 1 \\[2mm] 2 \end{pmatrix}`, `\begin{pmatrix} 1 \\ 2 \end{pmatrix}`, false, true},
		{`12345678901234567891`, `12345678901234567890`, false, true},
		{`１２`, `12`, false, true},
		{`\[18\]`, `18`, false, true},
		{`\lambda+\lambda`, `2\lambda`, false, true},
		{`θ`, `\theta`, false, true},
		{`ℕ`, `\mathbb{N}`, false, true},
		{`\textcolor{green}{15}`, `15`, false, true},
		{`15\hspace{1cm}`, `15`, false, true},
		{`12 \ \checkmark`, `12`, false, true},
		{`\ln 6`, `2\ln 3`, false, true},
		{`3\ln 2`, `\ln 8`, false, false},
		{`\sqrt{-4}`, `2i`, false, false},
		{`-5+12i`, `(2+3i)^2`, false, false},
		{`36π`, `36\pi`, false, false},
		{`0.(3)`, `\frac13`, false, false},
		{`0.333...`, `\frac13`, false, false},
		{`|-x-4|`, `|x+4|`, false, false},
		{`\varphi(n)`, `\phi(n)`, false, false},
		{`0.00025`, `2.5E-4`, false, true},
		{`\left(-1\right) 4 \sqrt{2} + 8`, `8-4\sqrt{2}`, false, true},
		{`\frac{x^{2}}{16} = 1`, `\frac{x^2}{16} = 1`, false, true},
		{`\sqrt[3]{2}`, `\sqrt{2}`, false, true},
		{`10 \frac{\text{m}}{\text{s}}`, `10\text{ m/s}`, false, true},
		{`63\blacksquare`, `63`, false, false},
		{`B\subset A`, `A\subset B`, false, false},
		{`\lfloor 3.5 \rfloor`, `3.5`, false, false},
		{`\mbox{x}5`, `5`, false, true},
		{`a^{2}b`, `a^2b`, false, true},
		{`(C).`, `C`, false, false},
		{`\underline{7}`, `7`, false, true},
		{`\mathcal{N}`, `N`, false, false},
	} {
		if got := PrimeMathd(tt.answer, tt.gold); got != tt.mathd {
			t.Errorf("mathd: %q, gold %q: %v, want %v", tt.answer, tt.gold, got, tt.mathd)
		}
		if got := PrimeSymbolic(tt.answer, tt.gold); got != tt.symbolic {
			t.Errorf("symbolic: %q, gold %q: %v, want %v", tt.answer, tt.gold, got, tt.symbolic)
		}
	}
}
