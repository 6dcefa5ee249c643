package ref

import (
	"testing"

	"exp/kernels"
)

func TestSumSquaresKnown(t *testing.T) {
	if got := SumSquares([]float32{3, -4, 12}); got != 169 { // 9+16+144
		t.Errorf("SumSquares = %v, want 169", got)
	}
	if got := SumSquares([]float32(nil)); got != 0 {
		t.Errorf("SumSquares of nothing = %v, want 0", got)
	}
	// float64 inside: 2¹²·2¹² + 1 is not a float32.
	if got := SumSquares([]float32{1 << 12, 1}); got != 1<<24+1 {
		t.Errorf("SumSquares = %v, want 16777217", got)
	}
	// Blocks: 2⁵⁴ in the first; two ones in different lanes of the second make 2,
	// which 2⁵⁴ alone absorbs each time (its neighbours are 4 apart; +2 is a tie
	// to even), while four ones together add 4.
	x := make([]float32, kernels.SumBlock+4)
	x[0] = 1 << 27
	for i := range 4 {
		x[kernels.SumBlock+i] = 1
	}
	if got := SumSquares(x); got != 1<<54+4 {
		t.Errorf("SumSquares in blocks = %v, want 2⁵⁴+4", got)
	}
}
