#include "heads.h"

// Paged attention on tensor cores (heads.h): a warp has up to 16 query heads of a row that share a
// key/value head. All see the same positions.

#define CHANNELS GROUP // tiles of 8 channels whose sums a warp holds

// key_in_pages and value_in_pages are the offsets of a position's key and value, -1 if the row does not see it: it sees
// positions from `from` to n.
DEVICE long key_in_pages(const struct paged_attention_args *a, const int *table, long kv, long t, long from, long n) {
	const long size = a->pages.size;
	return t < from || t > n ? -1 : (table[t / size] * a->s.K + kv) * a->s.D * size + t % size;
}

DEVICE long value_in_pages(const struct paged_attention_args *a, const int *table, long kv, long t, long from, long n) {
	const long size = a->pages.size;
	return t < from || t > n ? -1 : ((table[t / size] * a->s.K + kv) * size + t % size) * a->s.D;
}

// scores_in_pages sets z to the scores of a lane's heads and 16 positions from t on.
INLINE void scores_in_pages(float z[2][4], const struct paged_attention_args *a, const int *table, const long *q, long kv,
	long t, long from, long n) {
	float y;
	const long k[] = {key_in_pages(a, table, kv, t + quad(), from, n), key_in_pages(a, table, kv, t + quad() + 8, from, n)};
	dot(z, rows_in(a->qkv, 1, a->s.D), q, rows_in(a->pages.keys, a->pages.size, a->s.D), k, a->s.D);
	EACH_SCORE(j, e) z[j][e] = score(a->s, z[j][e], &y);
}

BLOCK_KERNEL(matrix_paged_attention, HEAD_THREADS, 2) {
	const struct attention_shape s = a.s;
	const long share = s.H / s.K, parts = (share + 15) / 16;
	const long warp = element() / WARP, part = warp % parts, kv = warp / parts % s.K, row = warp / parts / s.K;
	if (row >= a.M) return;
	const int *table = a.table + a.seq[row] * a.table_width;
	const long n = end_in_pages(&a, row) - 1, from = first_seen(s, a.pos[row]), h = kv * share + part * 16, end = (kv + 1) * share;
	const long q[] = {h + quad() < end ? query_at(s, row, h + quad()) : -1, h + quad() + 8 < end ? query_at(s, row, h + quad() + 8) : -1};
	struct step all; // every row sees every position that is there
	all.row = (int)n;
	all.position = (int)n - STEP + 1;
	all.window = all.by_keys = 0;
	ROLLED for (long d = 0; d < s.D; d += CHANNELS * 8) {
		float out[CHANNELS][4], z[KEYS / STEP][2][4];
		uint32_t weights[4];
		struct running rows;
		UNROLL for (int i = 0; i < CHANNELS; i++) UNROLL for (int e = 0; e < 4; e++) out[i][e] = 0;
		no_keys(&rows);
		ROLLED for (long t = from / KEYS * KEYS; t <= n; t += KEYS) {
			float top[] = {-INFINITE, -INFINITE};
			UNROLL for (int i = 0; i < KEYS / STEP; i++) {
				scores_in_pages(z[i], &a, table, q, kv, t + i * STEP, from, n);
				EACH_SCORE(j, e) {
					const long at = t + i * STEP + column_in_tile(j, e);
					if (at < from || at > n) z[i][j][e] = -INFINITE;
					top[e / 2] = larger(top[e / 2], z[i][j][e]);
				}
			}
			rise(&rows, top, out, CHANNELS);
			UNROLL for (int i = 0; i < KEYS / STEP; i++) {
				long v[4];
				UNROLL for (int k = 0; k < 4; k++)
					v[k] = value_in_pages(&a, table, kv, t + i * STEP + 2 * pair() + k / 2 * 8 + k % 2, from, n);
				weigh(&rows, z[i]);
				as_weights(weights, z[i]);
				add_weighted(out, CHANNELS, weights, rows_in(a.pages.values, 1, s.D), v, d, s.D, all);
			}
		}
		const float inverse[] = {1 / fold_quad(rows.lane[0]), 1 / fold_quad(rows.lane[1])};
		UNROLL for (int e = 0; e < 4; e++) {
			const long head = h + row_in_tile(e);
			if (head >= end) continue;
			if (d == 0 && a.stats && pair() == 0 && e % 2 == 0) keep_stats(a.stats, row * s.H + head, rows.m[e / 2], inverse[e / 2]);
			UNROLL for (int i = 0; i < CHANNELS; i++) {
				const long c = d + channel_of(i, e);
				if (c < s.D) store(a.out, (row * s.H + head) * s.D + c, out[i][e] * inverse[e / 2] + 0.0f);
			}
		}
	}
}
