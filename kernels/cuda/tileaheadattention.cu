// Attention whose rows see others behind them, in class cpu/bf16: tile sums of bf16.
#define NAME(x) tile_ahead_##x
#define TILED 1
#define LOOKS_AHEAD 1
#define FORWARD_BLOCKS 2
#define BACKWARD_BLOCKS 2
#include "attend.h"
