package main

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"exp/cmd/exp/cli"
	"exp/experiments/ident"
	harness "exp/harness/run"
)

// Every page says that a condition stopped the run, and the run continues without it.
func TestStopIf(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	at := func(args ...string) ended { return exp(t, append(args, "--store", dir)...) }
	exp(t, "run", smokeRecipe, "--store", dir, "--stop-if", "kl/ref_k4 > 1").refuses(t, 2,
		`no metric "kl/ref_k4"`, `did you mean "kl/ref_k3"?`)
	got := at("run", smokeRecipe, "--stop-if", "training/global_step >= 2")
	if got.code != 9 {
		t.Fatalf("exit code %d, want 9\n%s", got.code, got.stderr)
	}
	const why = "training/global_step >= 2 at step 2 of 4"
	for _, text := range []string{"stopped by its condition: " + why, "--stop-if none"} {
		if !strings.Contains(got.stderr, text) {
			t.Errorf("nothing says %q:\n%s", text, got.stderr)
		}
	}
	// Repeating the command trains nothing more.
	if again := at("run", smokeRecipe, "--stop-if", "training/global_step >= 2"); again.code != 9 {
		t.Errorf("repeated: exit code %d\n%s", again.code, again.stderr)
	}
	for _, page := range [][]string{
		{"ls", "--cols", "reason", "-F", "status = stopped"}, {"show", "@last"}, {"log", "@last"}, {"why", "@last"},
	} {
		at(page...).says(t, why)
	}
	at("log", "@last", "--level", "debug").says(t, "step 2 of 4, reward ")
	// exp compare refuses it as an arm.
	stopped := consistent(t, dir).runs[0].RID.Short()
	smoke(t, dir, "--set", "algo.kind=ppo").succeeds(t)
	refused := at("compare", stopped, "@last")
	if refused.code != 6 || !strings.Contains(refused.stderr, "stopped") {
		t.Errorf("compared with a stopped run: exit code %d\n%s%s", refused.code, refused.stdout, refused.stderr)
	}
	at("resume", stopped, "--stop-if", "none").says(t, "done")
	whole := filepath.Join(t.TempDir(), "store")
	smoke(t, whole).succeeds(t)
	if a, b := consistent(t, dir).runs[1], consistent(t, whole).runs[0]; a.Chain != b.Chain {
		t.Errorf("chain %s after a stop, %s without", a.Chain.Short(), b.Chain.Short())
	}
}

// A condition given to a run that is recorded without one holds when it is resumed, until another is given. One
// that comes after training says that it stops nothing.
func TestStopIfOfRecordedRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	at := func(args ...string) ended { return exp(t, append(args, "--store", dir)...) }
	at("run", smokeRecipe, "--until", "sft").succeeds(t)
	const condition = "training/global_step >= 2"
	for _, args := range [][]string{{"run", smokeRecipe, "--stop-if", condition}, {"resume", "@last"}} {
		if got := at(args...); got.code != 9 || !strings.Contains(got.stderr, condition+" at step 2 of 4") {
			t.Fatalf("exp %s: exit code %d, want 9\n%s", strings.Join(args, " "), got.code, got.stderr)
		}
	}
	at("log", "@last").says(t, "it stops if "+condition)
	at("resume", "@last", "--stop-if", "none").says(t, "done")
	at("log", "@last").says(t, "no condition stops it")
	for _, args := range [][]string{{"run", smokeRecipe}, {"resume", "@last"}} {
		got := at(append(args, "--stop-if", condition)...)
		if got.code != 0 || !strings.Contains(got.stderr, "this condition stops nothing: "+condition) {
			t.Errorf("exp %s of a complete run: exit code %d\n%s", args[0], got.code, got.stderr)
		}
	}
}

// A failed run does not hide the stopped ones, and each stopped run is named with the command that
// continues it.
func TestEndError(t *testing.T) {
	one := &harness.StoppedError{RID: ident.Digest{1}, Condition: "kl/ref_k3 > 1"}
	two := &harness.StoppedError{RID: ident.Digest{2}, Condition: "kl/ref_k3 > 1"}
	boom := errors.New("boom")
	for _, tt := range []struct {
		failed  []error
		stopped []*harness.StoppedError
		code    cli.ExitCode
		says    []string
	}{
		{nil, []*harness.StoppedError{one}, cli.ExitCondition, []string{"run 01000000: stopped", "exp resume 01000000 --stop-if none"}},
		{nil, []*harness.StoppedError{one, two}, cli.ExitCondition, []string{"2 runs stopped", "run 01000000: stopped",
			"run 02000000: stopped", "exp resume 01000000 --stop-if none", "exp resume 02000000 --stop-if none"}},
		{[]error{boom}, nil, cli.ExitFailure, []string{"boom"}},
		{[]error{boom}, []*harness.StoppedError{one, two}, cli.ExitFailure, []string{"boom", "run 01000000: stopped",
			"exp resume 02000000 --stop-if none"}},
	} {
		f := describe(endError(tt.failed, tt.stopped), nil)
		if f.Code != tt.code {
			t.Errorf("%v and %v: exit code %d, want %d", tt.failed, tt.stopped, f.Code, tt.code)
		}
		for _, text := range tt.says {
			if !strings.Contains(f.Err.Error()+f.Help, text) {
				t.Errorf("%v and %v: nothing says %q:\n%v\n%s", tt.failed, tt.stopped, text, f.Err, f.Help)
			}
		}
	}
	if err := endError(nil, nil); err != nil {
		t.Errorf("nothing went wrong, but %v", err)
	}
}
