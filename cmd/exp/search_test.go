package main

import (
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"testing"
)

// A search runs its trials with one start, ranks them, and is continued by a longer one.
func TestSearch(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	search := []string{"run", smokeRecipe, "--store", dir, "--set", "train.steps=1", "--search", "random",
		"--range", "train.optim.lr=log:1e-4..1e-2", "--range", "rollout.n=2..4", "--search-seed", "3"}
	short := exp(t, append(search, "--trials", "2")...)
	short.says(t, "2 arms: 2 runs, in this order", "confirm it on seeds of its own", "--set train.optim.lr=")
	long := exp(t, append(search, "--trials", "3", "-o", "json", "--objective", "metric.response_length/mean")...)
	long.says(t, "3 arms: 3 runs")
	if n := len(consistent(t, dir).runs); n != 3 {
		t.Errorf("%d runs after a search of 2 and its continuation to 3", n)
	}
	var got struct {
		Schema string
		Data   []map[string]any
	}
	if err := json.Unmarshal([]byte(long.stdout), &got); err != nil || got.Schema != "exp.search/1" || len(got.Data) != 3 {
		t.Fatalf("%v: %s", err, long.stdout)
	}
	last := math.Inf(1)
	for i, row := range got.Data {
		value, ok := row["objective"].(float64)
		lr, _ := row["train.optim.lr"].(float64)
		n, _ := row["rollout.n"].(float64)
		if !ok || value > last || row["rank"] != float64(i+1) || lr < 1e-4 || lr > 1e-2 || n < 2 || n > 4 {
			t.Errorf("row %d: %v", i, row)
		}
		last = value
	}
	// With seeds the interval is that of their mean.
	seeds := exp(t, append(search, "--trials", "1", "--seeds", "0-1", "-o", "json", "--objective", "metric.response_length/mean")...)
	seeds.succeeds(t)
	if err := json.Unmarshal([]byte(seeds.stdout), &got); err != nil || len(got.Data) != 1 {
		t.Fatalf("%v: %s", err, seeds.stdout)
	}
	row := got.Data[0]
	lo, _ := row["lo"].(float64)
	hi, _ := row["hi"].(float64)
	if mean, _ := row["objective"].(float64); row["seeds"] != "0-1" || math.Abs((lo+hi)/2-mean) > 1e-9*mean || lo == hi {
		t.Errorf("two seeds: %v", row)
	}
}

func TestSearchRefuses(t *testing.T) {
	with := func(args ...string) ended {
		return exp(t, slices.Concat([]string{"run", smokeRecipe, "--store", filepath.Join(t.TempDir(), "store")}, args)...)
	}
	lr := []string{"--range", "train.optim.lr=log:1e-4..1e-2"}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{append(lr, "--search", "tpe"), `--search is "tpe"`},
		{lr, "add --search random"},
		{[]string{"--search", "random"}, "--search needs what to search"},
		{append(lr, "--search", "random", "--grid", "rollout.n=2,3"), "--grid runs every combination"},
		{append(lr, "--search", "random", "--trials", "0"), "must be at least 1"},
		{append(lr, "--search", "random", "--objective", "eval.math500.pass@1"), "math500 is not among the suites"},
		{append(lr, "--search", "random", "--objective", "metric.kl/ref_k4"), "did you mean kl/ref_k3?"},
		{append(lr, "--search", "random", "--objective", "wall"), "must be a score or a metric"},
		{[]string{"--search", "random", "--range", "train.optim.lr=2..1"}, "ends before it begins"},
		{[]string{"--search", "random", "--range", "nosuch.key=0.0..9"}, `unknown key "nosuch.key"`},
	} {
		with(tt.args...).refuses(t, 2, tt.want)
	}
}
