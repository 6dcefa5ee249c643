#include "queue.h"

#include <sched.h>

#include "pool.h"

// await waits until a unit is done, which another thread has taken.
static void await(const struct queue *q, long unit) {
	for (long i = 1; !__atomic_load_n(&q->done[unit], __ATOMIC_ACQUIRE); i++) {
		if (i % 64 == 0) sched_yield();
		else pool_relax();
	}
}

// run_job runs job j on block b.
static void run_job(const struct queue *q, long j, long b, int tid) {
	long (*const at)(const struct row_blocks *, long, long) = q->tiles ? tile_block_row : block_row;
	const long r0 = at(&q->rows, q->m, b), r1 = at(&q->rows, q->m, b + 1);
	for (long i = q->first[j]; i < q->first[j + 1]; i++) {
		const struct queued *o = &q->op[i];
		if (!o->fn) continue;
		if (o->per_row) o->fn(&o->args, r0 * o->per_row, r1 * o->per_row, tid);
		else o->fn(&o->args, b, b + 1, tid);
	}
}

void queue_run(const struct queue *q, long lo, long hi, int tid) {
	const long parted = q->blocks - q->whole;
	for (long u = lo; u < hi; u++) {
		if (u < q->whole) {
			for (long j = 0; j < q->jobs; j++) run_job(q, j, u, tid);
			continue;
		}
		const long unit = u - q->whole, j = unit / parted, b = unit % parted;
		if (j > 0 && !q->after_all[j]) await(q, unit - parted);
		for (long i = 0; j > 0 && q->after_all[j] && i < parted; i++) await(q, (j - 1) * parted + i);
		run_job(q, j, q->whole + b, tid);
		__atomic_store_n(&q->done[unit], 1, __ATOMIC_RELEASE);
	}
}
