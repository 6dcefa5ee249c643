// What package nccl needs of NCCL, found at run time. Declarations are ours; numbers and
// layouts hold for NCCL 2.14 and every later version 2.
#include <stddef.h>

enum { XNCCL_ID_BYTES = 128, XNCCL_IN_PROGRESS = 7, XNCCL_REMOTE = 6 };

// One message of an exchange, in bytes of device memory.
typedef struct {
	void *data;
	size_t bytes;
	int peer, send;
} xnccl_part;

// xnccl_open loads path, or libnccl.so.2 if path is empty. It returns 0, or -1 with the reason
// in xnccl_error. version is 10000 * major + 100 * minor + patch.
int xnccl_open(const char *path, int *version);
const char *xnccl_error(void);
const char *xnccl_loaded(void);

// These return 0 or one of NCCL's codes, XNCCL_IN_PROGRESS if xnccl_state will tell.
int xnccl_id(char *id);                                         // XNCCL_ID_BYTES
int xnccl_join(void **comm, int size, const char *id, int rank); // never blocks
int xnccl_exchange(void *comm, const xnccl_part *parts, int n, void *stream);
int xnccl_state(void *comm, int *state);
int xnccl_destroy(void *comm);
int xnccl_abort(void *comm);

// xnccl_meaning returns what a code means; xnccl_last what NCCL says of the last failure, ""
// if nothing.
const char *xnccl_meaning(int code);
const char *xnccl_last(void *comm);
