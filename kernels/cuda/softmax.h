// softmax.h turns a row's products with the output matrix into logits, and logits into their gradients.
#ifndef EXP_CUDA_SOFTMAX_H
#define EXP_CUDA_SOFTMAX_H

#include "num.h"

// capped returns cap·Tanh(z/cap), and the Tanh in y; z and 0 without a cap.
DEVICE float capped(float z, float cap, float inverse_cap, float *y) {
	*y = 0;
	if (cap == 0) return z;
	*y = tanh_of(z * inverse_cap);
	return cap * *y;
}

// logit_of is the logit for a product, and the Tanh of its cap in y.
DEVICE float logit_of(float product, struct softmax x, float *y) {
	return capped(product, x.cap, x.inverse_cap, y) * x.inverse_temperature;
}

// logit_gradient is the gradient of a product whose logit is z and whose cap's Tanh is y.
DEVICE float logit_gradient(float z, float y, int target, float dlogprob, float dentropy, float entropy, float lse,
	struct softmax x) {
	const float p = exp_of(z - lse), q = fmaf(dentropy, z - lse + entropy, dlogprob);
	float d = -(p * q);
	if (target) d += dlogprob;
	d *= x.inverse_temperature;
	if (x.cap > 0) d *= 1 - y * y;
	return d;
}

#endif
