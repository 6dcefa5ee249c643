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

// A thread of the running cluster. group[i] is the number of copies in its first i groups. While it waits for others
// to come, *meeting is the generation that it waits in.
struct thread {
	struct grid index;
	struct member *block;
	const unsigned *meeting;
	unsigned generation;
#if defined(__x86_64__)
	void *sp;
#else
	ucontext_t context;
#endif
	int done, copies, groups, group[MAX_GROUPS + 1];
	struct copy copy[MAX_COPIES];
};

// Lanes that meet. A lane may be one exchange ahead, so there are two sets of words.
struct meeting {
	int came;
	unsigned generation;
	words slot[2][WARP];
};

// Threads that wait at a barrier.
struct crowd {
	int waiting;
	unsigned generation;
	int any[2]; // of a generation and the next, whether a thread said so (group_any)
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
	int order, threads, blocks, running; // threads of a block
	int step, warp_step;                 // from a thread to the next in the order, and from a lane
	int idle;                            // turns since a thread last came to a meeting or ended
	unsigned shared_bytes;               // from the launch
	struct member block[MAX_BLOCKS];
	struct thread *thread;
	struct meeting warp[MAX_THREADS / WARP];
	char *stacks;
	struct thread main;
} cluster;

#if defined(__x86_64__)
// change saves the calling thread's registers on its stack and goes on with another's.
void change(void **save, void *load);
__asm__(".text\n.type change,@function\nchange:\n"
	"pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15\n"
	"movq %rsp,(%rdi); movq %rsi,%rsp\n"
	"popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp; ret\n"
	".size change,.-change\n");
static void go_on(struct thread *from, struct thread *to) { change(&from->sp, to->sp); }

static void prepare(struct thread *t, char *stack, void (*start)(void)) {
	void **sp = (void **)(stack + STACK - 64);
	*sp = (void *)start;
	t->sp = memset(sp - 6, 0, 6 * sizeof *sp);
}
#else
static void go_on(struct thread *from, struct thread *to) { swapcontext(&from->context, &to->context); }

static void prepare(struct thread *t, char *stack, void (*start)(void)) {
	getcontext(&t->context);
	t->context.uc_stack.ss_sp = stack;
	t->context.uc_stack.ss_size = STACK;
	makecontext(&t->context, start, 0);
}
#endif

int running(void) { return cluster.running; }
int rank(void) { return cluster.blocks == 1 ? 0 : cluster.running / cluster.threads; }
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

static void run_thread(int i) {
	struct thread *from = cluster.running < 0 ? &cluster.main : &cluster.thread[cluster.running];
	cluster.running = i;
	struct thread *to = &cluster.thread[i];
	threadIdx = to->index;
	blockIdx = to->block->index;
	go_on(from, to);
}

// can_run reports whether a thread has not ended, and waits for none or for some that have come since.
static int can_run(const struct thread *t) { return !t->done && !(t->meeting && *t->meeting == t->generation); }

// turn lets another thread run: the next in the order that can. It returns when the caller's turn comes.
void turn(void) {
	const int me = cluster.running, n = cluster.threads * cluster.blocks, step = cluster.step;
	if (++cluster.idle > 4 * n) give_up("a wait for threads that do not come");
	for (int k = 1, i = me; k <= n; k++) {
		if ((i += step) >= n) i -= n;
		if (!can_run(&cluster.thread[i])) continue;
		if (i != me) run_thread(i);
		return;
	}
	if (live_threads()) give_up("a wait for threads that do not come");
	go_on(&cluster.thread[me], &cluster.main);
}

// turn_of_warp is turn, but lets lanes of the caller's warp run first: their stacks are in the nearest cache.
static void turn_of_warp(void) {
	const int me = cluster.running, first = me / WARP * WARP, n = cluster.threads * cluster.blocks;
	for (int k = 1, i = me - first; k < WARP; k++) {
		i = (i + cluster.warp_step) % WARP;
		if (first + i >= n || !can_run(&cluster.thread[first + i])) continue;
		run_thread(first + i);
		return;
	}
	turn();
}

