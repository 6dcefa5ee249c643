#include "deltarow.h"

// The recurrence of linear attention. A thread takes a column of a value head's state through the rows of a sequence, in
// registers if its head has DELTA_KEY channels. Sequences that share a prefix compute its states again, side by side.

BLOCK_KERNEL(delta_lengths, LANE_THREADS, 4) {
	const long v = element() / LANES, n = a.s.key_dim, heads = 2 * a.s.keys, live = v < a.p.M * heads;
	const long at = live ? v / heads * a.s.mixed + head_column(a.s, a.s.scan, v % heads) : 0;
	float lane = 0;
	AHEAD for (long i = threadIdx.x % LANES; i < n && live; i += LANES) {
		const float x = load(a.u, at + i);
		lane = fmaf(x, x, lane);
	}
	lane = fold_lanes(lane);
	if (live && threadIdx.x % LANES == 0) a.lengths[v] = a.s.scan ? 1 : 1 / sqrtf(lane + 1e-6f);
}

// What a thread fetches of the next row while it computes one.
#define FETCHED 2
struct fetched {
	float x[FETCHED], v, keep, w;
};

INLINE void fetch(struct fetched *f, const struct delta_rule_args *a, const int scan, long m, struct column c) {
	UNROLL for (int k = 0; k < FETCHED; k++) {
		const long i = threadIdx.x + k * DELTA_THREADS;
		f->x[k] = i < 2 * a->s.key_dim ? scaled_row(a->u, a->lengths, a->s, scan, a->scale, m, c.kh, i) : 0;
	}
	f->v = load(a->u, mixed_value(a->s, scan, m, c));
	f->keep = a->gates[keep_at(a->s, scan, m, c)];
	f->w = a->gates[keep_at(a->s, scan, m, c) + a->s.values];
}

// place_row writes a row to shared memory, those elements too that were not fetched.
INLINE void place_row(float *row, const struct fetched *f, const struct delta_rule_args *a, const int scan, long m,
	struct column c) {
	UNROLL for (int k = 0; k < FETCHED; k++) {
		const long i = threadIdx.x + k * DELTA_THREADS;
		if (i < 2 * a->s.key_dim) row[i] = f->x[k];
	}
	for (long i = threadIdx.x + FETCHED * DELTA_THREADS; i < 2 * a->s.key_dim; i += DELTA_THREADS)
		row[i] = scaled_row(a->u, a->lengths, a->s, scan, a->scale, m, c.kh, i);
}

// take_row takes a column through a row and returns what the query reads. In a scan its key reads nothing.
INLINE float take_row(float *S, const long step, const long n, const float *query, const struct fetched *row,
	const int scan, const int zero) {
	float k[4], q[4], p = 0, out = 0, before = 0;
	if (!scan) EACH_PART(i, 4, n) {
		four(k, query + n, i, n);
		UNROLL for (int j = 0; j < 4; j++) if (i + j < n) p = fmaf(k[j], S[(i + j) * step], p);
	}
	const float d = row->w * (row->v - row->keep * p);
	EACH_PART(i, 4, n) {
		four(k, query + n, i, n);
		UNROLL for (int j = 0; j < 4; j++)
			if (i + j < n) S[(i + j) * step] = fmaf(k[j], d, row->keep * S[(i + j) * step]);
	}
	EACH_PART(i, 4, n) {
		if (n == DELTA_KEY) query += after(before, zero);
		before = out;
		four(q, query, i, n);
		UNROLL for (int j = 0; j < 4; j++) if (i + j < n) out = fmaf(q[j], S[(i + j) * step], out);
	}
	return out;
}

// take_rows takes a column through a sequence. Its n elements are step apart in S; rows are [2][2n]. whole, a constant, says that
// the state is [DELTA_KEY][DELTA_KEY]. A scan keeps no state in registers.
INLINE void take_rows(const struct delta_rule_args *a, float *S, const long step, const long n, float *rows,
	const int whole, const int scan) {
	const long tile = blockIdx.x % a->tiles, h = blockIdx.x / a->tiles % a->heads, j = blockIdx.x / a->tiles / a->heads;
	const struct column c = column_of(a->s, a->head + h * a->step, a->column + tile * a->columns, a->columns, whole ? DELTA_KEY : 0);
	const struct sequence q = sequence_of(a->p, j, group_of(a->p, j));
	const long width = whole ? DELTA_KEY : a->s.value_dim;
	const int end = q.prefix + q.own;
	int first = 1;
	float *state = 0, *kept = 0;
	if (a->slots) {
		const long slot = slot_of(a->slots, j, &first);
		state = a->states + (slot * a->s.values + c.vh) * n * width + c.at;
	}
	if (a->kept) kept = a->kept + ((h * a->kept_rows) + q.first / DELTA_KEEP + j) * n * FAR(a, n) + threadIdx.x;
	if (c.live) UNROLL for (long i = 0; i < n; i++) S[i * step] = 0;
	if (c.live && !first) UNROLL for (long i = 0; i < n; i++) S[i * step] = state[i * width];
	struct fetched now, next = {{0}, 0, 0, 0};
	if (end > 0) {
		fetch(&next, a, scan, row_of(q, 0), c);
		place_row(rows, &next, a, scan, row_of(q, 0), c);
	}
	for (int t = 0; t < end; t++) {
		const int m = (int)row_of(q, t), own = t - q.prefix, ahead = t + 1 < end;
		barrier(); // the row is there, and the one before it has been read
		now = next;
		if (ahead) fetch(&next, a, scan, row_of(q, t + 1), c);
		if (c.live) {
			if (kept && own >= 0 && own % DELTA_KEEP == 0)
				UNROLL for (long i = 0; i < n; i++) kept[(own / DELTA_KEEP * n + i) * FAR(a, n)] = S[i * step];
			float out = take_row(S, step, n, rows + t % 2 * 2 * n, &now, scan, a->zero);
			if (scan) out = fmaf(a->gates[keep_at(a->s, scan, m, c) + 2 * a->s.values], now.v, out);
			if (a->out.at && own >= 0) store(a->out, ((long)m * a->s.values + c.vh) * width + c.at, out);
		}
		if (ahead) place_row(rows + (t + 1) % 2 * 2 * n, &next, a, scan, row_of(q, t + 1), c);
	}
	if (state && c.live) UNROLL for (long i = 0; i < n; i++) state[i * width] = S[i * step];
}

BLOCK_KERNEL(delta_rule, DELTA_THREADS, 2) {
	SHARED(float, rows, 4 * DELTA_KEY);
	float S[DELTA_KEY];
	take_rows(&a, S, 1, DELTA_KEY, rows, 1, 0);
}

// The launch gives [4][key_dim] for rows and [key_dim][columns] for the state.
BLOCK_KERNEL(delta_rule_any, DELTA_THREADS, 2) {
	LAUNCH_SHARED(float, room, (4 + a.columns) * a.s.key_dim);
	take_rows(&a, room + 4 * a.s.key_dim + threadIdx.x, a.columns, a.s.key_dim, room, 0, 0);
}

BLOCK_KERNEL(scan_rule, DELTA_THREADS, 2) {
	LAUNCH_SHARED(float, room, (4 + a.columns) * a.s.key_dim);
	take_rows(&a, room + 4 * a.s.key_dim + threadIdx.x, a.columns, a.s.key_dim, room, 0, 1);
}
