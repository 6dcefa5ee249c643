//go:build cuda

#include "device.h"

#define IN_CONTEXT(call)                                                                           \
	CUresult r = cuCtxSetCurrent(ctx);                                                             \
	return r ? r : call

CUresult device_alloc(CUcontext ctx, CUdeviceptr *p, size_t bytes) { IN_CONTEXT(cuMemAlloc(p, bytes)); }

CUresult device_pin(CUcontext ctx, void **p, size_t bytes) { IN_CONTEXT(cuMemHostAlloc(p, bytes, 0)); }

CUresult device_unpin(CUcontext ctx, void *p) { IN_CONTEXT(cuMemFreeHost(p)); }

CUresult device_zero(CUcontext ctx, CUstream s, CUdeviceptr to, size_t bytes) {
	IN_CONTEXT(cuMemsetD8Async(to, 0, bytes, s));
}

CUresult device_copy(CUcontext ctx, CUstream s, CUdeviceptr to, CUdeviceptr from, size_t bytes) {
	IN_CONTEXT(cuMemcpyDtoDAsync(to, from, bytes, s));
}

CUresult device_upload(CUcontext ctx, CUstream s, CUdeviceptr to, const void *from, size_t bytes) {
	IN_CONTEXT(cuMemcpyHtoDAsync(to, from, bytes, s));
}

CUresult device_download(CUcontext ctx, CUstream s, void *to, CUdeviceptr from, size_t bytes) {
	IN_CONTEXT(cuMemcpyDtoHAsync(to, from, bytes, s));
}

CUresult device_launch(CUcontext ctx, CUstream s, CUfunction f, unsigned blocks, unsigned threads, unsigned shared,
	void *args) {
	void *params[] = {args};
	IN_CONTEXT(cuLaunchKernel(f, blocks, 1, 1, threads, 1, 1, shared, s, params, 0));
}

CUresult device_share(CUcontext ctx, CUfunction f, int bytes) {
	IN_CONTEXT(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes));
}

CUresult device_sync(CUcontext ctx, CUstream s) { IN_CONTEXT(cuStreamSynchronize(s)); }

CUresult device_query(CUcontext ctx, CUstream s) { IN_CONTEXT(cuStreamQuery(s)); }

CUresult device_free(CUcontext ctx, CUstream s, CUdeviceptr p) {
	CUresult wait = device_sync(ctx, s);
	return wait ? wait : cuMemFree(p);
}
