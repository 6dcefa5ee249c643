package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"exp/cmd/exp/cli"
	"exp/experiments/bundle"
	"exp/experiments/store"
	"exp/harness/stage"
)

// withoutAges replaces a store's path and the ages of runs: a second may pass between two commands.
func withoutAges(text, store string) string {
	return agoText.ReplaceAllString(strings.ReplaceAll(text, store, "STORE"), "AGE ago")
}

var agoText = regexp.MustCompile(`\S+ ago\b`)

// TestExportImport: imported runs look like the exported ones, and exporting them again
// gives the same bytes.
func TestExportImport(t *testing.T) {
	from, to, dir := smokeStore(t), filepath.Join(t.TempDir(), "store"), t.TempDir()
	exp := func(store string, args ...string) ended {
		t.Helper()
		return call{}.run(append(args, "--store", store)...)
	}
	first, second := filepath.Join(dir, "a.tar"), filepath.Join(dir, "b.tar")
	e := exp(from, "export", "smoke", "smoke-ppo", first)
	e.succeeds(t)
	if !strings.HasPrefix(e.stdout, first+": 3 runs, ") {
		t.Errorf("export says %q", e.stdout)
	}
	e = exp(to, "import", first)
	e.succeeds(t)
	if strings.Count(e.stdout, "added ") != 3 {
		t.Errorf("import says %q", e.stdout)
	}
	exp(to, "export", "smoke", "smoke-ppo", second).succeeds(t)
	whole, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := os.ReadFile(second); err != nil || !bytes.Equal(whole, again) {
		t.Errorf("exported again, it is another file (%v)", err)
	}
	for _, args := range []string{"ls --json", "show smoke#0 --json", "show smoke#1", "show smoke#1 --stages", "show smoke-ppo --lineage", "metrics smoke -o csv", "samples smoke#1 -o jsonl",
		"samples smoke#0 --suite train -o jsonl", "diff smoke#0 smoke-ppo --json", "compare smoke smoke-ppo --json"} {
		here, there := exp(from, strings.Fields(args)...), exp(to, strings.Fields(args)...)
		if here.code != there.code || withoutAges(here.stdout, from) != withoutAges(there.stdout, to) {
			t.Errorf("exp %s is not the same: exit codes %d and %d\n%s\n%s", args, here.code, there.code, here.stdout, there.stdout)
		}
	}
	// Importing again changes nothing and says so.
	e = exp(to, "import", first)
	e.succeeds(t)
	if strings.Count(e.stdout, "is already here") != 3 || !strings.Contains(e.stdout, "nothing was added") {
		t.Errorf("the second import says %q", e.stdout)
	}
	// A changed bit is refused, and makes no store.
	whole[len(whole)/2] ^= 4
	if err := os.WriteFile(second, whole, 0o666); err != nil {
		t.Fatal(err)
	}
	none := filepath.Join(dir, "none")
	exp(none, "import", second).check(t, 4, "", "damaged or not a bundle", "nothing was imported")
	if _, err := os.Stat(none); err == nil {
		t.Error("a refused bundle made a store")
	}
}

// TestImportWithoutWeights: what needs weights says that the bundle had none, and works once they are here, from
// another bundle or computed again.
func TestImportWithoutWeights(t *testing.T) {
	from, dir := smokeStore(t), t.TempDir()
	whole, part := filepath.Join(dir, "whole.tar"), filepath.Join(dir, "part.tar")
	call{}.run("export", "smoke#0", whole, "--store", from).succeeds(t)
	call{}.run("export", "smoke#0", part, "--no-weights", "--store", from).succeeds(t)
	for _, complete := range []string{"import", "resume"} {
		t.Run(complete, func(t *testing.T) {
			to := filepath.Join(t.TempDir(), "store")
			exp := func(args ...string) ended {
				t.Helper()
				return call{}.run(append(args, "--store", to)...)
			}
			exp("import", part).succeeds(t)
			exp("verify", "smoke#0", "--level", "score").succeeds(t)
			exp("verify", "smoke#0").refuses(t, 3, "was imported without weights", "nothing is damaged", "--level score")
			exp("eval", "smoke#0", "--suite", "val").refuses(t, 3, "are not in this store", "import a bundle with weights",
				"exp resume")
			if complete == "import" {
				e := exp("import", whole)
				e.succeeds(t)
				if !strings.Contains(e.stdout, "it lacked weights and has them now") {
					t.Errorf("import says %q", e.stdout)
				}
			} else {
				exp("resume", "smoke#0").succeeds(t)
			}
			exp("verify", "smoke#0").succeeds(t)
			exp("eval", "smoke#0", "--suite", "val").succeeds(t)
			if e := exp("resume", "smoke#0"); e.code != 0 || !strings.Contains(e.stderr, "nothing is left to do") {
				t.Errorf("resume says %q", e.stderr)
			}
		})
	}
}

