// Products on tensor cores by wgmma (wgmma.h), of compute capability 9.0 alone. They have the bits of products.h.
// Tiles are 256 × 256.
#define GROUPS 2
#define CLUSTER 2
#define BLOCKS 1
#define TILE_COLUMNS 256
#define STAGES 4
#define ROOMS 8
#define SHARED_BYTES WGMMA_SHARED
#include "wgmma.h"

CLUSTER_KERNEL(wgmma_matmul) {
	LAUNCH_SHARED(char, shared, SHARED_BYTES);
	struct pipeline p = open_pipeline(shared);
	if (threadIdx.x < GROUP_THREADS) {
		FETCH(wgmma_matmul, a.of.M, a.of.N, part_of(t), 0, steps_of(a.of.K), 1, 1);
	} else {
		MORE_REGISTERS();
		float sum[EIGHTS][4], *room = room_of(p);
		EACH_TILE(t, a.of.M, a.of.N) {
			UNROLL for (int j = 0; j < EIGHTS; j++) UNROLL for (int e = 0; e < 2; e++) {
				const long n = column_of(t, j) + e;
				sum[j][e] = sum[j][2 + e] = a.of.bias && n < a.of.N ? a.of.bias[n] : 0;
			}
			add_tile(sum, &p, steps_of(a.of.K), 1, 1);
			store_sums(a.of.out, a.of.M, a.of.N, t, sum, room, 0);
		}
	}
	close_pipeline();
}

CLUSTER_KERNEL(wgmma_matmul_dx) {
	LAUNCH_SHARED(char, shared, SHARED_BYTES);
	struct pipeline p = open_pipeline(shared);
	if (threadIdx.x < GROUP_THREADS) {
		FETCH(wgmma_matmul_dx, a.of.M, a.of.K, part_of(t), 0, steps_of(a.of.N), 1, 0);
	} else {
		MORE_REGISTERS();
		float sum[EIGHTS][4], *room = room_of(p);
		EACH_TILE(t, a.of.M, a.of.K) {
			no_sums(sum);
			add_tile(sum, &p, steps_of(a.of.N), 1, 0);
			store_sums(a.of.dx, a.of.M, a.of.K, t, sum, room, 0);
		}
	}
	close_pipeline();
}

// The sums continue in the gradient: a step is 16 rows of one block.
CLUSTER_KERNEL(wgmma_matmul_dw) {
	LAUNCH_SHARED(char, shared, SHARED_BYTES);
	struct pipeline p = open_pipeline(shared);
	if (threadIdx.x < GROUP_THREADS) {
		FETCH(wgmma_matmul_dw, a.of.N, a.of.K, part_of(t), 0,
			steps_of_blocks(a.of.blocks, a.of.B), 0, 0);
	} else {
		MORE_REGISTERS();
		float sum[EIGHTS][4], *room = room_of(p);
		EACH_TILE(t, a.of.N, a.of.K) {
			load_sums(sum, a.of.dw, a.of.N, a.of.K, t);
			add_tile(sum, &p, steps_of_blocks(a.of.blocks, a.of.B), 0, 0);
			store_sums(floats(a.of.dw), a.of.N, a.of.K, t, sum, room, 0);
		}
	}
	close_pipeline();
}

