// device.h declares the calls of the driver that package cu lacks, or that it makes in several
// steps. Each makes ctx the context of the calling thread first: a context belongs to a thread,
// and goroutines change threads between calls of C. Work is queued on the stream s.
#ifndef EXP_CUDA_DEVICE_H
#define EXP_CUDA_DEVICE_H

#include "cuda.h"

CUresult device_alloc(CUcontext ctx, CUdeviceptr *p, size_t bytes);
CUresult device_free(CUcontext ctx, CUstream s, CUdeviceptr p); // after the queued work
CUresult device_pin(CUcontext ctx, void **p, size_t bytes); // host memory that copies run from
CUresult device_unpin(CUcontext ctx, void *p);
CUresult device_zero(CUcontext ctx, CUstream s, CUdeviceptr to, size_t bytes);
CUresult device_copy(CUcontext ctx, CUstream s, CUdeviceptr to, CUdeviceptr from, size_t bytes);
CUresult device_upload(CUcontext ctx, CUstream s, CUdeviceptr to, const void *from, size_t bytes);
CUresult device_download(CUcontext ctx, CUstream s, void *to, CUdeviceptr from, size_t bytes);
// device_launch starts a kernel on a row of blocks, with `shared` bytes for each. args is its structure of arguments.
CUresult device_launch(CUcontext ctx, CUstream s, CUfunction f, unsigned blocks, unsigned threads, unsigned shared,
	void *args);
CUresult device_share(CUcontext ctx, CUfunction f, int bytes); // the most that launches may give a block of f
CUresult device_sync(CUcontext ctx, CUstream s);
CUresult device_query(CUcontext ctx, CUstream s); // CUDA_ERROR_NOT_READY while work is queued

#endif
