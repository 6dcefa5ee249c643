package cpu

/*
#cgo CFLAGS: -O3 -std=c11 -D_GNU_SOURCE
#cgo LDFLAGS: -lm
#include <stdlib.h>
#include <string.h>
#include "args.h"

// Whether this processor and its system run a level.
static int has_avx512(void) {
#if defined(__x86_64__)
	__builtin_cpu_init();
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
		__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma");
#else
	return 0;
#endif
}
static int has_avx2(void) {
#if defined(__x86_64__)
	__builtin_cpu_init();
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
	return 0;
#endif
}
static const struct kernels *table(int level) {
#if defined(__x86_64__)
	if (level == 2) return &kernels_avx512;
	if (level == 1) return &kernels_avx2;
#endif
	return &kernels_portable;
}
*/
import "C"

import "fmt"

// Level is an instruction set that the kernels exist for. All levels give the
// same bits in float32.
type Level int

const (
	Portable Level = iota // plain C
	AVX2                  // AVX2 and FMA
	AVX512                // AVX-512 F, BW, DQ, VL and FMA
)

func (l Level) String() string {
	switch l {
	case Portable:
		return "portable"
	case AVX2:
		return "avx2"
	case AVX512:
		return "avx512"
	}
	return fmt.Sprintf("Level(%d)", int(l))
}

// ParseLevel is the inverse of String.
func ParseLevel(s string) (Level, error) {
	for l := Portable; l <= AVX512; l++ {
		if l.String() == s {
			return l, nil
		}
	}
	return 0, fmt.Errorf("unknown cpu level %q: want avx512, avx2 or portable", s)
}

// Supported reports whether this machine runs level l.
func (l Level) Supported() bool {
	switch l {
	case Portable:
		return true
	case AVX2:
		return C.has_avx2() != 0
	case AVX512:
		return C.has_avx512() != 0
	}
	return false
}

// BestLevel returns the fastest level that this machine runs.
func BestLevel() Level {
	for l := AVX512; l > Portable; l-- {
		if l.Supported() {
			return l
		}
	}
	return Portable
}

func (l Level) table() *C.struct_kernels { return C.table(C.int(l)) }
