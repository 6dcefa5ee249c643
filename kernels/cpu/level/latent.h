// latent.h: heads of latent attention, to and from the rows that attention reads.

// rope_channel returns the rotated channel that is the i-th of a head.
INLINE long rope_channel(const struct latent_args *g, long i) {
	if (!g->interleaved) return i;
	return i < g->rope / 2 ? 2 * i : 2 * (i - g->rope / 2) + 1;
}

// move_channels copies the rotated channels between their order in a head and the other.
INLINE void move_channels(const struct latent_args *g, char *to, const char *from, const int ordered, const long size) {
	for (long i = 0; i < g->rope; i++) {
		const long c = rope_channel(g, i);
		memcpy(to + (ordered ? c : i) * size, from + (ordered ? i : c) * size, size);
	}
}

INLINE void join_latent_rows(const struct latent_args *g, long lo, long hi, const long size) {
	const long d = g->nope + g->rope, each = g->nope + g->value;
	for (long m = lo; m < hi; m++)
		for (long h = 0; h < g->h; h++) {
			char *query = (char *)g->qkv + (m * 3 * g->h + h) * d * size, *key = query + g->h * d * size, *value = key + g->h * d * size;
			const char *q = (const char *)g->q + (m * g->h + h) * d * size, *kv = (const char *)g->kv + (m * g->h + h) * each * size;
			move_channels(g, query, q + g->nope * size, 0, size);
			move_channels(g, key, (const char *)g->k_rope + m * g->rope * size, 0, size);
			memcpy(query + g->rope * size, q, g->nope * size);
			memcpy(key + g->rope * size, kv, g->nope * size);
			memcpy(value, kv + g->nope * size, g->value * size);
			memset(value + g->value * size, 0, (d - g->value) * size);
		}
}

static void join_latent(const struct latent_args *g, long lo, long hi, int tid) {
	(void)tid;
	if (g->bf16) join_latent_rows(g, lo, hi, 2);
	else join_latent_rows(g, lo, hi, 4);
}

INLINE void split_latent_rows(const struct latent_args *g, long lo, long hi, const int h16) {
	const long d = g->nope + g->rope, each = g->nope + g->value, size = h16 ? 2 : 4;
	for (long m = lo; m < hi; m++) {
		const char *row = (const char *)g->qkv + m * 3 * g->h * d * size;
		for (long h = 0; h < g->h; h++) {
			const char *query = row + h * d * size, *key = query + g->h * d * size, *value = key + g->h * d * size;
			char *q = (char *)g->q + (m * g->h + h) * d * size, *kv = (char *)g->kv + (m * g->h + h) * each * size;
			move_channels(g, q + g->nope * size, query, 1, size);
			memcpy(q, query + g->rope * size, g->nope * size);
			memcpy(kv, key + g->rope * size, g->nope * size);
			memcpy(kv + g->nope * size, value, g->value * size);
		}
		for (long i = 0; i < g->rope; i++) {
			const long at = m * g->rope + rope_channel(g, i);
			float sum = 0;
			for (long h = 0; h < g->h; h++) {
				const char *key = row + (g->h + h) * d * size;
				sum += h16 ? widen(((const bf16 *)key)[i]) : ((const float *)key)[i];
			}
			if (h16) ((bf16 *)g->k_rope)[at] = round1(sum);
			else ((float *)g->k_rope)[at] = sum;
		}
	}
}

static void split_latent(const struct latent_args *g, long lo, long hi, int tid) {
	(void)tid;
	if (g->bf16) split_latent_rows(g, lo, hi, 1);
	else split_latent_rows(g, lo, hi, 0);
}

// move_values copies the values of rows lo..hi from heads of d channels in qkv to kv, or back, with zeros behind them.
static void move_values(const struct latent_args *g, long lo, long hi, int tid) {
	(void)tid;
	const long size = g->bf16 ? 2 : 4, wide = (g->nope + g->rope) * size, narrow = g->value * size;
	for (long v = lo * g->h; v < hi * g->h; v++) {
		char *att = (char *)g->qkv + v * wide, *out = (char *)g->kv + v * narrow;
		if (!g->back) {
			memcpy(out, att, narrow);
			continue;
		}
		memcpy(att, out, narrow);
		memset(att + narrow, 0, wide - narrow);
	}
}
