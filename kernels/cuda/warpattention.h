// Attention on tensor cores (heads.h). A warp has the spans that begin within 16 rows, for one head.
// It is one text for matrixattention.cu and matrixaheadattention.cu, which name its kernels NAME(x).
#include "heads.h"

#define CHANNELS (2 * GROUP) // tiles of 8 channels whose sums a warp holds

// ROOM_OF_SEEN is the warp's room for what 16 queries see, if they see others behind them.
#if LOOKS_AHEAD
#define ROOM_OF_SEEN(seen)                       \
	SHARED(struct seen, seen##_of_block, HEAD_THREADS / WARP * STEP); \
	struct seen *const seen = seen##_of_block + threadIdx.x / WARP * STEP
#else
#define ROOM_OF_SEEN(seen) struct seen *const seen = 0
#endif

// looking returns a step whose queries see what `seen` will say.
DEVICE struct step looking(struct step s, struct seen *seen) {
#if LOOKS_AHEAD
	s.seen = seen;
#endif
	(void)seen;
	return s;
}

// offset_of returns the offset of a head in a row, -1 without a row.
DEVICE long offset_of(int row, long width, long head) { return row < 0 ? -1 : row * width + head; }

// by_quad and by_pair set the rows of a sequence's positions from `first` on: by_quad of quad and
// quad+8, by_pair of 2·pair, +1, +8 and +9. Positions outside of lo to hi have none: -1.
INLINE void by_quad(int *row, int first, struct sequence seq, int lo, int hi) {
	UNROLL for (int i = 0; i < 2; i++) {
		const int position = first + quad() + 8 * i;
		row[i] = position >= lo && position < hi ? (int)row_of(seq, position) : -1;
	}
}

INLINE void by_pair(int *row, int first, struct sequence seq, int lo, int hi) {
	UNROLL for (int i = 0; i < 4; i++) {
		const int position = first + 2 * pair() + i / 2 * 8 + i % 2;
		row[i] = position >= lo && position < hi ? (int)row_of(seq, position) : -1;
	}
}

// dot_rows is dot for a head of rows, and add_rows is add_weighted.
INLINE void dot_rows(float z[2][4], struct operand x, long x_width, long x_head, const int *left, struct operand y, long y_width,
	long y_head, const int *right, long D) {
	const long l[] = {offset_of(left[0], x_width, x_head), offset_of(left[1], x_width, x_head)};
	const long r[] = {offset_of(right[0], y_width, y_head), offset_of(right[1], y_width, y_head)};
	dot(z, rows_in(x, 1, D), l, rows_in(y, 1, D), r, D);
}

INLINE void add_rows(float sum[][4], int tiles, const uint32_t *weights, struct operand x, long width, long head, const int *row, int d,
	long D, struct step s) {
	const long o[] = {offset_of(row[0], width, head), offset_of(row[1], width, head), offset_of(row[2], width, head),
		offset_of(row[3], width, head)};
	add_weighted(sum, tiles, weights, rows_in(x, 1, D), o, d, D, s);
}

// first_step is the first step whose positions a span's queries see.
DEVICE long first_step(struct attention_shape s, struct span x) { return first_seen(s, x.lo) / STEP * STEP; }

INLINE void attend(const struct attention_args *a, struct span x, int h, struct seen *seen) {
	const struct attention_shape s = a->s;
	const int kv = h / (int)(s.H / s.K), width = (int)stride(s), q_head = (int)query_at(s, 0, h), k_head = (int)key_at(s, 0, kv);
	const int end = keys_of(s, x);
	struct step step = looking(step_of(s, x, x.base, 0), seen);
	float y, z[KEYS / STEP][2][4];
	uint32_t weights[KEYS / STEP][4];
	int q[2], k[2], v[4];
	see_ahead(step, s, x.seq, x.base, x.lo, x.hi);
	ROLLED for (int d = 0; d < s.D; d += CHANNELS * 8) {
		float out[CHANNELS][4];
		struct running rows;
		UNROLL for (int i = 0; i < CHANNELS; i++) UNROLL for (int e = 0; e < 4; e++) out[i][e] = 0;
		no_keys(&rows);
		ROLLED for (int t = (int)first_seen(s, x.lo) / KEYS * KEYS; t < end; t += KEYS) {
			float top[] = {-INFINITE, -INFINITE};
			UNROLL for (int i = 0; i < KEYS / STEP; i++) {
				step.position = t + i * STEP;
				by_quad(q, computed_here(x.base), x.seq, x.lo, x.hi);
				by_quad(k, step.position, x.seq, 0, end);
				dot_rows(z[i], a->qkv, width, q_head, q, a->qkv, width, k_head, k, s.D);
				EACH_SCORE(j, e) {
					z[i][j][e] = sees(step, row_in_tile(e), column_in_tile(j, e)) ? score(s, z[i][j][e], &y) : -INFINITE;
					top[e / 2] = larger(top[e / 2], z[i][j][e]);
				}
			}
			rise(&rows, top, out, CHANNELS);
			UNROLL for (int i = 0; i < KEYS / STEP; i++) {
				weigh(&rows, z[i]);
				as_weights(weights[i], z[i]);
			}
			UNROLL for (int i = 0; i < KEYS / STEP; i++) {
				step.position = t + i * STEP;
				by_pair(v, step.position, x.seq, 0, end);
				add_rows(out, CHANNELS, weights[i], a->qkv, width, value_at(s, 0, kv), v, d, s.D, step);
			}
		}
		const float inverse[] = {1 / fold_quad(rows.lane[0]), 1 / fold_quad(rows.lane[1])};
		UNROLL for (int e = 0; e < 4; e++) {
			const long n = x.base + row_in_tile(e), at = row_of(x.seq, n) * s.H + h;
			if (n < x.lo || n >= x.hi) continue;
			if (d == 0 && pair() == 0 && e % 2 == 0) keep_stats(a->stats, at, rows.m[e / 2], inverse[e / 2]);
			UNROLL for (int i = 0; i < CHANNELS; i++) {
				const long c = d + channel_of(i, e);
				if (c < s.D) store(a->out, at * s.D + c, out[i][e] * inverse[e / 2] + 0.0f);
			}
		}
	}
}

BLOCK_KERNEL(NAME(attention), HEAD_THREADS, 2) {
	const int warp = (int)(element() / WARP), h = warp % (int)a.s.H, M = (int)a.p.M;
	const int first = warp / (int)a.s.H * STEP, end = first + STEP < M ? first + STEP : M;
	ROOM_OF_SEEN(seen);
	struct span x;
	for (int i = first; (i = next_span(a.p, i, end, STEP, &x)) < end; i++) attend(&a, x, h, seen);
}

#if !LOOKS_AHEAD
// A half warp for each row and head: a thread has a lane.
BLOCK_KERNEL(matrix_attention_delta, LANE_THREADS, 4) {
	const long at = element() / LANES;
	float lane = 0;
	if (at < a.n)
		AHEAD for (long i = threadIdx.x % LANES; i < a.D; i += LANES)
			lane = fmaf(load(a.dout, at * a.D + i), load(a.out, at * a.D + i), lane);
	lane = fold_lanes(lane);
	if (at < a.n && threadIdx.x % LANES == 0) a.delta[at] = lane;
}
#endif

INLINE void gradient_of_queries(const struct matrix_attention_backward_args *a, struct span x, long h, struct seen *seen) {
	const struct attention_shape s = a->s;
	const long kv = h / (s.H / s.K), width = stride(s), q_head = query_at(s, 0, h), k_head = key_at(s, 0, kv);
	const int end = keys_of(s, x);
	struct step step = looking(step_of(s, x, x.base, 0), seen);
	float z[2][4], dp[2][4];
	uint32_t weights[4];
	int q[2], k[2], by[4];
	see_ahead(step, s, x.seq, x.base, x.lo, x.hi);
	by_quad(q, x.base, x.seq, x.lo, x.hi);
	const struct query row[] = {query_of(a, x.seq, x.base + quad(), x.lo, x.hi, h),
		query_of(a, x.seq, x.base + quad() + 8, x.lo, x.hi, h)};
	ROLLED for (int d = 0; d < s.D; d += CHANNELS * 8) {
		float dq[CHANNELS][4];
		UNROLL for (int i = 0; i < CHANNELS; i++) UNROLL for (int e = 0; e < 4; e++) dq[i][e] = 0;
		ROLLED for (int t = (int)first_step(s, x); t < end; t += STEP) {
			step.position = t;
			by_quad(k, t, x.seq, 0, end);
			by_pair(by, t, x.seq, 0, end);
			dot_rows(z, a->qkv, width, q_head, q, a->qkv, width, k_head, k, s.D);
			dot_rows(dp, a->dout, s.H * s.D, h * s.D, q, a->qkv, width, value_at(s, 0, kv), k, s.D);
			EACH_SCORE(j, e) {
				gradient(s, s.cap > 0, row[e / 2], &z[j][e], &dp[j][e]);
				if (!sees(step, row_in_tile(e), column_in_tile(j, e))) dp[j][e] = 0;
			}
			gradients_as_weights(weights, dp);
			add_rows(dq, CHANNELS, weights, a->qkv, width, k_head, by, d, s.D, step);
		}
		UNROLL for (int e = 0; e < 4; e++) {
			const long n = x.base + row_in_tile(e), at = query_at(s, row_of(x.seq, n), h);
			if (n < x.lo || n >= x.hi) continue;
			UNROLL for (int i = 0; i < CHANNELS; i++) {
				const long c = d + channel_of(i, e);
				if (c < s.D) store(a->dqkv, at + c, dq[i][e]);
			}
		}
	}
}

BLOCK_KERNEL(NAME(attention_dq), HEAD_THREADS, 2) {
	const long warp = element() / WARP, h = warp % a.s.H, M = a.p.M;
	const int first = (int)(warp / a.s.H) * STEP, end = first + STEP < M ? first + STEP : (int)M;
	ROOM_OF_SEEN(seen);
	struct span x;
	for (int i = first; (i = next_span(a.p, i, end, STEP, &x)) < end; i++) gradient_of_queries(&a, x, h, seen);
}

#define KEY_CHANNELS GROUP // fewer: the loops around them take registers

// add_queries adds what a sequence and a query head contribute to the gradients of a span's keys, or of its values.
INLINE void add_queries(const struct matrix_attention_backward_args *a, int values, float sum[][4], struct span x,
	struct sequence seq, int kv, int h, int d, struct seen *seen) {
	const struct attention_shape s = a->s;
	const long width = stride(s), q_head = query_at(s, 0, h);
	const int T = seq.prefix + seq.own, own = x.base > seq.prefix ? x.base : seq.prefix;
	const int start = (LOOKS_AHEAD ? first_seeing(s, seq, x.base) : own) / STEP * STEP;
	struct step step = looking(step_of(s, x, x.base, 1), seen);
	float z[2][4], dp[2][4] = {{0}};
	uint32_t weights[4];
	int k[2], q[2], by[4];
	by_quad(k, x.base, x.seq, x.lo, x.hi);
	ROLLED for (int n = start; n < T; n += STEP) {
		step.position = n;
		see_ahead(step, s, seq, n, seq.prefix, T);
		by_quad(q, n, seq, seq.prefix, T);
		by_pair(by, n, seq, seq.prefix, T);
		dot_rows(z, a->qkv, width, key_at(s, 0, kv), k, a->qkv, width, q_head, q, s.D);
		if (!values) dot_rows(dp, a->qkv, width, value_at(s, 0, kv), k, a->dout, s.H * s.D, h * s.D, q, s.D);
		UNROLL for (int j = 0; j < 2; j++) UNROLL for (int e = 0; e < 2; e++) {
			const int column = column_in_tile(j, e), there = n + column >= seq.prefix && n + column < T;
			const struct query query = query_of(a, seq, n + column, seq.prefix, T, h);
			UNROLL for (int low = e; low < 4; low += 2) {
				gradient(s, s.cap > 0, query, &z[j][low], &dp[j][low]);
				if (!there || !sees(step, row_in_tile(low), column)) z[j][low] = dp[j][low] = 0;
			}
		}
		gradients_as_weights(weights, values ? z : dp);
		if (values) add_rows(sum, KEY_CHANNELS, weights, a->dout, s.H * s.D, h * s.D, by, d, s.D, step);
		else add_rows(sum, KEY_CHANNELS, weights, a->qkv, width, q_head, by, d, s.D, step);
	}
}

// gradient_of_keys has a key/value head of a warp's spans: over the sequences that see it, the query heads
// that share the head, and the query rows.
INLINE void gradient_of_keys(const struct matrix_attention_backward_args *a, int values, struct seen *seen) {
	const struct attention_shape s = a->s;
	const long warp = element() / WARP;
	const int kv = (int)(warp % s.K), first = (int)(warp / s.K) * STEP, share = (int)(s.H / s.K);
	const int end = first + STEP < a->p.M ? first + STEP : (int)a->p.M;
	struct span x;
	for (int i = first; (i = next_span(a->p, i, end, STEP, &x)) < end; i++) {
		const int j = (int)last_at_most(a->p.offsets, a->p.S, i), group = (int)group_of(a->p, j);
		const int last = a->p.G && a->p.groups[group] == j ? a->p.groups[group + 1] - 1 : j; // a prefix is seen by its group
		ROLLED for (int d = 0; d < s.D; d += KEY_CHANNELS * 8) {
			float sum[KEY_CHANNELS][4];
			UNROLL for (int c = 0; c < KEY_CHANNELS; c++) UNROLL for (int e = 0; e < 4; e++) sum[c][e] = 0;
			ROLLED for (int see = j; see <= last; see++)
				ROLLED for (int h = kv * share; h < (kv + 1) * share; h++)
					add_queries(a, values, sum, x, sequence_of(a->p, see, group), kv, h, d, seen);
			UNROLL for (int e = 0; e < 4; e++) {
				const long n = x.base + row_in_tile(e), row = row_of(x.seq, n);
				if (n < x.lo || n >= x.hi) continue;
				UNROLL for (int t = 0; t < KEY_CHANNELS; t++) {
					const long c = d + channel_of(t, e);
					if (c < s.D) store(a->dqkv, (values ? value_at(s, row, kv) : key_at(s, row, kv)) + c, sum[t][e]);
				}
			}
		}
	}
}

BLOCK_KERNEL(NAME(attention_dk), HEAD_THREADS, 2) {
	ROOM_OF_SEEN(seen);
	gradient_of_keys(&a, 0, seen);
}

BLOCK_KERNEL(NAME(attention_dv), HEAD_THREADS, 2) {
	ROOM_OF_SEEN(seen);
	gradient_of_keys(&a, 1, seen);
}
