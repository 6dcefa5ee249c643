package code

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"exp/sandbox"
)

// Rules names a set of grading rules.
type Rules string

// The rules; see the package comment.
const (
	Strict   Rules = "strict"
	Upstream Rules = "upstream"
)

// Options say how to grade. The zero value is strict, all tests or nothing.
type Options struct {
	Rules   Rules // empty: Strict
	Partial bool  // the score is the share of tests passed; all are run
	Both    bool  // run all tests and compare by the other rules too
}

// Verdict is the result of grading a response.
type Verdict struct {
	Correct bool    // all tests pass
	Score   float64 // 1 or 0; with Partial the share of tests that pass
	// Passed counts tests under the chosen rules; Other counts them under the other rules (with Both, and
	// only where these compare outputs). Tests after the first failure run only with Partial or Both.
	Passed, Other, Total int
	Status               sandbox.Verdict // of the first test that failed
	Program              Program         // the program found in the response
	Reason               string          // in a few words
}

// InfraError is returned if the sandbox failed: the program has no verdict.
type InfraError struct{ Problem, Detail string }

func (e *InfraError) Error() string {
	return fmt.Sprintf("problem %s: the sandbox failed: %s", e.Problem, e.Detail)
}

// Runner runs programs; *sandbox.Pool is one.
type Runner interface {
	Run(ctx context.Context, r sandbox.Request) sandbox.Result
}

// Grader grades responses. It is safe for concurrent use.
type Grader struct {
	run  Runner
	opts Options
}

// NewGrader makes a grader that runs programs with run.
func NewGrader(run Runner, opts Options) (*Grader, error) {
	if opts.Rules == "" {
		opts.Rules = Strict
	}
	if opts.Rules != Strict && opts.Rules != Upstream {
		return nil, fmt.Errorf("unknown grading rules %q; known: %s, %s", opts.Rules, Strict, Upstream)
	}
	return &Grader{run, opts}, nil
}

// Response grades the program in a response. It returns an *InfraError, an error in the problem, or ctx's
// error; any fault of the response is a verdict.
func (g *Grader) Response(ctx context.Context, p *Problem, response string) (Verdict, error) {
	found := Extract(response)
	if g.opts.Rules == Upstream {
		text, ok := ExtractUpstream(response)
		found = Program{Text: text, Language: "python", How: "the last block of the published pattern"}
		if !ok {
			found = Program{How: "no block of the published pattern"}
		}
	}
	if found.Text == "" {
		return Verdict{Total: p.Total(), Status: sandbox.WrongAnswer, Program: found, Reason: found.How}, p.Check()
	}
	return g.Program(ctx, p, found)
}

// Program grades a program, which may be whole or continue the problem's Starter.
func (g *Grader) Program(ctx context.Context, p *Problem, found Program) (Verdict, error) {
	v := Verdict{Total: p.Total(), Program: found}
	if err := p.Check(); err != nil {
		return v, err
	}
	if found.Language != "" && found.Language != "python" {
		v.Status, v.Reason = sandbox.CompileError, "the program is in "+found.Language+", and Python is asked for"
		return v, nil
	}
	if p.Entry != "" && p.Family == TACO && len(p.Tests) > mostUpstreamTests && g.opts.Rules == Upstream {
		v.Status, v.Reason = sandbox.WrongAnswer,
			"the published grader forgets the function's name when it picks 15 of the tests"
		return v, nil
	}
	grade, text := g.tests, found.Text
	if len(p.Asserts) > 0 {
		grade = g.asserts
		if g.opts.Rules == Upstream {
			text = withoutMain(text)
		}
	}
	source := g.assemble(p, text)
	if err := grade(ctx, p, source, &v); err != nil {
		return Verdict{Total: v.Total, Program: found}, err
	}
	v.Correct = v.Passed == v.Total
	switch {
	case v.Correct:
		v.Score, v.Status = 1, sandbox.OK
		if v.Reason == "" {
			v.Reason = "all tests pass"
		}
	case g.opts.Partial:
		v.Score = float64(v.Passed) / float64(v.Total)
	}
	return v, nil
}

// mostUpstreamTests is the number of tests that published graders run, those with the longest inputs.
const mostUpstreamTests = 15

// picked returns the order of the tests.
func (g *Grader) picked(p *Problem) []int {
	order := make([]int, len(p.Tests))
	for i := range order {
		order[i] = i
	}
	if g.opts.Rules == Upstream && (p.Family == TACO || p.Family == Codeforces) {
		lengths := make([]int, len(p.Tests))
		for i, t := range p.Tests {
			lengths[i] = len([]rune(t.Stdin))
		}
		order = longest(lengths)
	}
	return order
}

