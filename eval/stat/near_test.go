package stat

import "math"

// near reports whether two numbers agree to tol, infinities included.
func near(got, want, tol float64) bool {
	return got == want || math.Abs(got-want) <= tol
}
