// Products of 128 rows of x on tiles of 128 of the weight's (turned.h).
#define NAME(kernel) thin_##kernel
#define CLUSTER 2
#define TILE_COLUMNS 128
#define STAGES 8
#define SHARED_BYTES THIN_SHARED
#include "turned.h"
