package main

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/experiments/ident"
	"exp/experiments/store"
)

func TestGrid(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	grid := []string{"run", smokeRecipe, "--store", dir, "--grid", "algo.flowrl.beta=1,5", "--grid",
		"train.optim.lr=1e-3,2e-3", "--set", "train.steps=1"}
	got := exp(t, append(grid, "-o", "json")...)
	// The runs are announced before the first, and the start is trained once.
	got.says(t, "4 arms: 4 runs, in this order\n  smoke_beta-1_lr-1e-3\n  smoke_beta-1_lr-2e-3\n  smoke_beta-5_lr-1e-3\n")
	var result struct {
		Data []struct {
			Name     string
			Executed int
		}
	}
	if err := json.Unmarshal([]byte(got.stdout), &result); err != nil {
		t.Fatal(err)
	}
	var names []string
	for i, r := range result.Data {
		names = append(names, r.Name)
		if i > 0 && r.Executed >= result.Data[0].Executed {
			t.Errorf("%s executed %d stages, the first run %d", r.Name, r.Executed, result.Data[0].Executed)
		}
	}
	want := []string{"smoke_beta-1_lr-1e-3", "smoke_beta-1_lr-2e-3", "smoke_beta-5_lr-1e-3", "smoke_beta-5_lr-2e-3"}
	if !slices.Equal(names, want) {
		t.Errorf("runs %q, want %q", names, want)
	}
	// What differs is the treatment, so all arms can be compared.
	exp(t, append([]string{"compare", "--store", dir}, want...)...).succeeds(t)
	// The same command again trains nothing.
	if exp(t, grid...).succeeds(t); len(consistent(t, dir).runs) != 4 {
		t.Error("the grid made other runs when it was repeated")
	}

	exp(t, "run", smokeRecipe, "--store", dir, "--dry-run", "--grid", "train.optim.lr=1e-3,0.001").
		refuses(t, 2, "--grid: the arms lr-1e-3 and lr-0.001 are the same run")
	// Keys that no trained stage reads make no arms.
	for _, axis := range []string{"compute.threads=1,2", "eval.final.n=2,4"} {
		exp(t, "run", smokeRecipe, "--store", dir, "--grid", axis).refuses(t, 2, "are the same run", "what training or its inputs depend on")
	}
	unknown := exp(t, "run", smokeRecipe, "--store", dir, "--set", "train.steps=2", "--grid", "nosuch.key=1,2")
	unknown.refuses(t, 2, `--grid`, `unknown key "nosuch.key"`, "1 error")
	exp(t, "run", smokeRecipe, "--store", dir, "--set", "algo.flowrl.beta=3", "--grid", "algo.flowrl.beta=1,5").
		refuses(t, 2, "--grid and --set both set algo.flowrl.beta: keep one of them")
	exp(t, "run", smokeRecipe, "--store", dir, "--set", "train.optim.lr =1e-3", "--search", "random", "--range", "train.optim.lr=1e-3,1e-4").
		refuses(t, 2, "--range and --set both set train.optim.lr")
	exp(t, "run", smokeRecipe, "--store", dir, "--grid", "seed=1,2").refuses(t, 2, "--grid: seeds are not an axis")
	long := exp(t, "run", smokeRecipe, "--store", dir, "--dry-run", "--set",
		"name="+strings.Repeat("n", 64), "--grid", "algo.flowrl.beta=1,5")
	long.says(t, "\n  "+strings.Repeat("n", 59)+"_arm2\n")
}

// Two shells can share a grid: each leaves the runs that the other executes to it.
func TestRunsOfOthersWait(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	rid, _, _ := strings.Cut(chains(t, smokeStore(t))["flowrl 0"], " ")
	first, err := ident.ParseDigest(rid)
	if err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(dir, store.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	lock, err := db.LockRun(first)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"run", smokeRecipe, "--seeds", "0-1", "--until", "train", "--store", dir}
	busy := exp(t, args...)
	if busy.code != 7 || !strings.Contains(busy.stdout, "smoke  flowrl     1") {
		t.Errorf("exit code %d, want 7; the result of seed 1 in\n%s", busy.code, busy.stdout)
	}
	for _, text := range []string{": the other runs go first", "run=" + first.Short() + " busy",
		"error: run " + first.Short() + " is being executed by process"} {
		if !strings.Contains(busy.stderr, text) {
			t.Errorf("nothing says %q:\n%s", text, busy.stderr)
		}
	}
	if n := stagesDone(t, dir, "train"); n != 1 {
		t.Errorf("%d runs were trained, want seed 1's", n)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	exp(t, args...).succeeds(t)
	if n := stagesDone(t, dir, "train"); n != 2 {
		t.Errorf("then %d runs were trained, want 2", n)
	}
}
