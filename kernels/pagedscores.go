package kernels

// PagedAttention on a GPU's tensor cores goes over the keys twice, because it takes the largest score first. It
// keeps the scores of the first time if they have room, and then reads no key twice.

// PagedWarps is how many groups of query heads, of up to 16 that share a key/value head, a GPU works on at once.
const PagedWarps = 132 * 2 * 4

// mostScores is the most room for scores, 1 GiB. Longer contexts go without.
const mostScores = 1 << 28

// PagedScores returns the number of float32 in that room, for rows of at most positions keys; 0 if there is none. It
// does not depend on the number of rows, so that plans need not know it.
func PagedScores(positions int, s AttentionShape) int {
	kept := 8 // heads of a group
	if s.H/s.K > kept {
		kept = 16
	}
	if n := int(PagedWarps * positions * kept); n <= mostScores {
		return n
	}
	return 0
}
