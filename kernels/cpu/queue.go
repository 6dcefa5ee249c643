package cpu

/*
#include <stdlib.h>
#include "queue.h"
*/
import "C"

import (
	"slices"
	"unsafe"

	"exp/kernels"
)

// queue holds calls of row-wise operations on the same rows until another kind of call
// comes or the host reads memory (Backend.flush). Then they run together: a thread takes
// the next block of rows of an operation as soon as the operation before has finished
// that block, wherever the other threads are, so that no thread waits at the end of each
// operation. Norms, rotations and copies follow a product block by block, while its rows
// are in the caches.
//
// The queue changes no result. A call that writes memory of a queued call, or uses memory
// that one writes, other than row for row, runs the queue first; see conflict.
type queue struct {
	c       *C.struct_queue
	threads int
	strip   int // rows that a product takes at a time

	m      int // rows of every call
	blocks int
	ops    int
	jobs   int    // see queue.h
	work   int    // see rowCall, work and other
	near   *C.int // rowCall.near of the last product
	spans  []span // memory that the calls use
	stored []stored
	room   kernels.Buffer // holds c.see and c.done

	stores []pageStores // by page, while sees runs
	asked  []question
	answer [C.QUEUE_SEES]queueWait // to each of asked
}

// use is a buffer of a call, and what the call does with it.
type use struct {
	b   kernels.Buffer
	how how
}

// how is a set of flags.
type how uint8

const (
	reads  how = 0
	writes how = 1 << (iota - 1) // and may read
	byRow                        // row m of the call uses only the m-th part of the buffer
	paged                        // the buffer holds the keys or values of pages
)

// span is memory that a call uses.
type span struct {
	lo, hi uintptr
	how    how
}

// rowCall is a call that may be queued.
type rowCall struct {
	kernel C.kernel
	args   unsafe.Pointer
	size   uintptr   // of args
	m      int       // rows
	perRow int       // the kernel's units per row; 0: units are blocks of rows from queue.share
	now    bool      // a product that is not queued
	units  int       // with now: the number of units
	grain  int       // units at a time outside the queue
	work   int       // multiply-adds of a product
	other  int       // other work, in multiply-adds that take as long
	joins  bool      // runs right after the call before it in the queue, block by block
	wait   queueWait // waits for this, and for the call before it to finish the same rows
	seeing int       // the question that wait answers
	near   *C.int    // flag in args, set if another call joins
}

// queueWait is enum queue_wait.
type queueWait = C.enum_queue_wait

const (
	afterNone    queueWait = C.AFTER_NONE
	afterEarlier queueWait = C.AFTER_EARLIER
	afterAll     queueWait = C.AFTER_ALL
)

// queueWork is about how many multiply-adds run together: some milliseconds. After 10 ms in C,
// Go's scheduler preempts a call.
const queueWork = 1 << 29

// newQueue returns a queue for a number of threads and for products that take strip rows at a
// time; tiles is set in class "cpu/bf16".
func newQueue(threads, strip int, tiles bool) *queue {
	q := &queue{c: (*C.struct_queue)(C.calloc(1, C.sizeof_struct_queue)), threads: threads, strip: strip}
	if tiles {
		q.c.tiles = 1
	}
	return q
}

// longCall is the number of multiply-adds from which a call is not queued. The wait at its end is
// relatively short, and its weights may be large: in the queue a thread would read the other
// calls' weights between two of its blocks of rows.
const longCall = 1 << 27

// takes reports whether to queue calls of m rows and work multiply-adds: if they are short and
// blocks of rows give every thread enough to do.
func (q *queue) takes(m, work int) bool {
	return q.threads > 1 && work < longCall && ceilDiv(m, q.strip) >= 4*q.threads
}

// row returns the first row of a block.
func (q *queue) row(block int) int { return int(C.queue_row(q.c, C.long(block))) }

// share returns the blocks of m rows.
func (q *queue) share(m int) C.struct_row_blocks {
	return blocksOfRows(ceilDiv(m, q.strip), queueStrips, q.threads)
}

// queueStrips is the most strips of rows in a block.
const queueStrips = 10

