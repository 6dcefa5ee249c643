package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
	"exp/experiments/store"
)

// Commands that look after the store, each on stores that were really made.

// ownSmokeStore is a copy of the smoke store that a test may change.
func ownSmokeStore(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	if err := os.CopyFS(dir, os.DirFS(smokeStore(t))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// later runs the program two days from now: everything in a store is old then.
func later(t *testing.T, args ...string) ended {
	t.Helper()
	return call{now: time.Now().Add(48 * time.Hour), env: map[string]string{"HOME": t.TempDir(), "NO_COLOR": "1"}}.run(args...)
}

// says checks that the program succeeded and that stdout and stderr together hold texts.
func (e ended) says(t *testing.T, texts ...string) {
	t.Helper()
	e.succeeds(t)
	for _, text := range texts {
		if !strings.Contains(e.stdout+e.stderr, text) {
			t.Errorf("nothing says %q:\n%s%s", text, e.stdout, e.stderr)
		}
	}
}

func TestKeepingHelp(t *testing.T) {
	list := commandList()
	for _, name := range []string{"tag", "note", "pin", "rm", "restore", "gc", "fsck", "graph", "stop", "log", "query"} {
		got := call{env: map[string]string{"EXP_FORCE_TTY": "80", "NO_COLOR": "1"}}.run("help", name)
		got.succeeds(t)
		for line := range strings.Lines(got.stdout) {
			if w := term.Width(strings.TrimSuffix(line, "\n")); w > 80 {
				t.Errorf("exp help %s: %d columns: %q", name, w, line)
			}
		}
		i := slices.IndexFunc(list, func(c *cli.Command) bool { return c.Name == name })
		if n := len(examplesOf(list[i].UsageText)); n < 2 {
			t.Errorf("exp help %s has %d examples", name, n)
		}
	}
}

// Every command prints its result in every format.
func TestKeepingFormats(t *testing.T) {
	dir := ownSmokeStore(t)
	exp(t, "tag", "smoke-ppo", "seen", "--store", dir).succeeds(t)
	exp(t, "note", "smoke-ppo", "a", "remark", "--store", dir).succeeds(t)
	exp(t, "rm", "smoke#1", "--yes", "--store", dir).succeeds(t)
	for _, args := range []string{"tag smoke-ppo", "note smoke-ppo", "pin smoke-ppo", "rm smoke#0 --dry-run", "gc", "gc --list", "fsck", "graph smoke-ppo", "log smoke-ppo", "query --schema",
		"query|SELECT name, rid, h1, NULL AS none FROM runs ORDER BY id"} {
		words := strings.Fields(args)
		if cmd, sql, ok := strings.Cut(args, "|"); ok {
			words = []string{cmd, sql}
		}
		for _, f := range cli.Formats {
			got := later(t, append(slices.Clone(words), "--store", dir, "-o", string(f))...)
			if f == cli.FormatName && (words[0] == "pin" || words[0] == "fsck") {
				got.refuses(t, 2, `no format "name"`)
				continue
			}
			got.succeeds(t)
			if strings.TrimSpace(got.stdout) == "" {
				t.Errorf("exp %s -o %s prints nothing", args, f)
			}
			if f == cli.FormatJSON {
				var envelope struct {
					Schema string
					Data   any
				}
				if err := json.Unmarshal([]byte(got.stdout), &envelope); err != nil || !strings.HasPrefix(envelope.Schema, "exp.") || envelope.Data == nil {
					t.Errorf("exp %s --json: %v\n%s", args, err, got.stdout)
				}
			}
		}
	}
}

func TestTagAndNote(t *testing.T) {
	dir := ownSmokeStore(t)
	exp(t, "tag", "smoke#0", "b", "a", "--store", dir, "-o", "name").check(t, 0, "a\nb\n")
	exp(t, "tag", "smoke#0", "--remove", "b", "--store", dir, "-o", "name").check(t, 0, "a\n")
	exp(t, "tag", "smoke#0", "-r", "b", "--store", dir).refuses(t, 3, `has no tag "b"`, "help: it has a")
	exp(t, "tag", "smoke#0", "two words", "--store", dir).refuses(t, 2, "cannot be a tag")
	exp(t, "tag", "smoke", "x", "--store", dir).refuses(t, 3, "matches 2 runs")
	exp(t, "ls", "tag:a", "--store", dir, "--fields", "name,seed", "-o", "csv").check(t, 0, "name,seed\nsmoke,0\n")
	exp(t, "note", "smoke#0", "one", "--store", dir).succeeds(t)
	exp(t, "note", "smoke#0", "and", "two", "--store", dir, "-o", "csv", "--fields", "n,text").check(t, 0, "n,text\n1,one\n2,and two\n")
	exp(t, "note", "smoke#0", "--remove", "1", "--store", dir, "-o", "csv", "--fields", "n,text").check(t, 0, "n,text\n1,and two\n")
	exp(t, "note", "smoke#0", "--remove", "2", "--store", dir).refuses(t, 3, "has no remark 2", "it has 1")
	exp(t, "show", "smoke#0", "--store", dir).says(t, "and two")
	exp(t, "note", "smoke#0", "   ", "--store", dir).refuses(t, 2, "empty")
}

// A store is never made by a command that changes one.
func TestKeepingWithoutStore(t *testing.T) {
	for _, args := range []string{"tag x y", "note x y", "pin x", "rm x --yes", "restore x", "gc --apply", "fsck --repair", "stop x", "log x", "graph x", "query 1"} {
		dir := filepath.Join(t.TempDir(), "none")
		exp(t, append(strings.Fields(args), "--store", dir)...).refuses(t, 3, "no experiment store")
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("exp %s made a store", args)
		}
	}
}

func TestRemoveRestoreCollect(t *testing.T) {
	dir := ownSmokeStore(t)
	at := func(args ...string) []string { return append(args, "--store", dir) }
	exp(t, at("rm", "smoke#1")...).refuses(t, 2, "needs --yes", "help: --dry-run")
	before := contents(t, dir)
	exp(t, at("rm", "smoke#0", "--dry-run")...).says(t, "smoke")
	if after := contents(t, dir); after != before {
		t.Errorf("a dry run changed the store:\n%s\nbefore:\n%s", after, before)
	}
	exp(t, at("ls", "-o", "csv", "--fields", "name,seed")...).check(t, 0, "name,seed\nsmoke-ppo,0\nsmoke,1\nsmoke,0\n")
	// smoke#1 and smoke-ppo reuse what smoke#0 made: it says so, and they stay whole.
	exp(t, at("rm", "smoke#0", "smoke#1", "--yes")...).says(t, "is needed by", "which stay complete")
	exp(t, at("ls", "-o", "csv", "--fields", "name,seed")...).check(t, 0, "name,seed\nsmoke-ppo,0\n")
	exp(t, at("restore", "smoke#1")...).says(t, "smoke")
	exp(t, at("rm", "smoke#1", "--yes", "-q")...).succeeds(t)
	exp(t, at("restore", "smoke-ppo")...).refuses(t, 3, "(smoke-ppo#0) is not deleted", "exp ls --deleted")
	exp(t, at("restore", "smoke-pp")...).refuses(t, 3, `no run matches "smoke-pp"`, "exp ls --deleted")

	// Everything is young: only files' age holds the blobs back, not the run.
	before = contents(t, dir)
	later(t, at("gc")...).says(t, "deleted runs", "can be removed; --apply does it")
	if after := contents(t, dir); after != before {
		t.Error("gc without --apply removed something")
	}
	later(t, at("gc", "--older-than", "3d")...).says(t, "nothing to remove")
	later(t, at("gc", "--apply")...).says(t, "freed")
	later(t, at("gc", "--apply")...).says(t, "nothing to remove")
	exp(t, at("fsck", "--deep")...).says(t, "everything is as recorded")
	exp(t, at("restore", "smoke#1")...).refuses(t, 3, `no run matches "smoke#1"`)
	exp(t, at("restore", "smoke#0")...).says(t, "smoke") // kept, since smoke-ppo depends on it
	exp(t, at("show", "smoke#0")...).says(t, "smoke#0")
	exp(t, at("fsck", "--deep")...).says(t, "everything is as recorded")
	// Rerunning restores what was removed, to the same bits.
	smoke(t, dir, "--seeds", "1").succeeds(t)
	want, got := chainOf(t, smokeStore(t), 1), chainOf(t, dir, 1)
	if want != got || got == "" {
		t.Errorf("chain %q, want %q", got, want)
	}
	exp(t, at("gc", "--budget", "lots")...).refuses(t, 2, "--budget", "20GiB")
	exp(t, at("gc", "--older-than", "soon")...).refuses(t, 2, "--older-than", "30d")
}

func chainOf(t *testing.T, dir string, seed int64) string {
	t.Helper()
	db, err := store.Open(dir, store.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	runs, err := db.Runs(context.Background(), store.RunQuery{Name: "smoke"})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range runs {
		if r.Seed == seed {
			return r.Chain.String()
		}
	}
	return ""
}

// A pinned checkpoint survives both pruning during the run and the budget.
func TestPin(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	steps := func(n string) []string {
		return []string{"--set", "train.steps=12", "--set", "checkpoint.every_steps=2", "--set", "checkpoint.keep=1", "--set", "eval.online.every_steps=0", "--until", n}
	}
	smoke(t, dir, steps("sft")...).succeeds(t)
	at := func(args ...string) []string { return append(args, "--store", dir) }
	exp(t, at("pin", "smoke", "--ckpt", "4")...).refuses(t, 3, "has no checkpoint of step 4")
	exp(t, at("tag", "smoke", store.CheckpointPin(4))...).succeeds(t)
	smoke(t, dir, steps("train")...).succeeds(t)
	exp(t, at("pin", "smoke", "--ckpt", "6")...).refuses(t, 3, "the run has checkpoints of steps", "4, 10")
	exp(t, at("pin", "smoke", "--ckpt", "4")...).says(t, "the checkpoint of step 4", "is pinned")
	later(t, at("gc", "--budget", "0B", "--list")...).says(t, "training samples", "over the budget")
	exp(t, at("gc", "--budget", "0B")...).says(t, "removes nothing that runs need, and keeps ", " younger than 1h")
	exp(t, at("gc", "--budget", "0B", "--older-than", "2d")...).says(t, " younger than 2d")
	if got := later(t, at("gc", "--budget", "0B", "--list")...); strings.Contains(got.stdout, "step-") {
		t.Errorf("a pinned or newest checkpoint would go:\n%s", got.stdout)
	}
	exp(t, at("rm", "smoke", "--yes")...).refuses(t, 2, "its checkpoint of step 4 is pinned", "--remove --ckpt 4")
	exp(t, at("pin", "smoke", "--ckpt", "4", "--remove")...).says(t, "is no longer pinned")
	exp(t, at("pin", "smoke", "--ckpt", "4", "--remove")...).refuses(t, 3, "is not pinned")
	later(t, at("gc", "--budget", "0B", "--list")...).says(t, "step-00000004")
	exp(t, at("pin", "smoke")...).says(t, "is pinned")
	if got := later(t, at("gc", "--budget", "0B", "--list", "-o", "name")...); got.stdout != "" {
		t.Errorf("of a pinned run would go:\n%s", got.stdout)
	}
	exp(t, at("rm", "smoke", "--yes")...).refuses(t, 2, "it is pinned; nothing was deleted", "--remove")
	exp(t, at("pin", "smoke", "--remove")...).succeeds(t)
	later(t, at("gc", "--budget", "0B", "--apply")...).says(t, "freed")
	exp(t, at("fsck", "--deep")...).says(t, "everything is as recorded")
	smoke(t, dir, steps("train")...).succeeds(t) // all of it is still there
	exp(t, at("samples", "smoke", "--suite", "train")...).says(t, "(not kept)")
}

// fsck finds a flipped bit, names every run that needs it, and moves it away; the
// run says that it is damaged until the blob is rebuilt.
func TestFsck(t *testing.T) {
	dir := ownSmokeStore(t)
	at := func(args ...string) []string { return append(args, "--store", dir) }
	exp(t, at("fsck", "--deep")...).says(t, "checked 3 runs", "(12 chains recomputed)", "everything is as recorded")
	var data struct {
		Data []struct{ Digest string }
	}
	got := exp(t, at("query", `SELECT io.digest AS digest FROM stages s JOIN stage_io io ON io.stage = s.id WHERE s.kind = 'sft' AND io.role = 'weights' AND io.dir = 'out'`, "--json")...)
	if err := json.Unmarshal([]byte(got.stdout), &data); err != nil || len(data.Data) != 1 {
		t.Fatalf("%v %s", err, got.stdout)
	}
	d := data.Data[0].Digest
	bend(t, filepath.Join(dir, "blobs", "sha256", d[:2], d[2:]), flipped)
	exp(t, at("fsck")...).says(t, "everything is as recorded") // the size is right
	damaged := exp(t, at("fsck", "--deep")...)
	if damaged.code != 4 {
		t.Fatalf("exit code %d, want 4\n%s%s", damaged.code, damaged.stdout, damaged.stderr)
	}
	for _, text := range []string{"corrupt: " + d[:8], "weights: ", "needed by smoke#0", "smoke#1", "smoke-ppo#0", "--repair quarantines"} {
		if !strings.Contains(damaged.stdout+damaged.stderr, text) {
			t.Errorf("nothing says %q:\n%s%s", text, damaged.stdout, damaged.stderr)
		}
	}
	repaired := exp(t, at("fsck", "--deep", "--repair")...)
	if repaired.code != 4 || !strings.Contains(repaired.stdout, "moved to "+filepath.Join(dir, "quarantine", d)) {
		t.Errorf("exit code %d\n%s", repaired.code, repaired.stdout)
	}
	for _, run := range []string{"smoke#0", "smoke#1", "smoke-ppo"} {
		if first, _, _ := strings.Cut(exp(t, at("show", run)...).stdout, "\n"); !strings.HasPrefix(first, "damaged: ") {
			t.Errorf("exp show %s begins with %q", run, first)
		}
	}
	exp(t, at("log", "smoke#1", "--level", "error")...).says(t, "blob-quarantined")
	smoke(t, dir).succeeds(t)
	exp(t, at("fsck", "--deep")...).says(t, "everything is as recorded")
}

// fsck finds a configuration that comparisons would read, but no run computed with.
func TestFsckConfiguration(t *testing.T) {
	dir := ownSmokeStore(t)
	tamper(t, dir, `UPDATE configs SET json = json_set(json, '$.train.optim.lr', 0.5)
		WHERE digest = (SELECT config FROM runs WHERE name = 'smoke-ppo')`)
	got := exp(t, "fsck", "--store", dir)
	for _, text := range []string{"config: ", "train.optim.lr is 0.5, but 0.001 in its source: it was changed", "needed by smoke-ppo#0"} {
		if got.code != 4 || !strings.Contains(got.stdout, text) {
			t.Errorf("exit code %d, nothing says %q:\n%s", got.code, text, got.stdout)
		}
	}
}

// fsck and verify find a stage whose record does not give the id under which other runs find it.
func TestFsckStage(t *testing.T) {
	dir := ownSmokeStore(t)
	const of = ` WHERE kind = 'train' AND run = (SELECT id FROM runs WHERE name = 'smoke-ppo')`
	for _, tt := range []struct{ change, undo string }{
		{`params = json_set(params, '$."train.optim.lr"', 0.5)`, `params = json_set(params, '$."train.optim.lr"', 0.001)`},
		{`seed = 'seed=9'`, `seed = 'seed=0'`},
		{`numerics = 'cpu/bf16'`, `numerics = 'cpu/fma'`},
	} {
		tamper(t, dir, `UPDATE stages SET `+tt.change+of)
		for _, command := range [][]string{{"fsck"}, {"verify", "smoke-ppo#0", "--level", "blobs"}} {
			got := exp(t, append(command, "--store", dir)...)
			if got.code != 4 || !strings.Contains(got.stdout, "train: its parameters, inputs, code, seed or numerics were changed") {
				t.Errorf("%s: %s ended with %d: %s%s", tt.change, command[0], got.code, got.stdout, got.stderr)
			}
		}
		tamper(t, dir, `UPDATE stages SET `+tt.undo+of)
	}
	exp(t, "fsck", "--store", dir).says(t, "everything is as recorded")
}

// fsck finds a changed metric, and says which steps it cannot judge.
func TestFsckMetrics(t *testing.T) {
	dir := ownSmokeStore(t)
	entropy := func(value string) {
		tamper(t, dir, `UPDATE metrics SET value = `+value+`
			WHERE step IN (3, 4) AND series IN (SELECT id FROM series WHERE name = 'actor/entropy')`)
	}
	entropy("9.9")
	if got := exp(t, "fsck", "--store", dir); got.code != 4 || !strings.Contains(got.stdout, "step 3 was changed") ||
		!strings.Contains(got.stdout, "series actor/entropy: last is") {
		t.Errorf("exit code %d:\n%s", got.code, got.stdout)
	}
	entropy("NULL")
	tamper(t, dir, `UPDATE series SET (last, min, argmin, max, argmax) = (SELECT NULL, min(value), min(step), max(value), max(step)
		FROM metrics m WHERE m.series = series.id AND m.run = series.run AND m.value IS NOT NULL) WHERE name = 'actor/entropy'`)
	tamper(t, dir, `UPDATE series SET
		argmin = (SELECT min(step) FROM metrics m WHERE m.series = id AND m.run = series.run AND m.value = series.min),
		argmax = (SELECT min(step) FROM metrics m WHERE m.series = id AND m.run = series.run AND m.value = series.max)
		WHERE name = 'actor/entropy'`)
	got := exp(t, "fsck", "--store", dir)
	const some = "no damage found, but the chain of 6 of 12 steps was not recomputed"
	if !strings.Contains(got.stdout, some) || strings.Contains(got.stdout, "everything") {
		t.Errorf("metrics that may have been anything:\n%s", got.stdout)
	}
}

func TestGraph(t *testing.T) {
	dir := smokeStore(t)
	at := func(args ...string) []string { return append(args, "--store", dir) }
	up := exp(t, at("graph", "smoke#1", "--up")...)
	up.says(t, "made from", "train of smoke#1", "sft of ", "unknown origin", "seed seed=1")
	if strings.Contains(up.stdout, "used for") || strings.Contains(up.stdout, "train of smoke#0") {
		t.Errorf("up goes down:\n%s", up.stdout)
	}
	down := exp(t, at("graph", "smoke#1", "--down")...)
	down.says(t, "used for", "train of smoke#1")
	if strings.Contains(down.stdout, "of smoke#0") || strings.Contains(down.stdout, "smoke-ppo") {
		t.Errorf("what other runs made of the stages they share is not this run's:\n%s", down.stdout)
	}
	exp(t, at("graph", "smoke#0", "--down")...).says(t, "sft of smoke#0", "train of smoke#1", "train of smoke-ppo")
	files, err := filepath.Glob(filepath.Join(dir, "runs", "*", "model", "model.safetensors"))
	if err != nil || len(files) != 3 {
		t.Fatal(files, err)
	}
	outside := filepath.Join(t.TempDir(), "copy.bin")
	text, err := os.ReadFile(files[0])
	if err == nil {
		err = os.WriteFile(outside, text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	exp(t, at("graph", outside)...).says(t, "model.safetensors", "merge of smoke", "train of smoke")
	stranger := writeFile(t, "stranger", "nobody made this")
	exp(t, at("graph", stranger)...).refuses(t, 3, "no stage of this store wrote or read "+stranger)
	exp(t, at("graph", "nothing-like-it")...).refuses(t, 3, "not a run, a digest in the store, or a file")
	exp(t, at("graph", dir)...).refuses(t, 2, "is a folder")

	// Down from the problems: everything was made with them.
	var out struct {
		Data []struct{ Digest string }
	}
	got := exp(t, at("query", `SELECT DISTINCT digest FROM stage_io WHERE role = 'problems/train'`, "--json")...)
	if err := json.Unmarshal([]byte(got.stdout), &out); err != nil || len(out.Data) != 1 {
		t.Fatalf("%v %s", err, got.stdout)
	}
	exp(t, at("graph", out.Data[0].Digest[:10], "--down")...).says(t, "train of smoke#0", "train of smoke#1", "train of smoke-ppo#0")
	dot := exp(t, at("graph", "smoke#0", "-o", "dot")...)
	dot.says(t, "digraph lineage {", `shape=box, label="train\nsmoke#0"`, " -> ")
	if strings.Count(dot.stdout, "{") != 1 || !strings.HasSuffix(dot.stdout, "}\n") {
		t.Errorf("not DOT:\n%s", dot.stdout)
	}
	exp(t, at("ls", "-o", "dot")...).refuses(t, 2, `--output is "dot"`)
}

func TestQuery(t *testing.T) {
	dir := smokeStore(t)
	at := func(args ...string) []string { return append(args, "--store", dir) }
	exp(t, at("query", "SELECT name, seed, seed, NULL n, 1.5 x, x'ab' b FROM runs ORDER BY id LIMIT 1", "-o", "jsonl")...).check(t, 0,
		`{"name":"smoke","seed":0,"seed_2":0,"n":null,"x":1.5,"b":"ab"}`+"\n")
	exp(t, at("query", "SELECT count(*) FROM metric_points WHERE run_name = 'smoke' AND metric = 'actor/entropy'", "-o", "csv", "--no-header")...).check(t, 0, "8\n")
	before := contents(t, dir)
	for _, text := range []string{"DELETE FROM runs", "SELECT 1; DROP TABLE runs", "ATTACH 'elsewhere.db' AS e", "PRAGMA query_only = OFF", "PRAGMA journal_mode = DELETE",
		"CREATE TEMP TABLE t (a)", "VACUUM INTO 'elsewhere.db'", "SELECT load_extension('x')", "UPDATE runs SET name = 'x'", "INSERT INTO meta VALUES ('a', 'b')"} {
		exp(t, at("query", text)...).refuses(t, 2)
	}
	if after := contents(t, dir); after != before {
		t.Error("a query changed the store")
	}
	exp(t, at("query", "SELECT nonsense FROM runs")...).refuses(t, 2, "no such column: nonsense", "exp query --schema")
	exp(t, at("query", "  ")...).refuses(t, 2, "empty")
	call{stdin: "SELECT count(*) n FROM runs"}.run(at("query", "-", "-o", "csv")...).check(t, 0, "n\n3\n")
	exp(t, at("query", "SELECT 0.0000684 a, 1.0/3 b, 0.0015 c", "-o", "md")...).says(t, "6.84e-05", "0.333333", "0.0015")
	exp(t, at("query", "--schema")...).says(t, "run_list", "identity: equal rid, equal bits", "sqlite3 -readonly")
}

// The queries of docs/python.md find what the record holds.
func TestQueriesForPython(t *testing.T) {
	page, err := os.ReadFile("../../docs/python.md")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"v_runs": 3, "v_metrics": 12, "v_results": 3, "v_samples": 511}
	for _, m := range regexp.MustCompile(`read_sql\("([^"]+FROM (\w+)[^"]*)"`).FindAllStringSubmatch(string(page), -1) {
		e := exp(t, "query", m[1], "--store", smokeStore(t), "-o", "csv", "--no-header")
		e.succeeds(t)
		if n := strings.Count(e.stdout, "\n"); n != want[m[2]] {
			t.Errorf("%s: %d rows, want %d", m[1], n, want[m[2]])
		}
		delete(want, m[2])
	}
	if len(want) > 0 {
		t.Errorf("the page does not query %v", want)
	}
}

func TestLog(t *testing.T) {
	dir := fixtureStore(t)
	at := func(args ...string) ended {
		return call{now: fixtureNow, env: map[string]string{"NO_COLOR": "1"}}.run(append(args, "--store", dir)...)
	}
	warn := at("log", "flowrl-a#0", "--level", "warn", "-o", "csv", "--fields", "level,kind,text")
	warn.check(t, 0, "level,kind,text\nwarn,nonfinite,step 3: gradient of head.weight is NaN at 7; the update was skipped\n")
	at("log", "grpo-c", "--level", "error", "-o", "csv", "--fields", "kind,text").check(t, 0,
		"kind,text\nstage,train failed: step 3: loss is not finite\nattempt,\"attempt 1 is failed after 3.0s, exit code 1\"\n")
	if got := at("log", "flowrl-a#0", "--level", "debug", "-o", "name").stdout; strings.Count(got, "step\n") != 20 {
		t.Errorf("steps at level debug:\n%s", got)
	}
	if got := at("log", "flowrl-a#0", "--events", "-o", "name").stdout; got != "nonfinite\ncheckpoint\n" {
		t.Errorf("events %q", got)
	}
	at("log", "flowrl-a#0", "--since", "1m").says(t, "nothing in the log matches")
	at("log", "flowrl-a#0", "--since", "never").refuses(t, 2, "--since")
	at("log", "flowrl-a#0", "-f", "--json").refuses(t, 2, "use -o jsonl")
	at("log", "flowrl-a#0", "-f").says(t, "step 20 of 20") // it has ended, so following does
}

// stop ends the process that holds the run, and no other; a log that is followed
// ends with the run.
func TestStop(t *testing.T) {
	if testing.Short() {
		t.Skip("runs processes for a second")
	}
	dir := filepath.Join(t.TempDir(), "store")
	args := []string{"run", smokeRecipe, "--store", dir, "--set", "train.steps=4000", "--set", "eval.online.every_steps=0"}
	for _, now := range []bool{false, true} {
		p := start(t, args...)
		p.reaches(t, 2)
		go func() {
			for range p.step {
			}
		}()
		exp(t, "rm", "smoke", "--yes", "--store", dir).refuses(t, 7, "is being executed by process")
		follower := start(t, "log", "smoke", "-f", "-o", "jsonl", "--store", dir)
		stop := []string{"stop", "@running", "--store", dir, "-o", "jsonl", "-q"}
		if now {
			stop = append(stop, "--now")
		}
		got := exp(t, stop...)
		got.succeeds(t)
		var out struct {
			PID    int
			Ended  bool
			Status store.Status
		}
		if err := json.Unmarshal([]byte(got.stdout), &out); err != nil || out.PID != p.Process.Pid || !out.Ended || out.Status != store.Interrupted {
			t.Errorf("now %v: %v %s", now, err, got.stdout)
		}
		if code := p.end(); code != 143 && !(now && code == 130) {
			t.Errorf("now %v: the process ended with %d\n%s", now, code, p.stderr.String())
		}
		if code := follower.end(); code != 0 {
			t.Errorf("the log that was followed ended with %d\n%s", code, follower.stderr.String())
		}
	}
	exp(t, "stop", "smoke", "--store", dir).refuses(t, 3, "is not being executed")
	exp(t, "fsck", "--repair", "--store", dir).says(t, "checked 1 run,")

	// Somebody else's process that happens to be named in the lock is left alone.
	db, err := store.Open(dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	runs, err := db.Runs(context.Background(), store.RunQuery{})
	if err != nil {
		t.Fatal(err)
	}
	lock, err := db.LockRun(runs[0].RID)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	bystander := start(t, "run", smokeRecipe, "--store", filepath.Join(t.TempDir(), "other"), "--set", "train.steps=4000")
	bystander.reaches(t, 1)
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.BeginAttempt(context.Background(), store.Attempt{Run: runs[0].ID, Kind: store.AttemptRun, PID: bystander.Process.Pid}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		holder store.Holder
		says   string
	}{
		{store.Holder{PID: 1, Host: host}, "without executing it"},
		{store.Holder{PID: bystander.Process.Pid, Host: host}, "changed hands or ended in the meantime; nothing was signalled"},
		{store.Holder{PID: bystander.Process.Pid, Host: "elsewhere"}, "is executed on elsewhere"},
	} {
		text, err := json.Marshal(tt.holder)
		if err == nil {
			err = os.WriteFile(filepath.Join(db.RunDir(runs[0].RID), "lock"), text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		exp(t, "stop", "smoke", "--store", dir).refuses(t, 7, tt.says)
	}
	if err := bystander.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the bystander is gone: %v", err)
	}
}

// Completion knows runs, deleted ones for restore, running ones for stop.
func TestKeepingCompletion(t *testing.T) {
	dir := fixtureStore(t)
	for args, want := range map[string]string{
		"restore ":           "old",
		"tag pp":             "ppo-b#0",
		"rm tag:":            "tag:baseline",
		"gc --budget ":       "10GiB",
		"log x --level ":     "debug",
		"graph flow":         "flowrl-a#1",
		"graph ppo-b#0 -o d": "dot",
	} {
		words := append([]string{"--store", dir}, strings.Split(args, " ")...)
		got := call{now: fixtureNow}.run(append(words, cli.CompletionFlag)...)
		if got.code != 0 || !strings.Contains(got.stdout, want) || got.stderr != "" {
			t.Errorf("exp %s: %+v, want %q", args, got, want)
		}
	}
	if got := (call{now: fixtureNow}).run("--store", dir, "stop", "", cli.CompletionFlag); got.stdout != "" {
		t.Errorf("nothing runs, but stop completes %q", got.stdout)
	}
}

// Where WAL does not work, a store has a rollback journal if it is asked for.
func TestStoreJournal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	smoke(t, dir, "--store-journal", "rollback", "--until", "prepare").succeeds(t)
	head, err := os.ReadFile(filepath.Join(dir, "exp.db"))
	if err != nil || len(head) < 100 || head[18] != 1 { // the file format: 1 rollback, 2 WAL
		t.Fatalf("the database says %v, %v", head[18:20], err)
	}
	exp(t, "ls", "--store", dir, "-o", "csv", "--fields", "name").check(t, 0, "name\nsmoke\n")
	exp(t, "ls", "--store", dir, "--store-journal", "paper").refuses(t, 2, "--store-journal", "rollback")
}

// tamper changes a database behind the store's back.
func tamper(t *testing.T, dir, text string) {
	t.Helper()
	db, err := sql.Open("sqlite3", filepath.Join(dir, "exp.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	res, err := db.Exec(text)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		t.Fatalf("%s: changed %d rows, %v", text, n, err)
	}
}
