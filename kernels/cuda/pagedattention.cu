#include "sequence.h"
#include "wide.h"

// A thread for each row, key/value head and 8 components.
KERNEL(append_kv) {
	const struct attention_shape s = a.s;
	const long i = element(), d = i % wides(s.D) * WIDE, kv = i / wides(s.D) % s.K, m = i / wides(s.D) / s.K;
	float key[WIDE], value[WIDE];
	if (m >= a.M) return;
	const long page = a.slots[m] / a.pages.size, at = a.slots[m] % a.pages.size, head = page * s.K + kv;
	load_wide(key, a.qkv, key_at(s, m, kv) + d, s.D - d);
	load_wide(value, a.qkv, value_at(s, m, kv) + d, s.D - d);
	EACH_WIDE(j) if (j < s.D - d) store(a.pages.keys, (head * s.D + d + j) * a.pages.size + at, key[j]);
	store_wide(a.pages.values, (head * a.pages.size + at) * s.D + d, s.D - d, value);
}

// paged_score is the score of a query at offset q and position t of a row's table, for head kv.
DEVICE float paged_score(const struct paged_attention_args *a, const int *table, long q, long kv, long t) {
	const long size = a->pages.size, D = a->s.D, page = table[t / size];
	const struct terms key = terms_of(a->pages.keys, (page * a->s.K + kv) * D * size + t % size, size);
	float y;
	return score(a->s, product_sum(a->qkv.bf16, terms_of(a->qkv, q, 1), key, D, 0), &y);
}

// A thread for each row and head, as in attention.
KERNEL(paged_attention) {
	const struct attention_shape s = a.s;
	const long at = element(), m = at / s.H, h = at % s.H, kv = h / (s.H / s.K);
	if (m >= a.M) return;
	const int *table = a.table + a.seq[m] * a.table_width;
	const long n = a.pos[m], from = first_seen(s, n), size = a.pages.size, q = query_at(s, m, h);
	float largest = -INFINITE, lane[LANES] = {0};
	for (long t = from; t <= n; t++) {
		const float z = paged_score(&a, table, q, kv, t);
		if (z > largest) largest = z;
	}
	largest += 0.0f;
	const struct sums out = start_sums(a.room ? a.room + 3 * at * s.D : 0, a.out, at * s.D, s.D);
	for (long t = from; t <= n; t++) {
		const float e = exp_of(paged_score(&a, table, q, kv, t) - largest);
		add_to_lane(lane, t, e);
		add_products(out, t, e, a.pages.values, ((table[t / size] * s.K + kv) * size + t % size) * s.D);
	}
	end_sums(out, n + 1);
	const float inverse = 1 / fold(lane);
	for (long d = 0; d < s.D; d++) store(a.out, at * s.D + d, out.acc[d] * inverse);
}

// A thread for each 8 elements of a page's keys, and of its values, copies them for all pairs in order: one may read what
// another wrote. It loads those of AT_ONCE pairs first if none of them does.
#define AT_ONCE 4

KERNEL(copy_pages) {
	const long share = wides(a.elements), i = element(), at = i % share * WIDE, left = a.elements - at;
	const struct operand x = i < share ? a.pages.keys : a.pages.values;
	if (i >= 2 * share) return;
	for (long k = 0, n; k < a.n; k += n) {
		const int *pair = a.pairs + 2 * k;
		float v[AT_ONCE][WIDE];
		for (n = 1; n < AT_ONCE && k + n < a.n; n++) {
			int written = 0;
			for (long j = 0; j < n; j++) written |= pair[2 * j + 1] == pair[2 * n];
			if (written) break;
		}
		UNROLL for (long j = 0; j < AT_ONCE; j++)
			if (j < n) load_wide(v[j], x, pair[2 * j] * a.elements + at, left);
		UNROLL for (long j = 0; j < AT_ONCE; j++)
			if (j < n) store_wide(x, pair[2 * j + 1] * a.elements + at, left, v[j]);
	}
}
