// attend.h is attention on plain cores: in chains of float32 or, where TILED is 1, in tile sums of bf16
// (sum.h). It is one text for attention.cu and tileattention.cu, which name its kernels NAME(x).
//
// A block has up to 32 rows, which have the sums, and goes over columns, 64 at a time: rows are queries and
// columns are keys or, for the gradients of keys and values, the other way around. A half warp has up to 4
// neighbouring rows.
//
// Products of rows and columns are sums over channels: thread x of a half warp has columns x, x+16, x+32 and
// x+48, so it also is lane x of a lane sum over columns. Products become weights, in shared memory. Sums of
// weighted columns take the columns in order: thread x has channels 4·x to 4·x+3 of each 64.
//
// Where LOOKS_AHEAD is 1, rows see others behind them (end_seen).
#include "matrix.h"
#include "sequence.h"

#define ATTEND_THREADS 128
#define HALF_WARPS (ATTEND_THREADS / LANES)
#define PER 4 // rows of a half warp, at most
#define ATTEND_ROWS (PER * HALF_WARPS)
#define PANEL 64 // columns, and channels, in shared memory
#define EACH 4   // columns of a thread, and channels
#define PITCH (PANEL + 4) // rows that a quarter of a warp reads at once begin in different banks
#define HALVES 2 // panels of channels whose sums a block keeps; it goes over the columns again for more
#define KEPT (HALVES * PANEL)
#define TERMS (TILED ? TILE_TERMS : PANEL) // terms of a step

#define EACH_ROW(i) UNROLL for (int i = 0; i < per; i++)
#define EACH_OWN(j) UNROLL for (int j = 0; j < EACH; j++)

// Weights that are none, as NaN that no operation gives: where a sum has no term, and where a tile sum has a
// product 0, as for a query behind a key's window. Chains leave both out.
#define NO_TERM 0x7f800001
#define NO_PRODUCT (TILED ? 0x7f800002 : NO_TERM)

// Four neighbours in shared memory.
typedef float four __attribute__((vector_size(16), may_alias));

// What a block shares: a panel of rows and one of columns, [row,channel]; products or weights, [row,column].
// Where rows see others behind them, the bound of a query is one past the last position that it sees, and of a key
// the first query whose product, maybe 0, its sums have.
struct attend_room {
	float rows[ATTEND_ROWS * PITCH], columns[PANEL * PITCH], weights[ATTEND_ROWS * PITCH];
#if LOOKS_AHEAD
	int bounds[ATTEND_ROWS];
#endif
};

#if LOOKS_AHEAD
#define BOUNDS(room) (room)->bounds
#else
#define BOUNDS(room) 0
#endif

// The backward passes have a second product, and of 64 queries m, 1/l and delta, and one past the last position that
// they see.
struct pull_room {
	struct attend_room a;
	float products[ATTEND_ROWS * PITCH], stats[3 * PANEL];
#if LOOKS_AHEAD
	int ends[PANEL];
#endif
};

// Where one head of some positions lies in x: in rows of a sequence; in a layer's pages, as keys or as values;
// or for position t in head t%heads of row t/heads. Only positions lo to end are read. Position t is in row
// t+before in the prefix, in row t+after behind it. If wide is set, four channels are aligned.
enum place { IN_ROWS, IN_KEYS, IN_VALUES, IN_HEADS };

struct source {
	struct operand x;
	enum place place;
	int D, stride, lo, end, wide, prefix, before, after;
	const int *table;
	int size, heads;
};

DEVICE int column_of_thread(void) { return threadIdx.x % LANES; }
DEVICE int half_warp(void) { return threadIdx.x / LANES; }

// source_of is a head that begins at element `at`: of the first row, or of a page.
INLINE struct source source_of(struct operand x, enum place place, int D, long stride, long at, int lo, int end) {
	struct source s;
	s.x.at = (char *)x.at + at * (TILED ? 2 : 4);
	s.x.bf16 = TILED;
	s.place = place;
	s.D = D;
	s.stride = (int)stride;
	s.lo = lo;
	s.end = end;
	s.wide = D % EACH == 0 && ((uint64_t)x.at & (TILED ? 7 : 15)) == 0;
	s.prefix = s.before = s.after = 0;
	s.table = 0;
	s.size = s.heads = 1;
	return s;
}

