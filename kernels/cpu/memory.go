package cpu

/*
#include <stdlib.h>
#include <string.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif

// Large buffers start on a huge page, others on a cache line.
static void *take_memory(size_t bytes) {
	void *p = 0;
	const size_t huge = 2u << 20;
	const size_t align = bytes >= 2 * huge ? huge : 64;
	if (posix_memalign(&p, align, bytes) != 0) return 0;
#if defined(__linux__) && defined(MADV_HUGEPAGE)
	if (align == huge) madvise(p, bytes, MADV_HUGEPAGE);
#endif
	memset(p, 0, bytes);
	return p;
}

#include "args.h"
*/
import "C"

import (
	"fmt"
	"math"
	"unsafe"

	"exp/kernels"
	"exp/kernels/ref"
)

// Alloc returns n zeroed elements outside the Go heap.
func (b *Backend) Alloc(t kernels.DType, n int) (kernels.Buffer, error) {
	if n < 0 {
		panic("cpu: negative length")
	}
	if n == 0 {
		return kernels.NewBuffer(nil, 0, t), nil
	}
	p := C.take_memory(C.size_t(n * t.Size()))
	if p == nil {
		return kernels.Buffer{}, fmt.Errorf("cpu: out of memory for %d MiB", n*t.Size()>>20)
	}
	b.allocated += int64(n * t.Size())
	b.peak = max(b.peak, b.allocated)
	return kernels.NewBuffer(p, n, t), nil
}

// Free returns what Alloc gave.
func (b *Backend) Free(buf kernels.Buffer) {
	if buf.Empty() {
		return
	}
	b.flush()
	b.allocated -= int64(buf.Len() * buf.DType().Size())
	C.free(buf.Addr())
}

// Allocated returns the bytes that Alloc has given and Free has not taken back.
func (b *Backend) Allocated() int64 { return b.allocated }

// TakePeak returns the largest value that Allocated had since the last call, or
// since Open, and begins anew. It includes what operations allocate for themselves.
func (b *Backend) TakePeak() int64 {
	p := b.peak
	b.peak = b.allocated
	return p
}

// Copy sets dst to src, converting between float types.
func (b *Backend) Copy(dst, src kernels.Buffer) {
	if dst.Len() != src.Len() {
		panic("cpu: copy of different lengths")
	}
	b.flush()
	switch {
	case dst.Empty():
	case dst.DType() == src.DType():
		copy(bytesOf(dst), bytesOf(src))
	case dst.DType() == kernels.F32 && src.DType() == kernels.F64:
		d, s := kernels.Elems[float32](dst), kernels.Elems[float64](src)
		for i := range d {
			d[i] = float32(s[i])
		}
	case dst.DType() == kernels.F64 && src.DType() == kernels.F32:
		d, s := kernels.Elems[float64](dst), kernels.Elems[float32](src)
		for i := range d {
			d[i] = float64(s[i])
		}
	case dst.DType() == kernels.F32 && src.DType() == kernels.BF16:
		d := kernels.Elems[float32](dst)
		for i, v := range kernels.Bits(src) {
			d[i] = math.Float32frombits(uint32(v) << 16)
		}
	case dst.DType() == kernels.BF16 && src.DType() == kernels.F32:
		d := kernels.Bits(dst)
		for i, v := range kernels.Elems[float32](src) {
			d[i] = uint16(math.Float32bits(ref.Round(v)) >> 16)
		}
	default:
		panic("cpu: copy between types")
	}
}

// Zero sets every element to 0.
func (b *Backend) Zero(buf kernels.Buffer) {
	g := &b.a.zero
	g.at, g.bytes = buf.Addr(), C.long(buf.Len()*buf.DType().Size())
	b.run(b.k.zero, unsafe.Pointer(g), ceilDiv(int(g.bytes), C.ZERO_BYTES), 1)
}

// Sync runs what is queued.
func (b *Backend) Sync() { b.flush() }

func bytesOf(b kernels.Buffer) []byte {
	if b.Empty() {
		return nil
	}
	return unsafe.Slice((*byte)(b.Addr()), b.Len()*b.DType().Size())
}

// grow makes room for so many elements in a workspace that has fewer than n. What it held is lost
// then.
func (b *Backend) grow(buf *kernels.Buffer, t kernels.DType, n, room int) {
	if buf.Len() >= n {
		return
	}
	b.Free(*buf)
	bigger, err := b.Alloc(t, room)
	if err != nil {
		panic(err)
	}
	*buf = bigger
}

// roomFor returns scratch memory of at least n float32 for each thread, and how many
// they are. It allocates only when a call needs more than any before it.
func (b *Backend) roomFor(n int) (scratch *C.float, perThread C.long) {
	const line = 16 // one cache line: threads do not share any
	if n = (n + line - 1) / line * line; n > b.scratchLen {
		b.Free(b.scratch) // runs what is queued, which uses it
		s, err := b.Alloc(kernels.F32, n*b.pool.n)
		if err != nil {
			panic(err)
		}
		b.scratch, b.scratchLen = s, n
	}
	return floats(b.scratch), C.long(b.scratchLen)
}
