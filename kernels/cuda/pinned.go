//go:build cuda

package cuda

/*
#include "device.h"
#include "queue.h"
*/
import "C"

import (
	"fmt"
	"unsafe"

	"exp/kernels"
)

// span is a piece of pinned host memory.
type span struct {
	at    unsafe.Pointer
	bytes int
}

// holds reports whether x lies in the span.
func (s span) holds(x kernels.Buffer) bool {
	from := uintptr(s.at)
	at := uintptr(x.Addr())
	return at >= from && at < from+uintptr(s.bytes)
}

// AllocHost returns n zeroed elements of pinned host memory. The device has the same address for them
// (unified addressing), so that kernels read and write them over the bus.
func (b *Backend) AllocHost(t kernels.DType, n int) (kernels.Buffer, error) {
	if n < 0 {
		panic("cuda: negative length")
	}
	bytes := n * t.Size()
	if bytes == 0 {
		return kernels.NewBuffer(nil, 0, t), nil
	}
	var p unsafe.Pointer
	if code := int(C.device_pin(b.ctx(), &p, C.size_t(bytes))); code != 0 {
		op := fmt.Sprintf("pin %d MiB of host memory", (bytes+1<<20-1)>>20)
		err := errorOf(b.name, op, code)
		if d, ok := err.(*kernels.DeviceError); ok && code == outOfMemory {
			d.Text = "the system gives no more pinned memory"
			d.Help = "free memory of the host, or raise what a process or container may take of it"
		}
		return kernels.Buffer{}, err
	}
	clearHost(p, bytes)
	b.pinned = append(b.pinned, span{p, bytes})
	return kernels.NewBuffer(p, n, t), nil
}

// isPinned reports whether AllocHost returned x, or x is a part of such a buffer.
func (b *Backend) isPinned(x kernels.Buffer) bool {
	for _, s := range b.pinned {
		if s.holds(x) {
			return true
		}
	}
	return false
}

// unpin frees x if AllocHost returned it.
func (b *Backend) unpin(x kernels.Buffer) bool {
	for i, s := range b.pinned {
		if s.at == x.Addr() {
			b.pinned = append(b.pinned[:i], b.pinned[i+1:]...)
			b.drain()
			b.keep("free pinned memory", C.device_unpin(b.ctx(), s.at))
			return true
		}
	}
	return false
}

// copyPinned copies where src or dst is pinned. A copy between pinned and pageable memory is the
// host's work; it waits for the device.
func (b *Backend) copyPinned(dst, src kernels.Buffer) {
	from, to := src.IsHost() || b.isPinned(src), dst.IsHost() || b.isPinned(dst)
	switch {
	case from && to:
		if b.drain(); b.err == nil {
			convert(dst, src)
		}
	case dst.DType() != src.DType():
		b.convert(dst, src)
	case from:
		b.move("copy to the device", C.WORK_UPLOAD, dst, src)
	default:
		b.move("copy to the host", C.WORK_DOWNLOAD, dst, src)
	}
}
