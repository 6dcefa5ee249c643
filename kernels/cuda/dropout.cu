#include "wide.h"

// philox sets word to kernels.Philox for a key and the counter {c0, c1, 0, 0}.
DEVICE void philox(uint32_t word[4], uint32_t k0, uint32_t k1, uint32_t c0, uint32_t c1) {
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
	word[0] = c0, word[1] = c1, word[2] = c2, word[3] = c3;
}

KERNEL(dropout) {
	const long i = element(), m = i / wides(a.C), c = i % wides(a.C) * WIDE;
	float v[WIDE];
	uint32_t word[WIDE];
	if (m >= a.M) return;
	UNROLL for (int k = 0; k < WIDE; k += 4) philox(word + k, a.keys[2 * m], a.keys[2 * m + 1], (c + k) / 4, a.layer);
	load_wide(v, floats(a.x), m * a.C + c, a.C - c);
	EACH_WIDE(j) {
		const float uniform = (float)(word[j] >> 8) * 0x1p-24f;
		v[j] = (double)uniform < a.p ? 0 : v[j] * a.scale;
	}
	store_wide(floats(a.out), m * a.C + c, a.C - c, v);
}
