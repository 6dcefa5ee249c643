package optim

import "math"

// clipEps is torch's: it keeps the factor finite at a zero gradient.
const clipEps = 1e-6

// ClipFactor returns the factor that brings gradients of the given global L2 norm to at
// most limit: min(1, limit/(norm+1e-6)), as torch.nn.utils.clip_grad_norm_ does. ok is
// false if norm is not finite; skip the update then, as verl does. limit is positive;
// math.Inf(1) never clips.
func ClipFactor(norm, limit float64) (factor float64, ok bool) {
	if math.IsNaN(norm) || math.IsInf(norm, 0) {
		return 0, false
	}
	return min(1, limit/(norm+clipEps)), true
}
