// Package ref is the specification of every operation of kernels.Backend in
// plain loops, generic over float32 and float64.
//
// In float32 it produces, bit for bit, what a backend of numerics class
// "cpu/fma" must produce; kernels/kerneltest holds any backend against it. In
// float64 it exists for finite differences. Mixed does the same for class
// "cpu/bf16". It is slow: float32 fused
// multiply-adds are emulated (FMA), so that the bits do not depend on the
// machine or on what the compiler may fuse. For the same reason every product
// that feeds a sum without fma is written T(x*y), which forbids fusing.
//
// Each operation is a function on slices with explicit dims, in a file of its
// own; Backend wraps them all as a device. Rare or tiny operations (GELU,
// LayerNorm, Dropout, SegmentMean, Pick) are meant to be called by fast backends
// as they are. Functions panic with a constant message when lengths do not match
// the dims; token ids and row numbers out of range panic too.
//
// Dims are those of package kernels. In addition M is the number of rows of a
// linear map, N its outputs and K its inputs.
package ref
