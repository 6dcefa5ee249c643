//go:build emulate_amx

package cpu

// With this tag, level AMX is computed by an emulation of the matrix unit, wherever
// there is AVX512-BF16. It is for tests, and never the best level.

// #cgo CFLAGS: -DEMULATE_AMX
import "C"
