// Package amx has the kernels of class "cpu/bf16" for the matrix unit (AMX).
package amx

// #cgo CFLAGS: -O2 -g0 -std=c11 -D_GNU_SOURCE -Wno-psabi
// #cgo LDFLAGS: -lm
// #include "../args.h"
import "C"

import (
	"unsafe"

	_ "exp/kernels/cpu/level" // the headers
)

// Tiles returns the table of class "cpu/bf16", a struct tile_kernels of args.h.
func Tiles() unsafe.Pointer { return unsafe.Pointer(&C.tiles_amx) }
