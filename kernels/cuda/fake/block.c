#define _GNU_SOURCE
#include "block.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

// The size of a stack is no multiple of a cache's, or the ends of all stacks would share a few lines.
enum { STACK = (64 << 10) + 576, MAX_COPIES = 128, MAX_GROUPS = 16, OWN_ROOM = 48 << 10, SHARED_ROOM = 256 << 10,
	PAGE = 4096, MAX_BLOCKS = 4, MAX_GROUP_BARRIERS = 16 };

struct copy {
	void *to;
	const void *from;
	size_t bytes;
};

// A thread of the running cluster. It takes half a line of a cache, because threads take turns often.
struct thread {
#if defined(__x86_64__)
	void *sp;
#else
	ucontext_t context;
#endif
	struct member *block;
	struct grid index;
	short copies, groups; // in flight
};

// The copies of a thread. group[i] is the number of those in its first i groups.
struct copies {
	int group[MAX_GROUPS + 1];
	struct copy copy[MAX_COPIES];
};

// Lanes that meet. A lane may be one exchange ahead, so there are two sets of words.
struct meeting {
	int came;
	unsigned generation;
	words slot[2][WARP];
};

// A set of threads of the cluster, a bit for each.
typedef uint32_t threads[MAX_THREADS / WARP];

// Threads that wait at a barrier.
struct crowd {
	int waiting;
	unsigned generation;
	int any[2]; // of a generation and the next, whether a thread said so (group_any)
	threads who;
};

// A block of the running cluster; most clusters have one.
struct member {
	struct grid index;
	int live;
	struct crowd all, group[MAX_GROUP_BARRIERS];
	char *shared;
};

static struct {
	const struct kernel *kernel;
	const void *args;
	int order, threads, blocks; // threads of a block
	int step;                   // from a thread to the next in the order
	unsigned warp_step;         // from a lane to the next
	int idle;                   // turns since a thread last came to a meeting or ended
	unsigned shared_bytes;      // from the launch
	threads ready;              // those that have not ended and wait for none
	struct thread main, thread[MAX_THREADS];
	struct member block[MAX_BLOCKS];
	struct meeting warp[MAX_THREADS / WARP];
	struct copies *copies;
	char *stacks;
} cluster;

int running; // main, if it is negative

#if defined(__x86_64__)
// change saves the calling thread's registers on its stack and goes on with another's.
void change(void **save, void *load);
__asm__(".text\n.type change,@function\nchange:\n"
	"pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15\n"
	"movq %rsp,(%rdi); movq %rsi,%rsp\n"
	"popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp; ret\n"
	".size change,.-change\n");
static void go_on(struct thread *from, struct thread *to) { change(&from->sp, to->sp); }

// fetch_stack brings the end of a thread's stack into the nearest cache.
static inline void fetch_stack(const struct thread *t) {
	for (int i = 0; i < 4; i++) __builtin_prefetch((const char *)t->sp + 64 * i, 1);
}

static void prepare(struct thread *t, char *stack, void (*start)(void)) {
	void **sp = (void **)(stack + STACK - 64);
	*sp = (void *)start;
	t->sp = memset(sp - 6, 0, 6 * sizeof *sp);
}
#else
static inline void fetch_stack(const struct thread *t) { (void)t; }
static void go_on(struct thread *from, struct thread *to) { swapcontext(&from->context, &to->context); }

static void prepare(struct thread *t, char *stack, void (*start)(void)) {
	getcontext(&t->context);
	t->context.uc_stack.ss_sp = stack;
	t->context.uc_stack.ss_size = STACK;
	makecontext(&t->context, start, 0);
}
#endif

int rank(void) { return cluster.blocks == 1 ? 0 : running / cluster.threads; }
int blocks(void) { return cluster.blocks; }
int order(void) { return cluster.order; }
int is_live(int of) { return of < cluster.blocks && cluster.block[of].live; }
char *block_memory(int of) { return cluster.block[of].shared; }
void progress(void) { cluster.idle = 0; }

int live_threads(void) {
	int n = 0;
	for (int i = 0; i < cluster.blocks; i++) n += cluster.block[i].live;
	return n;
}

// run_thread goes on with thread i, and returns when something goes on with the caller.
static inline void run_thread(struct thread *caller, int i) {
	struct thread *to = &cluster.thread[i];
	running = i;
	threadIdx = to->index;
	if (cluster.blocks > 1) blockIdx = to->block->index;
	go_on(caller, to);
}

static int is_ready(unsigned i) { return cluster.ready[i / WARP] >> i % WARP & 1; }
static void hold(unsigned i) { cluster.ready[i / WARP] &= ~(1u << i % WARP); }

