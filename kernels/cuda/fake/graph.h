// graph.h is what the driver's graphs and tensor maps need of the rest of the fake driver.
#ifndef EXP_FAKE_GRAPH_H
#define EXP_FAKE_GRAPH_H

#include "cuda.h"

CUresult may_launch(const CUDA_KERNEL_NODE_PARAMS *p); // why a graph cannot have a node
CUresult may_start(int n); // why n launches are refused at once
int has_maps(void);

#endif
