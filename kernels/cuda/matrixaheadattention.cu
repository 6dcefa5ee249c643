// Rows see others behind them.
#define NAME(x) matrix_ahead_##x
#define LOOKS_AHEAD 1
#include "warpattention.h"
