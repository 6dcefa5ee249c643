package cpu

import (
	"unsafe"

	"exp/kernels/cpu/level/amx"
	"exp/kernels/cpu/level/avx2"
	"exp/kernels/cpu/level/avx512"
	"exp/kernels/cpu/level/avx512bf16"
	"exp/kernels/cpu/level/portable"
)

// emulatesAMX is set in builds that emulate the matrix unit for tests.
const emulatesAMX = amx.Emulated

// pairsAreTwoFMAs reports whether this processor, which has AVX512-BF16, rounds products of pairs
// as level AVX512BF16 assumes.
func pairsAreTwoFMAs() bool { return avx512bf16.PairsAreTwoFMAs() }

// tablesOf returns the kernels of level l for float32 and for bf16.
func tablesOf(l Level) (fma, tiles unsafe.Pointer) {
	switch l {
	case AMX:
		return avx512.Kernels(), amx.Tiles()
	case AVX512BF16:
		return avx512.Kernels(), avx512bf16.Tiles()
	case AVX512:
		return avx512.Kernels(), avx512.Tiles()
	case AVX2:
		return avx2.Kernels(), avx2.Tiles()
	}
	return portable.Kernels(), portable.Tiles()
}

// matrixOf returns the kernels of class "matrix/16x25" at level l, at most AVX512.
func matrixOf(l Level) unsafe.Pointer {
	switch {
	case l >= AVX512:
		return avx512.Matrix()
	case l == AVX2:
		return avx2.Matrix()
	}
	return portable.Matrix()
}
