// The kernels in plain C, for any processor. fmaf is one instruction where there
// is one, and the C library's exact routine elsewhere: the bits are the same.
#define LEVEL_PORTABLE
#define TABLE kernels_portable
#define TILES tiles_portable
#include "level.h"
#include "tiles.h"
