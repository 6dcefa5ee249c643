package program

import (
	"context"
	"slices"
	"sync"
)

// slot is the place of one process of a pool. slots guards open and alone, mu the rest.
type slot struct {
	open  int  // requests that have it
	alone bool // the one that has it shares it with no other

	mu sync.Mutex
	x  *exchange // nil before the first request
}

// slots hands out slots to requests, first come, first served. Safe for concurrent use.
type slots struct {
	each int // requests of a slot at once
	all  []*slot

	mu    sync.Mutex
	queue []*turn
}

// turn is a request that waits for a slot.
type turn struct {
	alone bool
	slot  chan *slot // of 1
}

// take waits for a slot, for the request alone if alone. The error is ctx's.
func (s *slots) take(ctx context.Context, alone bool) (*slot, error) {
	t := &turn{alone: alone, slot: make(chan *slot, 1)}
	s.mu.Lock()
	s.queue = append(s.queue, t)
	s.hand()
	s.mu.Unlock()
	select {
	case x := <-t.slot:
		return x, nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.queue, t); i >= 0 {
		s.queue = slices.Delete(s.queue, i, i+1)
	} else {
		(<-t.slot).leave()
	}
	s.hand()
	return nil, ctx.Err()
}

// give takes a slot back.
func (s *slots) give(x *slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x.leave()
	s.hand()
}

// leave ends a request's use of a slot.
func (x *slot) leave() { x.open, x.alone = x.open-1, false }

// hand gives those who wait the emptiest slots, in order. If the first one finds none, all wait: also one who wants a
// slot alone gets it before long.
func (s *slots) hand() {
	for len(s.queue) > 0 {
		t, most := s.queue[0], s.each
		if t.alone {
			most = 1
		}
		var x *slot
		for _, y := range s.all {
			if !y.alone && y.open < most && (x == nil || y.open < x.open) {
				x = y
			}
		}
		if x == nil {
			return
		}
		x.open, x.alone = x.open+1, t.alone
		s.queue = s.queue[1:]
		t.slot <- x
	}
}
