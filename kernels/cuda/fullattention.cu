// Attention whose rows see those behind them, in class cpu/fma: chains of float32.
#define NAME(x) full_##x
#define TILED 0
#define FULL 1
#define FORWARD_BLOCKS 3
#define BACKWARD_BLOCKS 2
#include "attend.h"
