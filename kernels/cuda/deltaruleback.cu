#include "deltarow.h"

// The gradients of the recurrence. A thread takes a column of the state's gradient back through the rows of a sequence, in
// registers if its head has DELTA_KEY channels. From every DELTA_KEEP-th state, which the recurrence kept, a block computes
// those of the next rows again.

#define HALVES (DELTA_THREADS / LANES) // half warps of a block

// A block's shared memory: a scaled query and key, and for each half warp the sums of its columns.
struct back_room {
	float *row;   // [2n]
	float *sums;  // [HALVES][2n]
	float *gates; // [3][HALVES]
};
#define BACK_ROOM(n) ((2 + 2 * HALVES) * (n) + 3 * HALVES)

INLINE struct back_room back_room_of(float *at, long n) {
	struct back_room r;
	r.row = at;
	r.sums = r.row + 2 * n;
	r.gates = r.sums + HALVES * 2 * n;
	return r;
}

// spread_sums returns the lane sum of number `lane` of v, for each thread of a half warp, in fold's order.
INLINE float spread_sums(float *v) {
	UNROLL for (int w = LANES / 2; w > 0; w /= 2) {
		const int high = (threadIdx.x & w) != 0;
		UNROLL for (int i = 0; i < w; i++) {
			const float low = v[i], up = v[i + w];
			v[i] = (high ? up : low) + shuffle_xor(high ? low : up, w);
		}
	}
	return v[0];
}

INLINE void fill_row(float *row, const struct delta_rule_backward_args *a, const int scan, long m, struct column c) {
	barrier(); // the one before it has been read
	for (long i = threadIdx.x; i < 2 * a->s.key_dim; i += DELTA_THREADS)
		row[i] = scaled_row(a->u, a->lengths, a->s, scan, a->scale, m, c.kh, i);
	barrier();
}

// A thread's memory of the rows from one kept state to the next: the states before all but the first, and what each row's key reads of its state.
struct between {
	const float *kept;
	float *states, *reads;
};

INLINE const float *state_before(struct between b, long r, long size) {
	return r ? b.states + (r - 1) * size : b.kept;
}

// compute_again sets the states before rows m to m+rows.
INLINE void compute_again(const struct delta_rule_backward_args *a, struct between b, float *row, int m, int rows,
	struct column c, const int scan, const long n) {
	const long step = FAR(a, n), size = n * step;
	for (int r = 0; r < rows; r++, m++) {
		const float *P = state_before(b, r, size), *key = row + n;
		float *S = b.states + r * size, p = 0;
		fill_row(row, a, scan, m, c);
		if (!c.live) continue;
		const float keep = a->gates[keep_at(a->s, scan, m, c)], w = a->gates[keep_at(a->s, scan, m, c) + a->s.values];
		if (!scan) AHEAD for (long i = 0; i < n; i++) p = fmaf(key[i], P[i * step], p);
		const float d = w * (load(a->u, mixed_value(a->s, scan, m, c)) - keep * p);
		b.reads[r * step] = p;
		if (r + 1 == rows) continue;
		AHEAD for (long i = 0; i < n; i++) S[i * step] = fmaf(key[i], d, keep * P[i * step]);
	}
}

// add_row adds to the gradients of row m's query and key, and of its gates, what the half warps have for them.
INLINE void add_row(const struct delta_rule_backward_args *a, struct back_room room, const int scan, long m, struct column c) {
	const int n = (int)a->s.key_dim, left = (int)(a->s.value_dim - a->column), most = (int)a->columns;
	const int halves = ((left < most ? left : most) + LANES - 1) / LANES;
	barrier();
	for (int i = (int)threadIdx.x; i < 2 * n; i += DELTA_THREADS) {
		const long head = i < n ? c.kh : a->s.keys + c.kh;
		float *to = a->dqk + (m * 2 * a->s.keys + head) * n + (i < n ? i : i - n), sum = a->first ? 0 : *to;
		for (int k = 0; k < halves; k++) sum += room.sums[k * 2 * n + i];
		*to = sum;
	}
	if (threadIdx.x < (scan ? 3 : 2)) {
		float *to = a->dgates + keep_at(a->s, scan, m, c) + threadIdx.x * a->s.values, sum = a->column ? *to : 0;
		for (int k = 0; k < halves; k++) sum += room.gates[threadIdx.x * HALVES + k];
		*to = sum;
	}
}

