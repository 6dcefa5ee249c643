//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"
)

// executePair runs the program and its checker concurrently in two slots, joined by two pipes. The limits
// apply to each.
func (p *Pool) executePair(ctx context.Context, candidate, checker job) (c, t Run, err error) {
	if p.cfg.Slots < 2 {
		return c, t, errors.New("mode asserts needs two slots: one for the program and one for its tests")
	}
	// Only one goroutine at a time waits for a second slot: the others, who hold one slot each, will give
	// it back.
	p.pairs.Lock()
	first, err := p.take(ctx)
	if err != nil {
		p.pairs.Unlock()
		return c, t, err
	}
	second, err := p.take(ctx)
	p.pairs.Unlock()
	if err != nil {
		p.idle <- first
		return c, t, err
	}
	defer func() { p.idle <- second }()
	defer func() { p.idle <- first }()
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
