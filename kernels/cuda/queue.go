//go:build cuda

package cuda

/*
#include "queue.h"
*/
import "C"

import (
	"unsafe"

	"exp/kernels"
)

// Work waits in memory until there is a batch of it, or until something needs the device, and goes there by
// one call of C.

// blockThreads is the number of threads in a block: a multiple of a warp, and enough to hide
// the latency of memory.
const blockThreads = 256

// launch queues a kernel on n threads or a few more. args points to its structure of arguments.
func (b *Backend) launch(name string, n int, args unsafe.Pointer) {
	b.launchBlocks(name, (n+blockThreads-1)/blockThreads, blockThreads, args)
}

// launchWide queues a kernel on a thread for each chunk of rows of some width.
func (b *Backend) launchWide(name string, rows, width int, args unsafe.Pointer) {
	b.launch(name, rows*pitch(width)/chunk, args)
}

// launchBlocks queues a kernel on blocks of some threads.
func (b *Backend) launchBlocks(name string, blocks, threads int, args unsafe.Pointer) {
	b.launchShared(name, blocks, threads, 0, args)
}

// launchShared queues a kernel whose blocks get `shared` bytes of memory.
func (b *Backend) launchShared(name string, blocks, threads, shared int, args unsafe.Pointer) {
	if b.err != nil { // of a module, perhaps, which does not have the kernel then
		return
	}
	k, ok := b.kernels[name]
	if !ok {
		panic("cuda: no kernel " + name)
	}
	if blocks == 0 {
		return
	}
	w := b.enqueue(name, C.WORK_LAUNCH)
	if w == nil {
		return
	}
	w.f, w.bytes = k.function, C.size_t(k.bytes)
	w.blocks, w.threads, w.shared = C.uint(blocks), C.uint(threads), C.uint(shared)
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&w.args)), k.bytes), unsafe.Slice((*byte)(args), k.bytes))
}

// move queues a copy of memory, or a zeroing. The device and pinned memory have one space of addresses.
func (b *Backend) move(op string, kind C.int, dst, src kernels.Buffer) {
	if w := b.enqueue(op, kind); w != nil {
		w.to, w.from, w.bytes = place(dst), place(src), C.size_t(bytesOf(dst))
	}
}

func place(x kernels.Buffer) C.CUdeviceptr { return C.CUdeviceptr(uintptr(x.Addr())) }

// enqueue returns room for the next work, nil after a failure. A full queue goes to the device first.
func (b *Backend) enqueue(op string, kind C.int) *C.struct_work {
	if b.err == nil && b.queued.length == C.QUEUE_WORK {
		b.submit()
	}
	if b.err != nil {
		return nil
	}
	w := &b.queued.work[b.queued.length]
	b.names[b.queued.length] = op
	b.queued.length++
	w.kind = kind
	return w
}

// submit gives the queued work to the device.
func (b *Backend) submit() { b.run("", 0) }

// wait is submit, and waits for all work. A failure that the device reports then is that of op.
func (b *Backend) wait(op string) { b.run(op, 1) }

func (b *Backend) run(op string, wait C.int) {
	var failed C.int
	n := b.queued.length
	code := C.device_run(b.queued, wait, &failed)
	if failed < n {
		op = b.names[failed]
	}
	b.keep(op, code)
}