// back_row takes the gradient dS of a column back through row m, before which the state is P and gives *read to the row's key.
INLINE void back_row(const struct delta_rule_backward_args *a, float *dS, const long step, const float *P, const float *read, long m,
	struct column c, struct back_room room, const int scan, const long n) {
	const int far = FAR(a, n), lane = threadIdx.x % LANES, half = threadIdx.x / LANES;
	const float keep = a->gates[keep_at(a->s, scan, m, c)], w = a->gates[keep_at(a->s, scan, m, c) + a->s.values];
	const float dout = load(a->dout, (m * a->s.values + c.vh) * a->s.value_dim + c.at);
	const float *query = room.row, *key = query + n;
	float *sums = room.sums + half * 2 * n, v[LANES], sum = 0, dd = 0, kept = 0;
	fill_row(room.row, a, scan, m, c);
	const float p = c.live ? *read : 0, value = load(a->u, mixed_value(a->s, scan, m, c)), e = value - keep * p, d = w * e;
	EACH_PART(i0, LANES, n) {
		if (i0 >= n) continue;
		if (n == DELTA_KEY) query += after(sum, a->zero), P += after(sum, a->zero);
		key = query + n;
		EACH_LANE(k) {
			const long i = i0 + k;
			v[k] = 0;
			if (i >= n || !c.live) continue;
			const float S = fmaf(key[i], d, keep * P[i * far]), x = fmaf(query[i], dout, dS[i * step]);
			dS[i * step] = x;
			dd = fmaf(key[i], x, dd);
			v[k] = S * dout;
		}
		sum = spread_sums(v);
		if (i0 + lane < n) sums[i0 + lane] = sum;
	}
	float dv = w * dd, dp = -(keep * dv);
	if (scan) {
		dv = fmaf(a->gates[keep_at(a->s, scan, m, c) + 2 * a->s.values], dout, dv), dp = 0;
		const float dskip = fold_lanes(c.live ? dout * value : 0);
		if (lane == 0) room.gates[2 * HALVES + half] = dskip;
	}
	if (c.live) store(a->du, mixed_value(a->s, scan, m, c), dv);
	EACH_PART(i0, LANES, n) {
		if (i0 >= n) continue;
		if (n == DELTA_KEY) key += after(sum, a->zero), P += after(sum, a->zero);
		EACH_LANE(k) {
			const long i = i0 + k;
			v[k] = 0;
			if (i >= n || !c.live) continue;
			const float before = P[i * far], x = dS[i * step];
			v[k] = fmaf(before, dp, x * d);
			kept = fmaf(x, before, kept);
			dS[i * step] = fmaf(key[i], dp, keep * x);
		}
		sum = spread_sums(v);
		if (i0 + lane < n) sums[n + i0 + lane] = sum;
	}
	const float dkeep = fold_lanes(c.live ? fmaf(-dv, p, kept) : 0), dw = fold_lanes(c.live ? dd * e : 0);
	if (lane == 0) room.gates[half] = dkeep, room.gates[HALVES + half] = dw;
	add_row(a, room, scan, m, c);
}

// begin sets dS to the gradient of the state at a sequence's end: of the first of a group the sum over the others, else 0.
INLINE void begin(const struct delta_rule_backward_args *a, float *dS, const long step, long j, long g, long h,
	struct column c, const long n) {
	const long last = a->ahead || !a->p.G ? j : a->p.groups[g + 1] - 1, size = n * FAR(a, n);
	if (!c.live) return;
	UNROLL for (long i = 0; i < n; i++) dS[i * step] = 0;
	for (long k = j + 1; k <= last; k++) {
		const float *start = a->starts + (h * a->p.S + k) * size + threadIdx.x;
		EACH_PART(i, 8, n) {
			if (n == DELTA_KEY && i) start += after(dS[(i - 1) * step], a->zero);
			UNROLL for (int j = 0; j < 8; j++) if (i + j < n) dS[(i + j) * step] += start[(i + j) * FAR(a, n)];
		}
	}
}

