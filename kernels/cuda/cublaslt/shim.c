//go:build cuda

#include "shim.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

// COMPUTE_F32 is a cublasComputeType_t, TRANSPOSE_A and TRANSPOSE_B are attributes of a product, and
// MAX_WORKSPACE is one of a preference.
enum { COMPUTE_F32 = 68, TRANSPOSE_A = 3, TRANSPOSE_B = 4, MAX_WORKSPACE = 1 };

struct algorithm {
	uint64_t data[8];
};

// One answer to the question for an algorithm.
struct choice {
	struct algorithm algorithm;
	size_t workspace;
	int status;
	float waves;
	int reserved[4];
};
_Static_assert(sizeof(struct choice) == 96, "the library writes 96 bytes");

#define EACH(F)                                                                                    \
	F(size_t, GetVersion, (void))                                                                  \
	F(const char *, GetStatusName, (int))                                                          \
	F(int, Create, (void **))                                                                      \
	F(int, Destroy, (void *))                                                                      \
	F(int, MatmulDescCreate, (void **, int, int))                                                  \
	F(int, MatmulDescSetAttribute, (void *, int, const void *, size_t))                            \
	F(int, MatmulDescDestroy, (void *))                                                            \
	F(int, MatrixLayoutCreate, (void **, int, uint64_t, uint64_t, int64_t))                        \
	F(int, MatrixLayoutDestroy, (void *))                                                          \
	F(int, MatmulPreferenceCreate, (void **))                                                      \
	F(int, MatmulPreferenceSetAttribute, (void *, int, const void *, size_t))                      \
	F(int, MatmulPreferenceDestroy, (void *))                                                      \
	F(int, MatmulAlgoGetHeuristic,                                                                 \
		(void *, void *, void *, void *, void *, void *, void *, int, struct choice *, int *))     \
	F(int, Matmul,                                                                                 \
		(void *, void *, const void *, const void *, void *, const void *, void *, const void *,   \
			const void *, void *, void *, void *, const struct algorithm *, void *, size_t, void *))

struct xlt {
	void *handle;
#define FIELD(result, name, parameters) result(*name) parameters;
	EACH(FIELD)
};

struct xlt_product {
	void *operation, *out_layout, *a_layout, *b_layout;
	void *out;
	const void *a, *b;
	float add;
	struct algorithm algorithm;
};

struct xlt *xlt_load(const char *path, char *why, size_t room) {
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		snprintf(why, room, "%s", dlerror());
		return NULL;
	}
	struct xlt *l = calloc(1, sizeof *l);
	if (!l) abort();
#define FIND(result, name, parameters)                                                             \
	if (!(l->name = (result(*) parameters)dlsym(library, "cublasLt" #name))) {                     \
		snprintf(why, room, "%s has no cublasLt" #name, path);                                     \
		free(l);                                                                                   \
		dlclose(library);                                                                          \
		return NULL;                                                                               \
	}
	EACH(FIND)
	return l;
}

size_t xlt_version(const struct xlt *l) { return l->GetVersion(); }
const char *xlt_meaning(const struct xlt *l, int status) { return l->GetStatusName(status); }

// tried keeps the first failure.
static int tried(struct xlt_failure *f, const char *function, int status) {
	if (status && !f->status) *f = (struct xlt_failure){function, status};
	return status;
}
#define CALL(name, ...) tried(f, "cublasLt" #name, l->name(__VA_ARGS__))

int xlt_open(struct xlt *l, struct xlt_failure *f) { return CALL(Create, &l->handle) ? -1 : 0; }

void xlt_close(struct xlt *l) {
	if (l->handle) l->Destroy(l->handle);
	free(l);
}

// layout describes an array as the library reads it: by columns, so transposed.
static int layout(struct xlt *l, void **to, const struct xlt_matrix *m, struct xlt_failure *f) {
	return CALL(MatrixLayoutCreate, to, m->type, m->cols, m->rows, m->pitch);
}

// choose asks for one algorithm.
static int choose(struct xlt *l, struct xlt_product *p, size_t workspace, struct xlt_failure *f) {
	void *preference = NULL;
	struct choice best = {.status = XLT_NOT_SUPPORTED};
	int n = 0;
	int failed = CALL(MatmulPreferenceCreate, &preference) ||
		CALL(MatmulPreferenceSetAttribute, preference, MAX_WORKSPACE, &(uint64_t){workspace}, sizeof(uint64_t)) ||
		CALL(MatmulAlgoGetHeuristic, l->handle, p->operation, p->b_layout, p->a_layout, p->out_layout, p->out_layout,
			preference, 1, &best, &n) ||
		tried(f, "cublasLtMatmulAlgoGetHeuristic", n ? best.status : XLT_NOT_SUPPORTED);
	if (preference) l->MatmulPreferenceDestroy(preference);
	p->algorithm = best.algorithm;
	return failed;
}

// What lies by rows is transposed for the library, and out = a * b is out^T = b^T * a^T. So b is its
// first factor, and a factor is transposed there where it is here.
int xlt_plan(struct xlt *l, struct xlt_product **to, const struct xlt_matrix *out, const struct xlt_matrix *a,
	const struct xlt_matrix *b, int add, size_t workspace, struct xlt_failure *f) {
	struct xlt_product *p = calloc(1, sizeof *p);
	if (!p) abort();
	p->out = out->at, p->a = a->at, p->b = b->at, p->add = add ? 1 : 0;
	const int32_t transpose_a = a->transposed != 0, transpose_b = b->transposed != 0;
	if (CALL(MatmulDescCreate, &p->operation, COMPUTE_F32, XLT_F32) ||
		CALL(MatmulDescSetAttribute, p->operation, TRANSPOSE_A, &transpose_b, sizeof transpose_b) ||
		CALL(MatmulDescSetAttribute, p->operation, TRANSPOSE_B, &transpose_a, sizeof transpose_a) ||
		layout(l, &p->out_layout, out, f) || layout(l, &p->a_layout, a, f) || layout(l, &p->b_layout, b, f) ||
		choose(l, p, workspace, f)) {
		xlt_free(l, p);
		return -1;
	}
	*to = p;
	return 0;
}

int xlt_run(struct xlt *l, struct xlt_product *p, void *workspace, size_t bytes, void *stream, struct xlt_failure *f) {
	const float one = 1;
	return CALL(Matmul, l->handle, p->operation, &one, p->b, p->b_layout, p->a, p->a_layout, &p->add, p->out,
		p->out_layout, p->out, p->out_layout, &p->algorithm, workspace, bytes, stream) ? -1 : 0;
}

void xlt_free(struct xlt *l, struct xlt_product *p) {
	void *const layouts[] = {p->out_layout, p->a_layout, p->b_layout};
	for (int i = 0; i < 3; i++)
		if (layouts[i]) l->MatrixLayoutDestroy(layouts[i]);
	if (p->operation) l->MatmulDescDestroy(p->operation);
	free(p);
}
