//go:build amd64 && emulate_amx

package amx

// #cgo CFLAGS: -DEMULATE_AMX
import "C"

// Emulated is set in builds with the tag emulate_amx, which is for tests: there the matrix
// unit is emulated on processors with AVX512-BF16.
const Emulated = true
