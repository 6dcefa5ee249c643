package cpu

import (
	"unsafe"

	"exp/kernels/cpu/level/amx"
	"exp/kernels/cpu/level/avx2"
	"exp/kernels/cpu/level/avx512"
	"exp/kernels/cpu/level/avx512bf16"
)

// emulatesAMX is set in builds that emulate the matrix unit for tests.
const emulatesAMX = amx.Emulated

// pairsAreTwoFMAs reports whether this processor, which has AVX512-BF16, rounds products of pairs
// as level AVX512BF16 assumes.
func pairsAreTwoFMAs() bool { return avx512bf16.PairsAreTwoFMAs() }

// tablesOf returns the kernels of level l. Those of class "matrix/16x25" are at most AVX512's.
func tablesOf(l Level) tables {
	t := tables{
		fma:    []unsafe.Pointer{avx512.Kernels(), avx2.Kernels()},
		tiles:  []unsafe.Pointer{avx512.Tiles()},
		matrix: avx512.Matrix(),
	}
	switch l {
	case AMX:
		t.tiles = []unsafe.Pointer{amx.Tiles(), avx512bf16.Tiles(), avx512.Tiles()}
	case AVX512BF16:
		t.tiles = []unsafe.Pointer{avx512bf16.Tiles(), avx512.Tiles()}
	case AVX2:
		t.fma, t.tiles, t.matrix = t.fma[1:], []unsafe.Pointer{avx2.Tiles()}, avx2.Matrix()
	case Portable:
		t = portableTables()
	}
	return t
}
