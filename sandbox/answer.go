package sandbox

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"strings"
)

//go:embed callvalue.py
var callValue string

//go:embed calldriver.py
var callDriver string

//go:embed callsdriver.py
var callsDriver string

//go:embed codec.py
var codec string

//go:embed candidatedriver.py
var candidateDriver string

//go:embed checkerdriver.py
var checkerDriver string

// drivers returns, by name, the Python that runs a program's code object. A zygote holds them compiled.
func drivers() map[string]string {
	return map[string]string{"call": callValue + callDriver, "calls": callValue + callsDriver, "candidate": codec +
		candidateDriver, "checker": codec + checkerDriver, "compile": compileDriver}
}

// check validates a request and fills in its limits.
func (r *Request) check(d Limits) error {
	foreign, ok := languageNamed(r.Language)
	switch {
	case r.Language != "" && r.Language != pythonLanguage && !ok:
		return fmt.Errorf("unknown language %q; known: %s", r.Language, strings.Join(Languages(), ", "))
	case ok && r.Mode != "" && r.Mode != "stdio":
		return fmt.Errorf("language %q has only mode stdio: call and asserts are for Python", r.Language)
	case r.Mode != "" && r.Mode != "stdio" && r.Mode != "call" && r.Mode != "asserts":
		return fmt.Errorf("unknown mode %q; known: stdio, call, asserts", r.Mode)
	case r.Mode == "asserts" && (r.Entry == "" || r.TestCode == ""):
		return fmt.Errorf("mode asserts needs entry, the name of a function, and test_code")
	case r.Mode == "call" && r.Entry == "":
		return fmt.Errorf("mode call needs entry, the name of a function or of a method of class Solution")
	case r.Mode == "call" && len(r.Tests) == 0:
		return fmt.Errorf("mode call needs tests")
	case len(r.Source) > 8<<20:
		return fmt.Errorf("the source has %d bytes: at most 8 MB", len(r.Source))
	case len(r.Tests) > 100_000:
		return fmt.Errorf("%d tests: at most 100000", len(r.Tests))
	}
	for _, a := range r.Args {
		if strings.ContainsRune(a, 0) {
			return fmt.Errorf("argument %q contains a zero byte", a)
		}
	}
	for name := range r.Files {
		if name == "" || name == "." || name == ".." || name == "main.py" || name == foreign.source ||
			len(name) > 255 || strings.ContainsAny(name, "/\x00") {
			return fmt.Errorf("file %q: need a plain name other than the source file's", name)
		}
	}
	for _, name := range r.Uses {
		if name == "" || strings.ContainsAny(name, " \t\r\n") {
			return fmt.Errorf("uses %q: not a name", name)
		}
	}
	for i, t := range r.Tests {
		if r.Mode != "call" {
			continue
		}
		var args []any
		if err := DecodeValue(t.Args, &args); err != nil {
			return fmt.Errorf("test %d: args must be a JSON list: %w", i+1, err)
		}
		var expect any
		if r.Judge != nil {
			continue
		}
		if err := DecodeValue(t.Expect, &expect); err != nil {
			return fmt.Errorf("test %d: expect must be JSON: %w", i+1, err)
		}
	}
	var err error
	r.Limits, err = r.Limits.filled(d)
	return err
}

// job is one execution: a program with one input.
type job struct {
	source string
	args   []string
	files  map[string][]byte
	stdin  []byte
	driver string            // name in drivers; runs the program's code object; empty: it is __main__
	names  map[string]string // variables of the driver
	limits Limits            // filled

	program *made  // executed instead of source; nil: source is Python
	view    string // the slots that have what it needs; "": Python's
	frozen  bool   // the scratch directory is read-only
	seed    int64  // of module random; 0: none
	echo    bool   // print the last expression

	channel []int // descriptors 4 and 5 of the program; run closes them
}