// head_of is a head of the rows of a sequence, up to position `end`.
INLINE struct source head_of(struct operand x, struct sequence seq, int end, int D, long stride, long at) {
	struct source s = source_of(x, IN_ROWS, D, stride, at, 0, end);
	s.prefix = seq.prefix;
	s.before = seq.prefix_row;
	s.after = seq.first - seq.prefix;
	return s;
}

// either is y if pick is set, else x: two heads of one sequence.
INLINE struct source either(struct source x, struct source y, int pick) {
	x.x.at = pick ? y.x.at : x.x.at;
	x.stride = pick ? y.stride : x.stride;
	x.wide = pick ? y.wide : x.wide;
	return x;
}

INLINE int is_there(struct source s, int t) { return (s.lo == 0 || t >= s.lo) && t < s.end; }

// offset_of is where position t begins, or another if t is not there.
INLINE long offset_of(struct source s, int t) {
	const int u = is_there(s, t) ? t : s.lo, stride = computed_here(s.stride);
	if (s.place == IN_ROWS) return (long)(u + (u < s.prefix ? s.before : s.after)) * stride;
	if (s.place == IN_HEADS) return (long)(u / s.heads) * stride + u % s.heads * s.D;
	return (long)s.table[u / s.size] * stride + u % s.size * (s.place == IN_KEYS ? 1 : s.D);
}

// fill sets a panel to positions from `first` on and 64 channels from d on. Channels that do not exist are
// blank where others of the same four do. Copies of float32 arrive when they are awaited.
INLINE void fill(float *to, int rows, struct source s, int first, int d, float blank) {
	const int c = EACH * column_of_thread(), left = s.D - d - c, passes = rows / HALF_WARPS;
	uint64_t word[PANEL / HALF_WARPS]; // of four bf16
	to += half_warp() * PITCH + c;
	first = computed_here(first) + half_warp();
	if (s.wide) {
		UNROLL for (int k = 0; k < passes; k++) {
			const int t = first + k * HALF_WARPS, there = is_there(s, t) && left > 0;
			const long at = offset_of(s, t) + d + c;
			if (!TILED) copy_to(address_of(to + k * HALF_WARPS * PITCH), (const float *)s.x.at + at, there);
			word[k] = 0;
			if (TILED && there) word[k] = *(const uint64_t *)((const uint16_t *)s.x.at + at);
		}
		if (TILED) UNROLL for (int k = 0; k < passes; k++) {
			four v;
			EACH_OWN(e) v[e] = flush(float_of((uint32_t)(word[k] >> 16 * e) << 16));
			*(four *)(to + k * HALF_WARPS * PITCH) = v;
		}
		return;
	}
	ROLLED for (int k = 0; k < passes; k++) {
		const int t = first + k * HALF_WARPS, there = is_there(s, t);
		const long at = offset_of(s, t) + d + c;
		EACH_OWN(e) {
			const float x = there && e < left ? load(s.x, at + e) : blank;
			to[k * HALF_WARPS * PITCH + e] = TILED ? flush(x) : x;
		}
	}
}

// fill_keys is fill for keys in pages, where positions are neighbours: a warp loads 8 positions of 4 channels
// at once, and stores them to different banks.
INLINE void fill_keys(float *to, struct source s, int first, int d) {
	const int lane = threadIdx.x % WARP, c = lane / 8, left = s.D - d - c;
	ROLLED for (int k = threadIdx.x / WARP * 8 + lane % 8; k < PANEL; k += ATTEND_THREADS / 4) {
		const int t = first + k, there = is_there(s, t);
		const long at = offset_of(s, t) + (long)(d + c) * s.size;
		ROLLED for (int i = 0; i < PANEL; i += 4 * BURST) {
			float v[BURST];
			EACH_LOAD(b) {
				const int e = i + 4 * b, in = there && e < left;
				const long from = at + (long)e * s.size;
				if (TILED) v[b] = in ? load(s.x, from) : 0;
				else copy_word_to(address_of(to + k * PITCH + c + e), (const float *)s.x.at + from, in);
			}
			if (TILED) EACH_LOAD(b) to[k * PITCH + c + i + 4 * b] = flush(v[b]);
		}
	}
}

// filled waits until all have filled their part of panels.
DEVICE void filled(void) {
	if (!TILED) {
		commit_copies();
		await_copies(0);
	}
	barrier();
}

