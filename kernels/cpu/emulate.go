//go:build emulate_amx

package cpu

// With this tag, level AMX emulates the matrix unit on machines with AVX512-BF16. It is
// for tests, and BestLevel never returns it.

// #cgo CFLAGS: -DEMULATE_AMX
import "C"