// turn lets another thread run: the next in the order that is ready. It returns when the caller's turn comes.
void turn(void) {
	const int me = running, n = cluster.threads * cluster.blocks, step = cluster.step;
	if (++cluster.idle > 4 * n) give_up("a wait for threads that do not come");
	for (int k = 1, i = me; k <= n; k++) {
		if ((i += step) >= n) i -= n;
		if (!is_ready(i)) continue;
		if (i == me) return;
		const int next = i + step >= n ? i + step - n : i + step; // mostly
		fetch_stack(&cluster.thread[next]);
		run_thread(&cluster.thread[me], i);
		return;
	}
	if (live_threads()) give_up("a wait for threads that do not come");
	go_on(&cluster.thread[me], &cluster.main);
}

// turn_of_warp is turn, but lets lanes of the caller's warp run first: their stacks are in the nearest cache.
static inline void turn_of_warp(unsigned me) {
	const uint32_t ready = cluster.ready[me / WARP];
	const unsigned step = cluster.warp_step;
	if (!ready) {
		turn();
		return;
	}
	unsigned l = (me + step) % WARP;
	while (!(ready >> l & 1)) l = (l + step) % WARP;
	run_thread(&cluster.thread[me], me / WARP * WARP + l);
}

static void start(void) {
	cluster.kernel->call(cluster.args);
	struct member *b = &cluster.block[rank()];
	if (cluster.thread[running].copies) give_up("an end with copies that nobody waited for");
	hold(running);
	progress();
	if (--b->live && b->all.waiting == b->live) give_up("an end while others wait at a barrier");
	turn();
	abort();
}

// allocate makes room for the threads and blocks of a cluster.
static void allocate(void) {
	if (cluster.stacks) return;
	const int access = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS;
	cluster.stacks = mmap(NULL, (size_t)STACK * MAX_THREADS, access, flags, -1, 0);
	madvise(cluster.stacks, (size_t)STACK * MAX_THREADS, MADV_HUGEPAGE); // threads take turns too fast for small pages' TLB
	for (int i = 0; i < MAX_BLOCKS; i++) {
		cluster.block[i].shared = mmap(NULL, SHARED_ROOM + PAGE, access, flags, -1, 0);
		mprotect(cluster.block[i].shared + SHARED_ROOM, PAGE, PROT_NONE);
	}
	cluster.copies = calloc(MAX_THREADS, sizeof *cluster.copies);
}

void run_cluster(const struct kernel *k, unsigned long first, unsigned shared, const void *args, int order) {
	const int n = cluster.threads = blockDim.x * blockDim.y * blockDim.z;
	const size_t poisoned = shared > OWN_ROOM ? shared : OWN_ROOM;
	allocate();
	cluster.kernel = k;
	cluster.args = args;
	cluster.order = order;
	cluster.step = order == 1 ? n * k->blocks - 1 : order == 2 ? 7919 % (n * k->blocks) : 1;
	cluster.warp_step = order == 1 ? WARP - 1 : order == 2 ? 7919 % WARP : 1;
	cluster.blocks = k->blocks;
	cluster.idle = 0;
	for (int i = 0; i < MAX_THREADS / WARP; i++) cluster.warp[i].came = 0;
	memset(cluster.ready, 0, sizeof cluster.ready);
	cluster.shared_bytes = shared;
	for (int i = 0; i < cluster.blocks; i++) {
		struct member *b = &cluster.block[i];
		*b = (struct member){.index = index_of(first + i, gridDim), .live = n, .shared = b->shared};
		memset(b->shared + SHARED_ROOM - poisoned, 0xff, poisoned); // NaN
	}
	for (int i = 0; i < n * cluster.blocks; i++) {
		struct thread *t = &cluster.thread[i];
		t->copies = t->groups = 0;
		cluster.ready[i / WARP] |= 1u << i % WARP;
		t->index = index_of(i % n, blockDim);
		t->block = &cluster.block[i / n];
		prepare(t, cluster.stacks + (size_t)STACK * i, start);
	}
	begin_cluster(n * cluster.blocks);
	blockIdx = cluster.block[0].index;
	run_thread(&cluster.main, (int)at(0, n * cluster.blocks, order));
	end_cluster();
}

// wait_for waits until so many threads have come.
static void wait_for(struct crowd *c, int come) {
	const unsigned me = running;
	progress();
	if (++c->waiting == come) {
		c->waiting = 0;
		c->generation++;
		for (int i = 0; i < MAX_THREADS / WARP; i++) {
			cluster.ready[i] |= c->who[i];
			c->who[i] = 0;
		}
		return;
	}
	hold(me);
	c->who[me / WARP] |= 1u << me % WARP;
	turn();
}

