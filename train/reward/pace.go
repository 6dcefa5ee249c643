package reward

import (
	"context"
	"sync"
	"time"
)

// pace spaces out requests. It is safe for concurrent use.
type pace struct {
	now   func() time.Time
	sleep func(ctx context.Context, d time.Duration) error
	rate  float64 // requests per second; 0 means no limit

	mu   sync.Mutex
	free time.Time // when the next request may be sent
}

// wait blocks until a request may be sent.
func (p *pace) wait(ctx context.Context) error {
	p.mu.Lock()
	now := p.now()
	at := p.free
	if at.Before(now) {
		at = now
	}
	if p.rate > 0 {
		p.free = at.Add(time.Duration(float64(time.Second) / p.rate))
	}
	p.mu.Unlock()
	if d := at.Sub(now); d > 0 {
		return p.sleep(ctx, d)
	}
	return ctx.Err()
}

// pause holds back all requests for d.
func (p *pace) pause(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if until := p.now().Add(d); until.After(p.free) {
		p.free = until
	}
}

// sleep waits for d or until ctx is cancelled.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
