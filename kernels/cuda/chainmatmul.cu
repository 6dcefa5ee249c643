// Products in float32 (class cpu/fma), on tiles of 128 × 128: a thread has 16 × 8 chains.
#define NAME(x) chain_##x
#define BLOCKS 2
#define CHAINS
#include "products.h"
