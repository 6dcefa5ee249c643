package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/cmd/exp/cli"
	"exp/experiments/ident"
	"exp/experiments/store"
	"exp/harness/cluster"
	"exp/harness/config"
	"exp/harness/plan"
)

// fakeSlurm puts commands in the way of Slurm's: sbatch executes the tasks of an array
// one after another, and squeue knows of none afterwards.
func fakeSlurm(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"sbatch": `for script; do :; done
n=$(($(cat "` + dir + `/n" 2>/dev/null || echo 0) + 1)); echo $n >"` + dir + `/n"
last=$(sed -n 's/^#SBATCH --array=0-\([0-9]*\).*/\1/p' "$script")
for i in $(seq 0 "$last"); do SLURM_ARRAY_JOB_ID=$n SLURM_ARRAY_TASK_ID=$i sh "$script" >>"` + dir + `/log" 2>&1; done
echo $n`,
		"squeue":   "exit 0",
		"scontrol": "exit 1",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("EXP_TEST_AS_PROGRAM", "1")
	t.Cleanup(func() {
		if t.Failed() {
			text, err := os.ReadFile(filepath.Join(dir, "log"))
			t.Logf("%s\n%v", text, err)
		}
	})
}

// A study through the spool gives the runs of one machine; the same command again
// submits nothing, and one with another seed only that.
func TestRunSlurm(t *testing.T) {
	if testing.Short() {
		t.Skip("runs processes for seconds")
	}
	fakeSlurm(t)
	want := chains(t, smokeStore(t))
	dir, spool := filepath.Join(t.TempDir(), "store"), filepath.Join(t.TempDir(), "spool")
	args := func(seeds string) []string {
		return []string{"run", smokeConfig, "--grid", "algo.kind=flowrl,ppo", "--seeds", seeds, "--on", "slurm", "--tag", "study",
			"--set", "cluster.spool=" + spool, "--store", dir}
	}
	dry := call{}.run(append(args("0"), "--dry-run")...)
	first := call{}.run(args("0")...)
	scripts, err := filepath.Glob(filepath.Join(spool, "jobs", "*.sbatch"))
	if dry.code != 0 || err != nil || len(scripts) != 2 {
		t.Fatalf("exit code %d, %s; scripts: %q, %v", dry.code, dry.stderr, scripts, err)
	}
	for _, file := range scripts {
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(dry.stdout, string(text)) {
			t.Errorf("%v; the dry run lacks %s:\n%s\nit prints:\n%s", err, file, text, dry.stdout)
		}
	}
	first.check(t, 0, "2 runs submitted; exp jobs "+spool+" shows them, exp collect "+spool+" brings the results here\n",
		"job 1  exp-smoke_algo.kind-flowrl-sft, 1 task", "job 2  exp-smoke_algo.kind-flowrl, 2 tasks")
	mend := breakState(t, spool, "smoke_algo.kind-flowrl#0")
	call{}.run("collect", spool, "--store", dir).check(t, 0, "0 runs collected, 2 not done\n",
		"smoke_algo.kind-ppo#0 is done, but waits for smoke_algo.kind-flowrl#0, whose stages it reuses and which failed: a full disk")
	mend()
	// A damaged bundle delays no other run and no later submission.
	repair := damageBundle(t, spool, "smoke_algo.kind-ppo#0")
	const damaged = "smoke_algo.kind-ppo#0 cannot be collected: bundle " // and its path
	call{}.run("collect", spool, "--store", dir).check(t, 4, "", "smoke_algo.kind-flowrl#0  collected", damaged)
	call{}.run(append(args("0-1"), "--wait")...).check(t, 4, "", damaged, "to compute it again, remove "+spool+"/state/",
		"smoke_algo.kind-flowrl#0  is done", "smoke_algo.kind-ppo#0  is done and waits to be collected",
		"job 3  exp-smoke_algo.kind-flowrl, 2 tasks", "smoke_algo.kind-ppo#1  collected")
	repair()
	call{}.run("collect", spool, "--store", dir, "-q").check(t, 0, "1 run collected, 0 not done\n")
	call{}.run("collect", spool, "--store", dir, "-q").check(t, 0, "0 runs collected, 0 not done\n")

	again := call{}.run(append(args("0-1"), "--wait")...)
	again.check(t, 0, "4 runs done\n", "smoke_algo.kind-flowrl#0  is done", "smoke_algo.kind-ppo#1  is done")
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
	listed := call{}.run("jobs", spool, "-o", "csv", "--no-header", "--fields", "job,state,restarts,step")
	if listed.code != 0 || listed.stderr != "" {
		t.Errorf("exp jobs: exit code %d, %s", listed.code, listed.stderr)
	}
	for _, line := range []string{"1_0,done,0,0\n", "2_0,done,0,4\n", "2_1,done,0,4\n", "3_0,done,0,4\n", "3_1,done,0,4\n"} {
		if !strings.Contains(listed.stdout, line) {
			t.Errorf("exp jobs lacks %q:\n%s", line, listed.stdout)
		}
	}
}

