// Rows see those behind them.
#define NAME(x) matrix_full_##x
#define FULL 1
#include "warpattention.h"