// add_product adds a product to a chain or to a lane of a step.
DEVICE float add_product(float x, float y, float sum) { return TILED ? fma_flushed(x, y, sum) : fmaf(x, y, sum); }

// multiply_rows multiplies the block's rows, from position `first` on, by the columns from t on. A channel that does not exist is -0 in rows and 0 in columns: its product changes no sum.
INLINE void multiply_rows(float *products, struct attend_room *room, int per, struct source rows, int first,
	struct source columns, int t) {
	const float *x = room->rows + half_warp() * per * PITCH, *y = room->columns + column_of_thread() * PITCH;
	float acc[PER][EACH], sum[2][PER][EACH];
	EACH_ROW(i) EACH_OWN(j) acc[i][j] = 0;
	ROLLED for (int d = 0; d < rows.D; d += PANEL) {
		const int n = rows.D - d < PANEL ? rows.D - d : PANEL;
		barrier(); // the panels have been read
		fill(room->rows, per * HALF_WARPS, rows, first, d, -0.0f);
		if (columns.place == IN_KEYS) fill_keys(room->columns, columns, t, d);
		else fill(room->columns, PANEL, columns, t, d, 0);
		filled();
		ROLLED for (int lo = 0; lo < n; lo += TERMS) {
			EACH_ROW(i) EACH_OWN(j) sum[0][i][j] = TILED ? 0 : acc[i][j], sum[1][i][j] = 0;
			ROLLED for (int c = lo; c < n && c < lo + TERMS; c += EACH) {
				four p[PER], q[EACH];
				EACH_ROW(i) p[i] = *(const four *)(x + i * PITCH + c);
				EACH_OWN(j) q[j] = *(const four *)(y + j * LANES * PITCH + c);
				EACH_OWN(e) EACH_ROW(i) EACH_OWN(j) {
					float *to = &sum[TILED && e % 2][i][j];
					*to = add_product(p[i][e], q[j][e], *to);
				}
			}
			EACH_ROW(i) EACH_OWN(j)
				acc[i][j] = TILED ? step_sum(acc[i][j], sum[0][i][j], sum[1][i][j]) : sum[0][i][j];
		}
	}
	products += half_warp() * per * PITCH + column_of_thread();
	EACH_ROW(i) EACH_OWN(j) products[i * PITCH + j * LANES] = acc[i][j];
}

// add_term adds w·x to the sums of a thread's channels, and returns whether that is a term.
INLINE int add_term(float *sum, float w, four x) {
	const uint32_t u = bits_of(w);
	if (u == NO_TERM) return 0;
	if (u == NO_PRODUCT) EACH_OWN(c) sum[c] = sum[c] + 0;
	else EACH_OWN(c) sum[c] = add_product(w, x[c], sum[c]);
	return 1;
}

// add_columns adds n columns, weighted, to the sums of 64 channels. Their panel is in shared memory.
INLINE void add_columns(float (*acc)[EACH], const float *weights, struct attend_room *room, int per, int n) {
	const float *w = weights + half_warp() * per * PITCH, *x = room->columns + EACH * column_of_thread();
	float sum[2][PER][EACH];
	ROLLED for (int lo = 0; lo < n; lo += TERMS) {
		int terms[PER];
		EACH_ROW(i) terms[i] = 0;
		EACH_ROW(i) EACH_OWN(c) sum[0][i][c] = TILED ? 0 : acc[i][c], sum[1][i][c] = 0;
		ROLLED for (int t = lo; t < n && t < lo + TERMS; t += EACH) {
			four p[PER], q[EACH];
			EACH_ROW(i) p[i] = *(const four *)(w + i * PITCH + t);
			EACH_OWN(j) q[j] = *(const four *)(x + (t + j) * PITCH);
			EACH_OWN(j) EACH_ROW(i) terms[i] |= add_term(sum[TILED && j % 2][i], p[i][j], q[j]);
		}
		EACH_ROW(i) EACH_OWN(c) {
			if (!TILED) acc[i][c] = sum[0][i][c];
			else if (terms[i]) acc[i][c] = step_sum(acc[i][c], sum[0][i][c], sum[1][i][c]);
		}
	}
}

