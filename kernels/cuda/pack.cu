#include "wide.h"

KERNEL(pack) {
	const long i = WIDE * element(), row = i / a.pitch, c = i % a.pitch; // a pitch is whole vectors
	if (row >= a.rows) return;
	float v[WIDE];
	load_wide(v, a.src, row * a.width + c, a.width - c);
	store_wide(bf16s(a.dst), i, WIDE, v);
}
