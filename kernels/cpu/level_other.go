//go:build !amd64

package cpu

import (
	"unsafe"

	"exp/kernels/cpu/level/portable"
)

// Only level Portable runs on other processors.
const emulatesAMX = false

func pairsAreTwoFMAs() bool { return false }

func tablesOf(Level) (fma, tiles unsafe.Pointer) { return portable.Kernels(), portable.Tiles() }

func matrixOf(Level) unsafe.Pointer { return portable.Matrix() }
