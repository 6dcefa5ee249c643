// Products of 64 rows of x on tiles of 256 of the weight's (turned.h).
#define NAME(kernel) slim_##kernel
#define CLUSTER 4
#define TILE_COLUMNS 64
#define STAGES 12
#define SHARED_BYTES SLIM_SHARED
#include "turned.h"
