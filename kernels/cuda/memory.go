//go:build cuda

package cuda

/*
#include "args.h"
#include "device.h"
#include "queue.h"
*/
import "C"

import (
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"exp/kernels"
	"exp/kernels/ref"
)

// stagingBytes is the size of the pinned memory that copies between host and device go
// through: at 25 GB/s a millisecond's worth, so that waiting for it to drain costs little.
const stagingBytes = 32 << 20

// arrival is a copy to the host whose bytes are in the staging memory after the next
// synchronisation.
type arrival struct{ dst, staged kernels.Buffer }

// Alloc returns n zeroed elements on the device.
func (b *Backend) Alloc(t kernels.DType, n int) (kernels.Buffer, error) {
	if n < 0 {
		panic("cuda: negative length")
	}
	if n == 0 {
		return kernels.NewBuffer(nil, 0, t), nil
	}
	var p C.CUdeviceptr
	op := fmt.Sprintf("allocate %d MiB", (n*t.Size()+1<<20-1)>>20)
	if err := errorOf(b.name, op, int(C.device_alloc(b.ctx(), &p, C.size_t(n*t.Size())))); err != nil {
		return kernels.Buffer{}, err
	}
	// Through memory, because vet takes a uintptr for a Go pointer. It never is: no device
	// address lies in the Go heap.
	x := kernels.NewBuffer(*(*unsafe.Pointer)(unsafe.Pointer(&p)), n, t)
	b.allocated += int64(bytesOf(x))
	b.peak = max(b.peak, b.allocated)
	b.Zero(x)
	return x, nil
}

// Free frees a buffer from Alloc, after the calls that use it.
func (b *Backend) Free(x kernels.Buffer) {
	if !x.Empty() && b.err == nil && !b.unpin(x) {
		b.allocated -= int64(bytesOf(x))
		if b.wait("free memory"); b.err == nil {
			b.keep("free memory", C.device_free(b.ctx(), address(x)))
		}
	}
}

// Allocated returns the bytes that are allocated and not yet freed.
func (b *Backend) Allocated() int64 { return b.allocated }

// TakePeak returns the largest value of Allocated since the last call, or since Open, and
// starts over. It includes the operations' own workspace.
func (b *Backend) TakePeak() int64 {
	p := b.peak
	b.peak = b.allocated
	return p
}

// Zero sets every element to 0.
func (b *Backend) Zero(x kernels.Buffer) {
	switch {
	case x.Empty() || b.err != nil:
	case b.isPinned(x):
		if b.drain(); b.err == nil {
			clearHost(x.Addr(), bytesOf(x))
		}
	default:
		b.move("zero memory", C.WORK_ZERO, x, kernels.Buffer{})
	}
}

// Add adds src to dst, element by element.
func (b *Backend) Add(dst, src kernels.Buffer) {
	check(src, dst.Len())
	b.launchWide("add", 1, dst.Len(), unsafe.Pointer(&C.struct_add_args{dst: floats(dst), src: floats(src),
		n: C.long(dst.Len())}))
}

// Copy sets dst to src, converting between float types. It reads a host buffer at once, and
// writes one in Sync.
func (b *Backend) Copy(dst, src kernels.Buffer) {
	if dst.Len() != src.Len() {
		panic("cuda: copy of different lengths")
	}
	switch {
	case dst.Empty() || b.err != nil:
	case b.isPinned(dst) || b.isPinned(src):
		b.copyPinned(dst, src)
	case dst.IsHost() && src.IsHost():
		b.drain() // src may be written then
		convert(dst, src)
	case src.IsHost():
		b.upload(dst, src)
	case dst.IsHost():
		b.download(dst, src)
	case dst.DType() == src.DType():
		b.move("copy", C.WORK_COPY, dst, src)
	default:
		b.convert(dst, src)
	}
}

