#include "block.h"
#include "matrixunit.h"
#include "tensormap.h"
#include <string.h>

enum { MAX_LOADS = 1024, MAX_QUEUED = 64, MADE = 0x5a, WIDE = 64, MAP_BYTES = 128 };

// A barrier that counts, in 8 bytes of shared memory. bytes is what is announced and has not come.
struct counter {
	uint64_t made : 8, phase : 1, expected : 11, pending : 11;
	int64_t bytes : 33;
};
_Static_assert(sizeof(struct counter) == 8, "a barrier has 8 bytes");

// A copy to a block that has not arrived.
struct load {
	char map[MAP_BYTES] __attribute__((aligned(16)));
	long column, row;
	int rank;
	uint32_t to;
	struct counter *counter;
};

// A product that a thread has queued; group[i] is the number of products in its first i groups.
struct product {
	float (*sum)[4];
	uint64_t x, y;
	int eights, x_by_terms, y_by_terms; // eights: columns of sums, 8 at a time
	const uint32_t *rows;               // of x, if they are in registers
	int from_zero;                           // sums begin at 0
};
struct queue {
	int open, n, groups, group[MAX_QUEUED + 1];
	struct product product[MAX_QUEUED];
};

static struct {
	int threads, loads, boxes, came, multiplies; // multiplies: some thread has used its queue
	unsigned generation;
	struct load load[MAX_LOADS];
	struct queue queue[MAX_THREADS];
} cluster;

int wgmma_differs;

void begin_cluster(int threads) {
	cluster.threads = threads;
	cluster.loads = cluster.boxes = cluster.came = 0;
	for (int i = 0; i < MAX_THREADS && cluster.multiplies; i++)
		cluster.queue[i].open = cluster.queue[i].n = cluster.queue[i].groups = 0;
	cluster.multiplies = 0;
}

void end_cluster(void) {
	if (cluster.loads) give_up("an end with copies that nobody waited for");
	for (int i = 0; i < cluster.threads && cluster.multiplies; i++)
		if (cluster.queue[i].n) give_up("an end with products that nobody waited for");
}

uint32_t shared_address(const void *p) { return (const char *)p - block_memory(rank()); }

static struct counter *counter_at(uint64_t *b, int of) {
	struct counter *c = (struct counter *)(block_memory(of) + shared_address(b));
	if (c->made != MADE) give_up("a barrier that nobody made");
	return c;
}

// settle_phase ends a counter's phase if nothing is missing.
static void settle_phase(struct counter *c) {
	progress();
	if (c->pending || c->bytes) return;
	c->phase ^= 1;
	c->pending = c->expected;
}

static void arrive(struct counter *c) {
	if (!c->pending) give_up("more arrivals than a barrier expects");
	c->pending--;
	settle_phase(c);
}

void make_barrier(uint64_t *b, int arrivals) {
	*(struct counter *)b = (struct counter){MADE, 0, arrivals, arrivals, 0};
}

void expect_bytes(uint64_t *b, int bytes) {
	struct counter *c = counter_at(b, rank());
	c->bytes += bytes;
	arrive(c);
}

void arrive_here(uint64_t *b) { arrive(counter_at(b, rank())); }

void arrive_at(uint64_t *b, int of) {
	if (!is_live(of)) give_up("an arrival at a block that has ended");
	arrive(counter_at(b, of));
}

static void perform(const struct load *l) {
	if (!is_live(l->rank)) give_up("a copy to a block that has ended");
	const int bytes = read_box(block_memory(l->rank), l->to, (const struct tensor_map *)l->map, l->column, l->row);
	if (!bytes) give_up("a copy by something that is no tensor map");
	l->counter->bytes -= bytes;
	settle_phase(l->counter);
}

// deliver performs a copy that a counter lacks, if it lacks nothing else.
static int deliver(const struct counter *c) {
	for (int i = 0; i < cluster.loads && !c->pending; i++) {
		if (cluster.load[i].counter != c) continue;
		const struct load l = cluster.load[i];
		memmove(&cluster.load[i], &cluster.load[i + 1], (--cluster.loads - i) * sizeof l);
		perform(&l);
		return 1;
	}
	return 0;
}