// damageBundle cuts the bundle that the job of a run published; repair undoes it.
func damageBundle(t *testing.T, spool, name string) (repair func()) {
	t.Helper()
	s := cluster.Spool{Dir: spool}
	jobs, err := s.Submitted()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(jobs, func(j cluster.Submitted) bool { return j.Name == name })
	if i < 0 {
		t.Fatalf("no job %s in %+v", name, jobs)
	}
	path := s.Path(cluster.BundlePath(jobs[i].ID))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write := func(text []byte) {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(whole[:len(whole)/2])
	return func() { write(whole) }
}

// breakState makes a job of a spool a failed one; mend undoes it.
func breakState(t *testing.T, spool, name string) (mend func()) {
	t.Helper()
	s := cluster.Spool{Dir: spool}
	jobs, err := s.Submitted()
	i := slices.IndexFunc(jobs, func(j cluster.Submitted) bool { return j.Name == name })
	if err != nil || i < 0 {
		t.Fatal(jobs, err)
	}
	done, err := s.State(jobs[i].ID)
	if err != nil {
		t.Fatal(err)
	}
	failed := done
	failed.Status, failed.Text = cluster.Failed, "a full disk"
	path := s.Path(cluster.StatePath(jobs[i].ID))
	writeJSON(t, path, failed)
	return func() { writeJSON(t, path, done) }
}

func writeJSON(t *testing.T, path string, v any) {
	t.Helper()
	text, err := json.Marshal(v)
	if err == nil {
		err = os.WriteFile(path, text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// The result of a study counts a run as missing that is done but not in the store.
func TestResultsOfWaiting(t *testing.T) {
	dir, spool := filepath.Join(t.TempDir(), "store"), cluster.Spool{Dir: t.TempDir()}
	if err := spool.Make(); err != nil {
		t.Fatal(err)
	}
	list := func(a *app) []*cli.Command {
		return []*cli.Command{{Name: "x", Flags: []cli.Flag{&cli.StringFlag{Name: "begun"}}, Action: func(c *cli.Context) error {
			return cli.With(a.OpenStoreToWrite, func(db *store.DB) error {
				s := &spoolStudy{app: a, c: c, study: &cluster.Study{DB: db, Spool: spool}, collected: &cluster.Collected{}}
				for _, name := range []string{"waits", "fails"} {
					p := &plan.Run{RID: ident.Sum([]byte(name)), Config: &config.Resolved{Run: config.Run{Name: name}}}
					id := p.RID.String()
					entry := cluster.Entry{ID: id, Name: name + "#0", RID: p.RID}
					st := cluster.State{ID: id, Number: "1_0", Status: cluster.Done}
					if name == "fails" {
						st.Status, st.Text = cluster.Failed, "out of memory"
					}
					writeJSON(t, spool.Path("submitted/"+id+".json"), cluster.Submitted{Entry: entry, Number: "1_0"})
					writeJSON(t, spool.Path(cluster.StatePath(id)), st)
					at := cluster.Standing{Run: p}
					if c.String("begun") == name {
						at.Place, at.Status = cluster.Begun, store.Interrupted
					}
					s.standings = append(s.standings, at)
				}
				return s.results()
			})
		}}}
	}
	call{list: list}.run("x", "--store", dir).check(t, 1, "", "2 jobs gave no result:\n",
		"waits#0: is done, but waits for the run whose stages it reuses\n", "fails#0: out of memory\n")
	got := call{list: list}.run("x", "--store", dir, "--begun", "waits")
	got.check(t, 1, "", "2 jobs gave no result:\n", "fails#0: out of memory\n", "waits#0  is in this store already")
	if strings.Count(got.stderr, "waits#0") != 1 {
		t.Errorf("it names a run twice:\n%s", got.stderr)
	}
}

func TestRunSlurmRefuses(t *testing.T) {
	spool := t.TempDir()
	set := "cluster.spool=" + spool
	dir := smokeStore(t)
	call{}.run("run", smokeConfig, "--on", "slurm").check(t, 2, "", "--on slurm needs cluster.spool")
	call{}.run("run", smokeConfig, "--on", "slurm", "--set", set, "--no-cache").check(t, 2, "", "--no-cache does not work")
	for _, name := range []string{"my spool", "100%"} {
		call{}.run("run", smokeConfig, "--on", "slurm", "--dry-run", "--store", dir, "--set", "cluster.spool="+filepath.Join(spool, name)).
			check(t, 2, "", "sbatch cannot write logs below a path with '"+strings.Trim(name, "myspol10")+"'",
				"name a directory without blanks")
	}
	call{}.run("run", smokeConfig, "--seeds", "9", "--on", "slurm", "--set", set, "--store", dir, "--dry-run",
		"--set", "cluster.slurm.time='2'").
		check(t, 2, "", "cluster.slurm.signal_before is 120 seconds and cluster.slurm.time is 2")
	call{}.run("run", smokeConfig, "--wait").check(t, 2, "", "--wait needs --on slurm")
	call{}.run("run", smokeConfig, "--on", "slurm", "--set", set, "--wait", "--dry-run").check(t, 2, "", "--dry-run submits none: choose one")
	call{}.run("run", smokeConfig, "--on", "local", "--ranks=2", "--dry-run").check(t, 2, "", "--ranks does not work with --on local")
	for _, engine := range []string{"kubernetes", "ssh:a"} {
		call{}.run("run", smokeConfig, "--on", engine, "--set", set, "--ranks=2", "--dry-run").
			check(t, 2, "", "--ranks does not work with --on "+engine)
	}
	ranks := func(n string, args ...string) ended {
		return call{}.run(append([]string{"run", smokeConfig, "--seeds", "9", "--on", "slurm", "--set", set, "--store", dir,
			"--dry-run", "--ranks", n}, args...)...)
	}
	ranks("9").check(t, 2, "", "smoke has 8 slices (train.slices), and every rank needs one")
	ranks("3", "--set", "cluster.slurm.ranks_per_node=2").check(t, 2, "", "--ranks 3: smoke has cluster.slurm.ranks_per_node: 2, "+
		"and ranks must be a multiple")
	ranks("2", "--rank-timeout", "soon").check(t, 2, "", "--rank-timeout soon: it must be a time")
	if got := ranks("4"); got.code != 0 || !strings.Contains(got.stdout, "# 1. 1 job of 4 ranks:\n#   0  smoke#9\n") ||
		!strings.Contains(got.stdout, "#SBATCH --ntasks=4 --cpus-per-task=1\n") {
		t.Errorf("exit code %d, %s%s", got.code, got.stdout, got.stderr)
	}
	for _, engine := range []string{"slurm", "kubernetes", "ssh:a"} { // a dry run refuses what the run would
		for _, flag := range []string{"--until=sft", "--keep-going", "--threads=1", "--jobs=2"} {
			name, _, _ := strings.Cut(flag, "=")
			call{}.run("run", smokeConfig, "--on", engine, "--set", set, flag, "--dry-run").
				check(t, 2, "", name+" does not work with --on "+engine)
		}
	}
	call{}.run("jobs", filepath.Join(spool, "none")).check(t, 3, "", "is not a spool of exp run --on slurm or kubernetes")
	t.Setenv("PATH", spool)
	call{}.run("run", smokeConfig, "--on", "slurm", "--set", set, "--store", filepath.Join(t.TempDir(), "s")).
		check(t, 7, "", "no squeue in PATH", "--dry-run prints the scripts anywhere")
	dryRun := call{}.run("run", smokeConfig, "--seeds", "0-3", "--on", "slurm", "--set", set, "--store", dir, "--dry-run")
	if dryRun.code != 0 || dryRun.stderr != "smoke#0  is done\nsmoke#1  is done\n" {
		t.Errorf("exit code %d, %s", dryRun.code, dryRun.stderr)
	}
	for _, text := range []string{"# 1. 2 jobs:\n#   0  smoke#2\n#   1  smoke#3\n", "#SBATCH --array=0-1\n", "exec '" + spool + "/bin/"} {
		if !strings.Contains(dryRun.stdout, text) {
			t.Errorf("the scripts lack %q:\n%s", text, dryRun.stdout)
		}
	}
}

// A run that this store has begun is not submitted: its bundle could not be added.
func TestRunSlurmOfBegunRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	if got := (call{}).run("run", smokeConfig, "--until", "sft", "--store", dir, "-q"); got.code != 0 {
		t.Fatal(got.stderr)
	}
	db, err := store.Open(dir, store.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	runs, err := db.Runs(context.Background(), store.RunQuery{})
	if err != nil || len(runs) != 1 {
		t.Fatal(runs, err)
	}
	call{}.run("run", smokeConfig, "--on", "slurm", "--dry-run", "--set", "cluster.spool="+t.TempDir(), "--store", dir).
		check(t, 7, "", "error: smoke#0  is in this store already, interrupted after 0 steps")
}

// A run that its condition stopped is done as asked: it is collected, and not submitted again.
func TestRunSlurmStopIf(t *testing.T) {
	if testing.Short() {
		t.Skip("runs processes for seconds")
	}
	fakeSlurm(t)
	dir, spool := filepath.Join(t.TempDir(), "store"), filepath.Join(t.TempDir(), "spool")
	args := []string{"run", smokeConfig, "--stop-if", "training/global_step >= 2", "--on", "slurm",
		"--set", "cluster.spool=" + spool, "--store", dir}
	first := call{}.run(args...)
	first.check(t, 0, first.stdout, "job 1  exp-smoke, 1 task")
	call{}.run("jobs", spool, "-o", "csv", "--no-header", "--fields", "job,state,step").check(t, 0, "1_0,stopped-early,2\n")
	call{}.run(args...).check(t, 0, "0 runs submitted; exp jobs "+spool+" shows them, exp collect "+spool+
		" brings the results here\n", "smoke#0  collected", "smoke#0  is done: its condition stopped it")
	call{}.run("query", "SELECT status, steps FROM runs", "--store", dir, "-o", "csv", "--no-header").check(t, 0, "stopped,2\n")
	call{}.run(append(args, "--wait")...).check(t, 0, "1 run done\n", "smoke#0  is done: its condition stopped it")
}

// Submitting again with settings that are not part of a run's id leaves alone what jobs in the queue
// will read.
func TestRunSlurmKeepsConfigs(t *testing.T) {
	fakeSlurm(t)
	bin := t.TempDir()
	for name, text := range map[string]string{"sbatch": "echo 1", "squeue": "echo '1_0|PENDING'"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	dir, spool := filepath.Join(t.TempDir(), "store"), filepath.Join(t.TempDir(), "spool")
	args := []string{"run", smokeConfig, "--on", "slurm", "--set", "cluster.spool=" + spool, "--store", dir}
	configs := func() map[string]string {
		files, err := filepath.Glob(filepath.Join(spool, "config", "*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		list := map[string]string{}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			list[f] = string(text)
		}
		return list
	}
	if got := (call{}).run(append(args, "--set", "checkpoint.every_steps=2")...); got.code != 0 {
		t.Fatal(got.stderr)
	}
	first := configs()
	if got := (call{}).run(append(args, "--seeds", "0-1", "--set", "checkpoint.every_steps=3")...); got.code != 0 {
		t.Fatal(got.stderr)
	}
	both := configs()
	if len(first) != 1 || len(both) != 2 {
		t.Fatalf("%d configurations, then %d; want 1 and 2", len(first), len(both))
	}
	for f, text := range first {
		if both[f] != text {
			t.Errorf("%s has changed", f)
		}
	}
}
