package stage

import (
	"context"
	"errors"

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
		pool, err := sandbox.Open(ctx, SandboxConfig(e.run()))
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
