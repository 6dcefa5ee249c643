#define NAME(x) panel_##x
#define FULL 0
#include "paneldkv.h"
