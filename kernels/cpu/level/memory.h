// memory.h: clearing, and copies of pages.

// zero clears chunks lo..hi, ZERO_BYTES each.
static void zero(const struct zero_args *g, long lo, long hi, int tid) {
	(void)tid;
	const long end = hi * ZERO_BYTES < g->bytes ? hi * ZERO_BYTES : g->bytes;
	memset((char *)g->at + lo * ZERO_BYTES, 0, end - lo * ZERO_BYTES);
}

// copy_pages copies parts lo..hi of pages, pair by pair; the first half of the parts are the
// keys', the second half the values'. A part is the same range of bytes in every page.
static void copy_pages(const struct copy_args *g, long lo, long hi, int tid) {
	(void)tid;
	for (long u = lo; u < hi; u++) {
		char *pages = u < g->parts ? g->keys : g->values;
		const long part = u % g->parts, from = part * g->part, left = g->page - from;
		for (long i = 0; i < g->count; i++)
			memcpy(pages + g->pairs[2 * i + 1] * g->page + from, pages + g->pairs[2 * i] * g->page + from, left < g->part ? left : g->part);
	}
}
