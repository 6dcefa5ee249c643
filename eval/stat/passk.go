package stat

import "fmt"

// PassAtK returns the unbiased estimate of the probability that at least one of k samples is correct, from
// n samples with c correct:
//
//	1 - C(n-c, k) / C(n, k)  =  1 - Π_{i=n-c+1}^{n} (1 - k/i)
//
// It is 1 if n-c < k. The product is the numerically stable form (Chen et al., arXiv:2107.03374, fig. 3). k
// > n is an error: no unbiased estimate exists.
func PassAtK(n, c, k int) (float64, error) {
	if n < 1 || c < 0 || c > n || k < 1 {
		return 0, fmt.Errorf("pass@%d of %d correct samples in %d", k, c, n)
	}
	if k > n {
		return 0, fmt.Errorf("pass@%d needs at least %d samples per problem; there are %d", k, k, n)
	}
	if n-c < k {
		return 1, nil
	}
	miss := 1.0
	for i := n - c + 1; i <= n; i++ {
		miss *= 1 - float64(k)/float64(i)
	}
	return 1 - miss, nil
}
