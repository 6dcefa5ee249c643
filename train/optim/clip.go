package optim

import "math"

// clipEps is torch's: it keeps the factor finite for a zero gradient.
const clipEps = 1e-6

// ClipFactor returns what to multiply gradients of the given global L2 norm by,
// so that it does not exceed limit: min(1, limit/(norm+1e-6)), as
// torch.nn.utils.clip_grad_norm_ does. ok is false if norm is not finite: the
// update is to be skipped then, as verl does. limit is positive; math.Inf(1)
// never clips.
func ClipFactor(norm, limit float64) (factor float64, ok bool) {
	if math.IsNaN(norm) || math.IsInf(norm, 0) {
		return 0, false
	}
	return min(1, limit/(norm+clipEps)), true
}
