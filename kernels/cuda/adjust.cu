#include "num.h"

// adjust_logits changes z [R,V] as kernels.Adjustments says, and keeps what was there. A thread for each of a row's K
// tokens, which differ.
KERNEL(adjust_logits) {
	const long i = element();
	if (i >= a.R * a.K || a.ids[i] < 0) return;
	float *z = a.z + i / a.K * a.V + a.ids[i];
	a.kept[i] = *z;
	float x = fmaf(a.before[i], a.inverse_temperature, *z);
	x = x > 0 ? x / a.factor[i] : x * a.factor[i];
	*z = fmaf(-a.after[i], a.inverse_temperature, x);
}

// restore_logits puts back what adjust_logits kept.
KERNEL(restore_logits) {
	const long i = element();
	if (i < a.R * a.K && a.ids[i] >= 0) a.z[i / a.K * a.V + a.ids[i]] = a.kept[i];
}

// mask_logits sets z [R,V] to kept [R,V], and to -inf where bits of ids [R,K] are not set: kernels.Sampling.Mask. A
// thread for each logit.
#define mask_logits_args restore_logits_args
KERNEL(mask_logits) {
	const long i = element();
	if (i >= a.R * a.V) return;
	const long v = i % a.V;
	a.z[i] = (uint32_t)a.ids[i / a.V * a.K + v / 32] >> (v % 32) & 1 ? a.kept[i] : -INFINITE;
}