void await_phase(uint64_t *b, int parity) {
	const struct counter *c = counter_at(b, rank());
	while (c->phase == parity)
		if (!deliver(c)) turn();
}

static void load_to(int of, void *to, const struct tensor_map *map, int column, int row, uint64_t *b, int late) {
	struct load l = {.column = column, .row = row, .rank = of, .to = shared_address(to), .counter = counter_at(b, of)};
	if (l.to % 128) give_up("a copy that is not aligned");
	memcpy(l.map, map, MAP_BYTES);
	if (!late) {
		perform(&l);
		return;
	}
	if (cluster.loads == MAX_LOADS) give_up("too many copies in flight");
	cluster.load[cluster.loads++] = l;
}

// arrives_late reports whether the next box comes when it is awaited.
static int arrives_late(void) { return order() == 2 ? cluster.boxes++ % 2 : order() == 0; }

void load_box(void *to, const struct tensor_map *map, int column, int row, uint64_t *b) {
	load_to(rank(), to, map, column, row, b, arrives_late());
}

void load_box_for_all(void *to, const struct tensor_map *map, int column, int row, uint64_t *b) {
	const int late = arrives_late();
	for (int of = 0; of < blocks(); of++) load_to(of, to, map, column, row, b, late);
}

static struct queue *own_queue(void) {
	cluster.multiplies = 1;
	return &cluster.queue[running];
}

void open_products(void) { own_queue()->open = 1; }

static void queue_product(struct product p) {
	struct queue *q = own_queue();
	if (!q->open) give_up("products before wgmma.fence");
	if (q->n == MAX_QUEUED) give_up("too many products in flight");
	q->product[q->n++] = p;
}

void wgmma(float (*sum)[4], int eights, uint64_t x, uint64_t y, int x_by_terms, int y_by_terms) {
	queue_product((struct product){sum, x, y, eights, x_by_terms, y_by_terms, 0, 0});
}

void wgmma_from_zero(float (*sum)[4], int eights, uint64_t x, uint64_t y, int x_by_terms, int y_by_terms) {
	queue_product((struct product){sum, x, y, eights, x_by_terms, y_by_terms, 0, 1});
}

void wgmma_rows(float (*sum)[4], int eights, const uint32_t *x, uint64_t y, int y_by_terms) {
	queue_product((struct product){sum, 0, y, eights, 1, y_by_terms, x, 0});
}

// read_factor reads 16 terms of 8 outputs from output i, a multiple of 8, of the factor at a descriptor: the place of
// the factor, and how far apart its parts are, 8 lines and WIDE outputs. 8 numbers that lie in a row stay together.
static void read_factor(uint16_t (*x)[TERMS], const char *memory, uint64_t d, int by_terms, int i) {
	const uint32_t at = (d & 0x3fff) << 4, wide = (d >> 16 & 0x3fff) << 4, eight = (d >> 32 & 0x3fff) << 4;
	for (int n = 0; n < 16; n++) {
		if (by_terms) { // terms n/8·8 and on of output n%8
			const uint32_t from = at + i / 8 * eight + n % 8 * 128 + n / 8 * 16;
			memcpy(&x[n % 8][n / 8 * 8], memory + swizzled(from), 16);
			continue;
		}
		const uint32_t from = at + i / WIDE * wide + i % WIDE * 2 + n / 8 * eight + n % 8 * 128;
		const uint16_t *row = (const uint16_t *)(memory + swizzled(from)); // term n
		for (int c = 0; c < 8; c++) x[c][n] = row[c];
	}
}