// wait lets others run, by turn or turn_of_warp, until a generation has ended.
static void wait(const unsigned *generation, void (*others)(void)) {
	struct thread *t = &cluster.thread[cluster.running];
	t->meeting = generation;
	t->generation = *generation;
	while (*generation == t->generation) others();
	t->meeting = NULL;
}

static void start(void) {
	cluster.kernel->call(cluster.args);
	struct thread *t = &cluster.thread[cluster.running];
	struct member *b = &cluster.block[rank()];
	if (t->copies) give_up("an end with copies that nobody waited for");
	t->done = 1;
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
	cluster.thread = calloc(MAX_THREADS, sizeof *cluster.thread);
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
	memset(cluster.warp, 0, sizeof cluster.warp);
	cluster.shared_bytes = shared;
	for (int i = 0; i < cluster.blocks; i++) {
		struct member *b = &cluster.block[i];
		*b = (struct member){.index = index_of(first + i, gridDim), .live = n, .shared = b->shared};
		memset(b->shared + SHARED_ROOM - poisoned, 0xff, poisoned); // NaN
	}
	for (int i = 0; i < n * cluster.blocks; i++) {
		struct thread *t = &cluster.thread[i];
		t->done = t->copies = t->groups = 0;
		t->meeting = NULL;
		t->index = index_of(i % n, blockDim);
		t->block = &cluster.block[i / n];
		prepare(t, cluster.stacks + (size_t)STACK * i, start);
	}
	begin_cluster(n * cluster.blocks);
	cluster.running = -1;
	run_thread((int)at(0, n * cluster.blocks, order));
	end_cluster();
}

int lane(void) { return cluster.running % WARP; }

// wait_for waits until `threads` have come.
static void wait_for(struct crowd *c, int threads) {
	progress();
	if (++c->waiting == threads) {
		c->waiting = 0;
		c->generation++;
		return;
	}
	wait(&c->generation, turn);
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
	struct meeting *m = &cluster.warp[cluster.running / WARP];
	words *slot = m->slot[m->generation % 2];
	if (n) memcpy(slot[lane()], v, n * sizeof *v);
	progress();
	if (++m->came == WARP) {
		if (combine) combine(slot);
		m->came = 0;
		m->generation++;
	} else {
		wait(&m->generation, turn_of_warp);
	}
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
	struct thread *t = &cluster.thread[cluster.running];
	if (((size_t)to | (size_t)from) & (bytes - 1)) give_up("a copy that is not aligned");
	if (t->copies == MAX_COPIES) give_up("too many copies in flight");
	t->copy[t->copies++] = (struct copy){to, from, bytes};
}

void copy_later(void *to, const void *from) { queue_copy(to, from, 16); }
void copy_word_later(void *to, const void *from) { queue_copy(to, from, 4); }

void commit_copies(void) {
	struct thread *t = &cluster.thread[cluster.running];
	if (t->groups == MAX_GROUPS) give_up("too many groups of copies in flight");
	t->group[++t->groups] = t->copies;
}

void await_copies(int n) {
	struct thread *t = &cluster.thread[cluster.running];
	const int finished = t->groups - n, done = finished > 0 ? t->group[finished] : 0;
	if (finished <= 0) return;
	static const char zeros[16];
	for (int i = 0; i < done; i++) {
		const struct copy c = t->copy[i];
		const void *from = c.from ? c.from : zeros;
		if (c.bytes == 16) memcpy(c.to, from, 16);
		else memcpy(c.to, from, 4);
	}
	if (t->copies > done) memmove(t->copy, t->copy + done, (t->copies - done) * sizeof *t->copy);
	t->copies -= done;
	for (int i = 1; i <= n; i++) t->group[i] = t->group[finished + i] - done;
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
