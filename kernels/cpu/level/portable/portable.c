// The kernels in plain C, for any processor. fmaf is one instruction or the C
// library's exact routine; both give the same bits.
#if defined(__x86_64__)
#pragma GCC optimize("O1") // a fallback here, behind AVX2: a third of the time to compile
#endif
#define LEVEL_PORTABLE
#define TABLE kernels_portable
#define TILES tiles_portable
#define MATRIX matrix_portable
#include "../level.h"
#include "../tiles.h"
