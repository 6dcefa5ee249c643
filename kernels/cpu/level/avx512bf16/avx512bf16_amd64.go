// Package avx512bf16 has the kernels of class "cpu/bf16" for AVX512-BF16.
package avx512bf16

// #cgo CFLAGS: -O2 -g0 -std=c11 -D_GNU_SOURCE -Wno-psabi
// #cgo LDFLAGS: -lm
// #include "../args.h"
import "C"

import (
	"unsafe"

	_ "exp/kernels/cpu/level" // the headers
)

// Tiles returns the table of class "cpu/bf16", a struct tile_kernels of args.h.
func Tiles() unsafe.Pointer { return unsafe.Pointer(&C.tiles_avx512bf16) }

// PairsAreTwoFMAs reports whether this processor, which must have AVX512-BF16, rounds products
// of pairs as the kernels assume.
func PairsAreTwoFMAs() bool { return C.pairs_are_two_fmas() != 0 }
