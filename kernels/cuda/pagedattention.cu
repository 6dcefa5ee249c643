#include "sequence.h"

// A thread for each row, key/value head and component.
KERNEL(append_kv) {
	const struct attention_shape s = a.s;
	const long i = element(), d = i % s.D, kv = i / s.D % s.K, m = i / s.D / s.K;
	if (m >= a.M) return;
	const long page = a.slots[m] / a.pages.size, at = a.slots[m] % a.pages.size, head = page * s.K + kv;
	a.pages.keys[(head * s.D + d) * a.pages.size + at] = a.qkv[key_at(s, m, kv) + d];
	a.pages.values[(head * a.pages.size + at) * s.D + d] = a.qkv[value_at(s, m, kv) + d];
}

// paged_score is the score of position t of a row's table for head kv.
DEVICE float paged_score(const struct paged_attention_args *a, const int *table, const float *q, long kv, long t) {
	const long size = a->pages.size, page = table[t / size], D = a->s.D;
	const float *keys = a->pages.keys + (page * a->s.K + kv) * D * size + t % size;
	float acc = 0, y;
	for (long d = 0; d < D; d++) acc = fmaf(q[d], keys[d * size], acc);
	return score(a->s, acc, &y);
}

// A thread for each row and head, as in attention.
KERNEL(paged_attention) {
	const struct attention_shape s = a.s;
	const long at = element(), m = at / s.H, h = at % s.H, kv = h / (s.H / s.K);
	if (m >= a.M) return;
	const int *table = a.table + a.seq[m] * a.table_width;
	const long n = a.pos[m], from = first_seen(s, n), size = a.pages.size;
	const float *q = a.qkv + m * stride(s) + h * s.D;
	float largest = -INFINITE, lane[LANES] = {0}, *out = a.out + at * s.D;
	for (long t = from; t <= n; t++) {
		const float z = paged_score(&a, table, q, kv, t);
		if (z > largest) largest = z;
	}
	largest += 0.0f;
	for (long d = 0; d < s.D; d++) out[d] = 0;
	for (long t = from; t <= n; t++) {
		const float e = exp_of(paged_score(&a, table, q, kv, t) - largest);
		const float *v = a.pages.values + ((table[t / size] * s.K + kv) * size + t % size) * s.D;
		add_to_lane(lane, t, e);
		for (long d = 0; d < s.D; d++) out[d] = fmaf(e, v[d], out[d]);
	}
	const float inverse = 1 / fold(lane);
	for (long d = 0; d < s.D; d++) out[d] *= inverse;
}

// A thread for each element of a page copies it for all pairs in order: one may read what
// another wrote.
KERNEL(copy_pages) {
	const long i = element();
	if (i >= a.elements) return;
	for (long k = 0; k < a.n; k++) {
		const long from = a.pairs[2 * k] * a.elements + i, to = a.pairs[2 * k + 1] * a.elements + i;
		a.pages.keys[to] = a.pages.keys[from];
		a.pages.values[to] = a.pages.values[from];
	}
}
