#include "queue.h"

#include <sched.h>

#include "pool.h"

long queue_row(const struct queue *q, long b) {
	return q->tiles ? tile_block_row(&q->rows, q->m, b) : block_row(&q->rows, q->m, b);
}

// await waits until other threads have finished blocks lo..hi of job j.
static void await(const struct queue *q, long j, long lo, long hi) {
	for (long b = lo; b < hi; b++)
		for (long i = 1; !__atomic_load_n(&q->done[j * q->blocks + b], __ATOMIC_ACQUIRE); i++) {
			if (i % 64 == 0) sched_yield();
			else pool_relax();
		}
}

// run_job runs job j on block b.
static void run_job(const struct queue *q, long j, long b, int tid) {
	if (q->wait[j] == AFTER_EARLIER) await(q, j, q->see[q->seeing[j] * q->blocks + b], b);
	const long r0 = queue_row(q, b), r1 = queue_row(q, b + 1);
	for (long i = q->first[j]; i < q->first[j + 1]; i++) {
		const struct queued *o = &q->op[i];
		if (!o->fn) continue;
		if (o->per_row) o->fn(&o->args, r0 * o->per_row, r1 * o->per_row, tid);
		else o->fn(&o->args, b, b + 1, tid);
	}
	if (b >= q->whole || q->waits) __atomic_store_n(&q->done[j * q->blocks + b], 1, __ATOMIC_RELEASE);
}

void queue_run(const struct queue *q, long lo, long hi, int tid) {
	const long parted = q->blocks - q->whole;
	for (long u = lo; u < hi; u++) {
		if (u < q->whole) {
			for (long j = 0; j < q->jobs; j++) run_job(q, j, u, tid);
			continue;
		}
		const long j = (u - q->whole) / parted, b = q->whole + (u - q->whole) % parted;
		if (j > 0 && q->wait[j] == AFTER_ALL) await(q, j - 1, 0, q->blocks);
		else if (j > 0) await(q, j - 1, b, b + 1);
		run_job(q, j, b, tid);
	}
}
