// Rows see those behind them.
#define NAME(x) panel_full_##x
#define FULL 1
#include "paneldq.h"
