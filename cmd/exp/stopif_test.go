package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// A run that its condition stopped says so wherever it is shown, and goes on without it.
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
	// It is no arm of a comparison.
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
