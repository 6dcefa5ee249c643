// The kernels of class "cpu/bf16" on the matrix unit (AMX, BF16), otherwise in
// AVX-512.
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,avx512bf16,amx-tile,amx-bf16")
#define LEVEL_AVX512
#define LEVEL_BF16
#define LEVEL_AMX
#define TILES tiles_amx
#include "../args.h"
#include "../vec.h"
#include "../bf16.h"
#include "../tile.h"
#include "../gate.h"
#include "../pages.h"
#include "../window.h"
#include "../attention.h"
#include "../pagedattention.h"
#include "../output.h"
#include "../tiles.h"
