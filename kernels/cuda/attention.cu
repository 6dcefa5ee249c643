// Attention in class cpu/fma: chains of float32.
#define NAME(x) x
#define TILED 0
#define LOOKS_AHEAD 0
#define FORWARD_BLOCKS 3
#define BACKWARD_BLOCKS 2
#define PAGED_BLOCKS 5
#include "attend.h"
