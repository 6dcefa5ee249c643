package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// The suite of the store on a small one: every figure is there and is a number of
// its unit; nothing is left behind.
func TestBenchStore(t *testing.T) {
	t.Setenv("EXP_TEST_AS_PROGRAM", "1") // of the processes that it starts
	t.Setenv("TMPDIR", t.TempDir())
	e := call{list: commands}.run("bench", "--suite", "store", "--runs", "40", "--repeat", "1", "--json", "-q")
	e.succeeds(t)
	var got struct {
		Schema string
		Data   storeBenchmark
	}
	if err := json.Unmarshal([]byte(e.stdout), &got); err != nil || got.Schema != "exp.bench.store/1" {
		t.Fatalf("schema %q, %v\n%s", got.Schema, err, e.stdout)
	}
	r := got.Data.Report
	// 2 runs of 1000 steps of 60 metrics, one of 4000 points, 37 of 300.
	if r.Runs != 40 || r.Points != 120_000+4000+37*300 || r.Bytes < 1<<20 {
		t.Errorf("a store of %d runs, %d points, %d bytes", r.Runs, r.Points, r.Bytes)
	}
	for _, item := range []string{"hashing, 1 thread", "hand over a step of 60 metrics", "write a step", "import points", "points on disk", "open a store", "overview of a series",
		"startup", "ls of 50", "ls of all", "compare 2 × 1 runs", "compare 2 runs of 1000 steps", "report of 2 × 1 runs", "one figure"} {
		found := false
		for _, f := range r.Figures {
			if strings.HasPrefix(f.Item, item) {
				found = f.Value > 0 && f.Min <= f.Value && f.Value <= f.Max && f.Goal > 0 && f.Met == (f.AtLeast == (f.Value >= f.Goal) || f.Value == f.Goal)
			}
		}
		if !found {
			t.Errorf("no figure of %s: %+v", item, r.Figures)
		}
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	for args, want := range map[string]string{"--suite store --threads 2": "--threads is not of the suite store", "--runs 5": "--runs is of --suite store", "--suite store --runs 2": "all must be positive"} {
		call{list: commands}.run(append([]string{"bench"}, strings.Fields(args)...)...).refuses(t, 2, want)
	}
}
