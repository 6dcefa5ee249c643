// The kernels in plain C, for any processor. fmaf is one instruction or the C
// library's exact routine; both give the same bits.
#define LEVEL_PORTABLE
#define TABLE kernels_portable
#define TILES tiles_portable
#include "level.h"
#include "tiles.h"
