// device.h declares the calls of the driver that package cu lacks, or that it makes in several
// steps. Each makes ctx the context of the calling thread first: a context belongs to a thread,
// and goroutines change threads between calls of C.
#ifndef EXP_CUDA_DEVICE_H
#define EXP_CUDA_DEVICE_H

#include "cuda.h"

CUresult device_alloc(CUcontext ctx, CUdeviceptr *p, size_t bytes);
CUresult device_free(CUcontext ctx, CUdeviceptr p);
CUresult device_pin(CUcontext ctx, void **p, size_t bytes); // host memory that copies run from
CUresult device_unpin(CUcontext ctx, void *p);
CUresult device_share(CUcontext ctx, CUfunction f, int bytes); // the most that launches may give a block of f

// device_map sets map [CUtensorMap] to the boxes of box_rows rows by 64 columns of an array of BF16 [rows,width].
CUresult device_map(CUcontext ctx, void *map, void *at, long rows, long width, long pitch, int box_rows);

CUresult device_query(CUcontext ctx, CUstream s); // CUDA_ERROR_NOT_READY while work is queued

#endif
