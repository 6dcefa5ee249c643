package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// savedSteps returns the names of a store's checkpoints of training.
func savedSteps(t *testing.T, dir string) (names []string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "runs", "*", "ckpt", "train-*", "step-*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		names = append(names, filepath.Base(f))
	}
	return names
}

// Checkpoints by time: after each step if the time is short, none if it is long. The run is the
// same.
func TestCheckpointMinutes(t *testing.T) {
	off := []string{"--set", "checkpoint.every_steps=0", "--set", "checkpoint.every_minutes"}
	want := unbroken(t, append(off[:2:2], "--set", "checkpoint.every_minutes=0")...)
	for minutes, steps := range map[string][]string{"=0.0000001": {"step-00000002", "step-00000003"}, "=600": nil} {
		args := append(slices.Clone(off[:3]), off[3]+minutes)
		dir := filepath.Join(t.TempDir(), "store")
		smoke(t, dir, args...).succeeds(t)
		consistent(t, dir).same(t, want)
		if got := savedSteps(t, dir); !slices.Equal(got, steps) {
			t.Errorf("every_minutes%s saved %v, want %v", minutes, got, steps)
		}
	}
	needsMPI(t)
	dir := filepath.Join(t.TempDir(), "store")
	p := start(t, append([]string{"run", smokeRecipe, "--store", dir, "--ranks", "2"}, off[0], off[1], off[2],
		off[3]+"=0.0000001")...)
	if code := p.end(); code != 0 {
		t.Fatalf("exit code %d\n%s", code, p.stderr.String())
	}
	consistent(t, dir).same(t, want)
	if got := savedSteps(t, dir); len(got) != 2 {
		t.Errorf("two ranks saved %v, want two checkpoints", got)
	}
}

// A run that is killed after a checkpoint by time has recorded the steps and completions before it:
// it continues behind them.
func TestKillAfterTimedCheckpoint(t *testing.T) {
	if testing.Short() {
		t.Skip("runs processes")
	}
	timed := []string{"--set", "train.steps=40", "--set", "eval.online.every_steps=0", "--set", "checkpoint.every_steps=0",
		"--set", "checkpoint.every_minutes=0.0000001"}
	whole := filepath.Join(t.TempDir(), "unbroken")
	smoke(t, whole, timed...).succeeds(t)
	dir := filepath.Join(t.TempDir(), "store")
	p := start(t, append([]string{"run", smokeRecipe, "--store", dir}, timed...)...)
	p.reaches(t, 10)
	p.Process.Kill()
	if code := p.end(); code != -1 {
		t.Fatalf("exit code %d: it was faster than the kill\n%s", code, p.stderr.String())
	}
	e := exp(t, append([]string{"run", smokeRecipe, "--store", dir}, timed...)...)
	e.succeeds(t)
	if !strings.Contains(e.stderr, "resuming from the checkpoint of step") {
		t.Errorf("it did not continue from a checkpoint:\n%s", e.stderr)
	}
	consistent(t, dir).same(t, consistent(t, whole))
	if got, want := rowsOf(t, dir), rowsOf(t, whole); got != want {
		t.Errorf("%+v rows are recorded, unbroken: %+v", got, want)
	}
}