// multiply_warp adds a product to the sums of a warp, whose first thread is `first` of the cluster.
static void multiply_warp(int first, int n) {
	const struct product p = cluster.queue[first].product[n], *of[WARP];
	const char *memory = block_memory(rank());
	uint16_t x[ROWS][TERMS], y[COLUMNS][TERMS];
	uint32_t words[TERMS / 2][ROWS], sum[COLUMNS][ROWS];
	struct rows rows;
	if ((!p.rows && p.x >> 62 != 1) || p.y >> 62 != 1) give_up("a descriptor without 128-byte swizzle");
	for (int l = 0; l < WARP; l++) of[l] = &cluster.queue[first + l].product[n];
	for (int r = 0; r < ROWS && !p.rows; r += 8) read_factor(x + r, memory, p.x, p.x_by_terms, first / WARP % 4 * 16 + r);
	for (int k = 0; k < TERMS / 2 && !p.rows; k++)
		for (int r = 0; r < ROWS; r++) memcpy(&words[k][r], &x[r][2 * k], 4);
	for (int l = 0; l < WARP && p.rows; l++) // the lane's words, two terms in each
		for (int i = 0; i < 4; i++) words[l % 4 + i / 2 * 4][l / 4 + i % 2 * 8] = of[l]->rows[i];
	take_rows(&rows, words);
	for (int j = 0; j < p.eights; j++) {
		read_factor(y, memory, p.y, p.y_by_terms, 8 * j);
		if (p.from_zero) memset(sum, 0, sizeof sum);
		for (int l = 0; l < WARP && !p.from_zero; l++)
			for (int i = 0; i < 4; i++) memcpy(&sum[l % 4 * 2 + i % 2][l / 4 + i / 2 * 8], &of[l]->sum[j][i], 4);
		add_products(sum, &rows, y);
		for (int l = 0; l < WARP; l++)
			for (int i = 0; i < 4; i++) memcpy(&of[l]->sum[j][i], &sum[l % 4 * 2 + i % 2][l / 4 + i / 2 * 8], 4);
		// What differs is the last place of sums that are not 0.
		for (int l = 0; l < WARP && wgmma_differs; l++)
			for (int e = 0; e < 4; e++) {
				float *at = &of[l]->sum[j][e];
				if (*at != 0) *(uint32_t __attribute__((may_alias)) *)at ^= 1;
			}
	}
}

// add_queued adds the products of all groups but the last n of the running thread's warp.
static void add_queued(words *all) {
	const int n = all[0][0], first = running / WARP * WARP, left = cluster.queue[first].groups - n;
	const int done = left > 0 ? cluster.queue[first].group[left] : 0;
	for (int l = 0; l < WARP; l++) {
		const struct queue *q = &cluster.queue[first + l], *p = &cluster.queue[first];
		if (all[l][0] != all[0][0] || q->groups != p->groups || q->n != p->n)
			give_up("a warp that is not at one place");
		for (int i = 0; i < done; i++)
			if (q->product[i].x != p->product[i].x || q->product[i].y != p->product[i].y)
				give_up("a warp with different factors");
	}
	for (int i = 0; i < done; i++) multiply_warp(first, i);
	for (int l = 0; l < WARP; l++) {
		struct queue *q = &cluster.queue[first + l];
		q->open = 0;
		if (left <= 0) continue;
		memmove(q->product, q->product + done, (q->n - done) * sizeof *q->product);
		q->n -= done;
		for (int i = 1; i <= n; i++) q->group[i] = q->group[left + i] - done;
		q->groups = n;
	}
}

void await_products(int n) {
	const uint32_t word = n;
	exchange(&word, 1, add_queued);
}

void commit_products(void) {
	struct queue *q = own_queue();
	if (q->groups == MAX_QUEUED) give_up("too many groups of products in flight");
	q->group[++q->groups] = q->n;
	if (order() == 1) await_products(0);
}

void cluster_barrier(void) {
	const unsigned g = cluster.generation;
	progress();
	if (++cluster.came == live_threads()) {
		cluster.came = 0;
		cluster.generation++;
		return;
	}
	while (cluster.generation == g) turn();
}
