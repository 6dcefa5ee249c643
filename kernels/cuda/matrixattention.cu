#define NAME(x) matrix_##x
#include "warpattention.h"
