// What package cublaslt needs of cuBLASLt, found at run time. Declarations are ours; numbers and
// layouts are those of versions 12.9 and 13.10.
#include <stddef.h>
#include <stdint.h>

enum { XLT_F32 = 0, XLT_BF16 = 14, XLT_NOT_SUPPORTED = 15 };

struct xlt;         // a loaded library, and what it keeps for a device
struct xlt_product; // a product for which the library has chosen an algorithm

// A call that failed.
struct xlt_failure {
	const char *function;
	int status;
};

// An array [rows,cols] in device memory; its rows are pitch elements apart.
struct xlt_matrix {
	void *at;
	int64_t rows, cols, pitch;
	int type, transposed;
};

// xlt_load loads path. It returns null, with the reason in why [room], if there is no such library
// or it lacks a function.
struct xlt *xlt_load(const char *path, char *why, size_t room);
size_t xlt_version(const struct xlt *l); // 10000 * major + 100 * minor + patch
const char *xlt_meaning(const struct xlt *l, int status);

// These return 0, or -1 and what failed. They need the device's context on the calling thread, as
// do xlt_free and xlt_close.
int xlt_open(struct xlt *l, struct xlt_failure *f);

// xlt_plan makes the product out = a * b, or out += a * b if add is not 0, with at most workspace bytes.
int xlt_plan(struct xlt *l, struct xlt_product **p, const struct xlt_matrix *out, const struct xlt_matrix *a,
	const struct xlt_matrix *b, int add, size_t workspace, struct xlt_failure *f);
int xlt_run(struct xlt *l, struct xlt_product *p, void *workspace, size_t bytes, void *stream, struct xlt_failure *f);
void xlt_free(struct xlt *l, struct xlt_product *p);

// xlt_close lets go of the device. The library stays loaded, because it is not made to be unloaded.
void xlt_close(struct xlt *l);
