// Products of 64 rows of x on tiles of 128 of the weight's (turned.h).
#define NAME(kernel) slim_##kernel
#define CLUSTER 2
#define TILE_COLUMNS 64
#define STAGES 12
#define SHARED_BYTES SLIM_SHARED
#include "turned.h"
