// Package cpu is the fast backend: C microkernels for the operations of
// kernels.Backend, on a pool of threads. A level is an instruction set (AVX-512, AVX2
// or plain C, and for bf16 the matrix unit); Open chooses it once.
//
// In float32 every level gives the bits of kernels/ref (numerics class
// "cpu/fma"): vectors run along outputs, never along a chain, sums have 16 lanes
// at every level, and the files are compiled without contraction. The number of
// threads changes no bit, because threads divide outputs, not terms.
// With BF16 operands (class "cpu/bf16") matmuls run on the matrix unit (AMX) or on
// instructions that multiply pairs (AVX512-BF16) if the processor has them, otherwise
// on fused multiply-adds that give the same bits. Class "matrix/16x25" has the same tiles; its sums are
// computed in integers (matrixsum.h).
//
// Layout: one .go file per operation or family, and a .h file in folder level; only vec.h
// (wide.h for float64) knows the instruction sets; all matmuls run on the inner loop of
// tile.h in float32 and of tilesum.h in bf16; the packages in folder level compile
// everything once each. Draws with top-k, top-p or min-p call kernels/ref on goroutines.
// peak.h measures the machine's peak rates.
package cpu

/*
#include <stdlib.h>
#include "level/args.h"

// All argument structs, in C memory: Go fills one and passes its address.
struct arguments {
	struct pack_args pack;
	struct matmul_args matmul;
	struct matmul_dw_args matmul_dw;
	struct embed_args embed;
	struct embed_frozen_args embed_frozen;
	struct norm_args norm;
	struct norm_back_args norm_back;
	struct layernorm_args layernorm;
	struct layernorm_back_args layernorm_back;
	struct dropout_args dropout;
	struct segment_args segment;
	struct swiglu_args swiglu;
	struct gelu_args gelu;
	struct gate_args gate;
	struct xielu_args xielu;
	struct clip_args clip;
	struct columns_args columns;
	struct route_args route;
	struct combine_args combine;
	struct cap_args cap;
	struct rope_args rope;
	struct zero_args zero;
	struct copy_args copy;
	struct append_args append;
	struct attention_args attention;
	struct output_args output;
	struct conv_args conv;
	struct delta_gates_args delta_gates;
	struct delta_args delta;
	struct gated_norm_args gated_norm;
	struct output_gate_args output_gate;
	struct sink_args sink;
	struct latent_args latent;
	struct adamw_args adamw;
	struct vector_args vector;
	struct peak_args peak;
	struct tile_pack_args tile_pack;
	struct tile_matmul_args tile_matmul;
	struct tile_dw_args tile_dw;
	struct tile_attention_args tile_attention;
	struct tile_output_args tile_output;
};
*/
import "C"

import (
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"exp/kernels"
)

// Backend implements kernels.Backend. It is used by one goroutine at a time and
// must be closed.
type Backend struct {
	level   Level
	operand kernels.DType
	k       *C.struct_kernels
	tiles   *C.struct_tile_kernels // for operands in BF16; nil for class "cpu/fma"
	matrix  bool                   // class "matrix/16x25"
	a       *C.struct_arguments
	pool    *pool
	queue   *queue

	allocated  int64
	peak       int64          // of allocated, see TakePeak
	scratch    kernels.Buffer // [threads, scratchLen]
	scratchLen int
	dz         kernels.Buffer // workspace: logits or their gradients
	blocks     kernels.Buffer // workspace: block offsets
	rowSums    kernels.Buffer // workspace: a number for each row of the output layer
	adjusted   kernels.Buffer // workspace: the logits that Sample adjusts, as they were, and sums of rows
	sums       kernels.Buffer // workspace: float64 partial sums
	half       kernels.Buffer // workspace: bf16 gradients of logits
	across     kernels.Buffer // workspace: a frozen weight in bf16, transposed
	strips     kernels.Buffer // workspace: strips of channels of striped, stripCount of them
	striped    kernels.DeltaShape
	stripCount int
	steps      []int32        // of the last MatMulDW in bf16
	stepBuf    kernels.Buffer // steps, for the kernels
}

var _ kernels.Backend = (*Backend)(nil)

// Options choose how a Backend runs. The zero value uses DefaultLevel and all
// processors.
type Options struct {
	Level   *Level        // nil: the level in EXP_CPU, else the best that the machine supports
	Threads int           // 0: one per processor
	Operand kernels.DType // kernels.BF16 for class "cpu/bf16"; 0 and kernels.F32 for "cpu/fma"
	Matrix  bool          // class "matrix/16x25", whose operands are BF16: what a GPU's matrix units compute
}

