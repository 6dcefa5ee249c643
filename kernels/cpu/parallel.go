package cpu

/*
#include "pool.h"
*/
import "C"

import (
	"fmt"
	"runtime"
	"sync"
	"time"
	"unsafe"
)

// pool divides operations among threads: C kernels among C threads (pool.h), the few Go
// functions among goroutines. It has one caller at a time.
type pool struct {
	n       int
	c       *C.struct_pool
	yielded time.Time
}

func newPool(n int) (*pool, error) {
	c, err := C.pool_open(C.int(n))
	if c == nil {
		return nil, fmt.Errorf("cannot start %d threads: %w; ask for fewer", n, err)
	}
	return &pool{n: n, c: c}, nil
}

func (p *pool) close() { C.pool_close(p.c) }

// yieldEvery is less than the 10 ms after which Go's scheduler preempts a goroutine. Once it
// has preempted one that is mostly in C, it polls every 20 µs on a core that computes, which
// costs a tenth of the sampled tokens.
const yieldEvery = 5 * time.Millisecond

// run calls fn for units 0..units-1, about grain at a time.
func (p *pool) run(fn C.kernel, args unsafe.Pointer, units, grain int) {
	if units <= 0 {
		return
	}
	C.pool_run(p.c, fn, args, C.long(units), C.long(max(grain, 1)))
	if t := time.Now(); t.Sub(p.yielded) > yieldEvery {
		p.yielded = t
		runtime.Gosched()
	}
}

// runGo is run for a Go function. It takes grain units at a time, or more if that keeps all
// threads busy.
func (p *pool) runGo(fn func(lo, hi int), units, grain int) {
	if grain = max(grain, ceilDiv(units, p.n)); grain < units {
		p.share(fn, units, grain)
	} else if units > 0 {
		fn(0, units)
	}
}

// share calls fn on goroutines, grain units at a time.
func (p *pool) share(fn func(lo, hi int), units, grain int) {
	var others sync.WaitGroup
	for lo := grain; lo < units; lo += grain {
		others.Go(func() { fn(lo, min(lo+grain, units)) })
	}
	fn(0, grain)
	others.Wait()
}
