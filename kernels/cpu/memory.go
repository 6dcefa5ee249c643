package cpu

/*
#include <stdlib.h>
#include <string.h>
#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

// Large buffers come from mmap, on huge pages: they are zero without being written, and a
// page takes memory when a thread first touches it. So unused room, such as KV pages for
// sequences that never come, costs nothing, and each thread clears the pages it fills.
// Smaller buffers start on a cache line.
enum { HUGE_PAGE = 2 << 20, LARGE = 2 * HUGE_PAGE };

#if defined(__linux__)
static size_t whole_pages(size_t bytes) {
	const size_t page = sysconf(_SC_PAGESIZE);
	return (bytes + page - 1) / page * page;
}
#endif

// sparse asks for small pages: huge ones would take more memory than is touched.
static void *take_memory(size_t bytes, int sparse) {
#if defined(__linux__)
	if (bytes >= LARGE) {
		const size_t room = whole_pages(bytes);
		char *p = mmap(0, room + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED) return 0;
		const size_t before = (HUGE_PAGE - (size_t)p % HUGE_PAGE) % HUGE_PAGE;
		if (before) munmap(p, before);
		munmap(p + before + room, HUGE_PAGE - before);
#if defined(MADV_HUGEPAGE)
		madvise(p + before, room, sparse ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
#endif
		return p + before;
	}
#endif
	void *p = 0;
	if (posix_memalign(&p, 64, bytes) != 0) return 0;
	return memset(p, 0, bytes);
}

// give_back frees memory from take_memory with the same number of bytes.
static void give_back(void *p, size_t bytes) {
#if defined(__linux__)
	if (bytes >= LARGE) {
		munmap(p, whole_pages(bytes));
		return;
	}
#endif
	free(p);
}

#include "level/args.h"
*/
import "C"

import (
	"fmt"
	"math"
	"unsafe"

	"exp/kernels"
	"exp/kernels/ref"
)

// Resident returns the memory that a buffer of so many bytes takes of which the first used ones are read or written.
func Resident(bytes, used int) int {
	const huge = C.HUGE_PAGE
	if bytes < C.LARGE {
		return bytes
	}
	return min(bytes, (used+huge-1)/huge*huge)
}

// Alloc returns n zeroed elements outside the Go heap. A large buffer takes memory only where
// it is touched.
func (b *Backend) Alloc(t kernels.DType, n int) (kernels.Buffer, error) { return b.alloc(t, n, 0) }

// AllocSparse is Alloc for a large buffer that may stay mostly untouched: it takes memory one
// small page at a time.
func (b *Backend) AllocSparse(t kernels.DType, n int) (kernels.Buffer, error) {
	return b.alloc(t, n, 1)
}

func (b *Backend) alloc(t kernels.DType, n int, sparse C.int) (kernels.Buffer, error) {
	if n < 0 {
		panic("cpu: negative length")
	}
	if n == 0 {
		return kernels.NewBuffer(nil, 0, t), nil
	}
	p := C.take_memory(C.size_t(n*t.Size()), sparse)
	if p == nil {
		return kernels.Buffer{}, fmt.Errorf("cpu: out of memory for %d MiB", n*t.Size()>>20)
	}
	b.allocated += int64(n * t.Size())
	b.peak = max(b.peak, b.allocated)
	return kernels.NewBuffer(p, n, t), nil
}

// Free frees a buffer from Alloc.
func (b *Backend) Free(buf kernels.Buffer) {
	if buf.Empty() {
		return
	}
	b.flush()
	n := buf.Len() * buf.DType().Size()
	b.allocated -= int64(n)
	C.give_back(buf.Addr(), C.size_t(n))
}

// Allocated returns the bytes that are allocated and not yet freed.
func (b *Backend) Allocated() int64 { return b.allocated }

// TakePeak returns the largest value of Allocated since the last call, or since Open, and
// starts over. It includes the operations' own workspaces.
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

// Sync runs the queued calls.
func (b *Backend) Sync() { b.flush() }

func bytesOf(b kernels.Buffer) []byte {
	if b.Empty() {
		return nil
	}
	return unsafe.Slice((*byte)(b.Addr()), b.Len()*b.DType().Size())
}

// grow reallocates a workspace to `room` elements if it has fewer than n. Its contents are lost
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

// roomFor returns scratch memory of at least n float32 per thread, and the actual number
// per thread. It allocates only when a call needs more than any before it.
func (b *Backend) roomFor(n int) (scratch *C.float, perThread C.long) {
	const line = 16 // one cache line: threads share none
	if n = (n + line - 1) / line * line; n > b.scratchLen {
		b.Free(b.scratch) // runs the queued calls, which use it
		s, err := b.Alloc(kernels.F32, n*b.pool.n)
		if err != nil {
			panic(err)
		}
		b.scratch, b.scratchLen = s, n
	}
	return floats(b.scratch), C.long(b.scratchLen)
}
