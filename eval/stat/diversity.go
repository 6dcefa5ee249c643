package stat

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"
)

// Distinct counts the different answers. The empty string is not an answer.
func Distinct(answers []string) int {
	return len(counts(answers))
}

// Entropy returns -Σ p ln p in nats over the classes of equal answers, ignoring empty strings; zero without
// answers. It is the plug-in estimate: with few samples it is below the entropy of their distribution.
func Entropy(answers []string) float64 {
	cs := counts(answers)
	total := 0
	for _, c := range cs {
		total += c
	}
	var h float64
	for _, c := range cs {
		p := float64(c) / float64(total)
		h -= float64(p * math.Log(p))
	}
	return max(h, 0) // one class gives -0
}

// NormalizedEntropy returns h / ln n, for the entropy h of the answers of n samples: 1 if all differ. Zero
// if n < 2.
func NormalizedEntropy(h float64, n int) float64 {
	if n < 2 {
		return 0
	}
	return h / math.Log(float64(n))
}

// DistinctN returns the number of different n-grams of tokens over the number of all n-grams, in the
// completions of one problem (Li et al., arXiv:1510.03055 §5). It falls with length, so compare equal
// lengths only. Zero without n-grams.
func DistinctN(completions [][]int32, n int) float64 {
	unique, total := grams(completions, n)
	if total == 0 {
		return 0
	}
	return float64(unique) / float64(total)
}

// grams counts the n-grams of completions, different ones and all.
func grams(completions [][]int32, n int) (unique, total int) {
	seen := make(map[string]bool)
	for _, tokens := range completions {
		for g, times := range countGrams(tokens, n) {
			seen[g] = true
			total += times
		}
	}
	return len(seen), total
}

// countGrams counts each n-gram in tokens, keyed by the bytes of its ids.
func countGrams(tokens []int32, n int) map[string]int {
	if n < 1 {
		panic("stat: n-grams need n ≥ 1")
	}
	times := make(map[string]int)
	var ids []byte
	for _, id := range tokens {
		ids = binary.LittleEndian.AppendUint32(ids, uint32(id))
	}
	for i := 0; i+n <= len(tokens); i++ {
		times[string(ids[4*i:4*(i+n)])]++
	}
	return times
}

// counts returns how often each answer occurs, ascending, so that sums over it depend neither on map order
// nor on sample order.
func counts(answers []string) []int {
	times := make(map[string]int)
	for _, a := range answers {
		if a != "" {
			times[a]++
		}
	}
	return slices.Sorted(maps.Values(times))
}
