// dropout.h: dropout by the counters of kernels.Philox.

// philox_words sets words [4][LANES] to those of counters {first+i, layer, 0, 0}.
INLINE void philox_words(uint32_t words[4][LANES], uint32_t key0, uint32_t key1, uint32_t first, uint32_t layer) {
	uint32_t a[LANES], b[LANES], c[LANES], d[LANES];
	for (int i = 0; i < LANES; i++) a[i] = first + (uint32_t)i, b[i] = layer, c[i] = d[i] = 0;
	for (int round = 0; round < 10; round++, key0 += 0x9E3779B9u, key1 += 0xBB67AE85u)
		for (int i = 0; i < LANES; i++) {
			const uint64_t x = (uint64_t)0xD2511F53u * a[i], y = (uint64_t)0xCD9E8D57u * c[i];
			a[i] = (uint32_t)(y >> 32) ^ b[i] ^ key0;
			c[i] = (uint32_t)(x >> 32) ^ d[i] ^ key1;
			b[i] = (uint32_t)y, d[i] = (uint32_t)x;
		}
	for (int i = 0; i < LANES; i++) words[0][i] = a[i], words[1][i] = b[i], words[2][i] = c[i], words[3][i] = d[i];
}

// dropout works on rows lo..hi. An element is dropped if the upper 24 bits of its word are
// below limit.
static void dropout(const struct dropout_args *g, long lo, long hi, int tid) {
	(void)tid;
	uint32_t words[4][LANES];
	for (long m = lo; m < hi; m++) {
		const float *x = g->x + m * g->c;
		float *out = g->out + m * g->c;
		for (long i = 0; i < g->c; i += 4 * LANES) {
			const long n = g->c - i < 4 * LANES ? g->c - i : 4 * LANES;
			philox_words(words, (uint32_t)g->keys[2 * m], (uint32_t)g->keys[2 * m + 1], (uint32_t)(i / 4), g->layer);
			for (long j = 0; j < n; j++) out[i + j] = words[j % 4][j / 4] >> 8 < g->limit ? 0 : x[i + j] * g->scale;
		}
	}
}
