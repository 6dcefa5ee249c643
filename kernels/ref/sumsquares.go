package ref

import (
	"math"

	"exp/kernels"
)

// SumSquares returns the sum of x[i]·x[i] in float64: lane sums over consecutive
// kernels.SumBlock elements, fused within a lane, added in order.
func SumSquares[T Float](x []T) float64 {
	var sum float64
	for lo := 0; lo < len(x); lo += kernels.SumBlock {
		var lane [kernels.Lanes]float64
		for i, v := range x[lo:min(lo+kernels.SumBlock, len(x))] {
			j := i % kernels.Lanes
			lane[j] = math.FMA(float64(v), float64(v), lane[j])
		}
		sum += foldLanes(&lane)
	}
	return sum
}
