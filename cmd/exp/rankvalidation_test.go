package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"exp/experiments/store"

	"github.com/google/go-cmp/cmp"
)

// validations returns the validation curves of a store's only run.
func validations(t *testing.T, dir string) map[string][]float64 {
	t.Helper()
	db, err := store.Open(dir, store.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx := context.Background()
	runs, err := db.Runs(ctx, store.RunQuery{})
	if err != nil || len(runs) != 1 {
		t.Fatalf("%d runs, %v", len(runs), err)
	}
	list, err := db.Metrics(ctx, runs[0].ID, "val*", 0, store.AllSteps)
	if err != nil {
		t.Fatal(err)
	}
	curves := map[string][]float64{}
	for _, c := range list {
		curves[c.Name] = c.Values
	}
	return curves
}

// A validation by several ranks, all or some of them, measures what one process measures.
func TestRanksValidate(t *testing.T) {
	needsMPI(t)
	one := filepath.Join(t.TempDir(), "one")
	sampled := append(slices.Clone(ahead), "--set", "eval.online.n=3", "--set", "eval.online.temperature=1")
	smoke(t, one, sampled...).succeeds(t)
	want := validations(t, one)
	if n := len(want["val/pass@1"]); n != 3 {
		t.Fatalf("%d validations, want 3: %v", n, want)
	}
	for _, samplers := range []string{"0", "1"} {
		dir := filepath.Join(t.TempDir(), "store")
		p := start(t, slices.Concat([]string{"run", smokeRecipe, "--store", dir, "--ranks", "3"}, sampled,
			[]string{"--set", "compute.rollout_ranks=" + samplers})...)
		if code := p.end(); code != 0 {
			t.Fatalf("exit code %d\n%s", code, p.stderr.String())
		}
		if diff := cmp.Diff(want, validations(t, dir)); diff != "" {
			t.Errorf("%s of 3 ranks only sample: (-one process +ranks)\n%s", samplers, diff)
		}
	}
}

// A validation may take longer than ranks wait for one another elsewhere.
func TestRanksValidateForLong(t *testing.T) {
	if os.Getenv("EXP_TEST_ALL") == "" {
		t.Skip("EXP_TEST_ALL=1 validates for longer than a limit of 2 s; TestSlowLearner waits within one process")
	}
	needsMPI(t)
	for _, samplers := range []string{"0", "1"} {
		args := []string{"run", smokeRecipe, "--store", filepath.Join(t.TempDir(), "store"), "--ranks", "2",
			"--rank-timeout", "2s"}
		for _, set := range []string{"model.arch={width: 256, heads: 8, kv_heads: 2, ffn: 512}", "sft.steps=1",
			"sft.optim.warmup_steps=0", "train.steps=1", "train.optim.warmup_steps=0", "rollout={n: 2, staleness: 1}",
			"eval.online={n: 1024, every_steps: 1}", "eval.final.n=1", "compute.rollout_ranks=" + samplers} {
			args = append(args, "--set", set)
		}
		p := start(t, args...)
		if code := p.end(); code != 0 {
			t.Errorf("%s of 2 ranks only sample: exit code %d\n%s", samplers, code, p.stderr.String())
		}
	}
}