// weigh adds columns from t on, weighted, to the sums of channels from d on. The sums take turns, so that the
// loop stays one.
INLINE void weigh(float (*acc)[PER][EACH], const float *weights, struct attend_room *room, int per,
	struct source columns, int t, int d) {
	const int n = columns.end - t < PANEL ? columns.end - t : PANEL;
	ROLLED for (int half = 0; half < HALVES; half++, d += PANEL) {
		if (d < columns.D) {
			barrier(); // the panel has been read, and the weights are there
			fill(room->columns, PANEL, columns, t, d, 0);
			filled();
			add_columns(acc[0], weights, room, per, n);
		}
		EACH_ROW(i) EACH_OWN(c) {
			const float other = acc[1][i][c];
			acc[1][i][c] = acc[0][i][c];
			acc[0][i][c] = other;
		}
	}
}

INLINE void clear_sums(float (*acc)[PER][EACH]) {
	UNROLL for (int half = 0; half < HALVES; half++)
		UNROLL for (int i = 0; i < PER; i++) EACH_OWN(c) acc[half][i][c] = 0;
}

// store_row sets channels from d on of the head at `at` to a row's sums times factor.
INLINE void store_row(struct operand x, long at, long D, int d, float (*acc)[PER][EACH], int i, float factor) {
	x.bf16 = TILED;
	d += EACH * column_of_thread();
	UNROLL for (int half = 0; half < HALVES; half++) EACH_OWN(c)
		if (d + half * PANEL + c < D) store(x, at + d + half * PANEL + c, acc[half][i][c] * factor);
}

// A block's rows lo to hi of M, of one sequence; the first has position n.
struct part {
	struct sequence seq;
	int lo, hi, n;
};

INLINE struct part part_of(struct packing p, long j, long g, int first) {
	struct part x;
	x.seq = sequence_of(p, j, g);
	const int end = x.seq.first + x.seq.own;
	x.lo = x.seq.first > first ? x.seq.first : first;
	x.hi = end < first + ATTEND_ROWS ? end : first + ATTEND_ROWS;
	x.n = x.seq.prefix + x.lo - x.seq.first;
	return x;
}

// keys_of is one past the last position that a row of a part sees.
DEVICE int keys_of(struct attention_shape s, struct part x) {
	const int end = x.n + x.hi - x.lo;
	(void)s;
	return LOOKS_AHEAD ? end_seen(s, x.seq, end - 1) : end;
}

// bound_queries sets the bounds of a part's rows. Those of the part before have been read: panels were awaited since.
INLINE void bound_queries(struct attend_room *room, struct attention_shape s, struct part x) {
#if LOOKS_AHEAD
	const int i = (int)threadIdx.x;
	if (i < ATTEND_ROWS) room->bounds[i] = i < x.hi - x.lo ? end_seen(s, x.seq, x.n + i) : 0;
#endif
	(void)room, (void)s, (void)x;
}

// end_of_row is one past the last position that row i of a thread, at position n, sees: itself, or what `ends` says of the
// block's rows, if it is not null.
DEVICE int end_of_row(const int *ends, int per, int i, int n) {
	return ends ? ends[computed_here(half_warp() * per + i)] : n + 1;
}

// EACH_PART goes over the sequences j that have rows of a block whose first is `row`.
#define EACH_PART(p, j, row)                                                                       \
	for (long j = last_at_most((p).offsets, (p).S, row); j < (p).S && (p).offsets[j] < (row) + ATTEND_ROWS; j++)

// What a block's rows attend to. Row 0 of `queries` is at position `first`.
struct view {
	struct source queries, keys, values;
	int first, lo, hi; // positions that some row sees: lo to hi
	struct operand out;
	float *stats;
	struct attention_shape s;
};

// cap_scores turns a thread's products into scores.
INLINE void cap_scores(float *z, int per, struct attention_shape s) {
	float y;
	if (s.cap == 0) {
		EACH_ROW(i) EACH_OWN(j) z[i * PITCH + j * LANES] = z[i * PITCH + j * LANES] * s.scale;
		return;
	}
	ROLLED for (int k = 0; k < per * EACH; k++) {
		float *at = z + k / EACH * PITCH + k % EACH * LANES;
		*at = score(s, *at, &y);
	}
}

// sees reports whether the query at position n, which sees none from `end` on, sees the key at t.
DEVICE int sees(struct attention_shape s, int n, int t, int end) {
	return t < end && (s.window == 0 || n - t < s.window);
}

