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

// Sheet grades a response in several ways at once. A program that several of them find
// is run once on each test, and what it gave is compared by each: they differ in what
// they accept, never in what happened. It is safe for concurrent use.
type Sheet struct {
	run     Runner
	options []Options
}

// NewSheet makes a sheet of the ways to grade.
func NewSheet(run Runner, options ...Options) (*Sheet, error) {
	for _, o := range options {
		if _, err := NewGrader(run, o); err != nil {
			return nil, err
		}
	}
	return &Sheet{run, options}, nil
}

// Response grades what a model wrote: a verdict for each of the options, in their order.
// Errors are those of Grader.Response.
func (s *Sheet) Response(ctx context.Context, p *Problem, response string) ([]Verdict, error) {
	return s.each(func(g *Grader) (Verdict, error) { return g.Response(ctx, p, response) })
}

// Program grades a program that stands alone, as files of samples have it: nothing is
// looked for in it.
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

// onceRunner runs equal executions once: a program with one input, under the same
// limits. It is used by one goroutine.
type onceRunner struct {
	run  Runner
	runs map[[sha256.Size]byte]sandbox.Run
}

// Run is Runner: one request of one test to the other runner for each test that is new.
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

// one is a single execution, as it ended, before anybody judges what it gave.
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

// keyOf is the digest of all that an execution depends on.
func keyOf(r sandbox.Request, t sandbox.Test) [sha256.Size]byte {
	text, err := json.Marshal([]any{r.Mode, r.Source, r.Entry, r.TestCode, r.Uses, r.Limits, t.Stdin, string(t.Args)})
	if err != nil {
		panic("code: " + err.Error()) // texts and numbers always have a JSON
	}
	return sha256.Sum256(text)
}

// Graders gives the sheet's ways as graders of samples, in their order. Each sample is
// executed for the first of them that is asked about it, and all of them have their
// verdict from that: they must be asked about the same completions, which are told apart
// by their addresses. whole tells that completions are programs and not responses.
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

// SheetGrader is one way of a Sheet to grade. It is a rollout.Grader.
type SheetGrader struct {
	cache *sheetCache
	way   int
}

// Verdict is the whole verdict on a completion.
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

// Grade implements rollout.Grader, as Grader.Grade.
func (g *SheetGrader) Grade(ctx context.Context, p *rollout.Problem, c *rollout.Completion) (rollout.Verdict, error) {
	return rolloutVerdict(g.Verdict(ctx, p, c))
}

// problemOf is the problem in what Rollout made.
func problemOf(p *rollout.Problem) (*Problem, error) {
	var problem Problem
	if err := json.Unmarshal(p.Data, &problem); err != nil {
		return nil, fmt.Errorf("problem %s has no code problem as its data: %w", p.ID, err)
	}
	return &problem, nil
}

// rolloutVerdict is a verdict in the vocabulary of training. What the sandbox could not
// run is not graded.
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
