// Attention in class cpu/bf16: tile sums of bf16.
#define NAME(x) tile_##x
#define TILED 1
#define LOOKS_AHEAD 0
#define FORWARD_BLOCKS 2
#define BACKWARD_BLOCKS 2
#define PAGED_BLOCKS 4
#include "attend.h"
