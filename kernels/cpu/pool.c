#include "pool.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

// How long a thread spins for work, or for the others to finish, before it sleeps:
// longer than the gap between two operations, too short for anyone to notice.
#define SPIN_NS 200000

// A job is a number of units in chunks; threads take chunks until none is left. Which
// thread computes a unit never changes its bits.
//
// state holds the job's number in its upper half and the number of untaken chunks in
// its lower half. A thread that takes a chunk by compare-and-swap knows that the job is
// still the one it saw and cannot end before the chunk is done; so it may read the
// job's fields, which only the caller writes, and only between jobs.
struct pool {
	_Alignas(64) _Atomic uint64_t state;
	_Alignas(64) _Atomic long done; // chunks
	_Alignas(64) kernel fn;
	const void *args;
	long units, grain, chunks;
	_Alignas(64) atomic_bool closed;
	atomic_int sleepers;      // threads that wait for begun, or are about to
	atomic_bool waiting;      // the caller waits for ended, or is about to
	pthread_mutex_t mutex;    // held to sleep and to wake, not to work
	pthread_cond_t begun, ended;
	int n;
	struct worker { struct pool *pool; pthread_t thread; int tid; } workers[];
};

static int64_t now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

// take runs one chunk and returns whether there may be another.
static bool take(struct pool *p, int tid) {
	uint64_t s = atomic_load(&p->state);
	uint32_t left = (uint32_t)s;
	if (!left) return false;
	if (!atomic_compare_exchange_weak(&p->state, &s, s - 1)) return true;
	long lo = (p->chunks - left) * p->grain, hi = lo + p->grain;
	p->fn(p->args, lo, hi < p->units ? hi : p->units, tid);
	long chunks = p->chunks; // read now: the job may end with the next line
	if (atomic_fetch_add(&p->done, 1) + 1 == chunks && atomic_load(&p->waiting)) {
		pthread_mutex_lock(&p->mutex);
		pthread_cond_signal(&p->ended);
		pthread_mutex_unlock(&p->mutex);
	}
	return true;
}

static bool has_work(struct pool *p) { return (uint32_t)atomic_load(&p->state) || atomic_load(&p->closed); }
static bool is_done(struct pool *p) { return atomic_load(&p->done) == p->chunks; }

// spin waits until ready returns true, for at most SPIN_NS, and returns whether it did.
// It yields the processor to other threads.
static bool spin(struct pool *p, bool (*ready)(struct pool *)) {
	for (int64_t end = 0;;) {
		for (int i = 0; i < 64; i++) {
			if (ready(p)) return true;
			pool_relax();
		}
		int64_t t = now();
		if (!end) end = t + SPIN_NS;
		if (t > end) return false;
		sched_yield();
	}
}

static void *serve(void *arg) {
	struct worker *w = arg;
	struct pool *p = w->pool;
	for (;;) {
		if (!spin(p, has_work)) {
			pthread_mutex_lock(&p->mutex);
			atomic_fetch_add(&p->sleepers, 1);
			while (!has_work(p)) pthread_cond_wait(&p->begun, &p->mutex);
			atomic_fetch_sub(&p->sleepers, 1);
			pthread_mutex_unlock(&p->mutex);
		}
		while (take(p, w->tid)) {}
		if (atomic_load(&p->closed)) return 0;
	}
}

void pool_run(struct pool *p, kernel fn, const void *args, long units, long grain) {
	p->fn = fn, p->args = args, p->units = units, p->grain = grain;
	p->chunks = (units + grain - 1) / grain;
	if (p->n == 1 || p->chunks == 1) {
		fn(args, 0, units, 0);
		return;
	}
	atomic_store(&p->done, 0);
	atomic_store(&p->state, ((atomic_load(&p->state) >> 32) + 1) << 32 | (uint64_t)p->chunks);
	if (atomic_load(&p->sleepers)) {
		pthread_mutex_lock(&p->mutex);
		pthread_cond_broadcast(&p->begun);
		pthread_mutex_unlock(&p->mutex);
	}
	while (take(p, 0)) {}
	if (spin(p, is_done)) return;
	atomic_store(&p->waiting, true);
	pthread_mutex_lock(&p->mutex);
	while (!is_done(p)) pthread_cond_wait(&p->ended, &p->mutex);
	pthread_mutex_unlock(&p->mutex);
	atomic_store(&p->waiting, false);
}

struct pool *pool_open(int n) {
	size_t size = sizeof(struct pool) + n * sizeof(struct worker);
	struct pool *p = aligned_alloc(64, (size + 63) / 64 * 64);
	if (!p) return 0;
	*p = (struct pool){.n = 1};
	pthread_mutex_init(&p->mutex, 0);
	pthread_cond_init(&p->begun, 0);
	pthread_cond_init(&p->ended, 0);
	// Block all signals: Go's threads handle them.
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int err = 0;
	for (int tid = 1; tid < n && !err; tid++) {
		struct worker *w = &p->workers[tid];
		w->pool = p, w->tid = tid;
		err = pthread_create(&w->thread, 0, serve, w);
		if (!err) p->n++;
	}
	pthread_sigmask(SIG_SETMASK, &old, 0);
	if (!err) return p;
	pool_close(p);
	errno = err;
	return 0;
}

void pool_close(struct pool *p) {
	pthread_mutex_lock(&p->mutex);
	atomic_store(&p->closed, true);
	pthread_cond_broadcast(&p->begun);
	pthread_mutex_unlock(&p->mutex);
	for (int tid = 1; tid < p->n; tid++) pthread_join(p->workers[tid].thread, 0);
	pthread_mutex_destroy(&p->mutex);
	pthread_cond_destroy(&p->begun);
	pthread_cond_destroy(&p->ended);
	free(p);
}
