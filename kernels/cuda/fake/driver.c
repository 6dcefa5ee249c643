// driver.c is a libcuda.so.1 for tests: one device without hardware. `make fake` links it with the
// kernels, which run in the emulator, so the whole Go side runs where there is no GPU. The
// variable FAKECUDA changes it; several settings are separated by commas:
//
//	lazy          work waits until something synchronises, as late as a driver may run it
//	sealed        device memory cannot be touched while no work runs: Go code that reads behind
//	              a device address dies, as it would with hardware. This takes time
//	order=N       the emulator's order of threads and blocks: 0, 1 or 2
//	memory=N      MiB of device memory, 1024 if not set
//	taken=N       MiB of it that other programs hold
//	fail=N:CODE   the N-th launch fails with CODE, which the next synchronisation returns
//	refuse=N:CODE the call that would start the N-th launch returns CODE
//	graphs=0      the driver has no graphs
//	maps=0        the driver has no tensor maps
//	differs       sums of wgmma differ from those of mma.sync in their last place
//	lost=PATH     launches fail with 719 as soon as there is a file PATH
//	devices=N     devices that the driver sees; each process has its own, of the same identity
//	capability=N  compute capability times ten, 90 if not set
//	version=N     the driver's version, 13000 if not set
//	init=CODE     what cuInit returns
//
// Device memory starts as 0xcd and lies between guard pages. Codes from 700 to 719 are lasting:
// every later call returns them. A module must be PTX with an entry for each kernel that is
// asked for, whose argument has the size of the emulated kernel's.
#define _GNU_SOURCE
#include "emulator.h"
#include "cuda.h"
#include "graph.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, ALIGNMENT = 256, MAX_BLOCK = 1024, MAX_GRID_Y = 65535, MAX_ARGS = 4096, MAX_MEMORY = 1 << 16, OWN_SHARED = 48 << 10, MAX_SHARED = 227 << 10,
	MAX_KERNELS = 256, MULTIPROCESSORS = 4, MAX_FREE = 128, MAX_FREE_ROOM = 1 << 20 };

struct memory {
	char *start; // whole pages, with a guard page on both sides
	size_t room;
	CUdeviceptr at; // the end of [at, at+bytes) is as near to the guard as ALIGNMENT allows
};

// A task of the stream: a kernel, a copy, or a fill if from and kernel are null.
struct task {
	const struct kernel *kernel;
	struct grid grid, block;
	unsigned shared;
	void *to;
	const void *from;
	size_t bytes;
	int value;
	char args[MAX_ARGS];
};


static struct {
	int lazy, sealed, order, devices, capability, version, init;
	size_t limit, taken, used;
	const char *lost;
	long launches, fail_at, refuse_at;
	int fail_code, refuse_code, pending, lasting, graphs, maps;
	struct memory memory[MAX_MEMORY], free[MAX_FREE]; // free: pages that may be had again, the latest last
	int memories;
	struct task *queue;
	size_t queued, room;
} driver;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t configured = PTHREAD_ONCE_INIT;
static __thread CUcontext current; // a context belongs to a thread

static void set(char *word) {
	char *value = strchr(word, '=');
	long n = value ? atol(value + 1) : 0;
	if (value) *value = 0;
	if (!strcmp(word, "lazy")) driver.lazy = 1;
	else if (!strcmp(word, "sealed")) driver.sealed = 1;
	else if (!strcmp(word, "order")) driver.order = n;
	else if (!strcmp(word, "memory")) driver.limit = (size_t)n << 20;
	else if (!strcmp(word, "taken")) driver.taken = (size_t)n << 20;
	else if (!strcmp(word, "lost")) driver.lost = strdup(value + 1);
	else if (!strcmp(word, "devices")) driver.devices = n;
	else if (!strcmp(word, "capability")) driver.capability = n;
	else if (!strcmp(word, "version")) driver.version = n;
	else if (!strcmp(word, "init")) driver.init = n;
	else if (!strcmp(word, "graphs")) driver.graphs = n;
	else if (!strcmp(word, "maps")) driver.maps = n;
	else if (!strcmp(word, "differs")) wgmma_differs = 1;
	else if (!strcmp(word, "refuse") && value && strchr(value + 1, ':')) {
		driver.refuse_at = n;
		driver.refuse_code = atoi(strchr(value + 1, ':') + 1);
	} else if (!strcmp(word, "fail") && value && strchr(value + 1, ':')) {
		driver.fail_at = n;
		driver.fail_code = atoi(strchr(value + 1, ':') + 1);
	} else {
		fprintf(stderr, "FAKECUDA: unknown setting %s\n", word);
		abort();
	}
}

