//go:build cuda

package cuda

import (
	"testing"

	"exp/kernels"
	"exp/kernels/ref"
)

// The sums of 1,792 blocks are added from a stage of shared memory. The suite has no array of two stages and a part.
func TestSumSquaresInStages(t *testing.T) {
	x := waves(2*1792*kernels.SumBlock+3*kernels.SumBlock+17, 0.7)
	b := open(t)
	out, err := b.Alloc(kernels.F64, 1)
	if err != nil {
		t.Fatal(err)
	}
	b.SumSquares(out, upload(t, b, kernels.F32, x))
	got := []float64{0}
	b.Copy(kernels.Host(got), out)
	b.Sync()
	if want := ref.SumSquares(x); got[0] != want {
		t.Errorf("sum is %v, want %v", got[0], want)
	}
}
