// The kernels for AVX-512 (F, BW, DQ, VL) with FMA.
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")
#pragma GCC optimize("O3") // gradients of large weights gain a tenth; the other levels gain nothing
#define LEVEL_AVX512
#define TABLE kernels_avx512
#define TILES tiles_avx512
#define MATRIX matrix_avx512
#include "../level.h"
#include "../tiles.h"
