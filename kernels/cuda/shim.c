//go:build cuda

// shim.c defines every driver function that the program calls, so that it links and starts
// without a driver. Each function is a jump through a table that shim_load fills from
// libcuda.so.1. A jump keeps the arguments where they are, so it needs no signature. Before
// shim_load, and where the library lacks the function, it returns an error code.
#include <dlfcn.h>
#include <stdio.h>
#include "cuda.h"

enum {
#define D(name, parameters) index_##name,
#include "cuda_symbols.h"
#undef D
	SYMBOLS
};

static const char *const names[SYMBOLS] = {
#define D(name, parameters) #name,
#include "cuda_symbols.h"
#undef D
};

static CUresult not_loaded(void) { return CUDA_ERROR_NOT_INITIALIZED; }
static CUresult not_found(void) { return CUDA_ERROR_NOT_FOUND; }

__attribute__((visibility("hidden"))) CUresult (*shim_table[SYMBOLS])(void) = {[0 ... SYMBOLS - 1] = not_loaded};

#if defined(__x86_64__)
#define ENTRY(name)                                                                                \
	".globl " #name "\n.type " #name ",@function\n" #name ":\n endbr64\n"                          \
	" jmp *shim_table+8*shim_n(%rip)\n"                                                            \
	".size " #name ",.-" #name "\n.set shim_n, shim_n+1\n"
#elif defined(__aarch64__)
#define ENTRY(name)                                                                                \
	".globl " #name "\n.type " #name ",%function\n" #name ":\n bti c\n adrp x16, shim_table\n"     \
	" add x16, x16, :lo12:shim_table\n ldr x16, [x16, #8*shim_n]\n br x16\n"                       \
	".size " #name ",.-" #name "\n.set shim_n, shim_n+1\n"
#else
#error "package cuda has no jump for this architecture; build without tag cuda"
#endif

__asm__(".text\n.set shim_n, 0\n"
#define D(name, parameters) ENTRY(name)
#include "cuda_symbols.h"
#undef D
);

// cuInit succeeds and does nothing: package cu calls it before main and ends the process on an
// error. shim_load calls the driver's.
CUresult cuInit(unsigned flags) {
	(void)flags;
	return CUDA_SUCCESS;
}

// shim_load opens the driver and initialises it. It returns CUDA_ERROR_SHARED_OBJECT_INIT_FAILED
// if there is no library, with the reason in why [room], else what the driver's cuInit returns.
// It must be called once.
CUresult shim_load(char *why, size_t room) {
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!lib) {
		snprintf(why, room, "%s", dlerror());
		return CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
	}
	for (int i = 0; i < SYMBOLS; i++) {
		void *f = dlsym(lib, names[i]);
		shim_table[i] = f ? (CUresult(*)(void))f : not_found;
	}
	CUresult (*init)(unsigned) = (CUresult(*)(unsigned))dlsym(lib, "cuInit");
	return init ? init(0) : CUDA_ERROR_NOT_FOUND;
}
