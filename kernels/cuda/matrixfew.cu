// Products of few rows on tensor cores, on tiles of 64 × 64: all multiprocessors get one, and eleven
// stages under way keep the memory busy.
#define NAME(x) few_##x
#define BLOCKS 2
#define WARPS_DOWN 2
#define WARPS_ACROSS 2
#define PARTS 2
#define EIGHTS 4
#define STAGES 12
#define FORWARD
#include "products.h"