// attend computes a block's rows. Row i of a thread has position n+i, sees positions up to end_of_row, and is head
// at+i·step of the output; the thread has `count` of them. The first round finds the largest scores, and the others
// compute them again.
INLINE void attend(struct attend_room *room, const int *ends, int per, struct view v, int n, int count, long at, int step) {
	float *z = room->weights + half_warp() * per * PITCH + column_of_thread();
	float m[PER], lane[PER], acc[HALVES][PER][EACH];
	EACH_ROW(i) m[i] = -INFINITE;
	ROLLED for (int d = -KEPT; d < (int)v.s.D; d += KEPT) {
		clear_sums(acc);
		EACH_ROW(i) lane[i] = 0;
		ROLLED for (int t = v.lo / PANEL * PANEL; t < v.hi; t += PANEL) {
			multiply_rows(room->weights, room, per, v.queries, v.first, v.keys, t);
			cap_scores(z, per, v.s);
			ROLLED for (int j = 0; j < EACH; j++) {
				const int column = t + column_of_thread() + j * LANES;
				EACH_ROW(i) {
					float *const own = z + i * PITCH + j * LANES;
					const int seen = i < count && sees(v.s, n + i, column, end_of_row(ends, per, i, n + i));
					if (d < 0) {
						if (seen) m[i] = larger(m[i], *own);
						continue;
					}
					const float e = exp_down(*own - m[i]);
					if (seen) lane[i] += e;
					*own = float_of(seen ? bits_of(TILED ? rounded(e) : e) : NO_TERM);
				}
			}
			if (d >= 0) weigh(acc, room->weights, room, per, v.values, t, d);
		}
		EACH_ROW(i) {
			if (d < 0) {
				UNROLL for (int w = LANES / 2; w > 0; w /= 2) m[i] = larger(m[i], shuffle_xor(m[i], w));
				m[i] += 0.0f;
				continue;
			}
			const float inverse = 1 / fold_lanes(lane[i]);
			if (i >= count) continue;
			if (d == 0 && v.stats && column_of_thread() == 0) {
				v.stats[2 * (at + i * step)] = m[i];
				v.stats[2 * (at + i * step) + 1] = inverse;
			}
			store_row(v.out, (at + i * step) * v.s.D, v.s.D, d, acc, i, inverse);
		}
	}
}

// A block has 32 rows of M and a head. The last rows see most, so their blocks go first.
BLOCK_KERNEL(NAME(attention), ATTEND_THREADS, FORWARD_BLOCKS) {
	SHARED(struct attend_room, room, 1);
	const struct attention_shape s = a.s;
	const int H = (int)s.H, h = blockIdx.x % H, kv = h / (H / (int)s.K), own = half_warp() * PER;
	const int first = (int)(gridDim.x / H - 1 - blockIdx.x / H) * ATTEND_ROWS;
	EACH_PART(a.p, j, first) {
		const struct part x = part_of(a.p, j, group_of(a.p, j), first);
		struct view v;
		if (x.lo >= x.hi) continue;
		v.hi = keys_of(s, x);
		bound_queries(room, s, x);
		v.queries = head_of(a.qkv, x.seq, v.hi, (int)s.D, stride(s), query_at(s, 0, h));
		v.keys = head_of(a.qkv, x.seq, v.hi, (int)s.D, stride(s), key_at(s, 0, kv));
		v.values = head_of(a.qkv, x.seq, v.hi, (int)s.D, stride(s), value_at(s, 0, kv));
		v.first = x.n;
		v.lo = (int)first_seen(s, x.n);
		v.out = a.out;
		v.stats = a.stats;
		v.s = s;
		attend(room, BOUNDS(room), PER, v, x.n + own, x.hi - x.lo - own, (long)(x.lo + own) * H + h, H);
	}
}

#if !LOOKS_AHEAD
// Rows in pages have ends of their own.
struct page_room {
	struct attend_room a;
	int ends[HALF_WARPS];
};

// joins reports whether a block takes row m, not the first of a chunk, with the one before: they are of one sequence,
// and no position between their windows is unseen, because its page may be none.
INLINE int joins(const struct paged_attention_args *a, int m, int chunk) {
	if (m >= a->M || m % chunk == 0 || a->seq[m - 1] != a->seq[m]) return 0;
	return first_seen(a->s, a->pos[m]) <= end_in_pages(a, m - 1) && first_seen(a->s, a->pos[m - 1]) <= end_in_pages(a, m);
}