static void configure(void) {
	driver.devices = driver.graphs = driver.maps = 1;
	driver.capability = 90;
	driver.version = 13000;
	driver.limit = (size_t)1024 << 20;
	const char *env = getenv("FAKECUDA");
	char *all = strdup(env ? env : ""), *rest = all;
	for (char *word; (word = strsep(&rest, ","));)
		if (*word) set(word);
	free(all);
}

// protect changes the protection of sealed memory.
static void protect(int allowed) {
	if (!driver.sealed) return;
	for (int i = 0; i < driver.memories; i++) mprotect(driver.memory[i].start, driver.memory[i].room, allowed);
}

// fail records the failure that the next synchronisation returns.
static void fail(int code) {
	driver.pending = code;
	if (code >= 700 && code <= 719) driver.lasting = code;
}

static void flush(void) {
	if (!driver.queued) return;
	protect(PROT_READ | PROT_WRITE);
	for (size_t i = 0; i < driver.queued && !driver.lasting; i++) {
		struct task *t = &driver.queue[i];
		if (t->kernel) {
			int code = emulate(t->kernel, t->grid, t->block, t->shared, t->args, driver.order);
			if (code) fail(code);
		} else if (t->from) memcpy(t->to, t->from, t->bytes);
		else memset(t->to, t->value, t->bytes);
	}
	protect(PROT_NONE);
	driver.queued = 0;
}

static CUresult submit(const struct task *t) {
	if (driver.lasting) return driver.lasting;
	if (driver.queued == driver.room) {
		driver.room = driver.room ? 2 * driver.room : 16;
		driver.queue = realloc(driver.queue, driver.room * sizeof *driver.queue);
	}
	driver.queue[driver.queued++] = *t;
	if (!driver.lazy) flush();
	return CUDA_SUCCESS;
}

static CUresult synchronize(void) {
	flush();
	CUresult r = driver.lasting ? driver.lasting : driver.pending;
	driver.pending = 0;
	return r;
}

// holds reports whether [p, p+n) is device memory.
static int holds(CUdeviceptr p, size_t n) {
	for (int i = 0; i < driver.memories; i++) {
		const struct memory *m = &driver.memory[i];
		if (p >= m->at && p + n <= (CUdeviceptr)(m->start + m->room)) return 1;
	}
	return 0;
}

// Every function takes the lock. BEGIN also wants a context on the calling thread.
static void release(const int *unused) {
	(void)unused;
	pthread_mutex_unlock(&lock);
}
#define SERIAL                                                                                     \
	pthread_once(&configured, configure);                                                          \
	pthread_mutex_lock(&lock);                                                                     \
	__attribute__((cleanup(release))) const int locked = 1;                                        \
	(void)locked
#define BEGIN                                                                                      \
	SERIAL;                                                                                        \
	if (!current) return CUDA_ERROR_INVALID_CONTEXT

