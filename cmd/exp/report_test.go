package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"exp/cmd/exp/cli"
)

// reportOf writes a report and returns its folder.
func reportOf(t *testing.T, storeDir string, args ...string) (dir string, e ended) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "report")
	return dir, call{}.run(append([]string{"report", "--store", storeDir, "--out", dir}, args...)...)
}

func readReport(t *testing.T, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The whole way: runs, a comparison, the folder.
func TestReport(t *testing.T) {
	began := time.Now()
	dir, got := reportOf(t, comparedSmoke(t), "smoke-flowrl", "--vs", "smoke-ppo")
	if got.code != 0 || !strings.Contains(got.stdout, "smoke-flowrl, smoke-ppo") || !strings.Contains(got.stdout, filepath.Join(dir, "index.html")) {
		t.Fatalf("exit code %d: %s%s", got.code, got.stdout, got.stderr)
	}
	t.Logf("written in %v", time.Since(began))
	md := readReport(t, dir, "report.md")
	for _, want := range []string{"# smoke-flowrl against smoke-ppo\n", "3 seeds per arm", "The treatment is `algo`", "Nothing was waived", "| smoke-ppo | 2 |"} {
		if !strings.Contains(md, want) {
			t.Errorf("report.md lacks %q", want)
		}
	}
	for _, bad := range []string{"NaN", "%!", "<nil>", filepath.Dir(dir)} {
		for _, name := range []string{"report.md", "index.html", "data.json"} {
			if strings.Contains(readReport(t, dir, name), bad) {
				t.Errorf("%s has %q", name, bad)
			}
		}
	}
	for _, name := range []string{"index.html", "data.json", "manifest.json", "configs/smoke-flowrl.yaml", "figures/02-suites.svg", "figures/02-suites.png"} {
		readReport(t, dir, name)
	}
}

// What the appendix says reproduces the report does: the configurations give runs
// that are all there, and the command gives the same bytes.
func TestReportReproduces(t *testing.T) {
	store := comparedSmoke(t)
	dir, got := reportOf(t, store, "smoke-flowrl", "--vs", "smoke-fast", "--allow", "train.optim.lr")
	if got.code != 0 {
		t.Fatalf("exit code %d: %s", got.code, got.stderr)
	}
	md := readReport(t, dir, "report.md")
	lines := regexp.MustCompile(`(?m)^exp (run|report) .*$`).FindAllString(md, -1)
	if len(lines) != 3 {
		t.Fatalf("commands %q", lines)
	}
	for _, l := range lines[:2] {
		words := strings.Fields(l)
		words[2] = filepath.Join(dir, words[2])
		plan := call{}.run(append(words[1:], "--dry-run", "--store", store)...)
		if plan.code != 0 || strings.Contains(plan.stdout, "execute") {
			t.Errorf("%s would execute something, exit code %d:\n%s%s", l, plan.code, plan.stdout, plan.stderr)
		}
	}
	again := filepath.Join(t.TempDir(), "again")
	words := strings.Fields(lines[2])
	if words[len(words)-1] != "report" {
		t.Fatalf("the last command is %q", lines[2])
	}
	words[len(words)-1] = again
	if got := (call{}).run(append(words[1:], "--store", store)...); got.code != 0 {
		t.Fatalf("%s: exit code %d: %s", lines[2], got.code, got.stderr)
	}
	if err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		if a, b := readReport(t, dir, rel), readReport(t, again, rel); a != b {
			t.Errorf("%s differs", rel)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func TestReportRefused(t *testing.T) {
	dir, got := reportOf(t, comparedSmoke(t), "smoke-flowrl", "smoke-fast")
	got.check(t, int(cli.ExitNotComparable), "", "error: arms are not comparable (exit 6)\n", "train.optim.lr    0.001         0.002       controlled  --allow train.optim.lr\n")
	if _, err := os.Stat(dir); err == nil {
		t.Error("a refused report left a folder")
	}
	dir, got = reportOf(t, comparedSmoke(t), "smoke-flowrl", "smoke-fast", "--allow", "train.optim.lr")
	if got.code != 0 || !strings.Contains(readReport(t, dir, "report.md"), "**Waived.** The arms also differ in `train.optim.lr`") {
		t.Errorf("exit code %d: %s", got.code, got.stderr)
	}
}

func TestReportOneArm(t *testing.T) {
	dir, got := reportOf(t, comparedSmoke(t), "smoke-ppo#1", "--format", "md,json", "--figs", "svg", "--title", "One run")
	if got.code != 0 {
		t.Fatalf("exit code %d: %s", got.code, got.stderr)
	}
	md := readReport(t, dir, "report.md")
	if !strings.HasPrefix(md, "# One run\n") || strings.Contains(md, "Comparability") || !strings.Contains(md, "One seed has no band") {
		t.Errorf("report.md is\n%.2000s", md)
	}
	if _, err := os.Stat(filepath.Join(dir, "index.html")); err == nil {
		t.Error("index.html was not asked for")
	}
	if pngs, _ := filepath.Glob(filepath.Join(dir, "figures", "*.png")); len(pngs) > 0 {
		t.Errorf("png was not asked for: %v", pngs)
	}
}

// The figure shows the target that the evaluation measured the toy's distance to:
// KL(target‖π) of the drawn numbers is the recorded kl_target.
func TestReportOptimum(t *testing.T) {
	config := filepath.Join(t.TempDir(), "toy.yaml")
	if err := os.WriteFile(config, []byte(toyConfig), 0o644); err != nil {
		t.Fatal(err)
	}
	store := filepath.Join(t.TempDir(), "s")
	if got := (call{}).run("run", config, "--store", store, "-q"); got.code != 0 {
		t.Fatalf("exit code %d: %s", got.code, got.stderr)
	}
	dir, got := reportOf(t, store, "@last")
	if got.code != 0 {
		t.Fatalf("exit code %d: %s", got.code, got.stderr)
	}
	var d struct {
		Figures []struct {
			Name string
			Data json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(readReport(t, dir, "data.json")), &d); err != nil {
		t.Fatal(err)
	}
	var optimum struct {
		Target []float64
		Arms   []struct {
			KL   []float64 `json:"kl"`
			Mean []float64
		}
	}
	if d.Figures[0].Name != "optimum-test" {
		t.Fatalf("the first figure is %s", d.Figures[0].Name)
	}
	if err := json.Unmarshal(d.Figures[0].Data, &optimum); err != nil {
		t.Fatal(err)
	}
	var kl float64
	for i, p := range optimum.Target {
		kl += p * math.Log(p/optimum.Arms[0].Mean[i]) // one seed: the mean is its policy
	}
	if want := optimum.Arms[0].KL[0]; math.Abs(kl-want) > 1e-9 || want < 0.01 {
		t.Errorf("KL(target‖π) of the figure is %v, recorded is %v", kl, want)
	}
}

const toyConfig = `version: 1
name: toy
task: {kind: outcomes, outcomes: {count: 8, modes: [{center: 1, width: 1, height: 1}, {center: 5, width: 1, height: 0.8}], beta: 4}}
data: {train: {size: 16}, val: {size: 2}, test: {size: 2}, max_prompt_tokens: 4}
model: {arch: {layers: 1, width: 16, heads: 1, kv_heads: 1, head_size: 16, ffn: 16, max_positions: 8}}
sft: {steps: 2, problems_per_step: 8, optim: {lr: 1e-3}}
algo: {kind: flowrl, flowrl: {beta: 4, reward: raw}}
rollout: {n: 4, max_new_tokens: 1}
train: {steps: 3, prompts_per_step: 4, prompts_per_update: 4, optim: {lr: 1e-3}}
eval: {final: {suites: [test], n: 4, pass_k: [1, 4]}}
`

func TestReportArguments(t *testing.T) {
	store := comparedSmoke(t)
	for _, tt := range []struct {
		args []string
		code cli.ExitCode
		want string
	}{
		{[]string{"report", "--out", "x"}, cli.ExitUsage, "no runs given"},
		{[]string{"report", "smoke-ppo"}, cli.ExitUsage, "--out DIR is missing"},
		{[]string{"report", "smoke-ppo", "--out", "x", "--format", "pdf"}, cli.ExitUsage, `--format is "pdf"`},
		{[]string{"report", "smoke-ppo", "--out", "x", "--figs", "gif"}, cli.ExitUsage, `--figs is "gif"`},
		{[]string{"report", "nothing-like-it", "--out", "x"}, cli.ExitNotFound, "nothing-like-it"},
		{[]string{"report", "smoke-ppo", "--out", "."}, cli.ExitUsage, "choose a separate folder"},
	} {
		got := call{}.run(append(tt.args, "--store", store)...)
		if got.code != int(tt.code) || !strings.Contains(got.stderr, tt.want) {
			t.Errorf("exp %s: exit code %d, stderr %q; want %d and %q", strings.Join(tt.args, " "), got.code, got.stderr, tt.code, tt.want)
		}
	}
}

// A folder that is not a report is left alone; --force moves it aside.
func TestReportForeignFolder(t *testing.T) {
	store := comparedSmoke(t)
	dir := filepath.Join(t.TempDir(), "work")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	note := filepath.Join(dir, "note.txt")
	if err := os.WriteFile(note, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"report", "smoke-ppo#0", "--store", store, "--out", dir}
	got := call{}.run(args...)
	if got.code != int(cli.ExitUsage) || !strings.Contains(got.stderr, "cannot be replaced") || !strings.Contains(got.stderr, "--force") {
		t.Errorf("exit code %d: %s", got.code, got.stderr)
	}
	if b, err := os.ReadFile(note); err != nil || string(b) != "mine" {
		t.Errorf("the note is gone: %v", err)
	}
	got = call{}.run(append(args, "--force", "--json")...)
	var e struct{ Data writtenReport }
	if err := json.Unmarshal([]byte(got.stdout), &e); err != nil || got.code != 0 {
		t.Fatalf("exit code %d, %v: %s%s", got.code, err, got.stdout, got.stderr)
	}
	if b, err := os.ReadFile(filepath.Join(e.Data.Aside, "note.txt")); err != nil || string(b) != "mine" {
		t.Errorf("moved aside to %q: %v", e.Data.Aside, err)
	}
	if e.Data.Runs != 1 || len(e.Data.Manifest) != 64 || e.Data.Figures == 0 {
		t.Errorf("%+v", e.Data)
	}
	if got := (call{}).run(args...); got.code != 0 {
		t.Errorf("replacing an unchanged report: exit code %d: %s", got.code, got.stderr)
	}
}

// --by makes its key the treatment in a report, as it does in a comparison.
func TestReportBy(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	for _, lr := range []string{"1e-3", "2e-4"} {
		smoke(t, dir, "--set", "train.steps=1", "--set", "train.optim.lr="+lr, "--set", "name=lr-"+lr).succeeds(t)
	}
	arms := []string{"lr-1e-3", "lr-2e-4", "--store", dir, "--out"}
	exp(t, append([]string{"report"}, append(arms, filepath.Join(t.TempDir(), "a"))...)...).refuses(t, 6, "train.optim.lr")
	exp(t, append([]string{"report", "--by", "train.optim.lr"}, append(arms, filepath.Join(filepath.Dir(dir), "b"))...)...).
		says(t, "lr=0.0002, lr=0.001")
	drawn, err := filepath.Glob(filepath.Join(filepath.Dir(dir), "b", "figures", "*-key-*.svg"))
	if err != nil || len(drawn) != 1 {
		t.Errorf("figures of accuracy against the key: %v, %v", drawn, err)
	}
	exp(t, "diff", "lr-1e-3", "lr-2e-4", "--store", dir).says(t,
		"differs first: train: the key train.optim.lr is 0.001 in A, 0.0002 in B")
}
