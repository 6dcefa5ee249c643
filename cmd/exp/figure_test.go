package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// One figure of arms, in the format of the file's name.
func TestFigure(t *testing.T) {
	store := comparedSmoke(t)
	dir := t.TempDir()
	for name, magic := range map[string]string{"a.pdf": "%PDF-", "b.svg": "<?xml", "c.PNG": "\x89PNG"} {
		path := filepath.Join(dir, name)
		got := call{}.run("figure", "pass-at-k", "smoke-flowrl", "--vs", "smoke-ppo", "--store", store, "-o", path)
		if got.code != 0 || !strings.Contains(got.stdout, "3 seeds per arm") {
			t.Fatalf("%s: exit code %d: %s%s", name, got.code, got.stdout, got.stderr)
		}
		if b, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(b), magic) {
			t.Errorf("%s does not start with %q: %v", name, magic, err)
		}
	}
	for _, c := range []struct {
		args       []string
		code       int
		err, other string
	}{
		{[]string{"pass-at-q", "smoke-flowrl", "-o", dir + "/d.pdf"}, 2, "did you mean pass-at-k?", ""},
		{[]string{"entropy", "smoke-flowrl", "-o", dir + "/a.pdf"}, 2, "already exists", "--force"},
		{[]string{"entropy", "smoke-flowrl", "-o", dir + "/d.eps"}, 2, "ends in .svg, .png, .pdf", ""},
		{[]string{"entropy", "smoke-flowrl", "-o", dir + "/fig"}, 2, "ends in .svg, .png, .pdf", ""},
		{[]string{"entropy", "smoke-flowrl", "-o", "json"}, 2, "ends in .svg, .png, .pdf", ""},
		{[]string{"rating", "smoke-flowrl", "-o", dir + "/d.pdf"}, 3, "it needs a contests file (--contests)", ""},
		{[]string{"rating", "smoke-flowrl", "-o", dir + "/d.pdf", "--contests", dir + "/none.json"}, 3, "none.json", ""},
		{[]string{"graders", "smoke-flowrl", "-o", dir + "/d.pdf"}, 3, "these runs have none: no suite", ""},
		{[]string{"entropy", "smoke-flowrl", "-o", dir + "/no/d.pdf"}, 2, dir + "/no does not exist", "mkdir -p "},
		{[]string{"entropy", "smoke-flowrl"}, 2, "--file FILE is missing", ""},
		{[]string{"entropy", "-o", dir + "/d.pdf"}, 2, "no runs given", ""},
		{[]string{"entropy", "smoke-flowrl", "-o", dir + "/d.pdf", "--columns", "3"}, 2, "1 or 2 columns", ""},
		{[]string{"entropy", "smoke-flowrl", "-o", dir + "/d.pdf", "--style", "slide"}, 2, "did you mean slides?", ""},
	} {
		got := call{}.run(append([]string{"figure", "--store", store}, c.args...)...)
		if got.code != c.code || !strings.Contains(got.stderr, c.err) || !strings.Contains(got.stderr, c.other) {
			t.Errorf("%q: exit code %d, want %d with %q %q:\n%s", c.args, got.code, c.code, c.err, c.other, got.stderr)
		}
	}
	got := call{}.run("figure", "entropy", "smoke-flowrl", "--store", store, "-o", dir+"/a.pdf", "--force", "--json")
	if got.code != 0 || !strings.Contains(got.stdout, `"exp.figure/1"`) {
		t.Errorf("exit code %d: %s%s", got.code, got.stdout, got.stderr)
	}
}

// PDF files of a report have the size of a paper's column, or of its page.
func TestReportFiguresAsPDF(t *testing.T) {
	dir, got := reportOf(t, comparedSmoke(t), "smoke-flowrl", "--vs", "smoke-ppo", "--figs", "pdf", "--columns", "2")
	if got.code != 0 {
		t.Fatalf("exit code %d: %s", got.code, got.stderr)
	}
	if pdf := readReport(t, dir, "figures/02-suites.pdf"); !strings.Contains(pdf, "/MediaBox [0 0 486.00") {
		t.Error("the figure is not 6.75 inches wide")
	}
	if page := readReport(t, dir, "index.html"); !strings.Contains(page, `<a href="figures/02-suites.pdf">PDF</a>`) {
		t.Error("the page does not link to the PDF")
	}
}

// TestFigureOfUnfinishedRuns: unfinished runs are left out next to finished ones, unless a selection names them.
func TestFigureOfUnfinishedRuns(t *testing.T) {
	dir := fixtureStore(t)
	const side = "interrupted at step 5 of 20; the arms are shown side by side as far as they went, and not compared"
	for _, tt := range []struct {
		selections          []string
		out, err1, err2, no string
	}{
		{[]string{"algo != flowrl"}, " 1 seed.", "left out: grpo-c, which has no finished run: run 176adc3c (seed 0) is failed",
			"left out: run 94bea3ab (ppo-b, seed 1): interrupted at step 5 of 20; its id selects it", "Not finished"},
		{[]string{"ppo-b#1"}, "Not finished: ppo-b seed 1 (interrupted).", "", "", "left out"},
		{[]string{"ppo-b#1", "ppo-b#0"}, "Not finished: ppo-b seed 1 (interrupted).", "", "", "left out"},
		{[]string{"ppo-b", "grpo-c"}, "x: training step", side, "left out: run 94bea3ab", "grpo-c, which"},
	} {
		args := append([]string{"figure", "critic/score/mean", "--store", dir, "-o", filepath.Join(t.TempDir(), "a.svg")}, tt.selections...)
		got := call{now: fixtureNow}.run(args...)
		if got.code != 0 || !strings.Contains(got.stdout, tt.out) || !strings.Contains(got.stderr, tt.err1) ||
			!strings.Contains(got.stderr, tt.err2) || strings.Contains(got.stdout+got.stderr, tt.no) {
			t.Errorf("%q: %+v", tt.selections, got)
		}
	}
}
