package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"exp/experiments/store"
)

// A program that is built from the sources in the record makes the recorded run: its
// id and its bits. One whose sources were changed makes another run, and exp why names
// the files.
func TestRebuild(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds the program twice")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("the go command is missing")
	}
	src := filepath.Join(t.TempDir(), "src")
	exp(t, "show", "smoke#0", "--store", smokeStore(t), "--source", src).succeeds(t)
	dir := filepath.Join(t.TempDir(), "store")

	rebuilt := buildAndRun(t, src, dir)
	recorded := findRun(t, smokeStore(t), "smoke", 0)
	if rebuilt.runs[0].RID != recorded.RID || rebuilt.runs[0].Chain != recorded.Chain || recorded.Steps != 4 {
		t.Errorf("built from the kept sources: run %s with chain %s; recorded: %s with %s", rebuilt.runs[0].RID.Short(), rebuilt.runs[0].Chain.Short(), recorded.RID.Short(), recorded.Chain.Short())
	}

	// What imports a changed package is compiled again: a comment is changed in one of the few that
	// import the optimizer, and the bits are by an optimizer that counts its steps from two.
	edit(t, filepath.Join(src, "train", "batch.go"), "// batch holds", "// batch keeps")
	edit(t, filepath.Join(src, "train", "optim", "adamw.go"), "Step: o.step,", "Step: o.step + 1,")
	changed := buildAndRun(t, src, dir).runs[0] // the newest
	if changed.RID == recorded.RID || changed.XID == recorded.XID || changed.Chain == recorded.Chain {
		t.Errorf("with other sources: run %s with chain %s, as before", changed.RID.Short(), changed.Chain.Short())
	}
	e := exp(t, "why", changed.RID.Short(), "train", "--store", dir)
	e.succeeds(t)
	for _, want := range []string{"train/batch.go", "train/optim/adamw.go", "different code, input than"} {
		if !strings.Contains(e.stdout, want) {
			t.Errorf("why does not say %q:\n%s", want, e.stdout)
		}
	}
	d := exp(t, "diff", rebuilt.runs[0].RID.Short(), changed.RID.Short(), "--code", "--store", dir)
	d.says(t, "\n--- a/train/optim/adamw.go\n+++ b/train/optim/adamw.go\n@@ -", "Step: o.step,", "\n-// batch holds", "\n+// batch keeps")
	if n := strings.Count(d.stdout, "\n@@ "); n != 2 {
		t.Errorf("%d hunks, want 2:\n%s", n, d.stdout)
	}
	exp(t, "diff", rebuilt.runs[0].RID.Short(), changed.RID.Short(), "--store", dir).says(t, "train/batch.go", "--code shows the lines")
	// And this program does not pretend to be the other.
	exp(t, "resume", changed.RID.Short(), "--store", dir).refuses(t, 7, "made by other sources", "train/batch.go",
		"exp show "+changed.RID.Short()+" --source DIR")
}

// buildAndRun builds the program in a folder and trains the smoke recipe with it.
func buildAndRun(t *testing.T, src, dir string) record {
	t.Helper()
	program := filepath.Join(t.TempDir(), "exp")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, "./cmd/exp")
	build.Dir = src
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run := exec.Command(program, "-q", "run", smokeRecipe, "--until", "train", "--store", dir)
	run.Env = []string{"HOME=" + t.TempDir()}
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return consistent(t, dir)
}

// edit replaces the one place of a text in a file.
func edit(t *testing.T, path, old, new string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil || strings.Count(string(b), old) != 1 {
		t.Fatalf("%s has %q %d times, %v", path, old, strings.Count(string(b), old), err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(b), old, new, 1)), 0o666); err != nil {
		t.Fatal(err)
	}
}

// findRun returns the run of a name and a seed.
func findRun(t *testing.T, dir, name string, seed int64) store.Run {
	t.Helper()
	db, err := store.Open(dir, store.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	runs, err := db.Runs(context.Background(), store.RunQuery{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range runs {
		if r.Seed == seed {
			return r
		}
	}
	t.Fatalf("no run %s#%d", name, seed)
	return store.Run{}
}
