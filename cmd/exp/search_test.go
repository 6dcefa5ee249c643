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
	short.says(t, "2 arms: 2 runs, in this order", "looks better than it is", "run "+smokeRecipe+" --store "+dir+" --set train.steps=1 --set train.optim.lr=", "--seeds 1-3")
	long := exp(t, append(search, "--trials", "3", "-o", "json", "--objective", "max:metric.response_length/mean")...)
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
	last, rank := math.Inf(1), 0.0
	for i, row := range got.Data {
		value, ok := row["objective"].(float64)
		lr, _ := row["train.optim.lr"].(float64)
		n, _ := row["rollout.n"].(float64)
		if value != last { // equally good trials share a rank
			rank = float64(i + 1)
		}
		if !ok || value > last || row["rank"] != rank || lr < 1e-4 || lr > 1e-2 || n < 2 || n > 4 {
			t.Errorf("row %d: %v", i, row)
		}
		last = value
	}
	// With several seeds, the interval covers their mean.
	seeds := exp(t, append(search, "--trials", "1", "--seeds", "0-1", "-o", "json", "--objective", "min:metric.response_length/mean")...)
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

// Two recipes of one name are two experiments, and a recipe given twice is one.
func TestSearchTellsExperimentsApart(t *testing.T) {
	dir := t.TempDir()
	smokePath, err := filepath.Abs(smokeRecipe)
	if err != nil {
		t.Fatal(err)
	}
	other := writeFile(t, "other.yaml", "extends: "+smokePath+"\nrollout: {temperature: 0.9}\n")
	e := exp(t, "run", smokeRecipe, other, other, "--store", filepath.Join(dir, "store"), "--set", "train.steps=1", "-o", "json",
		"--search", "random", "--trials", "1", "--range", "train.optim.lr=log:1e-4..1e-2", "--seeds", "0-1")
	e.succeeds(t)
	var got struct{ Data []map[string]any }
	if err := json.Unmarshal([]byte(e.stdout), &got); err != nil || len(got.Data) != 2 {
		t.Fatalf("%v: %s", err, e.stdout)
	}
	for _, row := range got.Data {
		if row["seeds"] != "0-1" {
			t.Errorf("seeds %v", row["seeds"])
		}
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
		{append(lr, "--search", "tpe"), "--search tpe is left out"},
		{lr, "add --search random"},
		{[]string{"--search", "random"}, "--search needs what to search"},
		{append(lr, "--search", "random", "--grid", "rollout.n=2,3"), "--grid runs every combination"},
		{append(lr, "--search", "random", "--trials", "0"), "must be at least 1"},
		{append(lr, "--search", "random", "--objective", "eval.math500.pass@1"), "math500 is not among the suites"},
		{append(lr, "--search", "random", "--objective", "metric.kl/ref_k4"), "did you mean kl/ref_k3?"},
		{append(lr, "--search", "random", "--objective", "wall"), "must be a score or a metric"},
		{append(lr, "--search", "random", "--objective", "metric.kl/ref_k3"), "neither more nor less of it is better"},
		{[]string{"--search", "random", "--range", "train.optim.lr=2..1"}, "ends before it begins"},
		{[]string{"--search", "random", "--range", "nosuch.key=0.0..9"}, `unknown key "nosuch.key"`},
	} {
		with(tt.args...).refuses(t, 2, tt.want)
	}
}

// --search tpe is left out, and says what to use.
func TestSearchTPE(t *testing.T) {
	for how, want := range map[string]string{"tpe:12": "--search random --trials 12", "tpe": "--search random --trials "} {
		call{}.run("run", smokeRecipe, "--store", t.TempDir(), "--search", how, "--range", "train.optim.lr=log:1e-4..1e-2").
			refuses(t, 2, "--search tpe is left out: no well-kept Go library", want)
	}
}