// A block has up to 8 rows that share keys: the query heads of a key/value head in a row of qkv. If these are
// fewer, it takes the rows behind it too while they join, up to the next multiple of 8/heads; their own blocks
// have nothing to do.
BLOCK_KERNEL(NAME(paged_attention), ATTEND_THREADS, PAGED_BLOCKS) {
	SHARED(struct page_room, room, 1);
	const struct attention_shape s = a.s;
	const int share = (int)s.H / (int)s.K, size = (int)a.pages.size, D = (int)s.D;
	const int parts = (share + HALF_WARPS - 1) / HALF_WARPS, K = (int)s.K;
	const int chunk = share < HALF_WARPS ? HALF_WARPS / share : 1;
	const int m = blockIdx.x / parts / K, kv = blockIdx.x / parts % K, g = blockIdx.x % parts * HALF_WARPS;
	const int heads = share - g < HALF_WARPS ? share - g : HALF_WARPS, row = half_warp();
	if (joins(&a, m, chunk)) return;
	int last = m, lo = (int)first_seen(s, a.pos[m]), hi = 0; // rows m to last, positions lo to hi
	do {
		const int from = (int)first_seen(s, a.pos[last]), end = end_in_pages(&a, last);
		lo = from < lo ? from : lo;
		hi = end > hi ? end : hi;
		last++;
	} while (joins(&a, last, chunk));
	const int mine = m + row / heads, there = mine < last;
	struct view v;
	v.queries = source_of(a.qkv, IN_HEADS, D, stride(s), query_at(s, m, kv * share + g), 0, (last - m) * heads);
	v.queries.heads = heads;
	v.keys = source_of(a.pages.keys, IN_KEYS, D, s.K * D * size, (long)kv * D * size, lo, hi);
	v.values = source_of(a.pages.values, IN_VALUES, D, s.K * D * size, (long)kv * D * size, lo, hi);
	v.keys.table = v.values.table = a.table + a.seq[m] * a.table_width;
	v.keys.size = v.values.size = size;
	v.first = 0;
	v.lo = lo;
	v.hi = hi;
	v.out = a.out;
	v.stats = a.stats;
	v.s = s;
	if (column_of_thread() == 0) room->ends[row] = there ? end_in_pages(&a, mine) : 0;
	attend(&room->a, room->ends, 1, v, there ? a.pos[mine] : 0, there, mine * s.H + kv * share + g + row % heads, 0);
}

#endif

// What one key takes from one query: its probability and the gradient of its score.
struct pull {
	float p, dz;
};

// pull_of is the pull for two products, q·k and dout·v, and a query's m, 1/l and delta.
DEVICE struct pull pull_of(struct attention_shape s, float qk, float dp, float m, float inverse, float delta) {
	struct pull x;
	float y;
	const float z = score(s, qk, &y);
	x.p = exp_down(z - m) * inverse;
	x.dz = x.p * (dp - delta);
	if (s.cap > 0) x.dz = x.dz * (1 - y * y);
	x.dz = x.dz * s.scale;
	return x;
}

// weight_of is a weight as a factor.
DEVICE float weight_of(float w) { return TILED ? rounded(w) : w; }

