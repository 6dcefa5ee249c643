package stat

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"
)

// Distinct is the number of different answers. The empty string is no answer.
func Distinct(answers []string) int {
	return len(counts(answers))
}

// Entropy is -Σ p ln p in nats over the classes of equal answers; the empty string
// is no answer and takes no part. It is the plug-in estimate: with few samples it
// is below the entropy of the distribution they come from. Zero without answers.
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

// NormalizedEntropy is h / ln n, for the entropy h of the answers of n samples: 1 if
// all of them differ. Zero where n < 2.
func NormalizedEntropy(h float64, n int) float64 {
	if n < 2 {
		return 0
	}
	return h / math.Log(float64(n))
}

// DistinctN is the number of different n-grams of tokens divided by the number of
// all of them, over the completions of one problem (Li et al., arXiv:1510.03055
// §5). It falls with length: compare equal lengths only. Zero without n-grams.
func DistinctN(completions [][]int32, n int) float64 {
	unique, total := grams(completions, n)
	if total == 0 {
		return 0
	}
	return float64(unique) / float64(total)
}

// grams counts the n-grams of completions, the different ones and all.
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

// countGrams is how often each n-gram comes in tokens, by its ids' bytes.
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

// counts is how often each answer came, in ascending order, so that a sum over it
// depends neither on map order nor on the order of the samples.
func counts(answers []string) []int {
	times := make(map[string]int)
	for _, a := range answers {
		if a != "" {
			times[a]++
		}
	}
	return slices.Sorted(maps.Values(times))
}