// convert queues a copy between types by a kernel.
func (b *Backend) convert(dst, src kernels.Buffer) {
	n := dst.Len()
	b.launchWide(conversion(dst.DType(), src.DType()), 1, n, unsafe.Pointer(&C.struct_convert_args{dst: dst.Addr(),
		src: src.Addr(), n: C.long(n)}))
}

// conversion returns the kernel that converts between two types.
func conversion(dst, src kernels.DType) string {
	switch name := src.String() + "_to_" + dst.String(); name {
	case "f32_to_f64", "f64_to_f32", "f32_to_bf16", "bf16_to_f32":
		return name
	}
	panic("cuda: copy between types")
}

// upload copies a host buffer to the device in pieces that fit into the staging memory.
func (b *Backend) upload(dst, src kernels.Buffer) {
	for lo, hi := range pieces(dst) {
		staged := b.stage(dst.DType(), hi-lo)
		convert(staged, src.Slice(lo, hi))
		b.move("copy to the device", C.WORK_UPLOAD, dst.Slice(lo, hi), staged)
	}
}

// download copies from the device to staging memory, and leaves the rest to drain.
func (b *Backend) download(dst, src kernels.Buffer) {
	for lo, hi := range pieces(src) {
		staged := b.stage(src.DType(), hi-lo)
		b.move("copy to the host", C.WORK_DOWNLOAD, staged, src.Slice(lo, hi))
		b.arrivals = append(b.arrivals, arrival{dst.Slice(lo, hi), staged})
	}
}

// pieces yields the ranges of x that each fit into the staging memory.
func pieces(x kernels.Buffer) func(yield func(lo, hi int) bool) {
	return func(yield func(lo, hi int) bool) {
		step := stagingBytes / x.DType().Size()
		for lo := 0; lo < x.Len(); lo += step {
			if !yield(lo, min(lo+step, x.Len())) {
				return
			}
		}
	}
}

// stage returns n elements of staging memory, which nothing else uses until the next drain.
func (b *Backend) stage(t kernels.DType, n int) kernels.Buffer {
	const line = 64
	bytes := (n*t.Size() + line - 1) / line * line
	if b.used+bytes > stagingBytes {
		b.drain()
	}
	x := kernels.NewBuffer(unsafe.Add(b.staging, b.used), n, t)
	b.used += bytes
	return x
}

// drain waits for the queued work and hands over what arrived.
func (b *Backend) drain() {
	b.wait("synchronize")
	if b.err == nil {
		for _, a := range b.arrivals {
			convert(a.dst, a.staged)
		}
	}
	b.arrivals, b.used = b.arrivals[:0], 0
}

// Sync waits for all earlier calls. It panics with the error of the first that failed.
func (b *Backend) Sync() {
	b.drain()
	if b.err != nil {
		panic(b.err)
	}
}

// copyThreads bounds the threads that copy within the host's memory. One alone is far slower than the bus, above all
// where it is the first to touch a page.
const copyThreads = 8

// inParts calls f for parts of n elements, in several threads if there are many.
func inParts(n int, f func(lo, hi int)) {
	const part = 1 << 19
	threads := min(copyThreads, runtime.GOMAXPROCS(0), (n+part-1)/part)
	if threads < 2 {
		f(0, n)
		return
	}
	var next atomic.Int64
	var all sync.WaitGroup
	for range threads {
		all.Go(func() {
			for lo := int(next.Add(part)) - part; lo < n; lo = int(next.Add(part)) - part {
				f(lo, min(lo+part, n))
			}
		})
	}
	all.Wait()
}

// convert copies between buffers that the host can address.
func convert(dst, src kernels.Buffer) {
	inParts(dst.Len(), func(lo, hi int) { convertPart(dst.Slice(lo, hi), src.Slice(lo, hi)) })
}