// Run executes the request's program once per test. It returns no error: whatever the program does is a
// verdict, and a sandbox that broke twice is InfraError.
func (p *Pool) Run(ctx context.Context, r Request) Result {
	out := Result{ID: r.ID, Verdict: OK, Total: len(r.Tests), Isolation: p.Level(), Runs: []Run{}}
	infra := func(err error) Result {
		out.Verdict = InfraError
		out.Runs = append(out.Runs, Run{Status: InfraError, ExitCode: -1, Detail: err.Error()})
		return out
	}
	if err := r.check(p.cfg.Limits); err != nil {
		return infra(err)
	}
	var program *made
	if _, ok := languageNamed(r.Language); ok {
		m, err := p.make(ctx, r)
		if err != nil {
			return infra(err)
		}
		program = &m
	}
	if r.Mode == "asserts" {
		one, err := p.runAsserts(ctx, r)
		if err != nil {
			return infra(err)
		}
		out.Verdict, out.Total, out.Runs = one.Status, 1, []Run{one}
		if one.Status == OK {
			out.Passed = 1
		}
		return out
	}
	tests := r.Tests
	if len(tests) == 0 {
		tests = []Test{{Stdin: r.Stdin}}
	}
	together := p.callTogether(ctx, r)
	for i, t := range tests {
		one, ok := together[i]
		if ok {
			one = r.decide(i, one)
		}
		if !ok || one.Status != OK {
			j := job{source: r.Source, args: r.Args, files: r.Files, stdin: []byte(t.Stdin), limits: r.Limits,
				seed: r.Seed, echo: r.Echo}
			if r.Mode == "call" {
				j.driver, j.names = "call", map[string]string{"ENTRY": r.Entry, "ARGS": string(t.Args)}
			}
			var err error
			if one, err = p.executeProgram(ctx, program, j); err != nil {
				return infra(err)
			}
			one = r.decide(i, one)
		}
		out.Runs = append(out.Runs, one)
		if one.Status == OK {
			if out.Total > 0 {
				out.Passed++
			}
			continue
		}
		if out.Verdict == OK {
			out.Verdict = one.Status
		}
		if !r.RunAll {
			break
		}
	}
	return out
}

// decide judges the run of a test.
func (r *Request) decide(test int, one Run) Run {
	if r.Mode == "call" {
		one.Value = pythonJSON(one.result)
	}
	switch {
	case len(r.Tests) == 0:
	case r.Judge != nil:
		one.Status, one.Detail = r.Judge(test, one)
	case one.Status != OK:
	case r.Mode == "call":
		one.Status, one.Detail = judgeCall(one.result, r.Tests[test].Expect)
	case !sameOutput(one, r.Tests[test].Stdout):
		one.Status, one.Detail = WrongAnswer, "another output"
	}
	return one
}

// executeProgram runs j, using the compiled program unless the source is Python.
func (p *Pool) executeProgram(ctx context.Context, program *made, j job) (Run, error) {
	if program != nil {
		if program.failed != nil {
			return *program.failed, nil
		}
		j.program, j.view = program, program.view
	}
	return p.execute(ctx, j)
}

// sameOutput compares bytes without the white space at the very end, because programs differ in whether
// they end their last line.
func sameOutput(r Run, want string) bool {
	const space = " \t\r\n"
	return !r.StdoutTruncated && bytes.Equal(bytes.TrimRight(r.Stdout, space), []byte(strings.TrimRight(want, space)))
}

// runAsserts runs the program and its tests in two processes. It returns the program's run; the status is
// ok only if the checker said that all its tests passed.
func (p *Pool) runAsserts(ctx context.Context, r Request) (Run, error) {
	names := map[string]string{"ENTRY": r.Entry, "USES": strings.Join(r.Uses, " ")}
	candidate := job{source: r.Source, args: r.Args, files: r.Files, driver: "candidate", names: names,
		limits: r.Limits}
	checker := job{source: r.TestCode, driver: "checker", names: names, limits: r.Limits}
	c, t, err := p.executePair(ctx, candidate, checker)
	switch {
	case err != nil:
		return c, err
	case t.Status == OK && string(t.result) == "pass":
		// What the program does after its last answer does not count.
		c.Status, c.Detail = OK, ""
	case t.Status == CompileError:
		return c, fmt.Errorf("the tests do not compile: %s", t.Detail)
	case c.Status != OK:
	case t.Status == TimeLimit || t.Status == MemoryLimit:
		c.Status, c.Detail = t.Status, "tests: "+t.Detail
	default:
		c.Status, c.Detail = WrongAnswer, "tests: "+t.Detail
	}
	return c, nil
}

// lastLine returns the last nonblank line, which ends a traceback.
func lastLine(text []byte) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return lines[len(lines)-1]
}

// firstError returns a compiler's or runtime's message: the first line that mentions an error, else the
// first nonblank line.
func firstError(text []byte) string {
	var first string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch {
		case strings.Contains(strings.ToLower(line), "error"), strings.HasPrefix(line, "panic:"):
			return line[:min(len(line), 200)]
		case first == "":
			first = line[:min(len(line), 200)]
		}
	}
	return first
}
