package stat

import (
	"cmp"
	"slices"
)

// Holm returns p values adjusted for multiple testing (Holm 1979): with p in ascending order,
//
//	adjusted_(i) = max_{j ≤ i} min(1, (m-j+1)·p_(j))
//
// returned in the order of the argument. Rejecting values of at most α keeps the probability of any
// false rejection at α, whatever the dependence.
func Holm(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })

	adjusted := make([]float64, len(p))
	var largest float64
	for rank, i := range order {
		largest = max(largest, min(1, float64(len(p)-rank)*p[i]))
		adjusted[i] = largest
	}
	return adjusted
}
