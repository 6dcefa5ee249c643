// Attention whose rows see those behind them, in class cpu/bf16: tile sums of bf16.
#define NAME(x) tile_full_##x
#define TILED 1
#define FULL 1
#define FORWARD_BLOCKS 2
#define BACKWARD_BLOCKS 2
#include "attend.h"