// TestWeightFolders: a bundle without weights leaves out every folder that merge writes.
func TestWeightFolders(t *testing.T) {
	for _, folder := range stage.Folders() {
		if !slices.Contains(bundle.WeightFolders(), folder) {
			t.Errorf("the folder %s is not one of weights", folder)
		}
	}
}

func TestExportFormats(t *testing.T) {
	from, dir := smokeStore(t), t.TempDir()
	for _, format := range []string{"tensorboard", "csv", "parquet", "mlflow"} {
		out := filepath.Join(dir, format)
		call{}.run("export", "smoke#0", out, "--format", format, "--store", from).succeeds(t)
		if _, err := os.Stat(out); err != nil {
			t.Error(err)
		}
	}
	points := filepath.Join(dir, "points.csv") // the ending says the format
	call{}.run("export", "smoke#0", points, "--store", from).succeeds(t)
	if text, err := os.ReadFile(points); err != nil || !strings.HasPrefix(string(text), "run,") {
		t.Errorf("%.60s, %v", text, err)
	}
	for _, tt := range []struct {
		args string
		code cli.ExitCode
		want string
	}{
		{"export smoke#0 x --format wandb-offline", 2, "only wandb's own client writes it"},
		{"export smoke#0 metrics.json", 2, "exp export writes no .json files"},
		{"export smoke#0 x.tar.GZ", 2, "name a .tar for a bundle"},
		{"export smoke#0 x --format xml", 2, `--format is "xml"`},
		{"export smoke#0 x --format csv --no-weights", 2, "need --format bundle"},
		{"export smoke#0 " + dir, 2, "already exists"},
		{"export nothing x.tar", 3, "nothing"},
		{"export x.tar", 2, "SEL... FILE"},
	} {
		call{}.run(append(strings.Fields(tt.args), "--store", from)...).refuses(t, int(tt.code), tt.want)
	}
}

