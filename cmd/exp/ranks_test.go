package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"exp/harness/ranks/launch"
	"exp/harness/ranks/mpi"
)

// needsMPI skips a test where MPI is not installed.
func needsMPI(t *testing.T) {
	t.Helper()
	if _, err := mpi.Load(os.Getenv(mpiVariable)); err != nil {
		t.Skip(err)
	}
	if _, err := launch.Find(os.Getenv); err != nil {
		t.Skip(err)
	}
}

// Three ranks record the run of one: id, steps, chain, weights, completions; and one process
// proves it.
func TestRanks(t *testing.T) {
	needsMPI(t)
	want := unbroken(t)
	dir := filepath.Join(t.TempDir(), "store")
	p := start(t, "run", smokeRecipe, "--store", dir, "--ranks", "3")
	if code := p.end(); code != 0 {
		t.Fatalf("exit code %d\n%s", code, p.stderr.String())
	}
	consistent(t, dir).same(t, want)
	exp(t, "verify", "@last", "--level", "full", "--store", dir).succeeds(t)
	if left, _ := filepath.Glob(filepath.Join(dir, "ranks", "*")); left != nil {
		t.Errorf("the job left %v", left)
	}
}

// cardOf waits until a rank of a job is in training, and returns its card.
func cardOf(t *testing.T, dir, rank string) (c launch.Card) {
	t.Helper()
	for range 600 {
		found, _ := filepath.Glob(filepath.Join(dir, "ranks", "*", rank+".json"))
		if len(found) == 1 {
			b, err := os.ReadFile(found[0])
			if err == nil && json.Unmarshal(b, &c) == nil && c.Stage == "train" && c.Step > 6 {
				return c
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("rank %s did not come to train", rank)
	return c
}

// The error about a killed rank names it and says how to continue; a hanging rank ends the
// run after the time limit. Any number of ranks continues to the bits of an undisturbed run.
func TestRanksLost(t *testing.T) {
	needsMPI(t)
	long := []string{"--set", "train.steps=30", "--set", "checkpoint.every_steps=4", "--set", "eval.online.every_steps=0"}
	dir := filepath.Join(t.TempDir(), "store")
	p := start(t, append([]string{"run", smokeRecipe, "--store", dir, "--ranks", "3"}, long...)...)
	if err := syscall.Kill(cardOf(t, dir, "1").PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	at := time.Now()
	code, text := p.end(), p.stderr.String()
	if took := time.Since(at); code != 8 || took > 10*time.Second {
		t.Errorf("exit code %d after %v", code, took)
	}
	for _, want := range []string{"rank 1 on ", "was killed by signal 9 in step ", "last checkpoint: step ", "exp resume "} {
		if !strings.Contains(text, want) {
			t.Errorf("the message lacks %q:\n%s", want, text)
		}
	}

	p = startWith(t, []string{rankTimeoutVariable + "=1s"}, "resume", "@last", "--store", dir, "--ranks", "2")
	hung := cardOf(t, dir, "1").PID
	if err := syscall.Kill(hung, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	code, text = p.end(), p.stderr.String()
	if code != 8 || !strings.Contains(text, "rank 0 has waited 1s for a message of rank 1") {
		t.Errorf("exit code %d\n%s", code, text)
	}
	p = start(t, "resume", "@last", "--store", dir, "--ranks", "4")
	if code := p.end(); code != 0 {
		t.Fatalf("exit code %d\n%s", code, p.stderr.String())
	}
	consistent(t, dir).same(t, unbroken(t, long...))
}

// What cannot run on ranks is refused before anything starts.
func TestRanksRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	smoke(t, dir, "--ranks", "9").refuses(t, 2, "smoke has 8 slices (train.slices), and every rank needs one")
	smoke(t, dir, "--ranks", "0").refuses(t, 2, "it must be at least 1")
	smoke(t, dir, "--set", "train.slices=6").refuses(t, 2, "train.slices (6) is not a power of two", "4 or 8")
	needsMPI(t)
	got := call{env: map[string]string{mpiVariable: "/none"}}.run("run", smokeRecipe, "--store", dir, "--ranks", "2")
	got.refuses(t, 7, "no MPI library: /none", "apt install")
	if _, err := os.Stat(filepath.Join(dir, "exp.db")); err == nil {
		t.Error("a refused run made a store")
	}
}
