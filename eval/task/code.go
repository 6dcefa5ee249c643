package task

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"exp/eval/codefile"
	"exp/eval/grade/code"
	"exp/eval/layout"
	"exp/eval/rows"
	"exp/sandbox"
	"exp/train/rollout"
)

// Code is the task of writing programs for problems from the published files that package codefile reads
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

// Alphabet is empty: the problems are for models with their own tokenizer.
func (t *codeTask) Alphabet() string { return "" }

// Generate returns ErrNotGenerated.
func (t *codeTask) Generate(Split, int, uint64) ([]rollout.Problem, error) {
	return nil, ErrNotGenerated
}

// parseRow reads a row in any known layout.
func (t *codeTask) parseRow(line []byte) (rollout.Problem, error) {
	p, err := codefile.Row("", line, 1)
	if err != nil {
		return rollout.Problem{}, err
	}
	return p.Rollout()
}

// readRows reads rows in any known layout. Repeated rows are dropped; a different problem with a known id
// gets #2, #3 … appended to the id.
func (t *codeTask) readRows(all iter.Seq2[rows.Row, error], from Source) ([]rollout.Problem, layout.Copies, error) {
	var problems []rollout.Problem
	var copies layout.Copies
	ids, contents := make(map[string]bool), make(map[[sha256.Size]byte]bool)
	for row, err := range all {
		if err != nil {
			return nil, copies, err
		}
		made, sum, err := readCodeRow(row, from.PromptKey)
		if err != nil {
			return nil, copies, err
		}
		copies.Rows++
		if contents[sum] {
			continue
		}
		contents[sum] = true
		id := made.ID
		for times := 2; ids[made.ID]; times++ {
			made.ID = fmt.Sprintf("%s#%d", id, times)
		}
		ids[made.ID] = true
		problems = append(problems, made)
	}
	copies.Unique = len(problems)
	return problems, copies, nil
}

// readCodeRow reads a row: a problem as Write writes it, or one in a published layout. sum is the digest of
// all but its id.
func readCodeRow(row rows.Row, promptKey string) (made rollout.Problem, sum [sha256.Size]byte, err error) {
	p, messages, err := parseCodeRow(row, promptKey)
	if err != nil {
		return made, sum, err
	}
	tools, id := layout.Tools(row), p.ID
	p.ID = ""
	content, err := json.Marshal([]any{p, messages, tools})
	if err != nil {
		return made, sum, err
	}
	p.ID = id
	if made, err = p.Rollout(); err != nil {
		return made, sum, err
	}
	made.Messages, made.Tools = messages, tools
	return made, sha256.Sum256(content), nil
}

// parseCodeRow also returns the row's chat if that says more than the problem.
func parseCodeRow(row rows.Row, promptKey string) (*code.Problem, []rollout.Message, error) {
	if promptKey != "" {
		var err error
		if row, err = withPrompt(row, promptKey); err != nil {
			return nil, nil, err
		}
	}
	if row.Has("id", "prompt", "data") {
		return readStored(row)
	}
	p, err := codefile.FromRow("", row)
	if err != nil {
		return nil, nil, err
	}
	var messages []rollout.Message
	if v, _ := row.Value("prompt"); v != nil {
		if _, chat := v.([]any); chat {
			messages, err = layout.Messages(row, "prompt")
		}
	}
	if rollout.Plain(messages) {
		messages = nil
	}
	return &p, messages, err
}

// withPrompt returns a row of verl's layout whose column prompt is the one of that name.
func withPrompt(row rows.Row, column string) (rows.Row, error) {
	if !row.Has(column) {
		return row, row.Errorf(column, "%w: the column with the prompt", rows.ErrMissing)
	}
	if !row.Has("reward_model") {
		return row, row.Errorf("reward_model", "%w: a code problem whose prompt is in the column %q must have "+
			"its tests in reward_model.ground_truth", rows.ErrMissing, column)
	}
	return row.WithField("prompt", column), nil
}

func readStored(row rows.Row) (*code.Problem, []rollout.Message, error) {
	var stored rollout.Problem
	b, err := json.Marshal(row.Fields)
	if err == nil {
		err = json.Unmarshal(b, &stored)
	}
	if err == nil && row.Has("messages") {
		stored.Messages, err = layout.Messages(row, "messages")
	}
	if err != nil {
		return nil, nil, row.Errorf("", "%w", err)
	}
	p, err := code.ProblemOf(&stored)
	if err != nil {
		return nil, nil, row.Errorf("data", "%w", err)
	}
	return p, stored.Messages, nil
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