// take_back takes columns back through sequences. A column's n elements are step apart in dS.
INLINE void take_back(const struct delta_rule_backward_args *a, float *dS, const long step, const long n, float *shared,
	const int scan) {
	const struct back_room room = back_room_of(shared, n);
	const long size = n * FAR(a, n);
	const int units = (int)(a->p.S * a->heads);
	for (int unit = (int)blockIdx.x; unit < units; unit += (int)gridDim.x) {
		const int h = unit % (int)a->heads, j = unit / (int)a->heads, g = (int)group_of(a->p, j);
		const struct sequence q = sequence_of(a->p, j, g);
		if (a->ahead != (a->p.G && a->p.groups[g] < j)) continue;
		const struct column c = column_of(a->s, a->head + h * a->step, a->column, a->columns, 0);
		struct between b;
		b.states = a->between + blockIdx.x * DELTA_KEEP * (size + FAR(a, n)) + threadIdx.x;
		b.reads = b.states + DELTA_KEEP * size;
		begin(a, dS, step, j, g, h, c, n);
		for (int part = (q.own - 1) / DELTA_KEEP; part >= 0 && q.own; part--) {
			const int m = q.first + part * DELTA_KEEP, left = q.own - part * DELTA_KEEP;
			const int rows = left < DELTA_KEEP ? left : DELTA_KEEP;
			b.kept = a->kept + (h * a->kept_rows + q.first / DELTA_KEEP + j + part) * size + threadIdx.x;
			compute_again(a, b, room.row, m, rows, c, scan, n);
			for (int r = rows - 1; r >= 0; r--)
				back_row(a, dS, step, state_before(b, r, size), b.reads + r * FAR(a, n), m + r, c, room, scan, n);
		}
		if (!a->ahead || !c.live) continue;
		float *start = a->starts + (h * a->p.S + j) * size + threadIdx.x;
		UNROLL for (long i = 0; i < n; i++) start[i * FAR(a, n)] = dS[i * step];
	}
}

BLOCK_KERNEL(delta_rule_backward, DELTA_THREADS, 2) {
	SHARED(float, room, BACK_ROOM(DELTA_KEY));
	float dS[DELTA_KEY];
	take_back(&a, dS, 1, DELTA_KEY, room, 0);
}

// The launch gives BACK_ROOM(key_dim) and [key_dim][columns] for the state.
BLOCK_KERNEL(delta_rule_backward_any, DELTA_THREADS, 2) {
	LAUNCH_SHARED(float, room, BACK_ROOM(a.s.key_dim) + a.columns * a.s.key_dim);
	take_back(&a, room + BACK_ROOM(a.s.key_dim) + threadIdx.x, a.columns, a.s.key_dim, room, 0);
}

BLOCK_KERNEL(scan_rule_backward, DELTA_THREADS, 2) {
	LAUNCH_SHARED(float, room, BACK_ROOM(a.s.key_dim) + a.columns * a.s.key_dim);
	take_back(&a, room + BACK_ROOM(a.s.key_dim) + threadIdx.x, a.columns, a.s.key_dim, room, 1);
}

// delta_unscale turns the gradients of scaled queries and keys into those of mixed rows. A scan scales neither.
BLOCK_KERNEL(delta_unscale, LANE_THREADS, 4) {
	const long v = element() / LANES, n = a.s.key_dim, heads = 2 * a.s.keys, live = v < a.p.M * heads;
	const long at = live ? v / heads * a.s.mixed + head_column(a.s, a.s.scan, v % heads) : 0, end = live ? n : 0;
	const float *d = a.dqk + (live ? v : 0) * n;
	float lane = 0;
	AHEAD for (long i = threadIdx.x % LANES; i < end; i += LANES) lane = fmaf(d[i], load(a.u, at + i), lane);
	const float r = live ? a.lengths[v] : 0, f = -(fold_lanes(lane) * (r * r * r)), c = v % heads < a.s.keys ? a.scale : 1;
	for (long i = threadIdx.x % LANES; i < end; i += LANES)
		store(a.du, at + i, a.s.scan ? d[i] : fmaf(f, load(a.u, at + i), d[i] * r) * c);
}
