#define NAME(x) matrix_##x
#define FULL 0
#include "warpattention.h"
