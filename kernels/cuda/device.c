//go:build cuda

#include "device.h"
#include <string.h>

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

CUresult device_map(CUcontext ctx, void *map, void *at, long rows, long width, long pitch, int box_rows) {
	enum { BF16 = 9, NO_INTERLEAVE = 0, SWIZZLE_128 = 3, PROMOTE_256 = 3, ZEROS = 0 }; // as CU_TENSOR_MAP_…
	const uint64_t dims[] = {width, rows}, strides[] = {2 * pitch};
	const uint32_t box[] = {64, box_rows}, steps[] = {1, 1};
	CUtensorMap m; // aligned, which map need not be
	CUresult r = cuCtxSetCurrent(ctx);
	if (!r) r = cuTensorMapEncodeTiled(&m, BF16, 2, at, dims, strides, box, steps, NO_INTERLEAVE, SWIZZLE_128, PROMOTE_256, ZEROS);
	if (!r) memcpy(map, &m, sizeof m);
	return r;
}
