#define NAME(x) panel_##x
#define FULL 0
#include "paneldq.h"
