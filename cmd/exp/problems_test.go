package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A run that chooses its problems by their pass rates: exp show has the histogram, exp problems each problem, the
// report and the page of the run the figure and the table, and --dry-run the work.
func TestPassRatesSmoke(t *testing.T) {
	db, dir := filepath.Join(t.TempDir(), "store"), t.TempDir()
	t.Chdir("../..")
	sets := []string{"configs/smoke_cpu.yaml", "--store", db, "--set", "data.pass_rate={samples: 4, min: 0, max: 0.2}",
		"--set", "sft.steps=60", "--set", "train.steps=1", "--set", "train.optim={lr: 1e-3, warmup_steps: 0}"}
	plan := exp(t, append([]string{"run", "--dry-run"}, sets...)...)
	plan.succeeds(t)
	for _, want := range []string{"pass_rate", "select", "4 completions of every problem, for its pass rate " +
		"(data.pass_rate.samples): 256 completions"} {
		if !strings.Contains(plan.stdout, want) {
			t.Errorf("the plan lacks %q:\n%s", want, plan.stdout)
		}
	}
	exp(t, append([]string{"-q", "run"}, sets...)...).succeeds(t)

	var shown struct {
		Data struct {
			Selection struct {
				Problems, Kept, Never, Always int
				Histogram                     []struct{ Problems, Kept int }
			}
		}
	}
	got := exp(t, "show", "@last", "--store", db, "--json")
	got.succeeds(t)
	if err := json.Unmarshal([]byte(got.stdout), &shown); err != nil {
		t.Fatal(err)
	}
	s := shown.Data.Selection
	if s.Problems != 64 || s.Kept == 0 || s.Kept == 64 || len(s.Histogram) != 12 ||
		s.Histogram[0].Problems != s.Never {
		t.Errorf("selection %+v", s)
	}
	page := exp(t, "show", "@last", "--store", db)
	page.succeeds(t)
	if !strings.Contains(page.stdout, "training problems by pass rate (") || !strings.Contains(page.stdout,
		"of 64 kept: 0 to 0.2)") {
		t.Errorf("the page has no histogram:\n%s", page.stdout)
	}
	count := func(args ...string) int {
		t.Helper()
		got := exp(t, append([]string{"problems", "@last", "--store", db, "-o", "jsonl"}, args...)...)
		got.succeeds(t)
		return strings.Count(got.stdout, "\n")
	}
	if all, kept, left := count(), count("--kept"), count("--left-out"); all != 64 || kept != s.Kept ||
		left != 64-kept {
		t.Errorf("%d problems, %d kept, %d left out", all, kept, left)
	}
	last := -1.0
	sorted := exp(t, "problems", "@last", "--store", db, "-o", "jsonl", "--sort", "rate", "-n", "64")
	for line := range strings.Lines(sorted.stdout) {
		var x struct {
			Rate    float64 `json:"pass_rate"`
			Correct int
			Kept    bool
			Prompt  string
		}
		if err := json.Unmarshal([]byte(line), &x); err != nil || x.Rate < last || x.Rate != float64(x.Correct)/4 ||
			x.Kept != (x.Rate <= 0.2) || x.Prompt == "" {
			t.Errorf("%v, after a rate of %v: %s", err, last, line)
		}
		last = x.Rate
	}
	exp(t, "report", "@last", "--store", db, "--out", filepath.Join(dir, "report")).succeeds(t)
	html, err := os.ReadFile(filepath.Join(dir, "report", "index.html"))
	if err != nil || !strings.Contains(string(html), "Training problems by pass rate") ||
		!strings.Contains(string(html), "lie between 0 and 0.2") {
		t.Errorf("the report has no figure: %v", err)
	}
	exp(t, "problems", "@last", "--kept", "--left-out", "--store", db).refuses(t, 2, "exclude each other")
	exp(t, "problems", "@last", "--sort", "size", "--store", db).refuses(t, 2,
		"--sort is \"size\", but must be one of data, rate")
	exp(t, "-q", "run", "configs/smoke_cpu.yaml", "--store", db, "--set", "name=all", "--set", "sft.steps=60",
		"--set", "train.steps=1", "--set",
		"train.optim={lr: 1e-3, warmup_steps: 0}").succeeds(t)
	exp(t, "compare", "smoke", "all", "--store", db).refuses(t, 6, "data.pass_rate.samples", "code.pass_rate",
		"data.problems/train")
	exp(t, "compare", "smoke", "all", "--store", db, "--vary", "data.pass_rate").succeeds(t)
	exp(t, append(append([]string{"-q", "run"}, sets...), "--set", "data.pass_rate={samples: 4, min: 1, max: 1}")...).
		refuses(t, 2, "training problems have a pass rate from data.pass_rate.min (1) to max (1)",
			"pass rate    problems", "measured pass rates are kept")
}

// A run without pass rates says what would measure them.
func TestProblemsWithoutPassRates(t *testing.T) {
	exp(t, "problems", "smoke#0", "--store", smokeStore(t)).refuses(t, 3, "has no pass rates of its training problems",
		"exp config explain data.pass_rate.samples")
}
