// cublaslt.c is a libcublasLt.so.13 for tests: it multiplies matrices in memory of the fake driver
// (kernels/cuda/fake) by plain loops. `make fake` builds it. The variable FAKECUBLASLT changes it, at
// every call:
//
//	Name:STATUS   function cublasLtName returns STATUS
//	none          it finds no algorithm for a product
//
// It checks what cuBLASLt takes for granted: that what it is given is what it made, that the algorithm
// is for this product, and that matrices and workspace are device memory.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS, NOT_INITIALIZED = 1, INVALID_VALUE = 7, EXECUTION_FAILED = 13, NOT_SUPPORTED = 15 };
enum { F32 = 0, BF16 = 14, COMPUTE_F32 = 68, OP_A = 3, OP_B = 4, MAX_WORKSPACE = 1, VERSION = 130105 };
enum kind { HANDLE = 0x6c740001, OPERATION, LAYOUT, PREFERENCE };

// An object of any kind. Its kind is 0 when it is destroyed, and its memory is kept.
struct object {
	enum kind kind;
	int compute, scale, op[2]; // of an operation
	int type;                  // of a layout, by columns
	uint64_t rows, cols;
	int64_t pitch;
	uint64_t workspace; // of a preference
};

struct algorithm {
	uint64_t operation, workspace, zero[6];
};

struct choice {
	struct algorithm algorithm;
	size_t workspace;
	int status;
	float waves;
	int reserved[4];
};

// told returns the status that FAKECUBLASLT gives a function.
static int told(const char *function) {
	const char *env = getenv("FAKECUBLASLT");
	const size_t n = strlen(function);
	return env && !strncmp(env, function, n) && env[n] == ':' ? atoi(env + n + 1) : SUCCESS;
}
#define BEGIN                                                                                      \
	const int status = told(__func__ + sizeof "cublasLt" - 1);                                     \
	if (status) return status

static int make(struct object **to, struct object with) {
	*to = malloc(sizeof **to);
	**to = with;
	return SUCCESS;
}

static int destroy(struct object *o, enum kind kind) {
	if (o->kind != kind) return INVALID_VALUE;
	o->kind = 0;
	return SUCCESS;
}

size_t cublasLtGetVersion(void) { return VERSION; }

const char *cublasLtGetStatusName(int status) {
	switch (status) {
	case NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
	case INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
	case EXECUTION_FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
	case NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
	}
	return "unknown";
}

int cublasLtCreate(struct object **h) {
	BEGIN;
	return make(h, (struct object){.kind = HANDLE});
}

int cublasLtDestroy(struct object *h) { return destroy(h, HANDLE); }

int cublasLtMatmulDescCreate(struct object **o, int compute, int scale) {
	BEGIN;
	return make(o, (struct object){.kind = OPERATION, .compute = compute, .scale = scale});
}

int cublasLtMatmulDescSetAttribute(struct object *o, int attribute, const void *value, size_t bytes) {
	BEGIN;
	if (o->kind != OPERATION || (attribute != OP_A && attribute != OP_B) || bytes != sizeof *o->op) return INVALID_VALUE;
	memcpy(&o->op[attribute - OP_A], value, bytes);
	return SUCCESS;
}

int cublasLtMatmulDescDestroy(struct object *o) { return destroy(o, OPERATION); }

int cublasLtMatrixLayoutCreate(struct object **m, int type, uint64_t rows, uint64_t cols, int64_t pitch) {
	BEGIN;
	return make(m, (struct object){.kind = LAYOUT, .type = type, .rows = rows, .cols = cols, .pitch = pitch});
}

int cublasLtMatrixLayoutDestroy(struct object *m) { return destroy(m, LAYOUT); }

int cublasLtMatmulPreferenceCreate(struct object **p) {
	BEGIN;
	return make(p, (struct object){.kind = PREFERENCE});
}

int cublasLtMatmulPreferenceSetAttribute(struct object *p, int attribute, const void *value, size_t bytes) {
	BEGIN;
	if (p->kind != PREFERENCE || attribute != MAX_WORKSPACE || bytes != sizeof p->workspace) return INVALID_VALUE;
	memcpy(&p->workspace, value, bytes);
	return SUCCESS;
}

int cublasLtMatmulPreferenceDestroy(struct object *p) { return destroy(p, PREFERENCE); }

// The element of op(m) in a row and a column, and the sizes of op(m).
static size_t at(const struct object *m, int op, size_t row, size_t col) {
	return op ? col + row * m->pitch : row + col * m->pitch;
}
static uint64_t rows_of(const struct object *m, int op) { return op ? m->cols : m->rows; }
static uint64_t cols_of(const struct object *m, int op) { return op ? m->rows : m->cols; }

static size_t bytes_of(const struct object *m) {
	return ((m->cols - 1) * m->pitch + m->rows) * (m->type == F32 ? 4 : 2);
}

