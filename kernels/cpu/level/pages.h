// pages.h: storing keys and values in the cache.

// store_key_value stores the key at k and the value values_apart elements further on, of one
// head, in slot `slot`. Elements have `size` bytes, 2 or 4. Pages hold P positions of kv heads.
INLINE void store_key_value(char *keys, char *values, const char *k, long values_apart, long slot, long P, long kv, long head, long d, const long size) {
	const long page = slot / P, at = slot % P;
	char *to = keys + ((page * kv + head) * d * P + at) * size;
	if (size == 2)
		for (long i = 0; i < d; i++) ((bf16 *)to)[i * P] = ((const bf16 *)k)[i];
	else
		for (long i = 0; i < d; i++) ((float *)to)[i * P] = ((const float *)k)[i];
	memcpy(values + ((page * kv + head) * P + at) * d * size, k + values_apart * size, d * size);
}

// append_kv stores the keys and values of rows lo..hi, elements of `size` bytes, in the
// rows' slots.
static void append_kv(const struct append_args *g, long lo, long hi, int tid) {
	(void)tid;
	const long d = g->d;
	for (long m = lo; m < hi; m++)
		for (long head = 0; head < g->kv; head++) {
			const char *k = (const char *)g->qkv + (m * g->stride + (g->h + head) * d) * g->size;
			if (g->size == 2) store_key_value(g->keys, g->values, k, g->kv * d, g->slots[m], g->page, g->kv, head, d, 2);
			else store_key_value(g->keys, g->values, k, g->kv * d, g->slots[m], g->page, g->kv, head, d, 4);
		}
}
