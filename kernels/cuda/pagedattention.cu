#include "sequence.h"

// A thread for each row, key/value head and component.
KERNEL(append_kv) {
	const struct attention_shape s = a.s;
	const long i = element(), d = i % s.D, kv = i / s.D % s.K, m = i / s.D / s.K;
	if (m >= a.M) return;
	const long page = a.slots[m] / a.pages.size, at = a.slots[m] % a.pages.size, head = page * s.K + kv;
	store(a.pages.keys, (head * s.D + d) * a.pages.size + at, load(a.qkv, key_at(s, m, kv) + d));
	store(a.pages.values, (head * a.pages.size + at) * s.D + d, load(a.qkv, value_at(s, m, kv) + d));
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

// A thread for each element of a page copies it for all pairs in order: one may read what
// another wrote.
KERNEL(copy_pages) {
	const long i = element();
	if (i >= a.elements) return;
	for (long k = 0; k < a.n; k++) {
		const long from = a.pairs[2 * k] * a.elements + i, to = a.pairs[2 * k + 1] * a.elements + i;
		store(a.pages.keys, to, load(a.pages.keys, from));
		store(a.pages.values, to, load(a.pages.values, from));
	}
}
