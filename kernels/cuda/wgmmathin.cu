// Products of 128 rows of x on tiles of 256 of the weight's (turned.h).
#define NAME(kernel) thin_##kernel
#define CLUSTER 4
#define TILE_COLUMNS 128
#define STAGES 8
#define SHARED_BYTES THIN_SHARED
#include "turned.h"
