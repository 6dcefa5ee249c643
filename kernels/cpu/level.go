package cpu

/*
#cgo CFLAGS: -O2 -g0 -std=c11 -D_GNU_SOURCE
#include <unistd.h>
#include "level/args.h"
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__linux__)
#include <sys/syscall.h>
#endif

// has_… say whether this processor and its system run a level.
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
// has_avx512bf16 says whether the processor multiplies pairs of BF16.
static int has_avx512bf16(void) {
#if defined(__x86_64__)
	unsigned a, b, c, d;
	return has_avx512() && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 5 & 1);
#else
	return 0;
#endif
}
// has_amx says whether the processor has the matrix unit and AVX512-BF16.
static int has_amx(void) {
#if defined(__x86_64__) && defined(__linux__)
	unsigned a, b, c, d;
	if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return 0;
	return has_avx512bf16() && (d >> 24 & 1) && (d >> 22 & 1); // AMX-TILE, AMX-BF16
#else
	return 0;
#endif
}
// grants_amx asks the system for the matrix unit's registers. The grant lasts as long as
// the process.
static int grants_amx(void) {
#if defined(__x86_64__) && defined(__linux__)
	return syscall(SYS_arch_prctl, 0x1023, 18) == 0; // ARCH_REQ_XCOMP_PERM, XTILEDATA
#else
	return 0;
#endif
}
*/
import "C"

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	_ "exp/kernels/cpu/level" // args.h
	"exp/kernels/cpu/level/portable"
)

// ErrUnsupported says that this machine does not run the requested level.
var ErrUnsupported = errors.New("this machine does not support the cpu level")

// LevelVariable is the environment variable with the level of a Backend whose Options
// have none: amx, avx512bf16, avx512, avx2 or portable.
const LevelVariable = "EXP_CPU"

// Level is an instruction set that the kernels are compiled for. All levels give the
// same bits.
type Level int

const (
	Portable   Level = iota // plain C
	AVX2                    // AVX2 and FMA
	AVX512                  // AVX-512 F, BW, DQ, VL and FMA
	AVX512BF16              // AVX512, and products of pairs for bf16
	AMX                     // AVX512BF16, and the matrix unit for bf16
)

func (l Level) String() string {
	switch l {
	case Portable:
		return "portable"
	case AVX2:
		return "avx2"
	case AVX512:
		return "avx512"
	case AVX512BF16:
		return "avx512bf16"
	case AMX:
		return "amx"
	}
	return fmt.Sprintf("Level(%d)", int(l))
}

// ParseLevel is the inverse of String.
func ParseLevel(s string) (Level, error) {
	for l := Portable; l <= AMX; l++ {
		if l.String() == s {
			return l, nil
		}
	}
	return 0, fmt.Errorf("unknown cpu level %q: want amx, avx512bf16, avx512, avx2 or portable", s)
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
	case AVX512BF16:
		return multipliesPairs()
	case AMX:
		return hasAMX()
	}
	return false
}

// BestLevel returns the fastest level that this machine runs. Levels above AVX512 are
// faster in bf16 only.
func BestLevel() Level {
	for l := AMX; l > Portable; l-- {
		if l.Supported() && !(l == AMX && emulatesAMX) {
			return l
		}
	}
	return Portable
}

var multipliesPairs = sync.OnceValue(func() bool { return C.has_avx512bf16() != 0 && pairsAreTwoFMAs() })

// hasAMX says whether level AMX runs, on a matrix unit or, in builds for tests, on an emulated one.
var hasAMX = sync.OnceValue(func() bool {
	if emulatesAMX {
		return C.has_avx512bf16() != 0
	}
	return C.has_amx() != 0 && C.grants_amx() != 0
})

// RefusesAMX reports whether the processor has a matrix unit but the system does not
// let this process use it.
func RefusesAMX() bool { return C.has_amx() != 0 && !hasAMX() }

// DefaultLevel returns the level that LevelVariable names in an environment, or
// BestLevel if it is unset. It returns an error for an unknown level, and
// ErrUnsupported for one that the machine does not run.
func DefaultLevel(getenv func(string) string) (Level, error) {
	name := getenv(LevelVariable)
	if name == "" {
		return BestLevel(), nil
	}
	l, err := ParseLevel(name)
	if err == nil {
		err = l.usable()
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", LevelVariable, err)
	}
	return l, nil
}

// usable returns ErrUnsupported, with l and the best level, if this machine does not
// run l.
func (l Level) usable() error {
	if l.Supported() {
		return nil
	}
	return fmt.Errorf("%w: %s; its best is %s", ErrUnsupported, l, BestLevel())
}

// tables returns the kernels for float32, and those for operands in BF16: of class "matrix/16x25" if matrix is set,
// else of "cpu/bf16".
func (l Level) tables(matrix bool) (*C.struct_kernels, *C.struct_tile_kernels) {
	tables := tablesOf(l)
	tiles := complete[C.struct_tile_kernels](tables.tiles)
	if matrix {
		tiles = (*C.struct_tile_kernels)(tables.matrix)
	}
	return complete[C.struct_kernels](tables.fma), tiles
}

// tables are the kernels of a level. What its first table of a class leaves out is in the next ones.
type tables struct {
	fma    []unsafe.Pointer // struct kernels
	tiles  []unsafe.Pointer // struct tile_kernels, of class "cpu/bf16"
	matrix unsafe.Pointer   // struct tile_kernels, of class "matrix/16x25"
}

func portableTables() tables {
	return tables{
		fma:    []unsafe.Pointer{portable.Kernels()},
		tiles:  []unsafe.Pointer{portable.Tiles()},
		matrix: portable.Matrix(),
	}
}

// complete returns a table of C pointers and numbers, of type T. Each word comes from the first table that has it.
func complete[T any](list []unsafe.Pointer) *T {
	t := *(*T)(list[0])
	const word = unsafe.Sizeof(uintptr(0))
	words := unsafe.Slice((*uintptr)(unsafe.Pointer(&t)), unsafe.Sizeof(t)/word)
	for _, from := range list[1:] {
		for i, w := range unsafe.Slice((*uintptr)(from), len(words)) {
			if words[i] == 0 {
				words[i] = w
			}
		}
	}
	return &t
}
