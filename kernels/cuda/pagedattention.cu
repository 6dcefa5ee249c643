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

// A thread for each 8 elements of a page's keys, and of its values if it has any, copies them for all pairs in order: one may read what
// another wrote. It loads those of AT_ONCE pairs first if none of them does.
#define AT_ONCE 4

KERNEL(copy_pages) {
	const long share = wides(a.elements), i = element(), at = i % share * WIDE, left = a.elements - at;
	const struct operand x = i < share ? a.pages.keys : a.pages.values;
	if (i >= 2 * share || !x.at) return;
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
