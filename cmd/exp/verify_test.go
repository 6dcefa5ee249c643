package main

import (
	"database/sql"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/cmd/exp/cli"
	"exp/experiments/store"
	harness "exp/harness/run"
)

// The exit code reports a verification's finding, and lists show the proved level.
func TestVerifyCommand(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	smoke(t, dir, "--until", "train").succeeds(t)
	r := consistent(t, dir)
	if e := exp(t, "ls", "--store", dir); strings.Contains(e.stdout, "verified") {
		t.Errorf("nothing was verified:\n%s", e.stdout)
	}
	e := exp(t, "verify", "@last", "--steps", "2", "--store", dir)
	e.succeeds(t)
	if !strings.Contains(e.stdout, "prefix ok: ") || !strings.Contains(e.stdout, "steps 1–2 re-executed") {
		t.Errorf("verify:\n%s", e.stdout)
	}
	shows := func(ls, show string) {
		t.Helper()
		if e := exp(t, "ls", "--store", dir); !strings.Contains(e.stdout, "verified") || !strings.Contains(e.stdout, ls) {
			t.Errorf("ls lacks %q:\n%s", ls, e.stdout)
		}
		if e := exp(t, "show", "@last", "--store", dir); !strings.Contains(e.stdout, show) {
			t.Errorf("show lacks %q:\n%s", show, e.stdout)
		}
	}
	shows("✓prefix", "prefix ok, steps 1–2 re-executed")
	exp(t, "verify", "@last", "--level", "sample", "--completions", "3", "--store", dir).
		says(t, "6 completions of 2 training steps sampled again")

	weights := blobPath(t, dir, r, "train[]/weights")
	good, err := os.ReadFile(weights)
	if err != nil {
		t.Fatal(err)
	}
	bend(t, weights, flipped)
	e = exp(t, "verify", "@last", "--level", "blobs", "--json", "--store", dir)
	if e.code != 4 || !strings.Contains(e.stderr, "was changed: stage train: weights") {
		t.Errorf("exit code %d\n%s", e.code, e.stderr)
	}
	var got struct{ Data harness.Verification }
	if err := json.Unmarshal([]byte(e.stdout), &got); err != nil || got.Data.OK || len(got.Data.Findings) != 1 || got.Data.Findings[0].Where != "stage train: weights" {
		t.Errorf("%v\n%s", err, e.stdout)
	}
	shows("✗", "blobs FAILED")
	if err := os.WriteFile(weights, good, 0o644); err != nil {
		t.Fatal(err)
	}
	exp(t, "verify", "@last", "--level", "blobs", "--store", dir).succeeds(t)

	db := openRaw(t, dir)
	if _, err := db.Exec(`UPDATE runs SET numerics = 'cuda/sm_90'`); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"verify", "@last"}, {"resume", "@last"}} {
		exp(t, append(args, "--store", dir)...).refuses(t, 7, "numerics class cuda/sm_90", "use a machine of that class")
	}
	exp(t, "verify", "@last", "--level", "blobs", "--store", dir).succeeds(t) // takes no numbers

	for _, tt := range []struct {
		args []string
		code int
		text string
	}{
		{[]string{"verify"}, 2, "RUN"},
		{[]string{"verify", "@last", "--level", "all"}, 2, "blobs"},
		{[]string{"verify", "@last", "--level", "full", "--steps", "2"}, 2, "--steps is for --level prefix"},
		{[]string{"verify", "@last", "--level", "score", "--completions", "2"}, 2, "--completions is for --level prefix or sample"},
		{[]string{"verify", "@last", "--level", "sample", "--completions", "0"}, 2, "--completions 0: it must be at least 1"},
		{[]string{"verify", "@last", "--from", "0"}, 2, "must be at least 1"},
		{[]string{"verify", "nobody"}, 3, "nobody"},
		{[]string{"resume", "nobody"}, 3, "nobody"},
		{[]string{"resume", "@last", "--extend-steps", "-1"}, 2, "must be at least 1"},
		{[]string{"why", "@last", "trian"}, 2, "train"},
		{[]string{"why", "@last", "merge"}, 3, "no stage merge"},
	} {
		exp(t, append(tt.args, "--store", dir)...).refuses(t, tt.code, tt.text)
	}
	nowhere := filepath.Join(t.TempDir(), "none")
	exp(t, "verify", "@last", "--store", nowhere).refuses(t, 3, "no experiment store in "+nowhere)
}

