package cpu

/*
#include "args.h"
static inline void call(kernel k, const void *args, long lo, long hi, int tid) { k(args, lo, hi, tid); }
*/
import "C"

import (
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"
)

// pool is the only pool of threads: the caller and n-1 goroutines locked to their
// threads. A job is a number of units in chunks; threads take chunks until none
// is left. Which thread computes a unit never changes its bits.
//
// state holds the job's number in its upper half and the chunks that nobody has
// taken yet in its lower half. A thread that takes a chunk by compare-and-swap
// knows that the job is the one it saw and cannot end before the chunk is done;
// so it may read the job's fields, which only the owner writes, between jobs.
type pool struct {
	n     int
	state atomic.Uint64
	done  atomic.Int64

	fn     C.kernel
	args   unsafe.Pointer
	goFn   func(lo, hi int)
	units  int
	grain  int
	chunks int

	sleepers atomic.Int64
	wake     chan struct{}
	closed   atomic.Bool
	wg       sync.WaitGroup
}

// spins is how often a thread looks for work before it sleeps: some ten
// microseconds, longer than the gap between two operations and shorter than
// anybody notices.
const spins = 20000

func newPool(n int) *pool {
	p := &pool{n: n, wake: make(chan struct{}, n)}
	for tid := 1; tid < n; tid++ {
		p.wg.Add(1)
		go p.serve(tid)
	}
	return p
}

func (p *pool) close() {
	p.closed.Store(true)
	close(p.wake)
	p.wg.Wait()
}

// run calls fn for units 0..units-1, about grain at a time.
func (p *pool) run(fn C.kernel, args unsafe.Pointer, units, grain int) {
	if units <= 0 {
		return
	}
	p.fn, p.args, p.goFn = fn, args, nil
	p.start(units, grain)
}

// runGo is run for a Go function.
func (p *pool) runGo(fn func(lo, hi int), units, grain int) {
	if units <= 0 {
		return
	}
	p.goFn = fn
	p.start(units, grain)
	p.goFn = nil
}

func (p *pool) start(units, grain int) {
	grain = max(grain, 1)
	p.units, p.grain = units, grain
	p.chunks = (units + grain - 1) / grain
	if p.n == 1 || p.chunks == 1 {
		p.work(0, units, 0)
		return
	}
	p.done.Store(0)
	job := p.state.Load()>>32 + 1
	p.state.Store(job<<32 | uint64(p.chunks))
	for k := min(p.sleepers.Load(), int64(p.chunks-1)); k > 0; k-- {
		select {
		case p.wake <- struct{}{}:
		default:
		}
	}
	for p.take(0) {
	}
	for i := 0; p.done.Load() < int64(p.chunks); i++ {
		if i > spins {
			runtime.Gosched()
		}
	}
}

// take runs one chunk and reports whether there was one.
func (p *pool) take(tid int) bool {
	s := p.state.Load()
	left := uint32(s)
	if left == 0 {
		return false
	}
	if !p.state.CompareAndSwap(s, s-1) {
		return true // somebody else took it: look again
	}
	lo := (p.chunks - int(left)) * p.grain
	p.work(lo, min(lo+p.grain, p.units), tid)
	p.done.Add(1)
	return true
}

func (p *pool) work(lo, hi, tid int) {
	if p.goFn != nil {
		p.goFn(lo, hi)
		return
	}
	C.call(p.fn, p.args, C.long(lo), C.long(hi), C.int(tid))
}

func (p *pool) serve(tid int) {
	defer p.wg.Done()
	runtime.LockOSThread()
	for {
		for i := 0; i < spins; i++ {
			if p.take(tid) {
				i = 0
			} else if i%1024 == 1023 {
				runtime.Gosched() // more threads than processors must not starve the caller
			}
		}
		p.sleepers.Add(1)
		if uint32(p.state.Load()) == 0 {
			<-p.wake
		}
		p.sleepers.Add(-1)
		if p.closed.Load() {
			return
		}
	}
}
