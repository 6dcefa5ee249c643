package stat

import (
	"fmt"
	"math"
)

// AllAtK is the unbiased estimate of the probability that all of k samples are
// correct, pass^k, from n samples of which c are (Yao et al., arXiv:2406.12045 §3):
//
//	C(c, k) / C(n, k)
//
// k larger than n is an error, as in PassAtK.
func AllAtK(n, c, k int) (float64, error) {
	if err := checkCounts("pass^%d", n, c, k); err != nil {
		return 0, err
	}
	if c < k {
		return 0, nil
	}
	p := 1.0
	for i := range k {
		p *= float64(c-i) / float64(n-i)
	}
	return p, nil
}

// GPassAtK is the unbiased estimate of the probability that at least ⌈τk⌉ of k
// samples are correct, and at least one (Liu et al., arXiv:2412.13147 eq. 3):
//
//	Σ_{j ≥ max(⌈τk⌉, 1)} C(c, j)·C(n-c, k-j) / C(n, k)
//
// It is PassAtK for τ = 0 and AllAtK for τ = 1. τ outside [0,1] and k larger than n
// are errors.
func GPassAtK(n, c, k int, tau float64) (float64, error) {
	if err := checkCounts("G-Pass@%d", n, c, k); err != nil {
		return 0, err
	}
	if !(tau >= 0 && tau <= 1) {
		return 0, fmt.Errorf("G-Pass@%d with τ = %v: want a share between 0 and 1", k, tau)
	}
	// A product such as 0.7·10 may miss the whole number that it is.
	const slack = 1e-9
	least := max(1, int(math.Ceil(tau*float64(k)-slack)))
	return atLeast(n, c, k, least), nil
}

// MeanGPassAtK is the mean of G-Pass@k over the thresholds above one half, mG-Pass@k
// (arXiv:2412.13147 eq. 5):
//
//	(2/k) · Σ_{i=⌈k/2⌉+1}^{k} G-Pass@k at τ = i/k
func MeanGPassAtK(n, c, k int) (float64, error) {
	if err := checkCounts("mG-Pass@%d", n, c, k); err != nil {
		return 0, err
	}
	var sum float64
	for i := (k+1)/2 + 1; i <= k; i++ {
		sum += atLeast(n, c, k, i)
	}
	return 2 / float64(k) * sum, nil
}

// atLeast is the probability of at least least ≥ 1 correct ones among k of n samples,
// of which c are.
func atLeast(n, c, k, least int) float64 {
	total := logChoose(n, k)
	var p float64
	for j := max(least, k-(n-c)); j <= min(c, k); j++ {
		p += math.Exp(logChoose(c, j) + logChoose(n-c, k-j) - total)
	}
	return min(p, 1)
}

// logChoose is ln C(n, k) for 0 ≤ k ≤ n. Sums of it lose the last three digits at
// n = 1000, which a product of k ratios would too.
func logChoose(n, k int) float64 {
	lg := func(x int) float64 { v, _ := math.Lgamma(float64(x + 1)); return v }
	return lg(n) - lg(k) - lg(n-k)
}

// checkCounts refuses what has no unbiased estimate; name has the verb for k.
func checkCounts(name string, n, c, k int) error {
	name = fmt.Sprintf(name, k)
	if n < 1 || c < 0 || c > n || k < 1 {
		return fmt.Errorf("%s of %d correct samples in %d", name, c, n)
	}
	if k > n {
		return fmt.Errorf("%s needs at least %d samples a problem; there are %d", name, k, n)
	}
	return nil
}