// What was found decides the exit code.
func TestFoundError(t *testing.T) {
	damaged, diverged := harness.Finding{Where: "step 3"}, harness.Finding{Where: "step 4", Diverged: true}
	for _, tt := range []struct {
		list []harness.Finding
		want cli.ExitCode
	}{{[]harness.Finding{damaged}, cli.ExitIntegrity}, {[]harness.Finding{damaged, diverged}, cli.ExitDivergence}} {
		if f := describe(foundError(store.Run{}, &harness.Verification{Findings: tt.list}, false), nil); f.Code != tt.want {
			t.Errorf("%v: exit code %d, want %d", tt.list, f.Code, tt.want)
		}
	}
}

// Where a program gives the rewards and nothing else differs, it is the suspect, not the machine.
func TestFoundErrorOfReward(t *testing.T) {
	reward := harness.Finding{Where: "step 3", What: "executed again, rewards is 1, but 2 is recorded", Diverged: true}
	tokens := harness.Finding{Where: "step 4", What: "executed again, tokens is 1, but 2 is recorded", Diverged: true}
	for _, tt := range []struct {
		program bool
		list    []harness.Finding
		want    string
	}{
		{true, []harness.Finding{reward}, "does your program that scores answer differently"},
		{true, []harness.Finding{reward, tokens}, "exp doctor tests whether"},
		{false, []harness.Finding{reward}, "exp doctor tests whether"},
	} {
		f := describe(foundError(store.Run{}, &harness.Verification{Findings: tt.list}, tt.program), nil)
		if !strings.Contains(f.Help, tt.want) {
			t.Errorf("%v of a program %v: %q", tt.list, tt.program, f.Help)
		}
	}
}

// Resuming a run that is complete says so; extending one makes a child.
func TestResumeCommand(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	smoke(t, dir, "--until", "sft").succeeds(t)
	e := exp(t, "resume", "@last", "--store", dir, "--json")
	e.succeeds(t)
	exp(t, "resume", "@last", "--store", dir).succeeds(t)
	e = exp(t, "resume", "smoke", "--store", dir)
	if e.succeeds(t); !strings.Contains(e.stderr, "is complete; nothing is left to do") {
		t.Errorf("it does not say so:\n%s", e.stderr)
	}
	e = exp(t, "resume", "smoke", "--extend-steps", "2", "--store", dir)
	if e.succeeds(t); !strings.Contains(e.stderr, "replayed 3–4: 2/2 steps bit-identical") || !strings.Contains(e.stdout, "smoke-6steps") {
		t.Errorf("extended:\n%s%s", e.stderr, e.stdout)
	}
	if e = exp(t, "samples", "smoke-6steps", "--step", "1", "--suite", "train", "--store", dir); !strings.Contains(e.stderr,
		"which has the completions of the steps before: exp samples "+findRun(t, dir, "smoke", 0).RID.Short()) {
		t.Errorf("completions of a step before: %s", e.stderr)
	}
	whole := filepath.Join(t.TempDir(), "store")
	smoke(t, whole, "--set", "train.steps=6", "--until", "train").succeeds(t)
	if got, want := findRun(t, dir, "smoke-6steps", 0), findRun(t, whole, "smoke", 0); got.RID != want.RID || got.Chain != want.Chain || got.Parent == 0 {
		t.Errorf("child %s with chain %s and parent %d, trained from the start: %s with %s", got.RID.Short(), got.Chain.Short(), got.Parent, want.RID.Short(), want.Chain.Short())
	}
	// A shorter run takes the steps up to the checkpoint of step 2, and is the run that ends there.
	exp(t, "resume", "smoke", "--end-at", "3", "--store", dir).says(t, "smoke-3steps")
	smoke(t, whole, "--set", "train.steps=3", "--set", "name=cut").succeeds(t)
	got, want := findRun(t, dir, "smoke-3steps", 0), findRun(t, whole, "cut", 0)
	if got.RID != want.RID || got.Chain != want.Chain || got.Parent == 0 || !slices.Equal(got.Headline, want.Headline) {
		t.Errorf("run %+v, trained from the start: %+v", got, want)
	}
	exp(t, "verify", "smoke-3steps", "--level", "full", "--store", dir).succeeds(t)
	exp(t, "resume", "smoke", "--end-at", "1", "--store", dir).says(t, "keeps no checkpoint before step 1: the steps are executed from the first")
	exp(t, "resume", "smoke", "--end-at", "4", "--store", dir).refuses(t, 2, "has 4 steps; --extend-steps makes it longer")
	exp(t, "resume", "smoke", "--end-at", "2", "--from", "1", "--store", dir).refuses(t, 2, "give it alone")
}

