package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// The commands that a finished run suggests work: only arms that can be compared are
// named.
func TestNextCommands(t *testing.T) {
	if testing.Short() {
		t.Skip("trains models")
	}
	dir := filepath.Join(t.TempDir(), "store")
	run := func(args ...string) ended {
		e := exp(t, append([]string{"run", "--store", dir, "--set", "train.steps=2"}, args...)...)
		e.succeeds(t)
		return e
	}
	partly := run(smokeRecipe, "--until", "sft")
	partly.says(t, "next:", "exp resume ")
	if strings.Contains(partly.stderr, "exp samples") {
		t.Errorf("a run without samples suggests to read them:\n%s", partly.stderr)
	}
	alone := run(smokeRecipe)
	alone.says(t, "next:", "exp report smoke --out report --store "+dir+"\n")
	if strings.Contains(alone.stderr, "exp compare") {
		t.Errorf("one run is compared:\n%s", alone.stderr)
	}
	// The newer run has other steps, so PPO is compared with the older one.
	run(smokeRecipe, "--set", "name=longer", "--set", "train.steps=3")
	ppo := run(smokeRecipe, "--set", "name=smoke-ppo", "--set", "algo.kind=ppo")
	ppo.says(t, "exp compare smoke-ppo smoke --store "+dir+"\n", "exp report smoke-ppo smoke --out report --store "+dir)
	exp(t, "compare", "smoke-ppo", "smoke", "--store", dir).succeeds(t)
	exp(t, "compare", "smoke-ppo", "longer", "--store", dir).refuses(t, 6, "train.steps")

	// A run without an evaluation sampled only in training.
	run(smokeRecipe, "--set", "name=unscored", "--set", "seed=7", "--set", "eval.final.suites=[]").says(t, " --suite train --store "+dir+"\n")
	exp(t, "samples", "unscored", "--suite", "train", "--store", dir).succeeds(t)

	// A run that is repeated under another name is found by both.
	run(smokeRecipe, "--set", "name=again").says(t, "is recorded as smoke already; again now finds it too", "  smoke (also again)  ")
	for _, ref := range []string{"again", "again#0", "smoke#0"} {
		exp(t, "show", ref, "--store", dir).says(t, "smoke#0", "also named  again\n", "name:again")
	}
	exp(t, "ls", "--store", dir).says(t, "  smoke (also again)  ")
	listed := exp(t, "ls", "again", "--store", dir, "-o", "csv", "--fields", "name,also_named")
	if listed.succeeds(t); !strings.Contains(listed.stdout, "smoke,again\n") {
		t.Errorf("for programs:\n%s", listed.stdout)
	}
	exp(t, "show", "again#1", "--store", dir).refuses(t, 3)
	exp(t, "rm", "again", "--yes", "--store", dir).refuses(t, 2, "again is another name of run", "smoke#0")
	// A run that has the name itself takes it back.
	run(smokeRecipe, "--set", "name=again", "--set", "train.steps=1")
	if e := exp(t, "ls", "--store", dir); strings.Contains(e.stdout, "also again") {
		t.Errorf("another run has the name:\n%s", e.stdout)
	}
	exp(t, "rm", "again", "--yes", "--store", dir).succeeds(t)
	exp(t, "show", "smoke", "--store", dir).says(t, "smoke#0", "also named  again")

	// An edited recipe has the name of the earlier experiment.
	edited := run(smokeRecipe, "--set", "train.optim.lr=0.002")
	edited.says(t, "exp report xid:")
	_, arm, _ := strings.Cut(edited.stderr, "exp report ")
	arm, _, _ = strings.Cut(arm, " ")
	exp(t, "report", arm, "--out", filepath.Join(t.TempDir(), "report"), "--store", dir).succeeds(t)
	run(smokeRecipe, "--set", "train.optim.lr=0.002", "--set", "name=smoke-ppo", "--set", "algo.kind=ppo").says(t,
		"exp compare xid:", " "+arm+" --store "+dir+"\n")
}

// A run that two configurations describe is one row, and has its own next commands.
func TestSameRunTwice(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	got := exp(t, "run", smokeRecipe, smokeRecipe, "--store", dir, "--until", "init", "-o", "csv", "--no-header")
	got.succeeds(t)
	if n := strings.Count(got.stdout, "\n"); n != 1 {
		t.Errorf("%d rows:\n%s", n, got.stdout)
	}
}
