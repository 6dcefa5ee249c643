package ranks

import (
	"errors"
	"sync"
	"unsafe"

	"exp/kernels"
)

// InProcess returns the ranks of a group within this process, one for each goroutine that
// computes a rank. They are for tests: messages are copied twice and wait without limit.
func InProcess(size int) []*Local {
	w := &world{waiting: map[route][][]byte{}}
	w.arrived.L = &w.mu
	list := make([]*Local, size)
	for r := range list {
		list[r] = &Local{world: w, rank: r, size: size}
	}
	return list
}

// world carries the messages of ranks within a process.
type world struct {
	mu      sync.Mutex
	arrived sync.Cond
	waiting map[route][][]byte
	lost    bool
}

// route identifies a message.
type route struct{ from, to, tag int }

// Local is a rank within this process.
type Local struct {
	world      *world
	rank, size int
}

// Rank implements Group.
func (l *Local) Rank() int { return l.rank }

// Size implements Group.
func (l *Local) Size() int { return l.size }

// errLost is returned by exchanges after a rank has closed its group.
var errLost = errors.New("a rank is lost")

// Exchange implements Group.
func (l *Local) Exchange(parts []Part) error {
	w := l.world
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range parts {
		if p.Send {
			at := route{l.rank, p.Peer, p.Tag}
			w.waiting[at] = append(w.waiting[at], append([]byte(nil), bytesOf(p.Data)...))
		}
	}
	w.arrived.Broadcast()
	for _, p := range parts {
		if p.Send {
			continue
		}
		at := route{p.Peer, l.rank, p.Tag}
		for len(w.waiting[at]) == 0 {
			if w.lost {
				return errLost
			}
			w.arrived.Wait()
		}
		got := w.waiting[at][0]
		w.waiting[at] = w.waiting[at][1:]
		if len(got) != len(bytesOf(p.Data)) {
			panic("ranks: a message has another length than its receiver expects")
		}
		copy(bytesOf(p.Data), got)
	}
	return nil
}

// Close ends the group: exchanges of other ranks that wait for this one fail.
func (l *Local) Close() {
	l.world.mu.Lock()
	defer l.world.mu.Unlock()
	l.world.lost = true
	l.world.arrived.Broadcast()
}

// bytesOf returns the memory of a buffer that the host can read.
func bytesOf(b kernels.Buffer) []byte {
	if b.Empty() {
		return nil
	}
	return unsafe.Slice((*byte)(b.Addr()), b.Len()*b.DType().Size())
}