// Each thing that makes a stage what it is, changed alone, is named.
func TestWhy(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	run := func(args ...string) { t.Helper(); smoke(t, dir, append(args, "--until", "train")...).succeeds(t) }
	ref := "@last"
	why := func(stage string, want ...string) {
		t.Helper()
		e := exp(t, "why", ref, stage, "--store", dir)
		e.succeeds(t)
		for _, w := range want {
			if !strings.Contains(strings.Join(strings.Fields(e.stdout), " "), w) {
				t.Errorf("why %s lacks %q:\n%s", stage, w, e.stdout)
			}
		}
	}
	run()
	first := findRun(t, dir, "smoke", 0).RID.Short()
	// A plan says it before.
	e := smoke(t, dir, "--set", "train.steps=5", "--dry-run")
	if e.succeeds(t); !strings.Contains(e.stdout, "unlike run "+first+": train.steps 4 → 5\n") {
		t.Errorf("the plan does not say why:\n%s", e.stdout)
	}
	why("train", "executed: the first stage of its kind")
	run("--seeds", "1")
	why("train", "executed: different seed than in the nearest earlier run", "seed seed=0 seed=1")
	why("sft", "cached: reused from run")
	run("--set", "train.optim.lr=2e-3")
	why("train", "different params", "params train.optim.lr 0.001 0.002")
	run("--set", "sft.steps=31")
	why("sft", "params sft.steps 30 31")
	why("train", "different input than", "input weights", "made by sft")
	run("--no-cache")
	ref = first
	why("train", "executed again although run")
	db := openRaw(t, dir)
	if _, err := db.Exec(`UPDATE stages SET numerics = 'cpu/other'`); err != nil {
		t.Fatal(err)
	}
	run("--seeds", "3")
	ref = "@last"
	why("train", "different numerics, seed")
}

// openRaw opens a store's database behind the store's back.
func openRaw(t *testing.T, dir string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite3", filepath.Join(dir, "exp.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// exp verify also regrades what joined a run later: other suites, and its own with other settings. What it
// cannot regrade it names.
func TestVerifyJoinedEvaluations(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	if err := os.CopyFS(dir, os.DirFS(smokeStore(t))); err != nil {
		t.Fatal(err)
	}
	puzzles := filepath.Join(t.TempDir(), "puzzles.jsonl")
	writeRows(t, puzzles, `{"nums":[3,4],"target":12}`, `{"nums":[5,6],"target":11}`)
	run := func(args ...string) ended { return call{}.run(append(args, "--store", dir)...) }
	run("eval", "smoke#0", "--suite", puzzles, "--n", "3").succeeds(t)
	run("eval", "smoke#0", "--suite", "test", "--n", "6", "--temperature", "0.5").succeeds(t)
	// Before and after training: 16 problems with 4 completions each; 2 with 3; 16 with 6.
	e := run("verify", "smoke#0", "--level", "full")
	e.succeeds(t)
	if !strings.Contains(e.stdout, "332 verdicts regraded") || strings.Contains(e.stdout, "NOT") {
		t.Errorf("%s", e.stdout)
	}

	db := openRaw(t, dir)
	change := func(text string) {
		t.Helper()
		res, err := db.Exec(text)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			t.Fatalf("%s: changed %d rows, %v", text, n, err)
		}
	}
	change(`UPDATE evals SET value = value + 0.25 WHERE n = 6 AND metric = 'pass@1'`)
	if e := run("verify", "smoke#0", "--level", "score"); e.code != 4 ||
		!strings.Contains(e.stderr, "was changed: test@start: pass@1 (and 1 more)") {
		t.Errorf("exit code %d\n%s", e.code, e.stderr)
	}
	change(`UPDATE evals SET value = value - 0.25 WHERE n = 6 AND metric = 'pass@1'`)
	// A later version, whose keys this one does not know, made the stage.
	change(`UPDATE stages SET sid = zeroblob(32), params = json_set(params, '$."eval.later"', 1)
		WHERE kind = 'eval.score' AND label = 'puzzles'`)
	e = run("verify", "smoke#0", "--level", "score")
	e.succeeds(t)
	if !strings.Contains(e.stdout, "326 verdicts regraded, 5 stages repeated; NOT checked: the scores on puzzles, 3 samples each") {
		t.Errorf("%s", e.stdout)
	}
}

func TestVerifiedText(t *testing.T) {
	v := &harness.Verification{Level: harness.LevelFull, OK: true, Blobs: 1, Chain: 1, Inexact: 1, Verdicts: 1,
		Stages: []string{"train"}}
	want := "full ok: 1 file hashed, the chain of 1 step recomputed, 1 step not recomputable from the store, 1 verdict regraded, 1 stage repeated"
	if got := verifiedText(v); !strings.HasSuffix(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
