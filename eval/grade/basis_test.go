package grade

import "testing"

// TestBasis: what a verdict rests on is the weakest step to it.
func TestBasis(t *testing.T) {
	for _, tt := range []struct {
		gold, answer string
		want         Basis
	}{
		{"5", "5", Proof}, {"\\frac12", "0.5", Proof}, {"5\\text{ m}", "500\\text{ cm}", Proof}, {"1,2", "2,1", Proof},
		{"50", "50\\%", Convention}, {"90", "90^\\circ", Convention}, {"25_6", "25", Convention},
		{"\\frac13", "0.333333", Convention}, {"(1,2)", "1,2", Convention}, {"\\textbf{(B)}\\ 12", "12", Convention},
		{"5", "5\\text{ apples}", UnitRule}, {"5\\text{ cm}", "5", UnitRule}, {"(5,1)", "(5\\text{ cm},1)", UnitRule},
		{"1,\\frac13", "1\\text{ cm},0.333333", UnitRule}, {"(1,2,3)", "[1,2,3]", Guess},
		{"5", "6\\text{ apples}", Proof}, {"5", "5\\text{ squared}", Proof}, // not right
	} {
		if v := Answer(tt.gold, tt.answer); v.Basis != tt.want {
			t.Errorf("gold %q, answer %q: %v, want %v: %+v", tt.gold, tt.answer, v.Basis, tt.want, v)
		}
	}
	for _, tt := range []struct {
		gold, response string
		want           Basis
	}{
		{"5", "So it is \\boxed{5}.", Proof}, {"5", "The answer is 5 apples.", UnitRule},
		{"5", "We see that three of them are red.\nHence Tom has 5 of them.", Guess},
	} {
		if v := Response(tt.gold, tt.response); v.Basis != tt.want || !v.Correct {
			t.Errorf("gold %q, response %q: %v, want %v: %+v", tt.gold, tt.response, v.Basis, tt.want, v)
		}
	}
}
