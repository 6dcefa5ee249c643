// Products on tensor cores (class matrix/16x25), on tiles of 128 × 128.
#define NAME(x) matrix_##x
#define BLOCKS 2
#include "products.h"
