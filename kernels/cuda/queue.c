//go:build cuda

#include "queue.h"
#include <string.h>

// A graph has the launches of a run one after another, with the arguments of its last start.
struct graph {
	uint64_t hash;
	int batch, first, n; // the run's place since the last wait
	int seen, refused;
	long used; // counts.runs when the run last came
	CUgraph graph;
	CUgraphExec exec;
	CUgraphNode node[QUEUE_WORK];
	struct work work[QUEUE_WORK];
};

struct queue *device_open_queue(CUcontext ctx, CUstream s) {
	struct queue *q = calloc(1, sizeof *q);
	if (!q) abort();
	q->ctx = ctx, q->stream = s, q->least = 8, q->sights = 1;
	return q;
}

// forget frees what the driver has of a graph. Starts of it that are queued still run.
static void forget(struct graph *g) {
	if (g->exec) cuGraphExecDestroy(g->exec);
	if (g->graph) cuGraphDestroy(g->graph);
	g->exec = 0, g->graph = 0;
}

void device_close_queue(struct queue *q) {
	cuCtxSetCurrent(q->ctx);
	for (int i = 0; i < QUEUE_GRAPHS; i++) {
		if (q->graph[i]) forget(q->graph[i]);
		free(q->graph[i]);
	}
	free(q);
}

static CUresult launch(struct queue *q, struct work *w) {
	void *params[] = {w->args};
	q->counts.launches++;
	return cuLaunchKernel(w->f, w->blocks, 1, 1, w->threads, 1, 1, w->shared, q->stream, params, 0);
}

static CUresult move(const struct queue *q, const struct work *w) {
	switch (w->kind) {
	case WORK_ZERO: return cuMemsetD8Async(w->to, 0, w->bytes, q->stream);
	case WORK_COPY: return cuMemcpyDtoDAsync(w->to, w->from, w->bytes, q->stream);
	case WORK_UPLOAD: return cuMemcpyHtoDAsync(w->to, (void *)w->from, w->bytes, q->stream);
	default: return cuMemcpyDtoHAsync((void *)w->to, w->from, w->bytes, q->stream);
	}
}

static CUDA_KERNEL_NODE_PARAMS node_of(struct work *w, void **args) {
	args[0] = w->args;
	return (CUDA_KERNEL_NODE_PARAMS){.func = w->f, .gridDimX = w->blocks, .gridDimY = 1, .gridDimZ = 1,
		.blockDimX = w->threads, .blockDimY = 1, .blockDimZ = 1, .sharedMemBytes = w->shared, .kernelParams = args};
}

static uint64_t mix(uint64_t hash, uint64_t x) { return (hash ^ x) * 0x9e3779b97f4a7c15 + (hash >> 29); }

// same reports whether g is the run of n launches at w: the same kernels on as many blocks.
static int same(const struct graph *g, uint64_t hash, int batch, int first, const struct work *w, int n) {
	if (g->hash != hash || g->batch != batch || g->first != first || g->n != n) return 0;
	for (int i = 0; i < n; i++) {
		const struct work *v = &g->work[i];
		if (v->f != w[i].f || v->blocks != w[i].blocks) return 0;
		if (v->threads != w[i].threads || v->shared != w[i].shared) return 0;
	}
	return 1;
}

// place_of returns where the graph of a run is, or else where it shall be: of the places that its hash
// allows, the one whose run came the longest ago. The hash differs between processes with the addresses of
// the kernels, so with one place alone some processes would have runs that displace each other forever.
static struct graph **place_of(struct queue *q, uint64_t hash, int first, const struct work *w, int n) {
	struct graph **oldest = 0;
	for (int i = 0; i < QUEUE_PLACES; i++) {
		struct graph **place = &q->graph[((hash >> 32) + i) % QUEUE_GRAPHS];
		if (*place && same(*place, hash, q->batch, first, w, n)) return place;
		if (!oldest || (*oldest && (!*place || (*place)->used < (*oldest)->used))) oldest = place;
	}
	return oldest;
}

// graph_of returns the graph of a run, null without memory. A new one takes the place of another.
static struct graph *graph_of(struct queue *q, int first, struct work *w, int n) {
	uint64_t hash = mix(mix(n, q->batch), first);
	for (int i = 0; i < n; i++)
		hash = mix(mix(hash, (uintptr_t)w[i].f), (uint64_t)w[i].blocks << 32 ^ w[i].threads << 20 ^ w[i].shared);
	struct graph **place = place_of(q, hash, first, w, n), *g = *place;
	const long now = q->counts.runs++;
	if (!g || !same(g, hash, q->batch, first, w, n)) {
		if (g) forget(g);
		else g = *place = malloc(sizeof *g);
		if (!g) return 0;
		memset(g, 0, sizeof *g);
		g->hash = hash, g->batch = q->batch, g->first = first, g->n = n;
		memcpy(g->work, w, n * sizeof *w);
	}
	g->used = now;
	return g;
}

// build makes the driver's graph with the arguments of w.
static CUresult build(struct graph *g, struct work *w) {
	CUresult r = cuGraphCreate(&g->graph, 0);
	for (int i = 0; i < g->n && !r; i++) {
		void *args[1];
		const CUDA_KERNEL_NODE_PARAMS p = node_of(&w[i], args);
		r = cuGraphAddKernelNode(&g->node[i], g->graph, i ? &g->node[i - 1] : 0, i > 0, &p);
	}
	memcpy(g->work, w, g->n * sizeof *w);
	return r ? r : cuGraphInstantiateWithFlags(&g->exec, g->graph, 0);
}

// change gives a graph the arguments of w.
static CUresult change(struct queue *q, struct graph *g, struct work *w) {
	for (int i = 0; i < g->n; i++) {
		if (!memcmp(g->work[i].args, w[i].args, w[i].bytes)) continue;
		void *args[1];
		const CUDA_KERNEL_NODE_PARAMS p = node_of(&w[i], args);
		q->counts.changes++;
		const CUresult r = cuGraphExecKernelNodeSetParams(g->exec, g->node[i], &p);
		if (r) return r;
		memcpy(g->work[i].args, w[i].args, w[i].bytes);
	}
	return CUDA_SUCCESS;
}

// replay starts the graph of a run of launches. It returns 0 if there is none, or if the driver
// refuses it: then nothing of the run was started.
static int replay(struct queue *q, int first, struct work *w, int n) {
	struct graph *g = n < q->least ? 0 : graph_of(q, first, w, n);
	if (!g || g->refused || g->seen++ < q->sights) return 0;
	if (g->exec ? change(q, g, w) : build(g, w)) {
		g->refused = 1;
		forget(g);
		return 0;
	}
	q->counts.starts++;
	if (cuGraphLaunch(g->exec, q->stream)) return 0;
	q->counts.replayed += n;
	return 1;
}

CUresult device_run(struct queue *q, int wait, int *failed) {
	const int n = q->length;
	int i = 0;
	q->counts.crossings++;
	q->length = 0;
	CUresult r = cuCtxSetCurrent(q->ctx);
	while (i < n && !r) {
		int end = i;
		while (end < n && q->work[end].kind == WORK_LAUNCH) end++;
		if (end == i) r = move(q, &q->work[i++]);
		else if (replay(q, i, &q->work[i], end - i)) i = end;
		else
			while (i < end && !r) r = launch(q, &q->work[i++]);
	}
	*failed = r && n ? i - (i > 0) : n;
	q->batch = wait ? 0 : q->batch + 1;
	const CUresult waited = wait ? cuStreamSynchronize(q->stream) : CUDA_SUCCESS;
	return r ? r : waited;
}
