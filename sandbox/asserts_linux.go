//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"
)

// takePair waits for two seats; release gives them back. A pool of one slot starts a second one until
// then.
func (p *Pool) takePair(ctx context.Context) (first, second seat, release func(), err error) {
	// Only one goroutine at a time waits for a second slot: the others, who hold one slot each, will give
	// it back.
	p.pairs.Lock()
	defer p.pairs.Unlock()
	if first, err = p.take(ctx); err != nil {
		return nil, nil, nil, err
	}
	if p.cfg.Slots > 1 {
		second, err = p.take(ctx)
		release = func() { p.idle <- first; p.idle <- second }
	} else {
		second, err = p.newSeat()
		release = func() {
			if err := second.close(); err != nil {
				p.broke(err)
			}
			p.idle <- first
		}
	}
	if err != nil {
		p.idle <- first
	}
	return first, second, release, err
}

// executePair runs the program and its checker concurrently in two slots, joined by two pipes. The limits
// apply to each.
func (p *Pool) executePair(ctx context.Context, candidate, checker job) (c, t Run, err error) {
	first, second, release, err := p.takePair(ctx)
	if err != nil {
		return c, t, err
	}
	defer release()
	for range 2 {
		var calls, replies [2]int
		if err := unix.Pipe2(calls[:], unix.O_CLOEXEC); err != nil {
			return c, t, err
		}
		if err := unix.Pipe2(replies[:], unix.O_CLOEXEC); err != nil {
			closeAll(calls[:])
			return c, t, err
		}
		candidate.channel, checker.channel = []int{calls[0], replies[1]}, []int{replies[0], calls[1]}
		both, stop := context.WithCancel(ctx)
		failed := make(chan error, 1)
		go func() {
			var err error
			t, err = p.inSlot(both, second, checker)
			if err != nil {
				stop()
			}
			failed <- err
		}()
		var candidateErr error
		if c, candidateErr = p.inSlot(both, first, candidate); candidateErr != nil {
			stop()
		}
		err = errors.Join(candidateErr, <-failed)
		stop()
		if err == nil || ctx.Err() != nil {
			return c, t, err
		}
		p.broke(err)
	}
	return c, t, err
}