void barrier(void) { wait_for(&cluster.block[rank()].all, cluster.block[rank()].live); }

void group_barrier(int id, int threads) {
	if (id < 1 || id >= MAX_GROUP_BARRIERS) give_up("no such barrier");
	wait_for(&cluster.block[rank()].group[id], threads);
}

int group_any(int id, int threads, int p) {
	if (id < 1 || id >= MAX_GROUP_BARRIERS) give_up("no such barrier");
	struct crowd *c = &cluster.block[rank()].group[id];
	int *any = &c->any[c->generation % 2];
	if (c->waiting == 0) *any = 0;
	*any |= p != 0;
	wait_for(c, threads);
	return *any;
}

words *exchange(const uint32_t *v, int n, void (*combine)(words *all)) {
	const unsigned me = running;
	struct meeting *m = &cluster.warp[me / WARP];
	words *slot = m->slot[m->generation % 2];
	uint32_t *own = slot[me % WARP];
	if (n == 1) *own = *v;
	else if (n == MAX_WORDS) memcpy(own, v, sizeof *slot);
	else for (int i = 0; i < n; i++) own[i] = v[i];
	progress();
	if (++m->came < WARP) {
		hold(me);
		turn_of_warp(me);
		return slot;
	}
	if (combine) combine(slot);
	m->came = 0;
	m->generation++;
	cluster.ready[me / WARP] = ~0u;
	return slot;
}

// The array ends at a page that nothing may touch.
void *shared_memory(size_t bytes) {
	if (bytes > OWN_ROOM) give_up("too much shared memory");
	return block_memory(rank()) + SHARED_ROOM - (bytes + 15) / 16 * 16;
}

void *launch_shared_memory(size_t bytes) {
	if (bytes != cluster.shared_bytes) give_up("shared memory of another size than the launch gives");
	return block_memory(rank()) + SHARED_ROOM - (bytes + 15) / 16 * 16;
}

static void queue_copy(void *to, const void *from, size_t bytes) {
	struct thread *t = &cluster.thread[running];
	if (((size_t)to | (size_t)from) & (bytes - 1)) give_up("a copy that is not aligned");
	if (t->copies == MAX_COPIES) give_up("too many copies in flight");
	cluster.copies[running].copy[t->copies++] = (struct copy){to, from, bytes};
}

void copy_later(void *to, const void *from) { queue_copy(to, from, 16); }
void copy_word_later(void *to, const void *from) { queue_copy(to, from, 4); }

void commit_copies(void) {
	struct thread *t = &cluster.thread[running];
	if (t->groups == MAX_GROUPS) give_up("too many groups of copies in flight");
	cluster.copies[running].group[++t->groups] = t->copies;
}

void await_copies(int n) {
	struct thread *t = &cluster.thread[running];
	struct copies *all = &cluster.copies[running];
	const int finished = t->groups - n, done = finished > 0 ? all->group[finished] : 0;
	if (finished <= 0) return;
	static const char zeros[16];
	for (int i = 0; i < done; i++) {
		const struct copy c = all->copy[i];
		const void *from = c.from ? c.from : zeros;
		if (c.bytes == 16) memcpy(c.to, from, 16);
		else memcpy(c.to, from, 4);
	}
	if (t->copies > done) memmove(all->copy, all->copy + done, (t->copies - done) * sizeof *all->copy);
	t->copies -= done;
	for (int i = 1; i <= n; i++) all->group[i] = all->group[finished + i] - done;
	t->groups = n;
}

// Lane 8·i+r names row r of matrix i, eight numbers of 16 bits, and gets two of each matrix: of row
// lane/4, or of column lane/4 if transposed.
static void read_matrices(words *all, int transposed) {
	const uint16_t *row[WARP];
	for (int l = 0; l < WARP; l++) memcpy(&row[l], all[l], sizeof *row);
	for (int l = 0; l < WARP; l++) {
		const int g = l / 4, j = l % 4 * 2;
		for (int i = 0; i < WARP; i += 8) {
			if (transposed) all[l][i / 8] = row[i + j][g] | (uint32_t)row[i + j + 1][g] << 16;
			else memcpy(&all[l][i / 8], &row[i + g][j], sizeof all[l][i / 8]);
		}
	}
}

static void read_rows(words *all) { read_matrices(all, 0); }
static void read_columns(words *all) { read_matrices(all, 1); }

void load_matrices(uint32_t *r, const void *row, int transposed) {
	uint32_t v[2];
	memcpy(v, &row, sizeof v);
	memcpy(r, exchange(v, 2, transposed ? read_columns : read_rows)[lane()], 4 * sizeof *r);
}
