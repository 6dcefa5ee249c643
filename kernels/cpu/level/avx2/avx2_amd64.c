// The kernels for AVX2 with FMA.
#pragma GCC target("avx2,fma")
#define LEVEL_AVX2
#define TABLE kernels_avx2
#define TILES tiles_avx2
#define MATRIX matrix_avx2
#include "../level.h"
#include "../tiles.h"
