#include "num.h"

KERNEL(embed) {
	const long i = element(), m = i / a.C, c = i % a.C;
	if (m >= a.M) return;
	const float w = load(a.w, a.ids[m] * a.pitch + c);
	a.out[i] = a.scale * (a.round ? rounded(w) : w);
}

// A thread for each column adds the rows in order: two of them may have one id.
KERNEL(embed_backward) {
	const long c = element();
	if (c >= a.C) return;
	for (long m = 0; m < a.M; m++) a.dweight[a.ids[m] * a.C + c] += a.scale * a.dout[m * a.C + c];
}