// Columns of a tile are gates in the first half and, in the second, which the other block fetches, their ups.
CLUSTER_KERNEL(wgmma_matmul_swiglu) {
	LAUNCH_SHARED(char, shared, SHARED_BYTES);
	struct pipeline p = open_pipeline(shared);
	const long across = up(a.of.F, TILE_COLUMNS / 2) * TILE_COLUMNS;
	if (threadIdx.x < GROUP_THREADS) {
		FETCH(wgmma_matmul_swiglu, a.of.M, across, t.n / 2 + rank_of_block() * a.of.F, 0, steps_of(a.of.K), 1, 1);
	} else {
		MORE_REGISTERS();
		float sum[EIGHTS][4], *room = room_of(p);
		const int lane = threadIdx.x % WARP, quads = has_quads(a.of.act, a.of.F) && has_quads(a.of.gate_up, a.of.F);
		EACH_TILE(t, a.of.M, across) {
			no_sums(sum);
			add_tile(sum, &p, steps_of(a.of.K), 1, 1);
			ROLLED for (int turn = 0; turn < EIGHTS / 2; turn += 4, move_sums(sum, EIGHTS / 2, 4), move_sums(sum + EIGHTS / 2, EIGHTS / 2, 4))
			UNROLL for (int j = 0; j < 4; j += 2) {
				const long first = t.n / 2 + (turn + j) * 8;
				meet();
				put_sums(room, &sum[j], 0, 2);
				put_sums(room, &sum[j + EIGHTS / 2], 2, 2);
				meet();
				if (quads) {
					ROLLED for (int r = lane / 4; r < 16; r += 8) {
						const long m = row_in_room(t, r), f = first + lane % 4 * 4;
						float *s = &room[r * ROOM_PITCH + lane % 4 * 4];
						if (m < a.of.M && f < a.of.F) store_gates(&a.of, m, f, s, s + 16);
					}
				} else {
					ROLLED for (int n = lane; n < 16 * 16; n += WARP) {
						const long m = row_in_room(t, n / 16), f = first + n % 16;
						const float *s = &room[n / 16 * ROOM_PITCH + n % 16];
						if (m < a.of.M && f < a.of.F) store_gate(&a.of, m, f, s[0], s[16]);
					}
				}
			}
		}
	}
	close_pipeline();
}

// gradients turns the gradient d of an activation into those of its gate g and its up u.
INLINE void gradients(float d, float *g, float *u) {
	const float s = sigmoid_of(*g), dg = d * *u * (s * fmaf(*g, 1 - s, 1));
	*u = d * (*g * s);
	*g = dg;
}

// The gates and ups that a thread needs of 32 columns: four of rows m, m+4, m+8 and m+12 each.
struct gates {
	two_words g[4], u[4];
};

// load_gates queues their loads, from f on. They take as long as the work on the 32 columns before.
INLINE void load_gates(struct gates *x, const struct matrix_matmul_dx_swiglu_args *a, long m, long f) {
	const uint16_t *const from = (const uint16_t *)a->gate_up.at + (m * 2 * a->F + f);
	UNROLL for (int i = 0; i < 4; i++) {
		if (f >= a->F || m + 4 * i >= a->M) continue;
		x->g[i] = *(const two_words *)(from + i * 8 * a->F);
		x->u[i] = *(const two_words *)(from + i * 8 * a->F + a->F);
	}
}

// store_gradients stores the gradients of gates x and their ups; d are the activations' gradients in the room.
// store_gradient does so with one.
INLINE void store_gradients(const struct gates *x, const struct matrix_matmul_dx_swiglu_args *a, long m, long f, const float *d) {
	uint16_t *const to = (uint16_t *)a->dgate_up.at + (m * 2 * a->F + f);
	UNROLL for (int i = 0; i < 4; i++) {
		float g[4], u[4];
		if (f >= a->F || m + 4 * i >= a->M) continue;
		spread_quad(g, x->g[i]);
		spread_quad(u, x->u[i]);
		UNROLL for (int e = 0; e < 4; e++) gradients(rounded(d[i * 4 * ROOM_PITCH + e]), &g[e], &u[e]);
		*(two_words *)(to + i * 8 * a->F) = round_quad(g);
		*(two_words *)(to + i * 8 * a->F + a->F) = round_quad(u);
	}
}

INLINE void store_gradient(const struct matrix_matmul_dx_swiglu_args *a, long m, long f, float d) {
	const long gate = m * 2 * a->F + f;
	if (m >= a->M || f >= a->F) return;
	float g = load(a->gate_up, gate), u = load(a->gate_up, gate + a->F);
	gradients(rounded(d), &g, &u);
	store(a->dgate_up, gate, g);
	store(a->dgate_up, gate + a->F, u);
}

