package stage

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"exp/eval/task"
	"exp/harness/config"
	"exp/harness/dataset"
	"exp/sandbox"
	"exp/train/rollout"
)

// SandboxConfig says how a run's programs are run: as many at once as there are cores, by python3,
// at least at the required level.
func SandboxConfig(c *config.Run) sandbox.Config {
	return sandbox.Config{Require: sandbox.Level(c.Sandbox.Require), CompileMS: int64(c.Sandbox.Compile) * 1000}
}

// newTask makes the task's grader, with a sandbox if grading runs programs; end closes it. If the
// sandbox cannot be used the error is a *sandbox.LevelError.
func (e *Env) newTask(ctx context.Context) (g rollout.Grader, end func() error, err error) {
	cfg := dataset.TaskConfig(e.run())
	end = func() error { return nil }
	if task.RunsPrograms(cfg.Parts()...) {
		pool, err := sandbox.Open(ctx, e.gradingSandbox())
		if err != nil {
			return nil, nil, err
		}
		cfg.Code.Run, end = pool, pool.Close
	}
	g, err = task.GraderOf(cfg, func(kind string, g rollout.Grader) (rollout.Grader, error) {
		name, _ := e.run().Task.GraderOf(kind)
		return e.inTurns(name, g)
	})
	if err != nil {
		return nil, nil, errors.Join(err, end())
	}
	return e.heeds(e.gradesWritten(g)), end, nil
}

// gradingSandbox is SandboxConfig for grading. Ranks that grade at the same time have a rank's share of the cores.
func (e *Env) gradingSandbox() sandbox.Config {
	c := SandboxConfig(e.run())
	if w := e.crew(); w.Ranks > 1 && (e.run().Reward.ByTask() || w.Judges(e.run()) > 1) {
		c.Slots = e.run().Compute.Threads
		c.First = uint64(e.Before * c.Slots)
	}
	return c
}

// toolSlots is the number of the first slot that runs programs of the policy's while others grade.
const toolSlots = 1 << 20

// sameLines is how often a program's line on standard error is shown: a program that fails on every row says the same
// each time that it is started again.
const sameLines = 3

// stderrLines shows the lines that programs write to standard error, each sameLines times. Its methods may be called
// at the same time.
type stderrLines struct {
	show func(line string)

	mu    sync.Mutex
	times map[string]int
}

// add shows a line unless it has been shown often enough.
func (s *stderrLines) add(line string) {
	s.mu.Lock()
	if s.times == nil {
		s.times = map[string]int{}
	}
	s.times[line]++
	n := s.times[line]
	s.mu.Unlock()
	switch {
	case n < sameLines:
		s.show(line)
	case n == sameLines:
		s.show(fmt.Sprintf("%s (the same line is not shown again)", line))
	}
}
