package nccl

/*
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"cmp"
	"fmt"
	"slices"
	"time"
	"unsafe"

	"exp/train/ranks"
)

// Device gives NCCL access to a GPU's backend.
type Device interface {
	// InContext calls f on a thread where the device is the current one, with the device's queue
	// of work, a cudaStream_t.
	InContext(f func(stream unsafe.Pointer))
	// Idle reports whether the queued work has ended, or failed.
	Idle() bool
}

// ID names a communicator. One rank makes it, and the others get it from that one.
type ID []byte

// NewID returns an ID that no other communicator has.
func NewID() (ID, error) {
	id := make(ID, C.XNCCL_ID_BYTES)
	return id, failure("GetUniqueId", C.xnccl_id((*C.char)(unsafe.Pointer(&id[0]))), nil)
}

// Comm is the ranks of a job, each with a GPU of its own. It implements ranks.Link.
type Comm struct {
	dev   Device
	limit time.Duration
	size  int
	comm  *unsafe.Pointer // memory of C, where the library writes later

	failed error // the failure after which the communicator was aborted
}

// Join makes the communicator that id names. All its ranks call Join, with a device each. A
// call that takes longer than limit (0: none) fails, here and in Exchange.
func Join(dev Device, id ID, rank, size int, limit time.Duration) (*Comm, error) {
	c := &Comm{dev: dev, limit: limit, size: size,
		comm: (*unsafe.Pointer)(C.calloc(1, C.size_t(unsafe.Sizeof(uintptr(0)))))}
	var code C.int
	dev.InContext(func(unsafe.Pointer) {
		code = C.xnccl_join(c.comm, C.int(size), (*C.char)(unsafe.Pointer(&id[0])), C.int(rank))
	})
	others := make([]int, 0, size)
	for r := range size {
		if r != rank {
			others = append(others, r)
		}
	}
	if err := c.wait("CommInitRankConfig", code, others, func() bool { return true }); err != nil {
		return nil, err
	}
	return c, nil
}

// Close leaves the communicator. Every rank does so, after the same exchanges.
func (c *Comm) Close() {
	if c.comm == nil {
		return
	}
	c.dev.InContext(func(unsafe.Pointer) { C.xnccl_destroy(*c.comm) })
	c.forget()
}

func (c *Comm) forget() {
	C.free(unsafe.Pointer(c.comm))
	c.comm = nil
}

// Exchange implements ranks.Link: messages of device memory. They follow the work that the
// device has queued. After a failure it returns that failure.
func (c *Comm) Exchange(parts []ranks.Part) error {
	if c.failed != nil {
		return c.failed
	}
	// NCCL has no tags: messages between two ranks match by their order.
	parts = slices.Clone(parts)
	slices.SortStableFunc(parts, func(a, b ranks.Part) int {
		return cmp.Or(cmp.Compare(a.Peer, b.Peer), cmp.Compare(a.Tag, b.Tag))
	})
	var peers []int
	list := make([]C.xnccl_part, 0, len(parts))
	for _, p := range parts {
		if p.Data.IsHost() {
			panic("nccl: a host buffer in an exchange of device memory")
		}
		if p.Data.Empty() {
			continue
		}
		send := C.int(0)
		if p.Send {
			send = 1
		}
		list = append(list, C.xnccl_part{data: p.Data.Addr(), bytes: C.size_t(p.Data.Len() * p.Data.DType().Size()),
			peer: C.int(p.Peer), send: send})
		peers = append(peers, p.Peer)
	}
	if len(list) == 0 {
		return nil
	}
	var code C.int
	c.dev.InContext(func(stream unsafe.Pointer) {
		code = C.xnccl_exchange(*c.comm, &list[0], C.int(len(list)), stream)
	})
	return c.wait("Send and Recv", code, slices.Compact(peers), c.dev.Idle)
}

// ends is how long a rank that lost a peer waits to be ended by the launcher, which knows which
// rank it was.
const ends = 5 * time.Second

// wait waits until the library has begun what a call asked for and the device has done it. After
// a failure or the limit it aborts the communicator, which lets go of the device.
func (c *Comm) wait(op string, code C.int, peers []int, idle func() bool) error {
	start, pause, begun := time.Now(), time.Duration(0), false
	for {
		if code == 0 || code == C.XNCCL_IN_PROGRESS {
			c.dev.InContext(func(unsafe.Pointer) {
				if e := C.xnccl_state(*c.comm, &code); e != 0 {
					code = e
				}
			})
		}
		if code != 0 && code != C.XNCCL_IN_PROGRESS {
			c.abort(failure(op, code, *c.comm))
			if code == C.XNCCL_REMOTE {
				time.Sleep(ends)
			}
			return c.failed
		}
		begun = begun || code == 0
		if begun && idle() {
			return nil
		}
		if took := time.Since(start); c.limit > 0 && took > c.limit {
			c.abort(&ranks.LateError{Peers: peers, Limit: c.limit})
			return c.failed
		}
		if time.Since(start) > time.Millisecond {
			pause = min(pause+10*time.Microsecond, time.Millisecond)
			time.Sleep(pause)
		}
	}
}

// abort ends the communicator after a failure, which later exchanges return.
func (c *Comm) abort(failed error) {
	c.failed = failed
	c.dev.InContext(func(unsafe.Pointer) { C.xnccl_abort(*c.comm) })
	c.forget()
}

// Error is a call of NCCL that failed.
type Error struct {
	Op   string // the function
	Code int
	Text string // what the code means, and what NCCL says of it
}

func (e *Error) Error() string { return fmt.Sprintf("NCCL: %s: %s (code %d)", e.Op, e.Text, e.Code) }

// Broken reports that the ranks cannot exchange anything again.
func (e *Error) Broken() bool { return true }

// Hint says where to look.
func (e *Error) Hint() string { return "NCCL_DEBUG=INFO makes NCCL say more" }

// ExitCode is the code of a lost rank.
func (e *Error) ExitCode() int { return 10 }

func failure(op string, code C.int, comm unsafe.Pointer) error {
	if code == 0 {
		return nil
	}
	text := C.GoString(C.xnccl_meaning(code))
	if last := C.GoString(C.xnccl_last(comm)); last != "" {
		text += ": " + last
	}
	return &Error{Op: op, Code: int(code), Text: text}
}
