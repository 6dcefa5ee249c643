// Package cpu is the fast backend: C microkernels behind the operations of
// kernels.Backend, for AVX-512, AVX2 and plain C, chosen once when it is opened,
// on a pool of threads.
//
// In float32 every level gives the bits of kernels/ref (numerics class
// "cpu/fma"): vectors run along outputs, never along a chain, sums have 16 lanes
// at every level, and the files are compiled without contraction. The number of
// threads changes no bit, because threads share out outputs, not terms.
//
// Layout: one .go and one .h file per operation or family; vec.h is the only
// file that knows the instruction sets, tile.h the one inner loop of everything
// that is a matmul; level_*.c compile all of it once per level. Operations that
// take no time worth saving (GELU, LayerNorm, dropout, restricted sampling) call
// kernels/ref on the pool.
package cpu

/*
#include <stdlib.h>
#include "args.h"

// All argument structs, in C memory: the Go side fills one and names it.
struct arguments {
	struct pack_args pack;
	struct matmul_args matmul;
	struct matmul_dw_args matmul_dw;
	struct embed_args embed;
	struct norm_args norm;
	struct norm_back_args norm_back;
	struct swiglu_args swiglu;
	struct rope_args rope;
	struct attention_args attention;
	struct output_args output;
	struct adamw_args adamw;
	struct vector_args vector;
};
*/
import "C"

import (
	"fmt"
	"runtime"
	"unsafe"

	"exp/kernels"
)

// Backend implements kernels.Backend. It is used by one goroutine at a time and
// must be closed.
type Backend struct {
	level Level
	k     *C.struct_kernels
	a     *C.struct_arguments
	pool  *pool

	allocated  int64
	scratch    kernels.Buffer // [threads, scratchLen]
	scratchLen int
	dz         kernels.Buffer // workspace: logits or their gradients
	blocks     kernels.Buffer // workspace: block offsets
	sums       kernels.Buffer // workspace: float64 partial sums
}

var _ kernels.Backend = (*Backend)(nil)

// Options choose how a Backend runs. The zero value uses the best level and all
// processors.
type Options struct {
	Level   *Level // nil: the best that the machine supports
	Threads int    // 0: one per processor
}

// Open starts a backend. It is an error to ask for a level that the machine does
// not support.
func Open(o Options) (*Backend, error) {
	level := BestLevel()
	if o.Level != nil {
		level = *o.Level
	}
	if !level.Supported() {
		return nil, fmt.Errorf("cpu: this machine does not support level %s; its best is %s", level, BestLevel())
	}
	if o.Threads < 0 {
		return nil, fmt.Errorf("cpu: %d threads: want 0 (all) or more", o.Threads)
	}
	threads := o.Threads
	if threads == 0 {
		threads = runtime.NumCPU()
	}
	return &Backend{
		level: level,
		k:     level.table(),
		a:     (*C.struct_arguments)(C.calloc(1, C.sizeof_struct_arguments)),
		pool:  newPool(threads),
	}, nil
}

// Close ends the threads and frees the scratch memory, not what Alloc gave.
func (b *Backend) Close() {
	b.pool.close()
	b.Free(b.scratch)
	b.Free(b.dz)
	b.Free(b.blocks)
	b.Free(b.sums)
	b.scratch, b.scratchLen = kernels.Buffer{}, 0
	b.dz, b.blocks, b.sums = kernels.Buffer{}, kernels.Buffer{}, kernels.Buffer{}
	C.free(unsafe.Pointer(b.a))
	b.a = nil
}

// Name returns "cpu/" and the level.
func (b *Backend) Name() string { return "cpu/" + b.level.String() }

// Class returns "cpu/fma": all levels and kernels/ref give the same bits.
func (b *Backend) Class() string { return "cpu/fma" }

// Float returns kernels.F32.
func (b *Backend) Float() kernels.DType { return kernels.F32 }

// Threads returns the number of threads that share the work.
func (b *Backend) Threads() int { return b.pool.n }

// Level returns the instruction level in use.
func (b *Backend) Level() Level { return b.level }

// floats returns the address of a float32 buffer, nil if it is empty.
func floats(b kernels.Buffer) *C.float {
	if b.Empty() {
		return nil
	}
	if b.DType() != kernels.F32 {
		panic("cpu: want a float32 buffer")
	}
	return (*C.float)(b.Addr())
}

// ints returns the address of an int32 buffer, nil if it is empty.
func ints(b kernels.Buffer) *C.int32_t {
	if b.Empty() {
		return nil
	}
	if b.DType() != kernels.I32 {
		panic("cpu: want an int32 buffer")
	}
	return (*C.int32_t)(b.Addr())
}

// check panics unless b holds n elements.
func check(b kernels.Buffer, n int) {
	if b.Len() != n {
		panic("cpu: length mismatch")
	}
}

// rowGrain is how many rows of c elements make a chunk of work worth a hand-over:
// about 16 Ki elements, some microseconds.
func rowGrain(c int) int { return max(1, 16384/max(c, 1)) }

func ceilDiv(a, b int) int { return (a + b - 1) / b }
