package run

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"exp/harness/config"
	"exp/sandbox"
)

const programs = "task={kind: functions, functions: {hidden_tests: 2}}"

// needsSandbox skips where programs cannot be run.
func needsSandbox(t *testing.T) {
	t.Helper()
	if lack := sandboxLack(&smoke(t).Run); lack != nil {
		t.Skip(lack)
	}
}

// A run that requires more of the sandbox than the machine has is refused, and the error
// names the missing parts; a machine with more runs at the required level.
func TestSandboxRequired(t *testing.T) {
	needsSandbox(t)
	level, _, err := sandbox.Check(t.Context(), sandbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, require := range []sandbox.Level{sandbox.Full, sandbox.Namespaces, sandbox.Landlock} {
		lack := sandboxLack(&smoke(t, "sandbox.require="+string(require)).Run)
		if ok := level.AtLeast(require); ok != (lack == nil) {
			t.Errorf("the machine has %s, required is %s: %v", level, require, lack)
		}
		if lack != nil && (lack.Required != require || len(lack.Probes) == 0) {
			t.Errorf("%+v", lack)
		}
	}
}

// A run whose reward comes from programs has the same outputs twice, and its record says
// what they ran in.
func TestProgramsRun(t *testing.T) {
	needsSandbox(t)
	a, b := newLab(t), newLab(t)
	few := []string{programs, "train.steps=2", "rollout.n=2", "eval.online.every_steps=0", "eval.final.n=2"}
	p := a.plan(0, few...)
	first, q := a.execute(p)
	second, _ := b.execute(b.plan(0, few...))
	sameOutputs(t, a.outputs(first.Run.ID), b.outputs(second.Run.ID))
	if len(q.warnings) > 0 {
		t.Errorf("warnings: %q", q.warnings)
	}
	attempts, err := a.db.Attempts(context.Background(), first.Run.ID)
	if err != nil || len(attempts) != 1 {
		t.Fatal(attempts, err)
	}
	var env struct {
		Sandbox struct{ Level, Python string }
	}
	if err := json.Unmarshal(attempts[0].Env, &env); err != nil {
		t.Fatal(err)
	}
	if s := env.Sandbox; s.Level != "full" && s.Level != "namespaces" || !strings.HasPrefix(s.Python, "Python 3.") {
		t.Errorf("the record says of the sandbox %+v", s)
	}
}

// Without an interpreter nothing is run: exit 8 if that is all that is missing, else 7.
func TestRequireSandbox(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for _, tt := range []struct {
		name string
		r    *config.Resolved
		code int
	}{
		{"functions", smoke(t, programs), 8},
		{"functions on a GPU", smoke(t, programs, "compute.device=cuda"), 7},
		{"countdown", smoke(t), 0},
	} {
		err := Require(tt.r, Alone())
		var lack *RequireError
		switch {
		case tt.code == 0:
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
		case !errors.As(err, &lack) || lack.ExitCode() != tt.code || !strings.Contains(err.Error(), "python"):
			t.Errorf("%s: %v, want code %d", tt.name, err, tt.code)
		}
	}
}