// Like attention's blocks, for the gradients of queries. It also sets delta, the lane sums of dout·out.
BLOCK_KERNEL(NAME(attention_dq), ATTEND_THREADS, BACKWARD_BLOCKS) {
	SHARED(struct pull_room, room, 1);
	const struct attention_shape s = a.s;
	const int per = PER, H = (int)s.H, h = blockIdx.x % H, kv = h / (H / (int)s.K), D = (int)s.D;
	const int first = (int)(gridDim.x / H - 1 - blockIdx.x / H) * ATTEND_ROWS, own = half_warp() * PER;
	float *const z = room->a.weights + own * PITCH + column_of_thread();
	const float *const dp = room->products + own * PITCH + column_of_thread();
	EACH_PART(a.p, j, first) {
		const struct part x = part_of(a.p, j, group_of(a.p, j), first);
		const int rows = x.n + x.hi - x.lo, end = keys_of(s, x);
		float m[PER], inverse[PER], delta[PER], acc[HALVES][PER][EACH];
		if (x.lo >= x.hi) continue;
		bound_queries(&room->a, s, x);
		EACH_ROW(i) {
			const int row = x.lo + own + i, there = row < x.hi;
			const long at = (long)row * H + h;
			m[i] = there ? a.stats[2 * at] : 0;
			inverse[i] = there ? a.stats[2 * at + 1] : 0;
			delta[i] = 0;
			for (int d = column_of_thread(); there && d < D; d += LANES)
				delta[i] = fmaf(load(a.dout, at * D + d), load(a.out, at * D + d), delta[i]);
			delta[i] = fold_lanes(delta[i]);
			if (there && column_of_thread() == 0) a.delta[at] = delta[i];
		}
		const struct source q = head_of(a.qkv, x.seq, end, D, stride(s), query_at(s, 0, h));
		const struct source k = head_of(a.qkv, x.seq, end, D, stride(s), key_at(s, 0, kv));
		const struct source v = head_of(a.qkv, x.seq, end, D, stride(s), value_at(s, 0, kv));
		const struct source dout = head_of(a.dout, x.seq, end, D, s.H * D, (long)h * D);
		ROLLED for (int d = 0; d < D; d += KEPT) {
			clear_sums(acc);
			ROLLED for (int t = (int)first_seen(s, x.n) / PANEL * PANEL; t < end; t += PANEL) {
				ROLLED for (int second = 0; second < 2; second++)
					multiply_rows(second ? room->products : room->a.weights, &room->a, PER, either(q, dout, second),
						x.n, either(k, v, second), t);
				ROLLED for (int j = 0; j < EACH; j++) EACH_ROW(i) {
					const int n = x.n + own + i, column = t + column_of_thread() + j * LANES;
					const int e = i * PITCH + j * LANES, seen = n < rows && sees(s, n, column, end_of_row(BOUNDS(&room->a), PER, i, n));
					const float dz = weight_of(pull_of(s, z[e], dp[e], m[i], inverse[i], delta[i]).dz);
					z[e] = float_of(seen ? bits_of(dz) : NO_TERM);
				}
				weigh(acc, room->a.weights, &room->a, PER, k, t, d);
			}
			EACH_ROW(i) {
				const int row = x.lo + own + i;
				if (row < x.hi) store_row(a.dqkv, query_at(s, row, h), D, d, acc, i, 1);
			}
		}
	}
}

DEVICE int greater(int x, int y) { return x > y ? x : y; }

// load_stats sets m, 1/l and delta of the queries at positions from t on, 0 where the sequence has none of its own, and
// what they see.
INLINE void load_stats(const struct attention_backward_args *a, struct pull_room *room, struct sequence seq, int t, int h) {
	float *const stats = room->stats;
	const int n = t + (int)threadIdx.x, there = n >= seq.prefix && n < seq.prefix + seq.own;
	const long at = there ? row_of(seq, n) * a->s.H + h : 0;
	if (threadIdx.x >= PANEL) return;
	stats[threadIdx.x] = there ? a->stats[2 * at] : 0;
	stats[PANEL + threadIdx.x] = there ? a->stats[2 * at + 1] : 0;
	stats[2 * PANEL + threadIdx.x] = there ? a->delta[at] : 0;
#if LOOKS_AHEAD
	room->ends[threadIdx.x] = there ? end_seen(a->s, seq, n) : 0;
#endif
}

// bound_keys sets the bounds of a part's rows for the queries of a sequence: the step of the first that sees a key of
// the row's step. Those of the sequence before have been read: panels were awaited since.
INLINE void bound_keys(struct attend_room *room, struct attention_shape s, struct part x, struct sequence seq) {
#if LOOKS_AHEAD
	const int i = (int)threadIdx.x, t = (x.n + i) / TILE_TERMS * TILE_TERMS;
	if (i < x.hi - x.lo) room->bounds[i] = first_seeing(s, seq, t) / TILE_TERMS * TILE_TERMS;
#endif
	(void)room, (void)s, (void)x, (void)seq;
}