// queued queues a call, or runs it at once if the queue does not take it.
func (b *Backend) queued(c rowCall, uses ...use) {
	q := b.queue
	if c.size > C.sizeof_union_row_args {
		panic("cpu: arguments that are not in row_args")
	}
	if c.perRow > 0 {
		c.now, c.units = !q.takes(c.m, 0), c.m*c.perRow
	}
	if c.now {
		b.run(c.kernel, c.args, c.units, c.grain)
		return
	}
	if q.ops > 0 && (c.m != q.m || q.ops == C.QUEUE_OPS || q.work > queueWork && !c.joins || q.conflict(uses)) {
		b.flush()
	}
	if q.ops == 0 {
		b.startQueue(c.m)
		c.wait = afterNone // the call it waited for has run
	}
	for _, u := range uses {
		q.note(u)
	}
	if c.joins && q.ops > 0 {
		if q.near != nil {
			*q.near = 1
		}
	} else {
		q.c.first[q.jobs], q.c.wait[q.jobs], q.c.seeing[q.jobs] = C.long(q.ops), C.char(c.wait), C.char(c.seeing)
		q.jobs++
		q.near = nil
	}
	o := &q.c.op[q.ops]
	o.fn, o.per_row = c.kernel, C.long(c.perRow)
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&o.args)), C.sizeof_union_row_args),
		unsafe.Slice((*byte)(c.args), c.size))
	if c.near != nil {
		q.near = (*C.int)(unsafe.Add(unsafe.Pointer(&o.args), uintptr(unsafe.Pointer(c.near))-uintptr(c.args)))
	}
	q.ops++
	q.work += c.work + c.other
}

// run runs the queue, then a kernel on all units, about grain at a time.
func (b *Backend) run(kernel C.kernel, args unsafe.Pointer, units, grain int) {
	b.flush()
	b.pool.run(kernel, args, units, grain)
}

// runGo is run for a Go function.
func (b *Backend) runGo(fn func(lo, hi int), units, grain int) {
	b.flush()
	b.pool.runGo(fn, units, grain)
}

// startQueue makes room for calls of m rows.
func (b *Backend) startQueue(m int) {
	q := b.queue
	shares := q.share(m)
	blocks := rowBlocks(shares)
	size := C.QUEUE_SEES*blocks + ceilDiv(C.QUEUE_OPS*blocks, 4)
	b.grow(&q.room, kernels.I32, size, size)
	q.m, q.blocks = m, blocks
	q.c.rows, q.c.m, q.c.blocks = shares, C.long(m), C.long(blocks)
	q.c.see, q.c.done = ints(q.room), (*C.char)(q.room.Slice(C.QUEUE_SEES*blocks, size).Addr())
}

// flush runs the queued calls.
func (b *Backend) flush() {
	q := b.queue
	if q.ops == 0 {
		return
	}
	q.c.first[q.jobs] = C.long(q.ops)
	whole := int(q.c.rows.large)
	q.c.waits = 0
	for _, wait := range q.c.wait[:q.jobs] {
		if wait != C.char(afterNone) {
			q.c.waits = 1
		}
		if wait == C.char(afterAll) {
			whole = 0
		}
	}
	q.c.jobs, q.c.whole = C.long(q.jobs), C.long(whole)
	clear(unsafe.Slice(q.c.done, q.jobs*q.blocks))
	parted := q.jobs * (q.blocks - whole)
	q.ops, q.jobs, q.work, q.near = 0, 0, 0, nil
	q.spans, q.stored, q.asked = q.spans[:0], q.stored[:0], q.asked[:0]
	b.pool.run(C.kernel(C.queue_run), unsafe.Pointer(q.c), whole+parted, 1)
}

func (u use) span() span {
	lo := uintptr(u.b.Addr())
	return span{lo, lo + uintptr(u.b.Len()*u.b.DType().Size()), u.how}
}

// conflict reports whether a call on as many rows must not run together with the queued ones: in
// another block of rows it could use memory they write, or write memory they use. PagedAttention
// may read what AppendKV stores, see queue.wait.
func (q *queue) conflict(uses []use) bool {
	for _, u := range uses {
		if u.b.Empty() {
			continue
		}
		n := u.span()
		for i := range q.spans {
			s := &q.spans[i]
			if n.hi <= s.lo || s.hi <= n.lo || (n.how|s.how)&writes == 0 {
				continue
			}
			alike := n.lo == s.lo && n.hi == s.hi
			switch {
			case alike && n.how&s.how&byRow != 0:
			case alike && n.how&s.how&paged != 0 && n.how&writes == 0:
			default:
				return true
			}
		}
	}
	return false
}

// note adds a call's memory to the spans.
func (q *queue) note(u use) {
	if u.b.Empty() {
		return
	}
	n := u.span()
	for i := range q.spans {
		if s := &q.spans[i]; s.lo == n.lo && s.hi == n.hi && s.how&^writes == n.how&^writes {
			s.how |= n.how
			return
		}
	}
	q.spans = append(q.spans, n)
}

// stored is a call of AppendKV in the queue.
type stored struct {
	keys  unsafe.Pointer // of the pages
	slots kernels.Buffer
}

// foldAppend lets PagedAttention, the last call in the queue, do the work of the AppendKV just
// before it, row by row, so that a page's lines are in the caches when it reads them. It does not
// if a row needs keys that later rows store.
func (b *Backend) foldAppend(p kernels.Pages, qkv kernels.Buffer) {
	q := b.queue
	if q.ops < 2 || q.c.wait[q.jobs-1] == C.char(afterAll) || q.c.op[q.ops-2].fn != b.k.append_kv {
		return
	}
	from := (*C.struct_append_args)(unsafe.Pointer(&q.c.op[q.ops-2].args))
	if from.keys != p.Keys.Addr() || from.qkv != qkv.Addr() {
		return
	}
	to := unsafe.Pointer(&q.c.op[q.ops-1].args)
	if b.tiles != nil {
		(*C.struct_tile_attention_args)(to).slots = from.slots
	} else {
		(*C.struct_attention_args)(to).slots = from.slots
	}
	q.c.op[q.ops-2].fn = nil
}

