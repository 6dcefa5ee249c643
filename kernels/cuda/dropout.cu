#include "gpu.h"

// philox returns word w of kernels.Philox for a key and the counter {c0, c1, 0, 0}.
DEVICE uint32_t philox(uint32_t k0, uint32_t k1, uint32_t c0, uint32_t c1, int w) {
	uint32_t c2 = 0, c3 = 0;
	for (int round = 0; round < 10; round++) {
		const uint64_t p0 = (uint64_t)0xD2511F53 * c0, p1 = (uint64_t)0xCD9E8D57 * c2;
		c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
		c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
		c1 = (uint32_t)p1;
		c3 = (uint32_t)p0;
		k0 += 0x9E3779B9;
		k1 += 0xBB67AE85;
	}
	return w == 0 ? c0 : w == 1 ? c1 : w == 2 ? c2 : c3;
}

KERNEL(dropout) {
	const long i = element(), m = i / a.C, c = i % a.C;
	if (m >= a.M) return;
	const uint32_t word = philox(a.keys[2 * m], a.keys[2 * m + 1], c / 4, a.layer, c % 4);
	const float uniform = (float)(word >> 8) * 0x1p-24f;
	a.out[i] = (double)uniform < a.p ? 0 : a.x[i] * a.scale;
}
