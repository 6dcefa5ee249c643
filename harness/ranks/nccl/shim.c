#include "shim.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static char error[1024], loaded[512];

typedef struct {
	char bytes[XNCCL_ID_BYTES];
} id_t_; // passed by value

// The first fields of ncclConfig_t. NCCL reads as many bytes as size says, and of those what
// the version knows.
typedef struct {
	size_t size;
	unsigned magic, version;
	int blocking, cga_cluster_size;
} config_t;

enum { MAGIC = 0xcafebeef, CONFIG_VERSION = 21400, BYTE = 1 /* ncclUint8 */ };

#define EACH(F)                                                                                    \
	F(int, GetUniqueId, (id_t_ *))                                                                 \
	F(int, CommInitRankConfig, (void **, int, id_t_, int, config_t *))                             \
	F(int, CommDestroy, (void *))                                                                  \
	F(int, CommAbort, (void *))                                                                    \
	F(int, CommGetAsyncError, (void *, int *))                                                     \
	F(const char *, GetErrorString, (int))                                                         \
	F(const char *, GetLastError, (void *))                                                        \
	F(int, Send, (const void *, size_t, int, int, void *, void *))                                 \
	F(int, Recv, (void *, size_t, int, int, void *, void *))                                       \
	F(int, GroupStart, (void))                                                                     \
	F(int, GroupEnd, (void))
#define DECLARE(result, name, parameters) static result(*f_##name) parameters;
EACH(DECLARE)

const char *xnccl_error(void) { return error; }
const char *xnccl_loaded(void) { return loaded; }

int xnccl_open(const char *path, int *version)
{
	void *lib = dlopen(*path ? path : "libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
	int (*get_version)(int *);
	if (!lib) {
		snprintf(error, sizeof error, "%s", dlerror());
		return -1;
	}
	snprintf(loaded, sizeof loaded, "%s", *path ? path : "libnccl.so.2");
	get_version = (int (*)(int *))dlsym(lib, "ncclGetVersion");
	if (!get_version || get_version(version)) {
		snprintf(error, sizeof error, "%s has no ncclGetVersion", loaded);
		return -1;
	}
#define FIND(result, name, parameters)                                                             \
	if (!(f_##name = (result(*) parameters)dlsym(lib, "nccl" #name))) {                            \
		snprintf(error, sizeof error, "%s has no nccl" #name, loaded);                             \
		return *version ? 0 : -1;                                                                  \
	}
	*error = 0;
	EACH(FIND)
	return 0;
}

int xnccl_id(char *id)
{
	id_t_ x;
	int e = f_GetUniqueId(&x);
	memcpy(id, x.bytes, sizeof x);
	return e;
}

int xnccl_join(void **comm, int size, const char *id, int rank)
{
	config_t config = {sizeof config, MAGIC, CONFIG_VERSION, 0, INT_MIN};
	id_t_ x;
	memcpy(x.bytes, id, sizeof x);
	return f_CommInitRankConfig(comm, size, x, rank, &config);
}

int xnccl_exchange(void *comm, const xnccl_part *parts, int n, void *stream)
{
	int e = f_GroupStart(), end;
	for (int k = 0; k < n && !e; k++) {
		const xnccl_part *p = &parts[k];
		e = p->send ? f_Send(p->data, p->bytes, BYTE, p->peer, comm, stream)
		            : f_Recv(p->data, p->bytes, BYTE, p->peer, comm, stream);
		if (e == XNCCL_IN_PROGRESS) e = 0;
	}
	end = f_GroupEnd(); // also after a failure: groups of a thread nest
	return e ? e : end;
}

int xnccl_state(void *comm, int *state) { return f_CommGetAsyncError(comm, state); }
int xnccl_destroy(void *comm) { return f_CommDestroy(comm); }
int xnccl_abort(void *comm) { return comm ? f_CommAbort(comm) : 0; }
const char *xnccl_meaning(int code) { return f_GetErrorString(code); }

const char *xnccl_last(void *comm)
{
	const char *text = f_GetLastError(comm);
	return text ? text : "";
}