CLUSTER_KERNEL(wgmma_matmul_dx_swiglu) {
	LAUNCH_SHARED(char, shared, SHARED_BYTES);
	struct pipeline p = open_pipeline(shared);
	if (threadIdx.x < GROUP_THREADS) {
		FETCH(wgmma_matmul_dx_swiglu, a.of.M, a.of.F, part_of(t), 0, steps_of(a.of.N), 1, 0);
	} else {
		MORE_REGISTERS();
		float sum[EIGHTS][4], *room = room_of(p);
		const int lane = threadIdx.x % WARP, quads = has_quads(a.of.dgate_up, a.of.F) && has_quads(a.of.gate_up, a.of.F);
		struct gates x[2];
		EACH_TILE(t, a.of.M, a.of.F) {
			const long m = row_in_room(t, lane / 8), f = t.n + lane % 8 * 4;
			no_sums(sum);
			add_tile(sum, &p, steps_of(a.of.N), 1, 0);
			if (quads) load_gates(&x[0], &a.of, m, f);
			EACH_IN_ROOM(sum, j, column) {
				if (quads && column + ROOM_COLUMNS < TILE_COLUMNS) load_gates(&x[1 - j / 4], &a.of, m, f + column + ROOM_COLUMNS);
				meet();
				put_sums(room, &sum[j], 0, 4);
				meet();
				if (quads) {
					store_gradients(&x[j / 4], &a.of, m, f + column, &room[lane / 8 * ROOM_PITCH + lane % 8 * 4]);
				} else {
					ROLLED for (int r = 0; r < 16; r++)
						store_gradient(&a.of, row_in_room(t, r), t.n + column + lane, room[r * ROOM_PITCH + lane]);
				}
			}
		}
	}
	close_pipeline();
}

// The output layer: a tile of logits. output.cu does the rest.
CLUSTER_KERNEL(wgmma_logits) {
	LAUNCH_SHARED(char, shared, SHARED_BYTES);
	struct pipeline p = open_pipeline(shared);
	if (threadIdx.x < GROUP_THREADS) {
		FETCH(wgmma_logits, a.of.R, a.of.V, part_of(t), 0, steps_of(a.of.C), 1, 1);
	} else {
		MORE_REGISTERS();
		float sum[EIGHTS][4], *room = room_of(p);
		EACH_TILE(t, a.of.R, a.of.V) {
			no_sums(sum);
			add_tile(sum, &p, steps_of(a.of.C), 1, 1);
			store_sums(floats(a.of.z), a.of.R, a.of.V, t, sum, room, &a.of.x);
		}
	}
	close_pipeline();
}

// gradient_of_logit is logit_gradient for row r and token v.
INLINE float gradient_of_logit(const struct matrix_logits_backward_args *a, long r, long v, float z, float y) {
	return logit_gradient(z, y, v == a->targets[r], a->dlogprob[r], a->dentropy[r], a->entropy[r], a->lse[r], a->x);
}

CLUSTER_KERNEL(wgmma_logits_backward) {
	LAUNCH_SHARED(char, shared, SHARED_BYTES);
	struct pipeline p = open_pipeline(shared);
	if (threadIdx.x < GROUP_THREADS) {
		FETCH(wgmma_logits_backward, a.of.R, a.of.V, part_of(t), 0, steps_of(a.of.C), 1, 1);
	} else {
		MORE_REGISTERS();
		float sum[EIGHTS][4], y, *room = room_of(p);
		const int lane = threadIdx.x % WARP, quads = has_quads(a.of.dz, a.of.V) && a.of.x.cap == 0;
		EACH_TILE(t, a.of.R, a.of.V) {
			no_sums(sum);
			add_tile(sum, &p, steps_of(a.of.C), 1, 1);
			EACH_IN_ROOM(sum, j, column) {
				meet();
				put_sums(room, &sum[j], 0, 4);
				meet();
				if (quads) {
					ROLLED for (int i = lane / 8; i < 16; i += 8) UNROLL for (int h = 0; h < 8; h += 4) {
						const long r = row_in_room(t, i + h), v = t.n + column + lane % 8 * 4;
						float *d = &room[(i + h) * ROOM_PITCH + lane % 8 * 4];
						if (r >= a.of.R || v >= a.of.V) continue;
						UNROLL for (int e = 0; e < 4; e++) d[e] = gradient_of_logit(&a.of, r, v + e, d[e] * a.of.x.inverse_temperature, 0);
						store_quad(a.of.dz, r * a.of.V + v, d);
					}
				} else {
					ROLLED for (int k = 0; k < 16; k++) {
						const long r = row_in_room(t, k), v = t.n + column + lane;
						if (r >= a.of.R || v >= a.of.V) continue;
						const float z = logit_of(room[k * ROOM_PITCH + lane], a.of.x, &y);
						store(a.of.dz, r * a.of.V + v, gradient_of_logit(&a.of, r, v, z, y));
					}
				}
			}
		}
	}
	close_pipeline();
}
