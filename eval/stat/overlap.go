package stat

import (
	"hash/fnv"
	"math"
	"slices"
)

// How much the texts of a problem's samples overlap.

// SelfBLEU returns the mean over completions of BLEU-4 against all the others (Zhu et al., arXiv:1802.01886
// §3.1): 1 if all are the same, lower if they differ. BLEU is
//
//	min(1, e^(1-r/c)) · (p_1·p_2·p_3·p_4)^(1/4)
//
// with clipped precisions, orders above 1 with one added to both counts (Lin and Och, COLING 2004, BLEU+1);
// c is the completion's length and r the closest length among the others, the shorter on a tie. An empty
// completion scores 0. ok is false with fewer than two completions. Time is linear in the tokens, not in
// pairs.
func SelfBLEU(completions [][]int32) (bleu float64, ok bool) {
	m := len(completions)
	if m < 2 {
		return 0, false
	}
	logs := make([]float64, m) // Σ ln p_n per completion
	for n := 1; n <= 4; n++ {
		counts := make([]map[string]int, m)
		most := map[string]peak{}
		for i, tokens := range completions {
			counts[i] = countGrams(tokens, n)
			for g, c := range counts[i] {
				most[g] = most[g].with(c, i)
			}
		}
		for i, tokens := range completions {
			hits, all := 0, max(0, len(tokens)-n+1)
			for g, c := range counts[i] {
				hits += min(c, most[g].without(i))
			}
			if n > 1 {
				hits, all = hits+1, all+1
			}
			logs[i] += math.Log(float64(hits) / float64(max(1, all)))
		}
	}
	for i, tokens := range completions {
		if len(tokens) == 0 {
			continue
		}
		c, r := float64(len(tokens)), float64(closestLength(completions, i))
		bleu += math.Exp(min(0, 1-r/c) + logs[i]/4)
	}
	return bleu / float64(m), true
}

// peak holds the largest count of an n-gram in a completion, that completion, and the largest count in any
// other.
type peak struct{ first, owner, second int }

func (p peak) with(count, i int) peak {
	if count > p.first {
		return peak{count, i, p.first}
	}
	p.second = max(p.second, count)
	return p
}

// without returns the largest count in a completion other than i.
func (p peak) without(i int) int {
	if p.owner == i {
		return p.second
	}
	return p.first
}

// closestLength returns the length, among completions other than i, closest to i's own.
func closestLength(completions [][]int32, i int) int {
	own, best := len(completions[i]), -1
	for j, other := range completions {
		if j == i {
			continue
		}
		n := len(other)
		d, least := abs(n-own), abs(best-own)
		if best < 0 || d < least || d == least && n < best {
			best = n
		}
	}
	return best
}

func abs(x int) int { return max(x, -x) }

// Similarity returns the Jaccard index |A ∩ B| / |A ∪ B| of two sets, given as ascending lists without
// repetition. Two empty sets give 1.
func Similarity(a, b []uint64) float64 {
	both, i, j := 0, 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i] == b[j]:
			both++
			i++
			j++
		case a[i] < b[j]:
			i++
		default:
			j++
		}
	}
	if len(a)+len(b) == 0 {
		return 1
	}
	return float64(both) / float64(len(a)+len(b)-both)
}

// Shingles returns the set of runs of k words (Broder 1997), hashed, ascending. Fewer than k words make one
// shingle; no words make none.
func Shingles(words []string, k int) []uint64 {
	if k < 1 {
		panic("stat: shingles need k ≥ 1")
	}
	if len(words) == 0 {
		return nil
	}
	k = min(k, len(words))
	var set []uint64
	for i := 0; i+k <= len(words); i++ {
		h := fnv.New64a()
		for _, w := range words[i : i+k] {
			h.Write([]byte(w))
			h.Write([]byte{0})
		}
		set = append(set, h.Sum64())
	}
	slices.Sort(set)
	return slices.Compact(set)
}