// longest picks the tests with the longest inputs, ordered by length, if there are too many to run.
func longest(lengths []int) []int {
	order := make([]int, len(lengths))
	for i := range order {
		order[i] = i
	}
	if len(order) > mostUpstreamTests {
		slices.SortStableFunc(order, func(a, b int) int { return lengths[b] - lengths[a] })
		order = order[:mostUpstreamTests]
	}
	return order
}

// tests runs the program on inputs.
func (g *Grader) tests(ctx context.Context, p *Problem, source string, v *Verdict) error {
	order := g.picked(p)
	v.Total = len(order)
	r := sandbox.Request{ID: p.ID, Source: source, Entry: p.Entry, Limits: p.roomy(), RunAll: g.opts.Partial ||
		g.opts.Both}
	if p.Entry != "" {
		r.Mode = "call"
	}
	for _, i := range order {
		r.Tests = append(r.Tests, sandbox.Test{Stdin: p.Tests[i].Stdin, Args: p.Tests[i].Args})
	}
	together, counted := -1, false // last test judged, if it ran with others; whether it passed by the other rules
	r.Judge = func(i int, run sandbox.Run) (sandbox.Verdict, string) {
		status, detail := judge(p, &p.Tests[order[i]], run, g.opts.Rules == Upstream)
		if g.opts.Both {
			if i == together && counted && run.Shared == 0 { // judged again after running alone
				v.Other--
			}
			together, counted = -1, false
			if run.Shared > 0 {
				together = i
			}
			if other, _ := judge(p, &p.Tests[order[i]], run, g.opts.Rules == Strict); other == sandbox.OK {
				v.Other++
				counted = true
			}
		}
		return status, detail
	}
	return g.request(ctx, p, r, v)
}

// roomy returns the problem's limits with room for twice its longest expected output: a right answer must
// not end at the limit.
func (p *Problem) roomy() sandbox.Limits {
	limits := p.Limits
	if limits.StdoutKB == 0 {
		limits.StdoutKB = sandbox.DefaultLimits().StdoutKB
	}
	for _, t := range p.Tests {
		limits.StdoutKB = max(limits.StdoutKB, int64(len(t.Stdout))>>9)
	}
	return limits
}

// exited reports whether a program ended by sys.exit, with a number or a text, rather than by an exception.
func exited(run sandbox.Run) bool {
	return run.Status == sandbox.RuntimeError && run.Signal == "" &&
		!bytes.Contains(run.Stderr, []byte("Traceback (most recent call last):"))
}

// judge compares the output of one run. Faults that the sandbox found stand, except that TACO's and
// Codeforces' own graders ignore the exit status, and LiveCodeBench's catches SystemExit.
func judge(p *Problem, t *Test, run sandbox.Run, upstream bool) (sandbox.Verdict, string) {
	careless := upstream && p.Entry == "" && (p.Family == TACO || p.Family == Codeforces ||
		p.Family == LiveCodeBench && exited(run))
	if run.Status != sandbox.OK && !(careless && run.Status == sandbox.RuntimeError) {
		return run.Status, run.Detail
	}
	if p.Entry != "" {
		if same, why := p.judgeValue(run.Value, t.Expect, upstream); !same {
			return sandbox.WrongAnswer, why
		}
		return sandbox.OK, ""
	}
	same := !run.StdoutTruncated
	if same && upstream {
		same = p.Family.Upstream(p.Family.publishedOutput(string(run.Stdout)), t.Stdout)
	} else if same {
		same = sameOutput(string(run.Stdout), t.Stdout, p.Tolerance)
	}
	switch {
	case same:
		return sandbox.OK, ""
	case run.Status != sandbox.OK:
		return run.Status, run.Detail
	}
	return sandbox.WrongAnswer, fmt.Sprintf("another output: %.200q", run.Stdout)
}

// asserts runs test programs against the function. Without Partial they are joined into one program, which
// saves starting processes.
func (g *Grader) asserts(ctx context.Context, p *Problem, source string, v *Verdict) error {
	r := sandbox.Request{ID: p.ID, Mode: "asserts", Source: source, Entry: p.Entry, Uses: p.Uses, Limits: p.Limits}
	if !g.opts.Partial {
		r.TestCode = p.Setup + "\n" + strings.Join(p.Asserts, "\n")
		if err := g.request(ctx, p, r, v); err != nil || v.Passed == 0 {
			return err
		}
		v.Passed = v.Total
		return nil
	}
	for _, test := range p.Asserts {
		r.TestCode = p.Setup + "\n" + test
		if err := g.request(ctx, p, r, v); err != nil {
			return err
		}
	}
	return nil
}