// Open starts a backend. It returns an error if o.Level or EXP_CPU is a level that the
// machine does not support.
func Open(o Options) (*Backend, error) {
	switch {
	case o.Matrix:
		o.Operand = kernels.BF16
	case o.Operand == 0:
		o.Operand = kernels.F32
	}
	if o.Operand != kernels.F32 && o.Operand != kernels.BF16 {
		return nil, fmt.Errorf("cpu: operands of type %v: want f32 or bf16", o.Operand)
	}
	level, err := o.level()
	if err != nil {
		return nil, fmt.Errorf("cpu: %w", err)
	}
	if o.Threads < 0 {
		return nil, fmt.Errorf("cpu: %d threads: want 0 (all) or more", o.Threads)
	}
	threads := o.Threads
	if threads == 0 {
		threads = runtime.NumCPU()
	}
	pool, err := newPool(threads)
	if err != nil {
		return nil, fmt.Errorf("cpu: %w", err)
	}
	if o.Matrix {
		level = min(level, AVX512) // the instructions for bf16 are of no use
	}
	b := &Backend{
		level:   level,
		operand: o.Operand,
		matrix:  o.Matrix,
		a:       (*C.struct_arguments)(C.calloc(1, C.sizeof_struct_arguments)),
		pool:    pool,
	}
	fma, tiles := level.tables(o.Matrix)
	b.k = fma
	strip := int(fma.mr)
	if o.Operand == kernels.BF16 {
		b.tiles, strip = tiles, tileBlock
	}
	b.queue = newQueue(threads, strip, b.tiles != nil)
	return b, nil
}

func (o Options) level() (Level, error) {
	if o.Level == nil {
		return DefaultLevel(os.Getenv)
	}
	return *o.Level, o.Level.usable()
}

// Close ends the threads and frees the scratch memory, but not buffers from Alloc.
func (b *Backend) Close() {
	b.flush()
	b.pool.close()
	b.Free(b.scratch)
	b.Free(b.queue.room)
	b.Free(b.dz)
	b.Free(b.blocks)
	b.Free(b.rowSums)
	b.Free(b.adjusted)
	b.Free(b.sums)
	b.Free(b.half)
	b.Free(b.across)
	b.Free(b.stepBuf)
	b.Free(b.strips)
	b.strips, b.striped = kernels.Buffer{}, kernels.DeltaShape{}
	b.scratch, b.scratchLen = kernels.Buffer{}, 0
	b.rowSums, b.adjusted = kernels.Buffer{}, kernels.Buffer{}
	b.dz, b.blocks, b.sums, b.half, b.across, b.stepBuf = kernels.Buffer{}, kernels.Buffer{}, kernels.Buffer{},
		kernels.Buffer{}, kernels.Buffer{}, kernels.Buffer{}
	C.free(unsafe.Pointer(b.queue.c))
	C.free(unsafe.Pointer(b.a))
	b.a = nil
}

// Name returns "cpu/" and the level in use, in float32 at most AVX512.
func (b *Backend) Name() string {
	if b.tiles == nil {
		return "cpu/" + min(b.level, AVX512).String()
	}
	return "cpu/" + b.level.String()
}

// Class returns "cpu/fma", or "cpu/bf16" or "matrix/16x25" if operands are BF16. All levels and
// kernels/ref give the bits of the class.
func (b *Backend) Class() string {
	switch {
	case b.matrix:
		return "matrix/16x25"
	case b.tiles != nil:
		return "cpu/bf16"
	}
	return "cpu/fma"
}

// Float returns kernels.F32.
func (b *Backend) Float() kernels.DType { return kernels.F32 }

// Operand returns kernels.F32 for class "cpu/fma", else kernels.BF16.
func (b *Backend) Operand() kernels.DType { return b.operand }

// Threads returns the number of threads that share the work.
func (b *Backend) Threads() int { return b.pool.n }

// RowsPerRead is what kernels.RowsPerRead tells, as measured (kernels/LOG.md). A cache gives a small model's weights
// several times faster than memory.
func (b *Backend) RowsPerRead(bytes int) int {
	const cache = 32 << 20 // of all cores together, about
	rows := 8
	if b.operand == kernels.BF16 && b.level >= AVX512BF16 {
		rows = 16
	}
	if bytes <= cache {
		rows /= 4
	}
	return rows
}

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

// address returns the address of b, which may be Go memory (see args.h).
func address(b kernels.Buffer) C.uintptr_t { return C.uintptr_t(uintptr(b.Addr())) }

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

// isBF16 returns 1 if the buffers are BF16 and 0 if they are float32. It panics if
// the types differ; empty buffers match any type.
func isBF16(list ...kernels.Buffer) C.int {
	var t kernels.DType
	for _, b := range list {
		switch {
		case b.Empty() || b.DType() == t:
		case t != 0 || b.DType() != kernels.F32 && b.DType() != kernels.BF16:
			panic("cpu: want float32 or bf16 buffers, all of one type")
		default:
			t = b.DType()
		}
	}
	if t == kernels.BF16 {
		return 1
	}
	return 0
}

// flag returns 1 for true.
func flag(b bool) C.int {
	if b {
		return 1
	}
	return 0
}

// check panics unless b holds n elements.
func check(b kernels.Buffer, n int) {
	if b.Len() != n {
		panic("cpu: length mismatch")
	}
}

// rowGrain returns how many rows of c elements are worth handing to a thread: about
// 16 Ki elements, some microseconds.
func rowGrain(c int) int { return max(1, 16384/max(c, 1)) }

func ceilDiv(a, b int) int { return (a + b - 1) / b }