// TestImportForeign: exp ls marks runs of other frameworks; exp compare names what they lack.
func TestImportForeign(t *testing.T) {
	dir := t.TempDir()
	to := filepath.Join(dir, "store")
	exp := func(args ...string) ended { return call{}.run(append(args, "--store", to)...) }
	ours := filepath.Join(dir, "ours.tar")
	call{}.run("export", "smoke", ours, "--store", smokeStore(t)).succeeds(t)
	exp("import", ours).succeeds(t)
	log := filepath.Join(dir, "train.log")
	if err := os.WriteFile(log, []byte("step:1 - actor/entropy:0.5 - critic/score/mean:0.1\nstep:2 - actor/entropy:0.4 - critic/score/mean:0.2\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	exp("import", log).refuses(t, 2, "is not a bundle of exp export", "exp import --from verl "+log)
	table := filepath.Join(dir, "a table")
	if err := os.WriteFile(table, []byte("step,loss\n1,0.5\n2,0.4\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	exp("import", table).refuses(t, 2, "exp import --from csv '"+table+"'")
	e := exp("import", "--from", "verl", log, "--name", "theirs", "--seed", "3")
	e.succeeds(t)
	if !strings.Contains(e.stdout, "theirs#3, 2 steps, 4 points, imported from verl") {
		t.Errorf("import says %q", e.stdout)
	}
	if e := exp("import", "--from", "verl", log, "--name", "theirs", "--seed", "3"); e.code != 0 || !strings.Contains(e.stdout, "nothing was added") {
		t.Errorf("again: %+v", e)
	}
	for args, want := range map[string]string{
		"ls":                    "done (verl)",
		"ls --json":             `"numerics": "foreign/verl"`,
		"show theirs":           "from files of verl",
		"show theirs --json":    `"foreign": "verl"`,
		"metrics theirs -o csv": "theirs,3,actor/entropy,2,0.4",
	} {
		if e := exp(strings.Fields(args)...); e.code != 0 || !strings.Contains(e.stdout, want) {
			t.Errorf("exp %s lacks %q: exit code %d\n%s%s", args, want, e.code, e.stdout, e.stderr)
		}
	}
	exp("verify", "theirs", "--level", "blobs").succeeds(t)
	exp("resume", "theirs").refuses(t, 2, "it cannot be executed again or continued here")
	exp("eval", "theirs", "--suite", "test").refuses(t, 2, "it cannot be executed again or continued here")
	exp("compare", "smoke", "theirs").refuses(t, 6, "from another framework (verl), without per-problem scores")
	out := filepath.Join(dir, "report")
	e = exp("report", "smoke", "theirs", "--out", out, "--figs", "svg")
	if e.code != 0 || !strings.Contains(e.stderr, "side by side") {
		t.Fatalf("report: %+v", e)
	}
	md, err := os.ReadFile(filepath.Join(out, "report.md"))
	if err != nil || !strings.Contains(string(md), "Not compared.") || !strings.Contains(string(md), "theirs goes from 0.500 to 0.400") {
		t.Errorf("the report does not draw the foreign run: %v\n%s", err, md)
	}
	// Bundles carry it like any other run.
	whole := filepath.Join(dir, "theirs.tar")
	exp("export", "theirs", whole).succeeds(t)
	other := filepath.Join(dir, "other")
	call{}.run("import", whole, "--store", other).succeeds(t)
	db, err := store.Open(other, store.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if runs, err := db.Runs(t.Context(), store.RunQuery{}); err != nil || len(runs) != 1 || runs[0].Foreign() != "verl" {
		t.Errorf("runs %+v, %v", runs, err)
	}
}

// Two foreign runs with completions of the same problems are compared item by item.
func TestCompareForeign(t *testing.T) {
	dir := t.TempDir()
	to := filepath.Join(dir, "store")
	for _, arm := range []struct {
		name string
		acc  func(problem, k int) bool
	}{
		{"weak", func(p, k int) bool { return p%4 == 0 }},
		{"strong", func(p, k int) bool { return p%4 != 0 || k == 0 }},
	} {
		var lines strings.Builder
		for p := range 40 {
			for k := range 2 {
				right := "0.0"
				if arm.acc(p, k) {
					right = "1.0"
				}
				lines.WriteString(`{"input":"problem ` + strings.Repeat("x", p) + `","output":"text","gts":"1","score":` + right + `,"step":5}` + "\n")
			}
		}
		val := filepath.Join(dir, arm.name, "val")
		if err := os.MkdirAll(val, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(val, "5.jsonl"), []byte(lines.String()), 0o666); err != nil {
			t.Fatal(err)
		}
		call{}.run("import", "--from", "verl", val, "--name", arm.name, "--store", to).succeeds(t)
	}
	e := call{}.run("compare", "strong", "weak", "--metric", "pass@1", "--store", to)
	// 30 problems right and 10 half right: 0.875; the other arm has 10 right: 0.25.
	if e.code != 0 || !strings.Contains(e.stdout, "0.875") || !strings.Contains(e.stdout, "0.250") {
		t.Errorf("%+v", e)
	}
}

func TestImportRefuses(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "a.txt")
	if err := os.WriteFile(text, []byte("something\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args string
		code int
		want string
	}{
		{"import " + text, 4, "damaged or not a bundle"},
		{"import " + dir, 4, "damaged or not a bundle"},
		{"import " + text + " " + text, 2, "one at a time"},
		{"import " + text + " --name x", 2, "--name needs --from"},
		{"import", 2, "FILE..."},
		{"import " + filepath.Join(dir, "none"), 3, "no such file"},
		{"import --from verl " + filepath.Join(dir, "none"), 3, "no such file"},
		{"import --from verl " + text, 2, "no line has the metrics of a step"},
		{"import --from wandb " + text, 2, `--from is "wandb"`},
		{"import --from csv " + text, 2, "no column is named step"},
	} {
		call{}.run(append(strings.Fields(tt.args), "--store", filepath.Join(dir, "store"))...).refuses(t, tt.code, tt.want)
	}
	if _, err := os.Stat(filepath.Join(dir, "store")); err == nil {
		t.Error("a refused import made a store")
	}
}