// request runs a request and adds the result to the verdict. If CPU time came close to its limit, or a
// computing program ran out of wall time on a busy machine, it runs the request again and keeps the better
// result, so that verdicts do not depend on load.
func (g *Grader) request(ctx context.Context, p *Problem, r sandbox.Request, v *Verdict) error {
	other := v.Other
	result := g.run.Run(ctx, r)
	if result.Verdict != sandbox.OK && slices.ContainsFunc(result.Runs, unlucky) {
		first := v.Other
		v.Other = other
		if r.Limits.WallMS == 0 {
			r.Limits.WallMS = sandbox.DefaultLimits().WallMS
		}
		r.Limits.WallMS *= patience
		again := g.run.Run(ctx, r)
		if again.Passed > result.Passed && again.Verdict != sandbox.InfraError {
			result = again
		} else {
			v.Other = first
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	v.Passed += result.Passed
	if result.Verdict == sandbox.OK {
		return nil
	}
	for i, run := range result.Runs {
		if run.Status != result.Verdict {
			continue
		}
		if result.Verdict == sandbox.InfraError {
			return &InfraError{p.ID, run.Detail}
		}
		if v.Status == "" {
			v.Status, v.Reason = run.Status, fmt.Sprintf("test %d: %s", i+1, run.Detail)
			if len(p.Asserts) > 0 {
				v.Reason = run.Detail
			}
		}
		return nil
	}
	return &InfraError{p.ID, "no run has the verdict " + string(result.Verdict)}
}

// patience is the factor on wall time in the second run. The first run gets little, because a program that
// only waits blocks a slot.
const patience = 5

// unlucky reports whether load on the machine may have failed the run: a program that waits uses less than
// a twentieth of its time.
func unlucky(r sandbox.Run) bool {
	return r.Borderline || r.Status == sandbox.TimeLimit && strings.HasSuffix(r.Detail, "wall") && 20*r.CPU > r.Wall
}

// fromFuture matches an import that must come first in a program, otherFuture one in brackets, before a comment
// or behind a semicolon.
var (
	fromFuture  = regexp.MustCompile(`(?m)^from __future__ import [\w ,]+$`)
	otherFuture = regexp.MustCompile(`(?m)^([^#\n]*;)?[ \t]*from __future__ import`)
)

// assemble returns the program to run: the problem's code, then the program found. What that imports from
// __future__ goes first.
func (g *Grader) assemble(p *Problem, text string) string {
	text = strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")
	before := ""
	for _, line := range fromFuture.FindAllString(text, -1) {
		before += line + "\n"
	}
	text = fromFuture.ReplaceAllString(text, "")
	if otherFuture.MatchString(text) { // not seen through here
		return before + text
	}
	if p.Prelude {
		before += prelude()
	}
	if p.Starter == "" {
		return before + text
	}
	defined := regexp.MustCompile(`(?m)^(async\s+)?def\s+` + regexp.QuoteMeta(p.Entry) + `\b|^` +
		regexp.QuoteMeta(p.Entry) + `\s*=`).MatchString(text)
	starter := strings.TrimRight(p.Starter, "\n") + "\n"
	if !defined {
		text = indented(text)
	}
	return before + starter + text
}

// indented indents the body of a function that lost its indentation.
func indented(body string) string {
	for line := range strings.Lines(body) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		if line[0] == ' ' || line[0] == '\t' {
			return body
		}
		break
	}
	return "    " + strings.ReplaceAll(body, "\n", "\n    ")
}

// prelude returns, as one line, the imports that published graders put before a program: these modules and
// all their names (testing_util.py of LiveCodeBench), without those outside the standard library, and the
// bounds of recursion and of printed integers that they set.
func prelude() string {
	modules := strings.Fields("string re datetime collections heapq bisect copy math random statistics itertools " +
		"functools operator io sys json builtins typing")
	return "from " + strings.Join(modules, " import *; from ") + " import *; import " + strings.Join(modules, ", ") +
		"; sys.setrecursionlimit(50000); getattr(sys, 'set_int_max_str_digits', int)(50000)\n"
}
