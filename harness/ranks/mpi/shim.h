// What package mpi needs of an MPI library, found at run time. The library is one of
// three kinds, which differ in how they pass handles and in the values of constants.
#include <stddef.h>
#include <stdint.h>

enum { XMPI_NONE, XMPI_STANDARD, XMPI_OPENMPI, XMPI_MPICH };

// One message of an exchange. count is in units of 4 bytes.
typedef struct {
	void *data;
	int count, peer, tag, send;
} xmpi_part;

// The requests of an exchange under way.
typedef struct xmpi_requests xmpi_requests;

// xmpi_open loads path, or the first library that is there if path is empty, and
// returns its kind; XMPI_NONE leaves the reason in xmpi_error.
int xmpi_open(const char *path);
const char *xmpi_error(void);
const char *xmpi_loaded(void);

// These return 0 or an MPI error code.
int xmpi_init(int *rank, int *size, int *serialized);
int xmpi_version(char *text, int *n); // text has 8192 bytes; may be called before xmpi_init
int xmpi_finalize(void);
int xmpi_abort(int code);
int xmpi_start(xmpi_part *parts, int n, xmpi_requests **out);
int xmpi_test(xmpi_requests *r, int *done); // tries for a moment; frees r once done is 1

// xmpi_missing sets parts to those that have not arrived, and returns how many.
int xmpi_missing(xmpi_requests *r, int *parts);

// xmpi_allreduce leaves the sum of all ranks' n floats in x on each, in the library's order.
int xmpi_allreduce(void *x, int n);