CUresult cuInit(unsigned flags) {
	SERIAL;
	(void)flags;
	if (driver.init) return driver.init;
	return driver.devices ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

CUresult cuDriverGetVersion(int *v) {
	SERIAL;
	*v = driver.version;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *n) {
	SERIAL;
	*n = driver.devices;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *d, int i) {
	SERIAL;
	*d = i;
	return i >= 0 && i < driver.devices ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetName(char *s, int n, CUdevice d) {
	(void)d;
	snprintf(s, n, "emulated device");
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *id, CUdevice d) {
	memset(id, 0, sizeof *id);
	memcpy(id, &d, sizeof d);
	return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *n, CUdevice d) {
	SERIAL;
	(void)d;
	*n = driver.limit;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *v, CUdevice_attribute a, CUdevice d) {
	SERIAL;
	(void)d;
	switch ((int)a) {
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *v = driver.capability / 10; break;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *v = driver.capability % 10; break;
	case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING: *v = 1; break;
	case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *v = MULTIPROCESSORS; break;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice d) {
	(void)d;
	*c = (CUcontext)&driver;
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice d) {
	(void)d;
	return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext c) {
	current = c;
	return CUDA_SUCCESS;
}

// take_pages returns pages between two guard pages, which cannot be touched yet, or NULL. Suites allocate the same sizes
// over and over, and pages that were used before are there at once.
static char *take_pages(size_t room) {
	for (int i = MAX_FREE - 1; i >= 0; i--) {
		if (driver.free[i].room != room) continue;
		driver.free[i].room = 0;
		return driver.free[i].start;
	}
	char *start = mmap(NULL, room + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return start == MAP_FAILED ? NULL : start + PAGE;
}

// free_pages keeps pages for take_pages, instead of those that it has kept for longest.
static void free_pages(struct memory m) {
	struct memory *last = &driver.free[MAX_FREE - 1], gone = m;
	if (m.room <= MAX_FREE_ROOM) {
		mprotect(m.start, m.room, PROT_NONE);
		gone = driver.free[0];
		memmove(driver.free, driver.free + 1, sizeof driver.free - sizeof *last);
		*last = m;
	}
	if (gone.room) munmap(gone.start - PAGE, gone.room + 2 * PAGE);
}

CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t n) {
	BEGIN;
	const size_t room = (n + PAGE - 1) / PAGE * PAGE;
	if (!n) return CUDA_ERROR_INVALID_VALUE;
	if (driver.lasting) return driver.lasting;
	if (driver.used + driver.taken + room > driver.limit || driver.memories == MAX_MEMORY) return CUDA_ERROR_OUT_OF_MEMORY;
	char *start = take_pages(room);
	if (!start) return CUDA_ERROR_OUT_OF_MEMORY;
	mprotect(start, room, PROT_READ | PROT_WRITE);
	memset(start, 0xcd, room);
	if (driver.sealed) mprotect(start, room, PROT_NONE);
	*p = (CUdeviceptr)(start + (room - n) / ALIGNMENT * ALIGNMENT);
	driver.memory[driver.memories++] = (struct memory){start, room, *p};
	driver.used += room;
	return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr p) {
	BEGIN;
	flush();
	for (int i = 0; i < driver.memories; i++) {
		const struct memory m = driver.memory[i];
		if (m.at != p) continue;
		free_pages(m);
		driver.used -= m.room;
		driver.memory[i] = driver.memory[--driver.memories];
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemHostAlloc(void **p, size_t n, unsigned flags) {
	BEGIN;
	(void)flags;
	*p = aligned_alloc(PAGE, (n + PAGE - 1) / PAGE * PAGE);
	return *p ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemFreeHost(void *p) {
	BEGIN;
	flush();
	free(p);
	return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t n, CUstream s) {
	BEGIN;
	(void)s;
	if (!holds(to, n)) return CUDA_ERROR_INVALID_VALUE;
	return submit(&(struct task){.to = (void *)to, .from = from, .bytes = n});
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t n, CUstream s) {
	BEGIN;
	(void)s;
	if (!holds(from, n)) return CUDA_ERROR_INVALID_VALUE;
	return submit(&(struct task){.to = to, .from = (void *)from, .bytes = n});
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s) {
	BEGIN;
	(void)s;
	if (!holds(to, n) || !holds(from, n)) return CUDA_ERROR_INVALID_VALUE;
	return submit(&(struct task){.to = (void *)to, .from = (void *)from, .bytes = n});
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t n, CUstream s) {
	BEGIN;
	(void)s;
	if (!holds(to, n)) return CUDA_ERROR_INVALID_VALUE;
	return submit(&(struct task){.to = (void *)to, .bytes = n, .value = value});
}

CUresult cuStreamCreate(CUstream *s, unsigned flags) {
	BEGIN;
	(void)flags;
	*s = (CUstream)&driver.queue;
	return CUDA_SUCCESS;
}

CUresult cuStreamDestroy_v2(CUstream s) {
	BEGIN;
	(void)s;
	flush();
	return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream s) {
	BEGIN;
	(void)s;
	return synchronize();
}

// cuStreamQuery lets queued work end, after it has said once that it has not.
CUresult cuStreamQuery(CUstream s) {
	BEGIN;
	(void)s;
	if (!driver.queued) return driver.lasting;
	flush();
	return CUDA_ERROR_NOT_READY;
}

CUresult cuModuleLoadData(CUmodule *m, const void *image) {
	BEGIN;
	if (!strstr(image, "\n.version ") || !strstr(image, "\n.target ")) return CUDA_ERROR_INVALID_IMAGE;
	if (strstr(image, "\n.target sm_90a") && driver.capability != 90) return CUDA_ERROR_NO_BINARY_FOR_GPU;
	*m = (CUmodule)strdup(image);
	return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule m) {
	BEGIN;
	free(m);
	return CUDA_SUCCESS;
}

// bytes_of returns the size of the one parameter of an entry of a module, 0 if it has none.
static size_t bytes_of(const char *ptx, const char *name) {
	char entry[256];
	snprintf(entry, sizeof entry, ".entry %s(", name);
	const char *at = strstr(ptx, entry), *end = at ? strchr(at, ')') : NULL;
	const char *open = at ? strchr(at, '[') : NULL;
	if (!open || open > end) return 0;
	return strtoul(open + 1, NULL, 10);
}

CUresult cuModuleGetFunction(CUfunction *f, CUmodule m, const char *name) {
	BEGIN;
	const struct kernel *k = find_kernel(name);
	if (!k) return CUDA_ERROR_NOT_FOUND;
	if (bytes_of((const char *)m, name) != k->args) {
		fprintf(stderr, "fake driver: the argument of %s has another size in the PTX\n", name);
		return CUDA_ERROR_INVALID_IMAGE;
	}
	*f = (CUfunction)k;
	return CUDA_SUCCESS;
}

// shared_of returns the place of how much memory launches may give a kernel's blocks, above OWN_SHARED.
static unsigned *shared_of(const struct kernel *k) {
	static struct {
		const struct kernel *kernel;
		unsigned bytes;
	} list[MAX_KERNELS];
	for (int i = 0;; i++) {
		if (list[i].kernel && list[i].kernel != k) continue;
		list[i].kernel = k;
		return &list[i].bytes;
	}
}

CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute a, int value) {
	BEGIN;
	if (a != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 || value > MAX_SHARED) return CUDA_ERROR_INVALID_VALUE;
	*shared_of((const struct kernel *)f) = value;
	return CUDA_SUCCESS;
}

// fits reports whether the device can start a kernel so.
static int fits(const struct kernel *k, struct grid grid, struct grid block, unsigned shared) {
	const unsigned threads = block.x * block.y * block.z;
	return grid.x && grid.x % k->blocks == 0 && grid.y && grid.z && grid.y <= MAX_GRID_Y && grid.z <= MAX_GRID_Y && threads && threads <= MAX_BLOCK &&
		(shared <= OWN_SHARED || shared <= *shared_of(k)) && k->args <= MAX_ARGS && (!k->threads || k->threads == threads);
}

CUresult may_launch(const CUDA_KERNEL_NODE_PARAMS *p) {
	BEGIN;
	if (!driver.graphs) return CUDA_ERROR_NOT_SUPPORTED;
	return fits((const struct kernel *)p->func, (struct grid){p->gridDimX, p->gridDimY, p->gridDimZ},
		(struct grid){p->blockDimX, p->blockDimY, p->blockDimZ}, p->sharedMemBytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

int has_maps(void) { return driver.maps; }

CUresult may_start(int n) {
	BEGIN;
	if (driver.lasting) return driver.lasting;
	return driver.refuse_at > driver.launches && driver.refuse_at <= driver.launches + n ? driver.refuse_code : CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
	unsigned shared, CUstream s, void **params, void **extra) {
	BEGIN;
	(void)s;
	(void)extra;
	struct task t = {.kernel = (const struct kernel *)f, .grid = {gx, gy, gz}, .block = {bx, by, bz}, .shared = shared};
	if (!fits(t.kernel, t.grid, t.block, shared)) return CUDA_ERROR_INVALID_VALUE;
	if (driver.lasting) return driver.lasting;
	driver.launches++;
	if (driver.launches == driver.refuse_at) return driver.refuse_code;
	if (driver.launches == driver.fail_at || (driver.lost && !access(driver.lost, F_OK))) {
		fail(driver.lost ? 719 : driver.fail_code);
		return CUDA_SUCCESS;
	}
	memcpy(t.args, params[0], t.kernel->args);
	return submit(&t);
}
