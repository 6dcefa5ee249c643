// Package portable has the kernels in plain C, for any processor.
package portable

// #cgo CFLAGS: -O2 -g0 -std=c11 -D_GNU_SOURCE -Wno-psabi
// #cgo LDFLAGS: -lm
// #include "../args.h"
import "C"

import (
	"unsafe"

	_ "exp/kernels/cpu/level" // the headers
)

// Kernels returns the table of class "cpu/fma", a struct kernels of args.h.
func Kernels() unsafe.Pointer { return unsafe.Pointer(&C.kernels_portable) }

// Tiles returns the table of class "cpu/bf16", a struct tile_kernels of args.h.
func Tiles() unsafe.Pointer { return unsafe.Pointer(&C.tiles_portable) }

// Matrix returns the table of kernels of class "matrix/16x25".
func Matrix() unsafe.Pointer { return unsafe.Pointer(&C.matrix_portable) }