func convertPart(dst, src kernels.Buffer) {
	if dst.DType() == src.DType() {
		copy(unsafe.Slice((*byte)(dst.Addr()), bytesOf(dst)), unsafe.Slice((*byte)(src.Addr()), bytesOf(src)))
		return
	}
	switch conversion(dst.DType(), src.DType()) {
	case "f32_to_f64":
		d := kernels.Elems[float64](dst)
		for i, v := range kernels.Elems[float32](src) {
			d[i] = float64(v)
		}
	case "f64_to_f32":
		d := kernels.Elems[float32](dst)
		for i, v := range kernels.Elems[float64](src) {
			d[i] = float32(v)
		}
	case "f32_to_bf16":
		d := kernels.Bits(dst)
		for i, v := range kernels.Elems[float32](src) {
			d[i] = uint16(math.Float32bits(ref.Round(v)) >> 16)
		}
	case "bf16_to_f32":
		d := kernels.Elems[float32](dst)
		for i, v := range kernels.Bits(src) {
			d[i] = math.Float32frombits(uint32(v) << 16)
		}
	}
}

// clearHost zeroes memory of the host.
func clearHost(p unsafe.Pointer, bytes int) {
	x := unsafe.Slice((*byte)(p), bytes)
	inParts(bytes, func(lo, hi int) { clear(x[lo:hi]) })
}

func bytesOf(x kernels.Buffer) int { return x.Len() * x.DType().Size() }

// scratch returns n float32 for the next operations, until another asks for more. A failure
// is kept, and the buffer is empty then.
func (b *Backend) scratch(n int) kernels.Buffer {
	b.grow(&b.workspace, kernels.F32, n)
	return b.workspace
}

// grow makes room for n elements that no operation under way needs. A failure is kept.
func (b *Backend) grow(room *kernels.Buffer, t kernels.DType, n int) {
	if room.Len() >= n {
		return
	}
	b.Free(*room)
	var err error
	if *room, err = b.Alloc(t, n); err != nil && b.err == nil {
		b.err = &kernels.RoomError{Part: kernels.ScratchRoom, Err: err}
	}
}

// scratchOperands is scratch for n operands, exactly.
func (b *Backend) scratchOperands(n int) kernels.Buffer {
	t := b.Operand()
	room := b.scratch((n*t.Size() + 3) / 4)
	if b.err != nil {
		return kernels.Buffer{}
	}
	return kernels.NewBuffer(room.Addr(), n, t)
}

// floats returns the device address of a float32 buffer, nil if it is empty.
func floats(x kernels.Buffer) *C.float {
	if x.Empty() {
		return nil
	}
	if x.DType() != kernels.F32 || x.IsHost() {
		panic("cuda: want a float32 buffer on the device")
	}
	return (*C.float)(x.Addr())
}

// operand returns a buffer of the Operand type for kernels, and either one of the Operand or the
// Float type. single returns a float32 buffer. An empty buffer has no address.
func (b *Backend) operand(x kernels.Buffer) C.struct_operand {
	if !x.Empty() && x.DType() != b.Operand() {
		panic("cuda: want a buffer of operands")
	}
	return array(x)
}

func (b *Backend) either(x kernels.Buffer) C.struct_operand {
	if x.DType() == kernels.F32 {
		return single(x)
	}
	return b.operand(x)
}

func single(x kernels.Buffer) C.struct_operand {
	return C.struct_operand{at: unsafe.Pointer(floats(x))}
}

// array returns a buffer of float32 or BF16 for kernels.
func array(x kernels.Buffer) C.struct_operand {
	if x.Empty() || x.DType() != kernels.BF16 {
		return single(x)
	}
	if x.IsHost() {
		panic("cuda: a host buffer in a device operation")
	}
	return C.struct_operand{at: x.Addr(), bf16: 1}
}

// ints returns the device address of an int32 buffer, nil if it is empty.
func ints(x kernels.Buffer) *C.int {
	if x.Empty() {
		return nil
	}
	if x.DType() != kernels.I32 || x.IsHost() {
		panic("cuda: want an int32 buffer on the device")
	}
	return (*C.int)(x.Addr())
}
