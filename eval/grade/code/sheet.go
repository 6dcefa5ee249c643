package code

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"exp/sandbox"
	"exp/train/rollout"
)

// Sheet grades a response in several ways at once. A program found by several of them runs once per test,
// and each compares that output: they differ in what they accept, never in what happened. It is safe for
// concurrent use.
type Sheet struct {
	run     Runner
	options []Options
}

// NewSheet makes a sheet with one grader per options.
func NewSheet(run Runner, options ...Options) (*Sheet, error) {
	for _, o := range options {
		if _, err := NewGrader(run, o); err != nil {
			return nil, err
		}
	}
	return &Sheet{run, options}, nil
}

// Response grades a response and returns a verdict for each of the options, in order. Errors are as in
// Grader.Response.
func (s *Sheet) Response(ctx context.Context, p *Problem, response string) ([]Verdict, error) {
	return s.each(func(g *Grader) (Verdict, error) { return g.Response(ctx, p, response) })
}

// Program grades a bare program, as in files of samples; nothing is extracted from it.
func (s *Sheet) Program(ctx context.Context, p *Problem, text string) ([]Verdict, error) {
	return s.each(func(g *Grader) (Verdict, error) { return g.Program(ctx, p, Program{Text: text, How: "as given"}) })
}

func (s *Sheet) each(grade func(*Grader) (Verdict, error)) ([]Verdict, error) {
	once := &onceRunner{run: s.run, runs: make(map[[sha256.Size]byte]sandbox.Run)}
	verdicts := make([]Verdict, len(s.options))
	for i, o := range s.options {
		g, err := NewGrader(once, o)
		if err != nil {
			return nil, err
		}
		if verdicts[i], err = grade(g); err != nil {
			return nil, err
		}
	}
	return verdicts, nil
}

// onceRunner runs equal executions once: a program with one input under the same limits. For use by one
// goroutine.
type onceRunner struct {
	run  Runner
	runs map[[sha256.Size]byte]sandbox.Run
}

// Run implements Runner: it sends each new test to the other runner as a separate request.
func (o *onceRunner) Run(ctx context.Context, r sandbox.Request) sandbox.Result {
	out := sandbox.Result{ID: r.ID, Verdict: sandbox.OK, Total: max(1, len(r.Tests))}
	tests := r.Tests
	if r.Mode == "asserts" || len(tests) == 0 {
		tests = []sandbox.Test{{Stdin: r.Stdin}}
	}
	for i, t := range tests {
		one := o.one(ctx, r, t)
		if r.Judge != nil && one.Status != sandbox.InfraError {
			one.Status, one.Detail = r.Judge(i, one)
		}
		out.Runs = append(out.Runs, one)
		if one.Status == sandbox.OK {
			out.Passed++
			continue
		}
		if out.Verdict == sandbox.OK {
			out.Verdict = one.Status
		}
		if !r.RunAll || one.Status == sandbox.InfraError {
			break
		}
	}
	return out
}

// one runs a single execution and returns how it ended, before anyone judges it.
func (o *onceRunner) one(ctx context.Context, r sandbox.Request, t sandbox.Test) sandbox.Run {
	key := keyOf(r, t)
	if run, ok := o.runs[key]; ok {
		return run
	}
	one := r
	if r.Mode != "asserts" {
		one.Tests, one.Stdin = []sandbox.Test{t}, ""
		one.Judge = func(_ int, run sandbox.Run) (sandbox.Verdict, string) { return run.Status, run.Detail }
	}
	result := o.run.Run(ctx, one)
	run := sandbox.Run{Status: sandbox.InfraError, Detail: "the request has no run"}
	if len(result.Runs) > 0 {
		run = result.Runs[len(result.Runs)-1]
	}
	if run.Status != sandbox.InfraError {
		o.runs[key] = run
	}
	return run
}

// keyOf digests everything that an execution depends on.
func keyOf(r sandbox.Request, t sandbox.Test) [sha256.Size]byte {
	text, err := json.Marshal([]any{r.Mode, r.Source, r.Entry, r.TestCode, r.Uses, r.Limits, t.Stdin, string(t.Args)})
	if err != nil {
		panic("code: " + err.Error()) // texts and numbers always encode
	}
	return sha256.Sum256(text)
}

// Graders returns the sheet's ways of grading as graders of samples, in order. The first grader asked about
// a sample executes it, and all take their verdict from that run. All must be asked about the same
// completions, which are identified by address. whole says that completions are programs rather than
// responses.
func (s *Sheet) Graders(whole bool) []*SheetGrader {
	cache := &sheetCache{sheet: s, whole: whole, verdicts: make(map[*rollout.Completion]func() ([]Verdict, error))}
	list := make([]*SheetGrader, len(s.options))
	for i := range list {
		list[i] = &SheetGrader{cache, i}
	}
	return list
}

type sheetCache struct {
	sheet *Sheet
	whole bool

	mu       sync.Mutex
	verdicts map[*rollout.Completion]func() ([]Verdict, error)
}

// SheetGrader is one of the graders of a Sheet. It is a rollout.Grader.
type SheetGrader struct {
	cache *sheetCache
	way   int
}

// Verdict returns the full verdict on a completion.
func (g *SheetGrader) Verdict(ctx context.Context, p *rollout.Problem, c *rollout.Completion) (Verdict, error) {
	g.cache.mu.Lock()
	grade, ok := g.cache.verdicts[c]
	if !ok {
		grade = sync.OnceValues(func() ([]Verdict, error) {
			problem, err := problemOf(p)
			if err != nil {
				return nil, err
			}
			if g.cache.whole {
				return g.cache.sheet.Program(ctx, problem, c.Text)
			}
			return g.cache.sheet.Response(ctx, problem, c.Text)
		})
		g.cache.verdicts[c] = grade
	}
	g.cache.mu.Unlock()
	verdicts, err := grade()
	if err != nil {
		return Verdict{}, err
	}
	return verdicts[g.way], nil
}

// Grade implements rollout.Grader, like Grader.Grade.
func (g *SheetGrader) Grade(ctx context.Context, p *rollout.Problem, c *rollout.Completion) (rollout.Verdict, error) {
	return rolloutVerdict(g.Verdict(ctx, p, c))
}

// problemOf returns the problem behind a Rollout.
func problemOf(p *rollout.Problem) (*Problem, error) {
	var problem Problem
	if err := json.Unmarshal(p.Data, &problem); err != nil {
		return nil, fmt.Errorf("problem %s: its data is not a code problem: %w", p.ID, err)
	}
	return &problem, nil
}

// rolloutVerdict converts a verdict for training. A program that the sandbox could not run is not graded.
func rolloutVerdict(v Verdict, err error) (rollout.Verdict, error) {
	if broken := new(InfraError); errors.As(err, &broken) {
		return rollout.Verdict{Reason: broken.Error()}, nil
	}
	if err != nil {
		return rollout.Verdict{}, err
	}
	return rollout.Verdict{Status: rollout.Graded, Correct: v.Correct, Reward: v.Score, Answer: v.Program.Text,
		Reason: v.Reason}, nil
}
