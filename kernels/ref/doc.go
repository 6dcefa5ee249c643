// Package ref is the specification of every operation of kernels.Backend in
// plain loops, generic over float32 and float64.
//
// In float32 it defines the bits of numerics class "cpu/fma"; kernels/kerneltest
// compares any backend with it. float64 is for finite differences. NewMixed defines
// class "cpu/bf16", NewMatrix class "matrix/16x25". The package is slow: it emulates float32 fused multiply-adds
// (FMA), so that the bits do not depend on the machine or on what the compiler may
// fuse. For the same reason every product that feeds a sum without fma is written
// T(x*y), which forbids fusing.
//
// Each operation is a function on slices with explicit dims, one file per
// operation; Backend wraps them all as a device. Fast backends may call rare or tiny
// operations (GELU, LayerNorm, Dropout, SegmentMean, Pick) as they are. Functions
// panic with a constant message when lengths do not match the dims, and on token ids
// and row numbers out of range.
//
// The dims are package kernels'. In addition M is the number of rows of a linear
// map, N its outputs and K its inputs.
package ref
