#include "num.h"

KERNEL(pack) {
	const long i = element(), row = i / a.pitch, c = i % a.pitch;
	if (row < a.rows) ((uint16_t *)a.dst)[i] = c < a.width ? round_bf16(load(a.src, row * a.width + c)) : 0;
}
