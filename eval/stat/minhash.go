package stat

import (
	"math"
	"math/rand/v2"
)

// SignatureSize is the number of hashes in a Signature. It gives a similarity of one half with a standard
// error of 0.044, sqrt(J(1-J)/128).
const SignatureSize = 128

// Signature is a sketch of a set. The share of equal positions in two signatures is an unbiased estimate of
// their Similarity (Broder 1997, "On the resemblance and containment of documents", §3).
type Signature [SignatureSize]uint64

// MinHash returns the signature of a set of hashes: the smallest value of each of SignatureSize functions.
// The functions are (a·x + b) mixed, with constants drawn from a fixed seed, so equal sets have equal
// signatures everywhere. The empty set has the largest value in every position.
func MinHash(set []uint64) Signature {
	var s Signature
	for i := range s {
		s[i] = math.MaxUint64
	}
	rng := rand.New(rand.NewPCG(0x6d696e68617368, 0))
	for i := range s {
		a, b := rng.Uint64()|1, rng.Uint64()
		for _, x := range set {
			s[i] = min(s[i], mix(a*x+b))
		}
	}
	return s
}

// mix is the finalizer of SplitMix64 (Steele, Lea, Flood 2014), a bijection where every output bit
// depends on every input bit.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Similarity estimates the Jaccard index of the sets behind two signatures.
func (s *Signature) Similarity(o *Signature) float64 {
	same := 0
	for i := range s {
		if s[i] == o[i] {
			same++
		}
	}
	return float64(same) / SignatureSize
}

// SingleLink groups n things: two share a group if a chain of pairs with a similarity of at least threshold
// connects them. It returns each thing's group, numbered by first appearance, and the number of groups.
func SingleLink(n int, similarity func(i, j int) float64, threshold float64) (group []int, groups int) {
	group = make([]int, n)
	for i := range group {
		group[i] = -1
	}
	for i := range n {
		if group[i] >= 0 {
			continue
		}
		group[i] = groups
		for queue := []int{i}; len(queue) > 0; queue = queue[1:] {
			for j := range n {
				if group[j] < 0 && similarity(queue[0], j) >= threshold {
					group[j] = groups
					queue = append(queue, j)
				}
			}
		}
		groups++
	}
	return group, groups
}

// exactSets is the most sets that SimilarGroups compares directly. Beyond it the
// number of pairs makes short signatures worthwhile.
const exactSets = 64

// SimilarGroups applies SingleLink to sets, as Shingles returns them, with the Jaccard index: exact for up
// to exactSets sets, the MinHash estimate for more.
func SimilarGroups(sets [][]uint64, threshold float64) (group []int, groups int) {
	if len(sets) <= exactSets {
		return SingleLink(len(sets), func(i, j int) float64 { return Similarity(sets[i], sets[j]) }, threshold)
	}
	signatures := make([]Signature, len(sets))
	for i, s := range sets {
		signatures[i] = MinHash(s)
	}
	return SingleLink(len(sets), func(i, j int) float64 { return signatures[i].Similarity(&signatures[j]) },
		threshold)
}

// EffectiveNumber returns the exponential of the entropy of the group sizes, the Hill number of order 1
// (Hill 1973; Jost 2006): the number of equal-sized groups with that entropy. It is 1 for one group, n for
// n groups of one, and 0 without groups.
func EffectiveNumber(group []int) float64 {
	if len(group) == 0 {
		return 0
	}
	sizes := make(map[int]int)
	for _, g := range group {
		sizes[g]++
	}
	// In group order, so that the sum has the same bits each time.
	var h float64
	seen := make(map[int]bool)
	for _, g := range group {
		if seen[g] {
			continue
		}
		seen[g] = true
		p := float64(sizes[g]) / float64(len(group))
		h -= float64(p * math.Log(p))
	}
	return math.Exp(h)
}
