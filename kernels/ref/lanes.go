package ref

import "exp/kernels"

// LaneSum returns the lane sum of x: kernels.Lanes accumulators that start at
// 0, x[i] added to accumulator i mod Lanes, then folded in a fixed tree.
func LaneSum[T Float](x []T) T {
	var lane [kernels.Lanes]T
	for i, v := range x {
		lane[i%kernels.Lanes] += v
	}
	return foldLanes(&lane)
}

// LaneDot returns the lane sum of a[i]·b[i], fused within each lane. a and b
// have the same length.
func LaneDot[T Float](a, b []T) T {
	if len(a) != len(b) {
		panic("ref: LaneDot: length mismatch")
	}
	var lane [kernels.Lanes]T
	for i := range a {
		j := i % kernels.Lanes
		sum, ok := quickFMA(a[i], b[i], lane[j])
		if !ok {
			sum = FMA(a[i], b[i], lane[j])
		}
		lane[j] = sum
	}
	return foldLanes(&lane)
}

// foldLanes adds the upper half of the lanes to the lower half until one is
// left. It destroys lane.
func foldLanes[T Float](lane *[kernels.Lanes]T) T {
	for w := kernels.Lanes / 2; w > 0; w /= 2 {
		for j := 0; j < w; j++ {
			lane[j] += lane[j+w]
		}
	}
	return lane[0]
}

// chain returns the chain over i of a[i]·b[i], starting from acc.
func chain[T Float](a, b []T, acc T) T {
	for i, v := range a {
		sum, ok := quickFMA(v, b[i], acc)
		if !ok {
			sum = FMA(v, b[i], acc)
		}
		acc = sum
	}
	return acc
}
