// Attention whose rows see others behind them, in class cpu/fma: chains of float32.
#define NAME(x) ahead_##x
#define TILED 0
#define LOOKS_AHEAD 1
#define FORWARD_BLOCKS 3
#define BACKWARD_BLOCKS 2
#include "attend.h"
