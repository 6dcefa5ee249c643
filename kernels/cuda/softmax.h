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

// softmax_gradient is what the gradients of a row's scores give each of its logits. dlogprob is the sum over the row's targets;
// a target's logit gains its own on top.
DEVICE float softmax_gradient(float z, float dlogprob, float dentropy, float entropy, float lse) {
	const float p = exp_of(z - lse), q = fmaf(dentropy, z - lse + entropy, dlogprob);
	return -(p * q);
}

// product_gradient takes the gradient d of a logit back through the temperature and the cap, whose Tanh is y.
DEVICE float product_gradient(float d, float y, struct softmax x) {
	d *= x.inverse_temperature;
	if (x.cap > 0) d *= 1 - y * y;
	return d;
}

// logit_gradient is the gradient of a product whose logit is z and whose cap's Tanh is y.
DEVICE float logit_gradient(float z, float y, int target, float dlogprob, float dentropy, float entropy, float lse,
	struct softmax x) {
	float d = softmax_gradient(z, dlogprob, dentropy, entropy, lse);
	if (target) d += dlogprob;
	return product_gradient(d, y, x);
}

#endif
