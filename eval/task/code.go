package task

import (
	"context"
	"errors"
	"iter"

	"exp/eval/grade/code"
	"exp/eval/layout"
	"exp/eval/rows"
	"exp/sandbox"
	"exp/train/rollout"
)

// Code is the task of writing programs for problems from the published files that package layout reads
// (TACO, LiveCodeBench, DeepCoder, HumanEval and so on) and from the rows that RL trainers derive from
// them. Grading runs the programs.
//
// The reward is Reward.Correct if all tests of a problem pass. With Partial it rises from Reward.Wrong to
// Reward.Correct with the share of tests passed.
type Code struct {
	// Run runs programs. Without it problems can be read but not graded.
	Run code.Runner
	// CPUMS and MemoryMB override the problem's own limits if not 0.
	CPUMS, MemoryMB int64
	Rules           code.Rules // empty: code.Strict
	Partial         bool
}

// ErrNoSandbox is returned by Grade if the task has no sandbox to run programs in.
var ErrNoSandbox = errors.New("grading runs programs and needs a sandbox")

type codeTask struct {
	onlyRead
	cfg    Code
	reward Reward
	grader *code.Grader // nil without a runner
}

func newCode(cfg Code, reward Reward) (*codeTask, error) {
	t := &codeTask{cfg: cfg, reward: reward}
	if cfg.Run == nil {
		return t, nil
	}
	var err error
	if t.grader, err = code.NewGrader(cfg.Run, code.Options{Rules: cfg.Rules, Partial: cfg.Partial}); err != nil {
		return nil, &ConfigError{Key: "task.code.rules", Problem: err.Error()}
	}
	return t, nil
}

// readRows reads rows in any known layout.
func (t *codeTask) readRows(all iter.Seq2[rows.Row, error], from Source) ([]rollout.Problem, layout.Copies, error) {
	return layout.ProgramsAt(all, from.PromptKey)
}

func (t *codeTask) check(p *rollout.Problem) error {
	_, err := code.ProblemOf(p)
	return err
}

// Grade runs the program in the completion. Answer is the program.
func (t *codeTask) Grade(ctx context.Context, p *rollout.Problem, c *rollout.Completion) (rollout.Verdict, error) {
	return t.grade(ctx, p, c.Text)
}

// GradeAll implements rollout.BatchGrader.
func (t *codeTask) GradeAll(ctx context.Context, items []rollout.Item) ([]rollout.Verdict, error) {
	return gradeOnce(ctx, items, t.grade)
}

func (t *codeTask) grade(ctx context.Context, p *rollout.Problem, text string) (rollout.Verdict, error) {
	if t.grader == nil {
		return rollout.Verdict{}, ErrNoSandbox
	}
	problem, err := code.ProblemOf(p)
	if err != nil {
		return rollout.Verdict{}, err
	}
	if t.cfg.CPUMS > 0 {
		// enough wall time for a loaded machine
		problem.Limits.CPUMS, problem.Limits.WallMS = t.cfg.CPUMS, 3*t.cfg.CPUMS+5000
	}
	if t.cfg.MemoryMB > 0 {
		problem.Limits.MemoryMB = t.cfg.MemoryMB
	}
	v, err := t.grader.Response(ctx, problem, text)
	return t.reward.ofProgram(v, v.Program.Text, err)
}

// ofProgram returns the verdict on a program; answer identifies the program. A program that the sandbox
// could not run is not graded.
func (r Reward) ofProgram(v code.Verdict, answer string, err error) (rollout.Verdict, error) {
	var broken *code.InfraError
	switch {
	case errors.As(err, &broken):
		return rollout.Verdict{Reason: broken.Error()}, nil
	case err != nil:
		return rollout.Verdict{}, err
	case v.Status == sandbox.CompileError:
		answer = ""
	}
	out := r.verdict(v.Correct, answer, v.Reason)
	if !v.Correct && v.Score > 0 {
		out.Reward += v.Score * (r.Correct - out.Reward)
	}
	return out, nil
}
