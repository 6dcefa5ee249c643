#include "gpu.h"

// add adds src to dst (kernels.Memory).
KERNEL(add) {
	const long i = element();
	if (i < a.n) a.dst[i] = a.dst[i] + a.src[i];
}
