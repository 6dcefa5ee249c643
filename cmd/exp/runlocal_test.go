package main

import (
	"context"
	"encoding/csv"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/experiments/ident"
	"exp/experiments/store"
)

// chains maps "algo seed" of the runs that are done to the digest of their steps.
func chains(t *testing.T, dir string) map[string]string {
	t.Helper()
	db, err := store.Open(dir, store.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	runs, err := db.Runs(context.Background(), store.RunQuery{Status: store.Done})
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]string{}
	for _, r := range runs {
		list[r.Algo+" "+string(rune('0'+r.Seed))] = r.RID.String() + " " + r.Chain.String()
	}
	return list
}

// stagesDone counts the executed stages of a kind in a store.
func stagesDone(t *testing.T, dir, kind string) int {
	t.Helper()
	got := call{}.run("query", "SELECT count(*) AS n FROM stages WHERE kind = '"+kind+"' AND status IN ('done', 'repeated')",
		"--store", dir, "-o", "csv", "--no-header")
	if got.code != 0 {
		t.Fatal(got.stderr)
	}
	return len(strings.TrimSpace(got.stdout)) * int(got.stdout[0]-'0')
}

// Two arms and two seeds as processes on one store: the same runs as one after another,
// with the shared stages made once; again, nothing is executed.
func TestRunLocal(t *testing.T) {
	if testing.Short() {
		t.Skip("runs processes for seconds")
	}
	t.Setenv("EXP_TEST_AS_PROGRAM", "1")
	want := chains(t, smokeStore(t))
	dir := filepath.Join(t.TempDir(), "store")
	args := []string{"run", smokeConfig, "--grid", "algo.kind=flowrl,ppo", "--seeds", "0-1", "--tag", "study",
		"--on", "local", "-j", "2", "--store", dir}
	got := call{}.run(args...)
	if got.code != 0 {
		t.Fatalf("exit code %d: %s", got.code, got.stderr)
	}
	for _, text := range []string{"4 runs in 5 jobs, 2 at once with ", "smoke_algo.kind-flowrl#0 until sft  done in ",
		"smoke_algo.kind-ppo#1  done in "} {
		if !strings.Contains(got.stderr, text) {
			t.Errorf("stderr lacks %q:\n%s", text, got.stderr)
		}
	}
	have := chains(t, dir)
	for _, run := range []string{"flowrl 0", "flowrl 1", "ppo 0"} {
		if have[run] == "" || have[run] != want[run] {
			t.Errorf("%s has %q, alone %q", run, have[run], want[run])
		}
	}
	if len(have) != 4 || stagesDone(t, dir, "sft") != 1 {
		t.Errorf("%d runs are done, with %d sft stages; want 4 and 1", len(have), stagesDone(t, dir, "sft"))
	}
	exp(t, "fsck", "--store", dir).says(t, "everything is as recorded")

	again := call{}.run(append(args, "-q", "-o", "csv")...)
	rows, err := csv.NewReader(strings.NewReader(again.stdout)).ReadAll()
	if err != nil || again.code != 0 || len(rows) != 5 {
		t.Fatalf("%v: %+v", err, again)
	}
	for _, r := range rows[1:] {
		if executed := r[slices.Index(rows[0], "executed")]; executed != "0" {
			t.Errorf("again: %q", r)
		}
	}
	call{}.run("ls", "tag:study", "--store", dir, "-o", "csv", "--no-header", "--fields", "status").
		check(t, 0, "done\ndone\ndone\ndone\n")
}

func TestMetricsText(t *testing.T) {
	got := metricsText([]byte(`{"reward":0.5,"entropy":2.4759413607915244,"kl":"NaN","tok/s":221010.838}`))
	if want := "reward 0.500  entropy 2.48  kl NaN  tok/s 221011"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := metricsText(nil); got != "" {
		t.Errorf("no metrics: %q", got)
	}
}

// Ctrl-C saves and stops every process; the message has the command that continues.
func TestRunLocalInterrupted(t *testing.T) {
	if testing.Short() {
		t.Skip("runs processes for seconds")
	}
	t.Setenv("EXP_TEST_AS_PROGRAM", "1")
	dir := filepath.Join(t.TempDir(), "store")
	// More steps than a run can take until the other one, which may have a busier processor, takes its first.
	args := []string{"run", smokeConfig, "--seeds", "0-1", "--set", "train.steps=20000", "--set", "eval.online.every_steps=0",
		"--on", "local", "-j", "2", "--store", dir}
	got := call{signals: interruptedAtWork(dir)}.run(args...)
	if got.code != 130 || !strings.Contains(got.stderr, "stopping all runs") ||
		!strings.Contains(got.stderr, "to continue: exp "+strings.Join(args, " ")) {
		t.Fatalf("exit code %d: %s", got.code, got.stderr)
	}
	r := consistent(t, dir)
	for _, run := range r.runs {
		if run.Status != store.Interrupted && run.Steps > 0 || run.Status == store.Done {
			t.Errorf("run %s#%d is %s after %d steps", run.Name, run.Seed, run.Status, run.Steps)
		}
	}
}

// exp exits with the worst code of its processes and quotes that process; the other run completes.
func TestRunLocalFails(t *testing.T) {
	t.Setenv("EXP_TEST_AS_PROGRAM", "1")
	dir := filepath.Join(t.TempDir(), "store")
	rid, _, _ := strings.Cut(chains(t, smokeStore(t))["flowrl 1"], " ")
	db, err := store.Open(dir, store.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	held, err := ident.ParseDigest(rid)
	if err != nil {
		t.Fatal(err)
	}
	lock, err := db.LockRun(held)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	got := call{}.run("run", smokeConfig, "--seeds", "0-1", "--on", "local", "-j", "1", "--keep-going", "--store", dir)
	if got.code != 7 {
		t.Errorf("exit code %d, want 7", got.code)
	}
	for _, text := range []string{"error: smoke#1: run " + held.Short() + " is being executed by process", "(exit 7)",
		"help: to continue: exp run " + smokeConfig + " --seeds 0-1 --on local -j 1"} {
		if !strings.Contains(got.stderr, text) {
			t.Errorf("nothing says %q:\n%s", text, got.stderr)
		}
	}
	if have := chains(t, dir); len(have) != 1 || have["flowrl 0"] == "" {
		t.Errorf("%v are done, want seed 0", have)
	}

	call{}.run("run", smokeConfig, "--on", "cloud").check(t, 2, "", "must be one of local, slurm, kubernetes, ssh:HOST")
	call{}.run("run", smokeConfig, "-j", "2").check(t, 2, "", "-j needs --on local")
	call{}.run("run", smokeConfig, "--on", "local", "-j", "0").check(t, 2, "", "it must be at least 1")
}
