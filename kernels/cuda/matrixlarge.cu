// Products of many rows on tensor cores, on tiles of 256 × 128, which read each factor fewer times.
#define NAME(x) large_##x
#define BLOCKS 1
#define WARPS_DOWN 4
#define WARPS_ACROSS 2
#define PARTS 4
#define EIGHTS 8
#define STAGES 4
#include "products.h"
