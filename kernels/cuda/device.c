//go:build cuda

#include "device.h"

#define IN_CONTEXT(call)                                                                           \
	CUresult r = cuCtxSetCurrent(ctx);                                                             \
	return r ? r : call

CUresult device_alloc(CUcontext ctx, CUdeviceptr *p, size_t bytes) { IN_CONTEXT(cuMemAlloc(p, bytes)); }

CUresult device_pin(CUcontext ctx, void **p, size_t bytes) { IN_CONTEXT(cuMemHostAlloc(p, bytes, 0)); }

CUresult device_unpin(CUcontext ctx, void *p) { IN_CONTEXT(cuMemFreeHost(p)); }

CUresult device_share(CUcontext ctx, CUfunction f, int bytes) {
	IN_CONTEXT(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes));
}

CUresult device_query(CUcontext ctx, CUstream s) { IN_CONTEXT(cuStreamQuery(s)); }

CUresult device_free(CUcontext ctx, CUdeviceptr p) { IN_CONTEXT(cuMemFree(p)); }
