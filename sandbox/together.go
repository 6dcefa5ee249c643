package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Tests of mode call run together: one visit of a slot loads the module once and calls the function in a
// forked copy for each test. A visit counts only if it cannot differ from runs of one test each: it wrote
// no output, its scratch directory was read-only, and all its tests took no more than a fraction of one
// test's limit. Tests that it does not answer or answers wrong are run alone.

// togetherShare divides a test's time limit; the result limits a visit with all tests. A program that never
// ends costs that much more than it would alone.
const togetherShare = 4

// callTogether runs the tests of r in one visit. It returns the runs of the answered tests, by test number;
// none if the visit cannot be trusted.
func (p *Pool) callTogether(ctx context.Context, r Request) map[int]Run {
	if r.Mode != "call" || len(r.Tests) < 2 || !p.sharesVisits() {
		return nil
	}
	args := make([]json.RawMessage, len(r.Tests))
	for i, t := range r.Tests {
		if t.Stdin != "" {
			return nil
		}
		args[i] = t.Args
	}
	list, err := json.Marshal(args)
	if err != nil {
		return nil
	}
	limits := r.Limits
	limits.CPUMS, limits.WallMS = max(1, limits.CPUMS/togetherShare), max(1, limits.WallMS/togetherShare)
	limits.Processes++ // for the process that forks the others
	runAll := ""
	if r.RunAll {
		runAll = "yes"
	}
	visit, err := p.execute(ctx, job{source: r.Source, args: r.Args, files: r.Files, driver: "calls", frozen: true,
		limits: limits,
		names:  map[string]string{"ENTRY": r.Entry, "ARGS": string(list), "RUN_ALL": runAll}})
	if err != nil || len(visit.Stdout) > 0 || len(visit.Stderr) > 0 {
		return nil
	}
	values, ok := splitValues(visit.result, len(r.Tests), visit.Status == OK)
	if !ok || len(values) == 0 {
		return nil
	}
	runs := make(map[int]Run, len(values))
	for i, value := range values {
		runs[i] = Run{Status: OK, Wall: visit.Wall / time.Duration(len(values)),
			CPU:      visit.CPU / time.Duration(len(values)),
			MemoryKB: visit.MemoryKB, Shared: len(values), Stdout: []byte{}, Stderr: []byte{}, result: value}
	}
	return runs
}

// splitValues reads the output of callsdriver.py: the values of the tests that ended well; the last
// is the visit itself. ok is false if the output is malformed or a test has two answers. A truncated
// last answer is left out.
func splitValues(text []byte, tests int, visitEnded bool) (ended map[int][]byte, ok bool) {
	ended = map[int][]byte{}
	values := map[int][]byte{}
	defer func() {
		if last := values[tests-1]; visitEnded && ok && last != nil {
			ended[tests-1] = last
		}
	}()
	for len(text) > 0 {
		head, rest, whole := bytes.Cut(text, []byte("\n"))
		if !whole {
			return ended, true
		}
		var i, size int
		if n, err := fmt.Sscanf(string(head), "%d %d", &i, &size); n != 2 || err != nil || i < 0 || i >= tests ||
			size < 0 || size > 0 && values[i] != nil || ended[i] != nil {
			return nil, false
		}
		if size > len(rest) {
			return ended, true
		}
		text = rest[size:]
		switch {
		case size > 0:
			values[i] = rest[:size:size]
		case values[i] != nil: // else it ended well without a value
			ended[i] = values[i]
		}
	}
	return ended, true
}
