// Package heap is the C allocator's heap, where backends keep their smaller buffers.
package heap

/*
#include <stdlib.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

// trim_heap gives free pages back to the system. Without glibc it does nothing.
static void trim_heap(void) {
#if defined(__GLIBC__)
	malloc_trim(0);
#endif
}
*/
import "C"

// Trim gives the heap's free pages back to the system. glibc keeps them otherwise, where
// a block in use lies behind them. It takes some milliseconds.
func Trim() { C.trim_heap() }
