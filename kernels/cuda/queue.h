// queue.h declares work that waits in memory for one call of C. Launches that repeat go to the device
// as a graph, which one call of the driver starts.
#ifndef EXP_CUDA_QUEUE_H
#define EXP_CUDA_QUEUE_H

#include "cuda.h"

enum { QUEUE_WORK = 64, QUEUE_ARGS = 448, QUEUE_GRAPHS = 128, QUEUE_PLACES = 32 };

enum work_kind { WORK_LAUNCH, WORK_ZERO, WORK_COPY, WORK_UPLOAD, WORK_DOWNLOAD };

// A launch of f on a row of blocks, with `shared` bytes for each and args [bytes]; or bytes of memory
// at to, from elsewhere. Host memory is pinned.
struct work {
	int kind;
	unsigned blocks, threads, shared;
	CUfunction f;
	CUdeviceptr to, from;
	size_t bytes;
	char args[QUEUE_ARGS];
};

// Calls of C, calls of the driver that a launch, a change of a graph or a start of one took, launches in
// graphs, and runs that are long enough for a graph.
struct queue_counts {
	long crossings, launches, changes, starts, replayed, runs;
};

struct queue {
	CUcontext ctx;
	CUstream stream;
	struct work work[QUEUE_WORK];
	int length;
	int batch; // since the last wait
	// A run of launches becomes a graph if it has at least `least`, and after `sights` times.
	int least, sights;
	struct graph *graph[QUEUE_GRAPHS];
	struct queue_counts counts;
};

struct queue *device_open_queue(CUcontext ctx, CUstream s);
void device_close_queue(struct queue *q);

// device_run gives the work to the device, in order, and waits for it if `wait` is set. On an error
// *failed is the first work that the driver refused, or the number of works if waiting failed.
CUresult device_run(struct queue *q, int wait, int *failed);

#endif