// pull_weights turns a thread's products of keys, from position `key` on, and queries, from t on, into weights:
// q·k and dout·v into dz and p. Queries that do not see a key are products 0, from the step of the first on.
INLINE void pull_weights(struct pull_room *room, struct attention_shape s, struct sequence seq, int key, int keys,
	int t) {
	const int per = PER, own = half_warp() * PER, T = seq.prefix + seq.own;
	float *const z = room->a.weights + own * PITCH + column_of_thread();
	float *const dp = room->products + own * PITCH + column_of_thread();
	ROLLED for (int j = 0; j < EACH; j++) {
		const float *const stats = room->stats + column_of_thread() + j * LANES;
		const float m = stats[0], inverse = stats[PANEL], delta = stats[2 * PANEL];
		const int n = t + column_of_thread() + j * LANES;
		EACH_ROW(i) {
			const int pos = key + own + i, e = i * PITCH + j * LANES;
#if LOOKS_AHEAD
			const int there = own + i < keys && n >= room->a.bounds[own + i] && n < T;
			const int seen = there && sees(s, n, pos, room->ends[column_of_thread() + j * LANES]);
#else
			const int first = pos > seq.prefix ? pos : seq.prefix;
			const int there = own + i < keys && n >= first / TILE_TERMS * TILE_TERMS && n < T;
			const int seen = there && n >= first && (s.window == 0 || n - pos < s.window);
#endif
			const struct pull x = pull_of(s, z[e], dp[e], m, inverse, delta);
			const uint32_t none = there ? NO_PRODUCT : NO_TERM;
			z[e] = float_of(seen ? bits_of(weight_of(x.dz)) : none);
			dp[e] = float_of(seen ? bits_of(weight_of(x.p)) : none);
		}
	}
}

// A block has 32 rows of M and a key/value head, for the gradients of keys and values: over the sequences that
// see them, the query heads that share the head, and the query rows. It goes on for 64 queries behind a window,
// for their products 0.
BLOCK_KERNEL(NAME(attention_dkv), ATTEND_THREADS, BACKWARD_BLOCKS) {
	SHARED(struct pull_room, room, 1);
	const struct attention_shape s = a.s;
	const int per = PER, K = (int)s.K, kv = blockIdx.x % K, D = (int)s.D, share = (int)s.H / (int)s.K;
	const int first = (int)(blockIdx.x / K) * ATTEND_ROWS;
	EACH_PART(a.p, j, first) {
		const long g = group_of(a.p, j);
		const struct part x = part_of(a.p, j, g, first);
		if (x.lo >= x.hi) continue;
		const long last = a.p.G && a.p.groups[g] == j ? a.p.groups[g + 1] - 1 : j; // a prefix is seen by its group
		ROLLED for (int d = 0; d < D; d += KEPT) {
			float dk[HALVES][PER][EACH], dv[HALVES][PER][EACH];
			clear_sums(dk);
			clear_sums(dv);
			ROLLED for (long see = j; see <= last; see++) ROLLED for (int h = kv * share; h < (kv + 1) * share; h++) {
				const struct sequence seq = sequence_of(a.p, see, g);
				const int T = seq.prefix + seq.own, P = seq.prefix, newest = x.n + x.hi - x.lo - 1;
				const int from = LOOKS_AHEAD ? first_seeing(s, seq, x.n / TILE_TERMS * TILE_TERMS) : greater(x.n, P);
				const int seen = s.window > 0 && s.window < T ? newest + (int)s.window : T;
				const int all = greater(greater(newest, P), seen) + PANEL, end = all < T ? all : T;
				const struct source q = head_of(a.qkv, seq, T, D, stride(s), query_at(s, 0, h));
				const struct source k = head_of(a.qkv, seq, T, D, stride(s), key_at(s, 0, kv));
				const struct source v = head_of(a.qkv, seq, T, D, stride(s), value_at(s, 0, kv));
				const struct source dout = head_of(a.dout, seq, T, D, s.H * D, (long)h * D);
				bound_keys(&room->a, s, x, seq);
				ROLLED for (int t = from / PANEL * PANEL; t < end; t += PANEL) {
					load_stats(&a, room, seq, t, h);
					ROLLED for (int second = 0; second < 2; second++)
						multiply_rows(second ? room->products : room->a.weights, &room->a, PER,
							either(k, v, second), x.n, either(q, dout, second), t);
					pull_weights(room, s, seq, x.n, x.hi - x.lo, t);
					weigh(dk, room->a.weights, &room->a, PER, q, t, d);
					weigh(dv, room->products, &room->a, PER, dout, t, d);
				}
			}
			EACH_ROW(i) {
				const int row = x.lo + half_warp() * PER + i;
				if (row >= x.hi) continue;
				store_row(a.dqkv, key_at(s, row, kv), D, d, dk, i, 1);
				store_row(a.dqkv, value_at(s, row, kv), D, d, dv, i, 1);
			}
		}
	}
}
