#include "warp.h"
#include "wide.h"

KERNEL(embed) {
	const long i = element(), m = i / wides(a.C), c = i % wides(a.C) * WIDE;
	float w[WIDE];
	if (m >= a.M) return;
	load_wide(w, a.w, a.ids[m] * a.pitch + c, a.C - c);
	EACH_WIDE(j) w[j] = a.scale * (a.round ? rounded(w[j]) : w[j]);
	store_wide(floats(a.out), m * a.C + c, a.C - c, w);
}

// Several rows may have one id. The warp of the first adds them all, in order, for SLICE columns.
#define SLICE (WARP * BURST)

BLOCK_KERNEL(embed_backward, 4 * WARP, 8) {
	const long slices = (a.C + SLICE - 1) / SLICE, warp = element() / WARP, m = warp / slices;
	const long lane = threadIdx.x % WARP, lo = warp % slices * SLICE + lane, id = m < a.M ? a.ids[m] : -1;
	if (m >= a.M) return;
	for (long k = lane; k - lane < m; k += WARP)
		if (any(k < m && a.ids[k] == id)) return;
	float sum[BURST], v[BURST];
	load_burst(sum, floats(a.dweight), id * a.C, lo, WARP, a.C);
	for (long k = m + lane; k - lane < a.M; k += WARP) {
		uint32_t same = ballot(k < a.M && a.ids[k] == id);
		for (long row = k - lane; same; row++, same >>= 1) {
			if (!(same & 1)) continue;
			load_burst(v, floats(a.dout), row * a.C, lo, WARP, a.C);
			EACH_LOAD(c) sum[c] += a.scale * v[c];
		}
	}
	EACH_LOAD(c) if (lo + c * WARP < a.C) a.dweight[id * a.C + lo + c * WARP] = sum[c];
}