static int is_array(const struct object *m) {
	return m->kind == LAYOUT && (m->type == BF16 || m->type == F32) && m->pitch >= (int64_t)m->rows;
}

// fits reports whether d = op(a) * op(b) is a product.
static int fits(const struct object *o, const struct object *a, const struct object *b, const struct object *d) {
	return o->kind == OPERATION && o->compute == COMPUTE_F32 && o->scale == F32 && is_array(a) && is_array(b) &&
		is_array(d) && a->type == BF16 && b->type == BF16 && rows_of(a, o->op[0]) == d->rows &&
		cols_of(b, o->op[1]) == d->cols && cols_of(a, o->op[0]) == rows_of(b, o->op[1]);
}

int cublasLtMatmulAlgoGetHeuristic(struct object *h, struct object *o, struct object *a, struct object *b,
	struct object *c, struct object *d, struct object *preference, int wanted, struct choice *choice, int *n) {
	BEGIN;
	if (h->kind != HANDLE || preference->kind != PREFERENCE || c != d || wanted != 1 || !fits(o, a, b, d))
		return INVALID_VALUE;
	const char *env = getenv("FAKECUBLASLT");
	*n = !env || strcmp(env, "none");
	if (*n)
		*choice = (struct choice){.algorithm = {(uintptr_t)o, preference->workspace, {0}},
			.workspace = preference->workspace};
	return SUCCESS;
}

// number returns element i of an array in host memory, and put sets it.
static float number(const void *x, int type, size_t i) {
	if (type == F32) return ((const float *)x)[i];
	const uint32_t bits = (uint32_t)((const uint16_t *)x)[i] << 16;
	float f;
	memcpy(&f, &bits, sizeof f);
	return f;
}

static void put(void *x, int type, size_t i, float f) {
	uint32_t bits;
	memcpy(&bits, &f, sizeof bits);
	if (type == F32) ((float *)x)[i] = f;
	else ((uint16_t *)x)[i] = (bits + 0x7fff + (bits >> 16 & 1)) >> 16; // to the nearest, ties to even
}

static void multiply(const struct object *o, const struct object *const m[3], void *const x[3], float alpha, float beta) {
	const struct object *a = m[0], *b = m[1], *d = m[2];
	for (size_t i = 0; i < d->rows; i++)
		for (size_t j = 0; j < d->cols; j++) {
			float sum = 0;
			for (size_t k = 0; k < cols_of(a, o->op[0]); k++)
				sum += number(x[0], BF16, at(a, o->op[0], i, k)) * number(x[1], BF16, at(b, o->op[1], k, j));
			const size_t to = at(d, 0, i, j);
			put(x[2], d->type, to, alpha * sum + (beta ? beta * number(x[2], d->type, to) : 0));
		}
}

// Device memory cannot be touched between operations, so copies of the driver, in the stream, bring it
// here and back.
int cublasLtMatmul(struct object *h, struct object *o, const float *alpha, const void *a, struct object *a_layout,
	const void *b, struct object *b_layout, const float *beta, const void *c, struct object *c_layout, void *d,
	struct object *d_layout, const struct algorithm *algorithm, void *workspace, size_t bytes, void *stream) {
	BEGIN;
	if (h->kind != HANDLE || !fits(o, a_layout, b_layout, d_layout) || c != d || c_layout != d_layout ||
		algorithm->operation != (uintptr_t)o || algorithm->workspace > bytes)
		return INVALID_VALUE;
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	if (!driver) return NOT_INITIALIZED;
	int (*down)(void *, uint64_t, size_t, void *) = dlsym(driver, "cuMemcpyDtoHAsync_v2");
	int (*up)(uint64_t, const void *, size_t, void *) = dlsym(driver, "cuMemcpyHtoDAsync_v2");
	int (*fill)(uint64_t, unsigned char, size_t, void *) = dlsym(driver, "cuMemsetD8Async");
	int (*wait)(void *) = dlsym(driver, "cuStreamSynchronize");
	const struct object *const layouts[] = {a_layout, b_layout, d_layout};
	const void *const from[] = {a, b, d};
	void *host[3];
	int failed = fill((uintptr_t)workspace, 0xab, bytes, stream); // as the library, which leaves what it wants
	for (int i = 0; i < 3; i++) {
		host[i] = malloc(bytes_of(layouts[i]));
		failed |= down(host[i], (uintptr_t)from[i], bytes_of(layouts[i]), stream);
	}
	failed |= wait(stream);
	if (!failed) {
		multiply(o, layouts, host, *alpha, *beta);
		failed |= up((uintptr_t)d, host[2], bytes_of(d_layout), stream);
		failed |= wait(stream);
	}
	for (int i = 0; i < 3; i++) free(host[i]);
	return failed ? EXECUTION_FAILED : SUCCESS;
}
