package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/cmd/exp/term"
	"exp/experiments/ident"
	"exp/experiments/recorded"
	"exp/experiments/store"
)

func TestShowPages(t *testing.T) {
	dir := fixtureStore(t)
	golden(t, "show_80", pages(t, fixtureCall(t, 80, false), dir, "show flowrl-a#0", "show ppo-b#1", "show grpo-c"))
	golden(t, "show_120_color", pages(t, fixtureCall(t, 120, true), dir, "show flowrl-a#0"))
	golden(t, "show_parts", pages(t, fixtureCall(t, 0, false), dir, "show flowrl-a#0 --stages", "show flowrl-a#0 --config", "show flowrl-a#0 --env",
		"show flowrl-a#0 --lineage", "show flowrl-a#0 --config --env", "show ppo-b#0 -o wide"))
	golden(t, "show_json", pages(t, fixtureCall(t, 0, false), dir, "show flowrl-a#0 --json", "show flowrl-a#0 --fields name,seed,status", "show ppo-b#0 --lineage -o yaml"))
}

// TestOutputsText: prepare says how many of a file's rows are problems, also from the
// cache.
func TestOutputsText(t *testing.T) {
	st := &recorded.Stage{Result: recorded.Decode([]byte(`{"train":17917,"train_rows":1791700,"val":30,"val_rows":30,"test":8}`)),
		Outputs: []store.IO{{Role: "problems/train", Size: 2048}, {Role: "problems/val", Size: 1024}, {Role: "problems/test", Size: 10}, {Role: "rollouts", Digest: ident.Sum(nil)}}}
	if got, want := outputsText(st), "train 17917 of 1.79M rows (2.00 KiB), val 1.00 KiB, test 10 B, rollouts 0 B"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	st = &recorded.Stage{Outputs: []store.IO{{Role: "curve", Size: 4096}, {Role: "weights"}}}
	if got, want := outputsText(st), "curve 4.00 KiB, weights not here"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	st.Outputs = append(st.Outputs, st.Outputs[1], st.Outputs[1], st.Outputs[0])
	if got, want := outputsText(st), "5 files (3 not here), 8.00 KiB"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// An interval of a metric that cannot be negative does not reach below zero.
func TestScoreText(t *testing.T) {
	lo, hi := -0.036, 0.203
	score := &recorded.Score{Value: 0.083, Lo: &lo, Hi: &hi}
	for metric, want := range map[string]string{"distinct_correct": "[0.000, 0.203]", "reward_mean": "[-0.036, 0.203]"} {
		if _, got := scoreText(metric, score); got != want {
			t.Errorf("%s: %v, want %s", metric, got, want)
		}
	}
}

// TestShowFits: lines fit the terminal, however narrow, except paths, which people copy.
func TestShowFits(t *testing.T) {
	dir := smokeStore(t)
	for _, columns := range []int{80, 100, 120} {
		c := fixtureCall(t, columns, false)
		for _, line := range []string{"ls", "ls --group xid", "show smoke#1", "metrics smoke#0", "samples smoke#0", "diff smoke#0 smoke-ppo", "diff smoke#0 smoke#1"} {
			got := c.run(append(strings.Fields(line), "--store", dir)...)
			for text := range strings.Lines(got.stdout) {
				text = strings.TrimSuffix(text, "\n")
				if term.Width(text) > columns && !strings.Contains(text, "/runs/") {
					t.Errorf("exp %s on %d columns: %d wide: %q", line, columns, term.Width(text), text)
				}
			}
		}
	}
}

// Of pass@k the page has the first and the last k; pass@1 of a kind of problems is another metric.
func TestMainResults(t *testing.T) {
	var list []recorded.Result
	for _, name := range []string{"pass@1", "pass@2", "pass@4", "pass@1/math", "pass@1/code", "reward_mean/code"} {
		list = append(list, recorded.Result{Suite: "test", Metric: name})
	}
	for allK, want := range map[bool]string{false: "pass@1 pass@4 pass@1/math pass@1/code reward_mean/code",
		true: "pass@1 pass@2 pass@4 pass@1/math pass@1/code reward_mean/code"} {
		var names []string
		for _, r := range mainResults(list, allK) {
			names = append(names, r.Metric)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("all %t: %s, want %s", allK, got, want)
		}
	}
}

// TestShowSmoke shows a run that was really executed.
func TestShowSmoke(t *testing.T) {
	dir := smokeStore(t)
	c := call{}
	got := c.run("show", "smoke#1", "--store", dir, "--json")
	var page struct{ Data recorded.Run }
	if err := json.Unmarshal([]byte(got.stdout), &page); err != nil || got.code != 0 {
		t.Fatalf("%v: %+v", err, got)
	}
	s := page.Data
	if s.Name != "smoke" || s.Seed != 1 || s.Status != store.Done || s.Steps != 4 || s.Chain.IsZero() || len(s.Damage) > 0 || len(s.Divergences) > 0 {
		t.Errorf("got %+v", s)
	}
	var statuses []string
	for _, st := range s.Stages {
		statuses = append(statuses, st.Name()+" "+string(st.Status))
	}
	want := []string{"prepare cached", "init cached", "sft cached", "train done", "merge done", "eval.gen test@start cached", "eval.score test@start cached",
		"eval.gen test done", "eval.score test done"}
	if !slices.Equal(statuses, want) {
		t.Errorf("stages %q, want %q", statuses, want)
	}
	if i := slices.IndexFunc(s.Results, func(r recorded.Result) bool { return r.Metric == "pass@1" }); i < 0 || s.Results[i].Before == nil || s.Results[i].After == nil || s.Results[i].Items != 16 {
		t.Errorf("results %+v", s.Results)
	}
	if _, err := os.Stat(filepath.Join(s.ModelDir, "model.safetensors")); err != nil {
		t.Errorf("no model where the page says: %v", err)
	}
	if len(s.Checkpoints) != 1 || s.Checkpoints[0].Step != 2 || s.Checkpoints[0].Path == "" {
		t.Errorf("checkpoints %+v", s.Checkpoints)
	}
	// The printed configuration runs again.
	config := c.run("show", "smoke#1", "--store", dir, "--config")
	file := filepath.Join(t.TempDir(), "again.yaml")
	if err := os.WriteFile(file, []byte(config.stdout), 0o644); err != nil {
		t.Fatal(err)
	}
	c.run("config", "check", file, "-q").check(t, 0, c.run("config", "check", file, "-q").stdout)
	if again := c.run("run", file, "--seeds", "1", "--store", dir, "--dry-run", "--json"); !strings.Contains(again.stdout, s.Run.String()) {
		t.Errorf("the printed configuration is another run:\n%s", again.stdout)
	}
}

func TestShowSource(t *testing.T) {
	dir := smokeStore(t)
	c := call{}
	to := filepath.Join(t.TempDir(), "deep", "sources")
	got := c.run("show", "smoke#1", "--store", dir, "--source", to)
	if got.code != 0 || got.stderr != "" || !strings.Contains(got.stdout, " files of run ") {
		t.Fatalf("got %+v", got)
	}
	for _, name := range []string{"go.mod", "train/train.go"} {
		want, err := os.ReadFile(filepath.Join("..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		have, err := os.ReadFile(filepath.Join(to, name))
		if err != nil || string(have) != string(want) {
			t.Errorf("%s: %v, or other text than this program was built from", name, err)
		}
	}
	// An existing folder stays untouched; an empty one is filled.
	c.run("show", "smoke#1", "--store", dir, "--source", to).check(t, 2, "", "will not be overwritten")
	empty := t.TempDir()
	if got := c.run("show", "smoke#1", "--store", dir, "--source", empty); got.code != 0 {
		t.Errorf("an empty folder: %+v", got)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(to), ".exp-source-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	c.run("show", "smoke#1", "--store", dir, "--source", file).check(t, 2, "", "will not be overwritten")
}

// TestShowSourceOfOthers: a stage that other sources executed is named, and a run
// without sources says so.
func TestShowSourceOfOthers(t *testing.T) {
	dir := fixtureStore(t)
	db, err := store.Open(dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := builder{t: t, db: db}
	runs, err := db.Runs(b.ctx(), store.RunQuery{Name: "flowrl-a"})
	b.must(err)
	s := b.source()
	s.Code, s.Files = digestOf("other code"), slices.Clone(s.Files)
	s.Files[0].SHA256 = digestOf("another text")
	b.must(db.AddSource(b.ctx(), s))
	st, err := db.BeginStage(b.ctx(), store.Stage{SID: digestOf("late"), Run: runs[2].ID, Kind: "eval.score", Label: "late", Code: s.Code})
	b.must(err)
	b.must(db.FinishStage(b.ctx(), st.ID, nil, store.StageResult{}, nil))
	b.must(db.Close())
	c := fixtureCall(t, 0, false)
	got := c.run("show", "flowrl-a#0", "--store", dir, "--source", filepath.Join(t.TempDir(), "s"))
	if got.code != 0 || !strings.Contains(got.stderr, "executed by other sources: eval.score late") {
		t.Errorf("got %+v", got)
	}
}

// TestShowDamage: a run whose results are not there any more says so first.
func TestShowDamage(t *testing.T) {
	dir := fixtureStore(t)
	db, err := store.Open(dir, store.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	path := db.Blobs.Path(digestOf("trained"))
	db.Close()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	got := fixtureCall(t, 80, false).run("show", "flowrl-a#0", "--store", dir)
	if first, _, _ := strings.Cut(got.stdout, "\n"); first != "damaged: train: output weights ("+digestOf("trained").Short()+") is missing or has the wrong size" {
		t.Errorf("first line %q", first)
	}
}

func TestShowDivergence(t *testing.T) {
	dir := fixtureStore(t)
	db, err := store.Open(dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := builder{t: t, db: db}
	runs, err := db.Runs(b.ctx(), store.RunQuery{Name: "ppo-b"})
	b.must(err)
	again := store.Step{Chain: digestOf("other")}
	again.Det.Step = 3
	w := db.NewStepWriter(runs[1].ID, 0, nil)
	if err := w.Record(again); err == nil {
		err = w.Close()
		if err == nil {
			t.Fatal("no divergence")
		}
	}
	_ = w.Close()
	b.must(db.Close())
	got := fixtureCall(t, 80, false).run("show", "ppo-b#0", "--store", dir)
	if !strings.HasPrefix(got.stdout, "diverged: run "+runs[1].RID.Short()+": step 3: ") {
		t.Errorf("page begins %q", got.stdout[:min(len(got.stdout), 100)])
	}
}

func TestShowDeleted(t *testing.T) {
	got := fixtureCall(t, 80, false).run("show", "old", "--store", fixtureStore(t))
	if first, _, _ := strings.Cut(got.stdout, "\n"); first != "old#0  "+digestOf("ridold0").Short()+"  pending, deleted" {
		t.Errorf("first line %q; %s", first, got.stderr)
	}
}

func TestShowErrors(t *testing.T) {
	dir := fixtureStore(t)
	tests := []struct {
		args   string
		code   int
		stderr string
	}{
		{"show", 2, "exp show needs RUN"},
		{"show a b", 2, "takes no argument \"b\""},
		{"show flowrl-a", 3, "\"flowrl-a\" matches 3 runs:"},
		{"show flowrl-a#9", 3, "no run matches \"flowrl-a#9\""},
		{"show flow-a#1", 3, "did you mean flowrl-a?"},
		{"show 123", 3, "an id needs at least 4 digits"},
		{"show @last --fields nme", 2, "did you mean name?"},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			got := call{now: fixtureNow}.run(append(strings.Fields(tt.args), "--store", dir)...)
			if got.code != tt.code || !strings.Contains(got.stderr, tt.stderr) || got.stdout != "" {
				t.Errorf("got %+v, want code %d and %q", got, tt.code, tt.stderr)
			}
		})
	}
}
