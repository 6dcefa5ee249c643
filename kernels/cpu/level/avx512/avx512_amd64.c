// The kernels for AVX-512 (F, BW, DQ, VL) with FMA.
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")
#define LEVEL_AVX512
#define SPARSE
#define TABLE kernels_avx512
#define TILES tiles_avx512
#define MATRIX matrix_avx512
#include "../level.h"
#include "../tiles.h"