// question is the arguments of a call of queue.wait.
type question struct {
	slots, seq, pos, ahead, table unsafe.Pointer
	rows, size                    int
	width, window                 int
}

// wait returns which blocks of rows PagedAttention must wait for: those with keys that a row
// sees and that the queued AppendKV stores. In a prompt they are earlier blocks; a row that sees
// keys of a later row waits for all. seeing is the question's index in q.asked.
func (q *queue) wait(p kernels.Pages, table, seq, pos kernels.Buffer, width int,
	s kernels.AttentionShape) (wait queueWait, seeing int) {
	i := slices.IndexFunc(q.stored, func(s stored) bool { return s.keys == p.Keys.Addr() })
	if i < 0 {
		return afterNone, 0
	}
	slots := q.stored[i].slots
	// All layers in a queue ask the same question, or one with a window and one without. The
	// buffers have not changed since, because Copy flushes the queue.
	ask := question{slots.Addr(), seq.Addr(), pos.Addr(), s.Ahead.Addr(), table.Addr(), pos.Len(), p.Size, width,
		window(s)}
	seeing = slices.Index(q.asked, ask)
	if seeing < 0 {
		seeing = len(q.asked)
		if seeing == len(q.answer) {
			return afterAll, 0 // q.c.see is full
		}
		q.asked = append(q.asked, ask)
		q.answer[seeing] = q.sees(seeing, kernels.Elems[int32](slots), kernels.Elems[int32](table),
			kernels.Elems[int32](seq), kernels.Elems[int32](pos), aheadOf(s), p.Keys.Len()/(s.K*s.D*p.Size))
	}
	return q.answer[seeing], seeing
}

// aheadOf returns how many rows behind it each row sees, none if no row sees any.
func aheadOf(s kernels.AttentionShape) []int32 {
	if s.Ahead.Empty() {
		return nil
	}
	return kernels.Elems[int32](s.Ahead)
}

// keeps remembers where AppendKV stores keys and values, if it is queued.
func (q *queue) keeps(p kernels.Pages, slots kernels.Buffer) {
	if q.ops > 0 {
		q.stored = append(q.stored, stored{p.Keys.Addr(), slots})
	}
}

// pageStores are the rows that store into a page.
type pageStores struct {
	first int32 // 1 + the first of them; 0: none
	next  int32 // 1 + the least position in the page that rows after the current one store; 0: none
}

// sees answers question n, about a cache of that many pages, and sets q.c.see. It does not look
// before a row's window, where the table need not name pages.
func (q *queue) sees(n int, slots, table, seq, pos, ahead []int32, pages int) queueWait {
	width, size, window := q.asked[n].width, q.asked[n].size, q.asked[n].window
	if len(slots) != len(pos) {
		return afterAll
	}
	if len(q.stores) < pages {
		q.stores = make([]pageStores, pages)
	}
	for _, s := range slots {
		if s < 0 || int(s)/size >= pages {
			panic("cpu: no such page")
		}
	}
	defer func() {
		for _, s := range slots {
			q.stores[int(s)/size] = pageStores{}
		}
	}()
	for m, s := range slices.Backward(slots) {
		q.stores[int(s)/size].first = int32(m + 1)
	}
	see := unsafe.Slice((*int32)(q.c.see), C.QUEUE_SEES*q.blocks)[n*q.blocks:]
	wait := afterNone
	for b := q.blocks - 1; b >= 0; b-- {
		lo, hi := q.row(b), q.row(b+1)
		first := lo // first row that this block sees
		for m := hi - 1; m >= lo; m-- {
			end := int(pos[m]) // last position that the row sees
			if len(ahead) > 0 {
				end += int(ahead[m])
			}
			oldest, last := max(0, int(pos[m])+1-window)/size, end/size
			for i, page := range table[int(seq[m])*width+oldest : int(seq[m])*width+last+1] {
				s := &q.stores[page]
				if s.next != 0 && (oldest+i < last || int(s.next-1) <= end%size) {
					return afterAll
				}
				if s.first != 0 {
					first = min(first, int(s.first-1))
				}
			}
			at := int32(int(slots[m])%size + 1)
			if s := &q.stores[int(slots[m])/size]; s.next == 0 || s.next > at {
				s.next = at
			}
		}
		see[b] = int32(b)
		for see[b] > 0 && first < q.row(int(see[b])) {
			see[b]--
			wait = afterEarlier
		}
	}
	return wait
}
