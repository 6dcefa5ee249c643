package train

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"exp/train/ranks"
	"exp/train/rollout"
)

// A rank that only samples waits for one that learns before it begins, or saves, for as long as that takes.
func TestSlowLearner(t *testing.T) {
	const limit = 600 * time.Millisecond
	for _, tt := range []struct {
		name string
		slow func(r *toyRun) error
	}{
		{"begins", func(r *toyRun) error {
			if !r.trainer.onlySamples() {
				time.Sleep(limit + limit/4)
			}
			return nil
		}},
		{"saves", func(r *toyRun) error {
			return r.trainer.WithBuffers(func([]NamedBuffer) error {
				time.Sleep(limit + limit/4)
				return nil
			})
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			toys, groups := make([]*toyRun, 2), ranks.InProcess(2)
			for i := range toys {
				r := samplerCases(t)["FlowRL"]()
				g := &impatient{Local: groups[i], limit: limit}
				toys[i], r.ranks, r.samplers = r, g, 1
				r.wait = func(on bool) { g.lifted = on }
				r.cfg.Steps = 2
			}
			startAll(t, toys)
			inParallel(t, toys, func(r *toyRun) error {
				if err := tt.slow(r); err != nil {
					return err
				}
				return r.trainer.Run(context.Background(), nil)
			})
		})
	}
}

// An error of the first rank while it saves ends all ranks.
func TestSaveFailsOnAllRanks(t *testing.T) {
	full := errors.New("the disk is full")
	inParallel(t, startApart(t, 3, 1, samplerCases(t)["FlowRL"]), func(r *toyRun) error {
		if err := r.trainer.WithBuffers(func([]NamedBuffer) error { return full }); err == nil {
			return fmt.Errorf("rank %d: no error", r.ranks.Rank())
		}
		return nil
	})
}

// strict is a group whose exchanges end after a limit, unless it is lifted. After one that ended so there must be no
// other.
type strict struct {
	*ranks.Local
	t            *testing.T
	limit        time.Duration
	lifted, late bool
}

func (g *strict) Exchange(parts []ranks.Part) error {
	if g.late {
		g.t.Error("an exchange after one that was late")
	}
	if g.lifted {
		return g.Local.Exchange(parts)
	}
	done := make(chan error, 1)
	go func() { done <- g.Local.Exchange(parts) }()
	select {
	case err := <-done:
		return err
	case <-time.After(g.limit):
		g.late = true
		return &ranks.LateError{Limit: g.limit}
	}
}

// If a sampler never answers, the one that waited for it until the limit ends and does not wait for all ranks
// to meet.
func TestStuckSampler(t *testing.T) {
	const limit = 600 * time.Millisecond
	toys, groups := make([]*toyRun, 3), ranks.InProcess(3)
	awake := make(chan bool)
	for i := range toys {
		r := samplerCases(t)["FlowRL"]()
		g := &strict{t: t, Local: groups[i], limit: limit}
		toys[i], r.ranks, r.samplers = r, g, 2
		r.wait = func(on bool) { g.lifted = on }
		grade, stuck := r.grade, i == 2
		r.grade = func(p *rollout.Problem, c *rollout.Completion) rollout.Verdict {
			if stuck {
				<-awake
			}
			return grade(p, c)
		}
	}
	startAll(t, toys)
	ended := make(chan error, 1)
	var done sync.WaitGroup
	for i, r := range toys {
		done.Go(func() {
			err := r.trainer.Run(context.Background(), nil)
			if i == 1 {
				ended <- err
			}
		})
	}
	var late *ranks.LateError
	select {
	case err := <-ended:
		if !errors.As(err, &late) {
			t.Errorf("Run = %v, want a *LateError", err)
		}
	case <-time.After(20 * limit):
		t.Error("a rank waits for one that never answers")
	}
	groups[1].Close()
	close(awake)
	done.Wait()
}
