#include "shim.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char error[2048], loaded[512];
static int kind;

// Handles are pointers in Open MPI and in the standard ABI, ints in MPICH's own.
static uintptr_t world, word, sum, errors_return;
static void *ignore, *in_place;
static int serialized_level;

#define EACH(F) F(Init_thread) F(Comm_rank) F(Comm_size) F(Comm_set_errhandler) F(Get_library_version) F(Finalize) \
	F(Abort) F(Isend) F(Irecv) F(Test) F(Testall) F(Allreduce)
#define DECLARE(name) static void *f_##name;
EACH(DECLARE)

const char *xmpi_error(void) { return error; }
const char *xmpi_loaded(void) { return loaded; }

static void *try_open(const char *path)
{
	void *lib = dlopen(path, RTLD_NOW | RTLD_GLOBAL); // Open MPI's plugins look their symbols up globally
	size_t n = strlen(error);
	if (lib) snprintf(loaded, sizeof loaded, "%s", path);
	else snprintf(error + n, sizeof error - n, "%s%s", n ? "; " : "", dlerror());
	return lib;
}

int xmpi_open(const char *path)
{
	static const char *const names[] = {"libmpi_abi.so.1", "libmpi_abi.so.0", "libmpi.so.40", "libmpi.so.12",
		"libmpich.so.12", 0};
	void *lib = 0;
	*error = 0;
	if (*path) lib = try_open(path);
	else for (int i = 0; names[i] && !lib; i++) lib = try_open(names[i]);
	if (!lib) return XMPI_NONE;
#define FIND(name) if (!(f_##name = dlsym(lib, "MPI_" #name))) { \
		snprintf(error, sizeof error, "%s has no MPI_" #name, loaded); return XMPI_NONE; }
	EACH(FIND)
	if (dlsym(lib, "ompi_mpi_comm_world")) {
		kind = XMPI_OPENMPI;
		world = (uintptr_t)dlsym(lib, "ompi_mpi_comm_world");
		word = (uintptr_t)dlsym(lib, "ompi_mpi_float");
		errors_return = (uintptr_t)dlsym(lib, "ompi_mpi_errors_return");
		sum = (uintptr_t)dlsym(lib, "ompi_mpi_op_sum");
		ignore = 0, in_place = (void *)1, serialized_level = 2;
	} else if (dlsym(lib, "MPI_Abi_get_version") && strstr(loaded, "mpi_abi")) {
		kind = XMPI_STANDARD; // MPI 5.0, chapter 20
		world = 0x101, word = 0x210, sum = 0x21, errors_return = 0x143;
		ignore = 0, in_place = (void *)1, serialized_level = 2048;
	} else {
		kind = XMPI_MPICH; // and those that keep its ABI: Intel MPI, MVAPICH, Cray MPICH
		world = 0x44000000, word = 0x4c00040a, sum = 0x58000003, errors_return = 0x54000001;
		ignore = (void *)1, in_place = (void *)-1, serialized_level = 2;
	}
	return kind;
}

#define INTS (kind == XMPI_MPICH)
typedef int hi;    // a handle that is an int
typedef void *hp;  // a handle that is a pointer

int xmpi_init(int *rank, int *size, int *serialized)
{
	int got = 0, e;
	if ((e = ((int (*)(int *, char ***, int, int *))f_Init_thread)(0, 0, serialized_level, &got))) return e;
	*serialized = got >= serialized_level;
	if (INTS) {
		if ((e = ((int (*)(hi, hi))f_Comm_set_errhandler)((hi)world, (hi)errors_return))) return e;
		if ((e = ((int (*)(hi, int *))f_Comm_rank)((hi)world, rank))) return e;
		return ((int (*)(hi, int *))f_Comm_size)((hi)world, size);
	}
	if ((e = ((int (*)(hp, hp))f_Comm_set_errhandler)((hp)world, (hp)errors_return))) return e;
	if ((e = ((int (*)(hp, int *))f_Comm_rank)((hp)world, rank))) return e;
	return ((int (*)(hp, int *))f_Comm_size)((hp)world, size);
}

int xmpi_version(char *text, int *n) { return ((int (*)(char *, int *))f_Get_library_version)(text, n); }
int xmpi_finalize(void) { return ((int (*)(void))f_Finalize)(); }

int xmpi_abort(int code)
{
	return INTS ? ((int (*)(hi, int))f_Abort)((hi)world, code) : ((int (*)(hp, int))f_Abort)((hp)world, code);
}

struct xmpi_requests {
	int n;
	hi *i;
	hp *p;
	int *part; // of each request
};

static int post(xmpi_requests *r, int k, xmpi_part *p)
{
	if (INTS) {
		int (*f)(void *, int, hi, int, int, hi, hi *) = p->send ? f_Isend : f_Irecv;
		return f(p->data, p->count, (hi)word, p->peer, p->tag, (hi)world, &r->i[k]);
	}
	int (*f)(void *, int, hp, int, int, hp, hp *) = p->send ? f_Isend : f_Irecv;
	return f(p->data, p->count, (hp)word, p->peer, p->tag, (hp)world, &r->p[k]);
}

static void release(xmpi_requests *r)
{
	free(r->i);
	free(r->p);
	free(r->part);
	free(r);
}

int xmpi_start(xmpi_part *p, int n, xmpi_requests **out)
{
	xmpi_requests *r = calloc(1, sizeof *r);
	int e = 0;
	r->i = calloc((size_t)n, sizeof *r->i);
	r->p = calloc((size_t)n, sizeof *r->p);
	r->part = calloc((size_t)n, sizeof *r->part);
	for (int send = 0; send < 2; send++) // receives first
		for (int k = 0; k < n && !e; k++)
			if (p[k].send == send) r->part[r->n] = k, e = post(r, r->n++, &p[k]);
	if (e) release(r);
	else *out = r;
	return e;
}

int xmpi_test(xmpi_requests *r, int *done)
{
	int e = 0;
	*done = 0;
	for (int tries = 0; tries < 200 && !*done && !e; tries++) {
		e = INTS ? ((int (*)(int, hi *, int *, void *))f_Testall)(r->n, r->i, done, ignore)
		         : ((int (*)(int, hp *, int *, void *))f_Testall)(r->n, r->p, done, ignore);
		if (!*done && tries > 20) sched_yield();
	}
	if (e || *done) release(r);
	return e;
}

int xmpi_missing(xmpi_requests *r, int *parts)
{
	int n = 0;
	for (int k = 0; k < r->n; k++) {
		int done = 0;
		if (INTS) ((int (*)(hi *, int *, void *))f_Test)(&r->i[k], &done, ignore);
		else ((int (*)(hp *, int *, void *))f_Test)(&r->p[k], &done, ignore);
		if (!done) parts[n++] = r->part[k];
	}
	return n;
}

int xmpi_allreduce(void *x, int n)
{
	return INTS ? ((int (*)(void *, void *, int, hi, hi, hi))f_Allreduce)(in_place, x, n, (hi)word, (hi)sum, (hi)world)
	            : ((int (*)(void *, void *, int, hp, hp, hp))f_Allreduce)(in_place, x, n, (hp)word, (hp)sum, (hp)world);
}
