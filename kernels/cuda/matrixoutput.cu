#include "softmax.h"
#include "tile.h"

// The output layer on tensor cores, a block for each tile of logits. output.cu does the rest.

BLOCK_KERNEL(matrix_logits, TILE_THREADS, 2) {
	TILE_MEMORY(shared);
	float acc[4][8][4], *room = room_of(shared), y;
	const struct tile t = tile_of(a.R, a.V);
	no_sums(acc);
	tile_products(acc, shared, t, side_of(a.h, a.R, 1), side_of(a.w, a.V, 1), steps_of(a.C));
	EACH_PART(i) {
		put_sums(room, acc[i]);
		EACH_ROW(k) {
			const long r = row_of(t, i, k), v = column_of(t, k);
			if (r < a.R && v < a.V) a.z[r * a.V + v] = logit_of(*sum_at(room, k), a.x, &y);
		}
	}
}

BLOCK_KERNEL(matrix_logits_backward, TILE_THREADS, 2) {
	TILE_MEMORY(shared);
	float acc[4][8][4], *room = room_of(shared), y;
	const struct tile t = tile_of(a.R, a.V);
	no_sums(acc);
	tile_products(acc, shared, t, side_of(a.h, a.R, 1), side_of(a.w, a.V, 1), steps_of(a.C));
	EACH_PART(i) {
		put_sums(room, acc[i]);
		EACH_ROW(k) {
			const long r = row_of(t, i, k), v = column_of(t, k);
			if (r >= a.R || v >= a.V) continue;
			const float z = logit_of(*sum_at(room, k), a.x, &y);
			store(a.dz, r * a.V + v,
				logit_gradient(z, y, v == a.targets[r], a.dlogprob[r], a.dentropy[r], a.entropy[r], a.lse[r], a.x));
		}
	}
}
