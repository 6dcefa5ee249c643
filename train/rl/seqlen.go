package rl

import (
	"slices"
)

// Workload is verl's estimate of the work of a sequence of n tokens, 24576·n + n²: a
// dense layer's share and attention's, of a 7B model.
func Workload(n int) int { return int(n * (24576 + n)) }

// LengthMetrics returns verl's global_seqlen metrics of sequences with these lengths in
// tokens: over the sums of consecutive parts of equal count, and over the balanced parts.
func LengthMetrics(length []int, parts [][]int) []Metric {
	size := max(1, len(length)/max(1, len(parts)))
	var chunks, balanced []int
	total := 0
	for at := 0; at < len(length); at += size {
		sum := 0
		for _, n := range length[at:min(at+size, len(length))] {
			sum += n
		}
		chunks, total = append(chunks, sum), total+sum
	}
	for _, p := range parts {
		sum := 0
		for _, i := range p {
			sum += length[i]
		}
		balanced = append(balanced, sum)
	}
	if chunks == nil || balanced == nil {
		return nil
	}
	const prefix = "global_seqlen/"
	lo, hi := slices.Min(chunks), slices.Max(chunks)
	return []Metric{{prefix + "min", float64(lo)}, {prefix + "max", float64(hi)},
		{prefix + "minmax_diff", float64(hi - lo)},
		{prefix + "balanced_min", float64(slices.Min(balanced))},
		{prefix + "balanced_max", float64(slices.Max(balanced))},
		{prefix + "mean", float64(total) / float64(len(parts))}}
}
