// graph.c has the driver's graphs: kernels one after another. A graph that is started launches them all.
#include "emulator.h"
#include "graph.h"
#include <stdlib.h>
#include <string.h>

enum { MAX_NODES = 1024 };

struct CUgraphNode_st {
	int place; // in the graph
	CUDA_KERNEL_NODE_PARAMS p;
	void *args;
};

struct CUgraph_st {
	int n;
	CUgraphNode node[MAX_NODES];
};

// What is started has arguments of its own.
struct CUgraphExec_st {
	CUgraph graph;
	void *args[MAX_NODES];
};

// copy_of returns a copy of a kernel's structure of arguments.
static void *copy_of(const CUDA_KERNEL_NODE_PARAMS *p, const void *args) {
	const size_t bytes = ((const struct kernel *)p->func)->args;
	return memcpy(malloc(bytes), args, bytes);
}

CUresult cuGraphCreate(CUgraph *g, unsigned flags) {
	if (flags) return CUDA_ERROR_INVALID_VALUE;
	*g = calloc(1, sizeof **g);
	return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph g) {
	for (int i = 0; i < g->n; i++) {
		free(g->node[i]->args);
		free(g->node[i]);
	}
	free(g);
	return CUDA_SUCCESS;
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph g, const CUgraphNode *after, size_t n,
	const CUDA_KERNEL_NODE_PARAMS *p) {
	const CUresult r = may_launch(p);
	if (r) return r;
	if (g->n == MAX_NODES || n != (g->n > 0) || (n && *after != g->node[g->n - 1])) return CUDA_ERROR_INVALID_VALUE;
	*node = g->node[g->n] = malloc(sizeof **node);
	**node = (struct CUgraphNode_st){g->n++, *p, copy_of(p, p->kernelParams[0])};
	return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *e, CUgraph g, unsigned long long flags) {
	if (flags) return CUDA_ERROR_INVALID_VALUE;
	*e = calloc(1, sizeof **e);
	(*e)->graph = g;
	for (int i = 0; i < g->n; i++) (*e)->args[i] = copy_of(&g->node[i]->p, g->node[i]->args);
	return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec e) {
	for (int i = 0; i < e->graph->n; i++) free(e->args[i]);
	free(e);
	return CUDA_SUCCESS;
}

// cuGraphExecKernelNodeSetParams changes arguments; a node keeps its kernel and its blocks.
CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec e, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *p) {
	if (e->graph->node[node->place] != node || p->func != node->p.func || p->gridDimX != node->p.gridDimX ||
		p->blockDimX != node->p.blockDimX || p->sharedMemBytes != node->p.sharedMemBytes)
		return CUDA_ERROR_INVALID_VALUE;
	free(e->args[node->place]);
	e->args[node->place] = copy_of(p, p->kernelParams[0]);
	return CUDA_SUCCESS;
}

// cuGraphLaunch launches all or nothing. What fails later, the next call says.
CUresult cuGraphLaunch(CUgraphExec e, CUstream s) {
	CUresult r = may_start(e->graph->n);
	if (r) return r;
	for (int i = 0; i < e->graph->n && !r; i++) {
		const CUDA_KERNEL_NODE_PARAMS *p = &e->graph->node[i]->p;
		r = cuLaunchKernel(p->func, p->gridDimX, p->gridDimY, p->gridDimZ, p->blockDimX, p->blockDimY, p->blockDimZ,
			p->sharedMemBytes, s, &e->args[i], NULL);
	}
	return CUDA_SUCCESS;
}
