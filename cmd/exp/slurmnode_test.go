package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"exp/harness/cluster"
)

// Studies on a real Slurm of one node, which a script starts in a directory. Each test
// disturbs its study in one way; the runs must have the bits of undisturbed ones.

// slurmNode starts the Slurm. Without always, the test needs EXP_TEST_ALL: Slurm takes 11 s or
// more to start a job again.
func slurmNode(t *testing.T, always bool) {
	t.Helper()
	if testing.Short() || !always && os.Getenv("EXP_TEST_ALL") == "" {
		t.Skip("takes a minute: EXP_TEST_ALL=1 does it")
	}
	for _, name := range []string{"slurmctld", "slurmd", "sbatch", "munged"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("no %s: packages slurm-wlm and munge", name)
		}
	}
	if os.Getuid() != 0 {
		t.Skip("slurmd must be root")
	}
	dir, err := os.MkdirTemp("/tmp", "exp-slurm-*") // the names of sockets are short
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cmd := exec.Command("../../harness/cluster/testdata/cluster.sh", dir, "sh", "-c", "echo ready; cat")
	cmd.Stderr = &said
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
		os.RemoveAll(dir)
	})
	if _, err := io.ReadFull(out, make([]byte, len("ready\n"))); err != nil {
		t.Skipf("Slurm does not start here: %s", said.String())
	}
	t.Setenv("SLURM_CONF", filepath.Join(dir, "slurm.conf"))
	t.Setenv("EXP_TEST_AS_PROGRAM", "1")
}

// slurmStudy is a study with its arguments, its spool and its store.
type slurmStudy struct {
	*testing.T
	args  []string
	spool cluster.Spool
	dir   string
}

// longSteps makes steps of some 50 ms.
var longSteps = []string{"--set", "model.arch.layers=4", "--set", "model.arch.ffn=256", "--set", "rollout.n=8",
	"--set", "train.prompts_per_step=16", "--set", "train.prompts_per_update=16", "--set", "eval.online.every_steps=0"}

// newSlurmStudy makes a study of the smoke recipe. spool are settings of cluster.*.
func newSlurmStudy(t *testing.T, spool []string, args ...string) *slurmStudy {
	t.Helper()
	s := &slurmStudy{T: t, args: append([]string{"run", smokeConfig}, args...), dir: filepath.Join(t.TempDir(), "store"),
		spool: cluster.Spool{Dir: filepath.Join(t.TempDir(), "spool")}}
	t.Cleanup(func() {
		if t.Failed() {
			logs, _ := exec.Command("sh", "-c", "tail -n 30 "+s.spool.Dir+"/log/* "+s.spool.Dir+"/state/*").CombinedOutput()
			t.Logf("%s", logs)
		}
	})
	s.args = append(s.args, "--on", "slurm", "--wait", "--store", s.dir, "--set", "cluster.spool="+s.spool.Dir)
	for _, set := range spool {
		s.args = append(s.args, "--set", set)
	}
	return s
}

// alone executes the runs of the study one after another, without Slurm.
func (s *slurmStudy) alone(args ...string) string {
	s.Helper()
	dir := filepath.Join(s.TempDir(), "alone")
	got := call{}.run(append(append([]string{"run", smokeConfig}, args...), "--store", dir, "-q")...)
	if got.code != 0 {
		s.Fatal(got.stderr)
	}
	return dir
}

// outputs returns the digests of all outputs of stages that were executed, by run.
func outputs(t *testing.T, dir string) string {
	t.Helper()
	got := call{}.run("query", `SELECT DISTINCT r.name, r.seed, s.kind, s.label, io.role, lower(hex(io.digest)) AS digest
		FROM stage_io io JOIN stages s ON s.id = io.stage JOIN runs r ON r.id = s.run
		WHERE s.status = 'done' ORDER BY 1, 2, 3, 4, 5, 6`, "--store", dir, "-o", "csv", "--no-header")
	if got.code != 0 || got.stdout == "" {
		t.Fatal(got.code, got.stderr)
	}
	return got.stdout
}

// same checks that the study has the n runs of a store, to the bit, and that the same
// command submits nothing.
func (s *slurmStudy) same(n int, alone string) {
	s.Helper()
	want, have := chains(s.T, alone), chains(s.T, s.dir)
	for run := range want {
		if have[run] != want[run] {
			s.Errorf("%s has %q, alone %q", run, have[run], want[run])
		}
	}
	if len(want) != n || len(have) != n {
		s.Errorf("%d runs, alone %d; want %d", len(have), len(want), n)
	}
	if got, want := outputs(s.T, s.dir), outputs(s.T, alone); got != want {
		s.Errorf("outputs:\n%s\nalone:\n%s", got, want)
	}
	exp(s.T, "fsck", "--store", s.dir).says(s.T, "everything is as recorded")
	before, err := s.spool.Submitted()
	if err != nil {
		s.Fatal(err)
	}
	again := call{}.run(s.args...)
	again.check(s.T, 0, fmt.Sprintf("%s done\n", map[int]string{1: "1 run", 2: "2 runs", 4: "4 runs"}[n]), "#0  is done")
	after, err := s.spool.Submitted()
	if err != nil || len(after) != len(before) || slices.ContainsFunc(after, func(j cluster.Submitted) bool {
		return !slices.ContainsFunc(before, func(b cluster.Submitted) bool { return b.Number == j.Number })
	}) {
		s.Errorf("it submitted again: %v, %v", after, err)
	}
}

// run executes the study, and disturbs a run that has published a checkpoint.
func (s *slurmStudy) run(disturb func(cluster.Submitted) error) {
	s.Helper()
	disturbed, ended := make(chan error, 1), make(chan struct{})
	go func() {
		j, err := s.published(ended)
		if err == nil {
			err = disturb(j)
		}
		disturbed <- err
	}()
	got := call{}.run(s.args...)
	close(ended)
	if err := <-disturbed; err != nil || got.code != 0 {
		s.Fatalf("%v, exit code %d: %s", err, got.code, got.stderr)
	}
}

// published waits for a run that is executed and has published a checkpoint, until the
// study has ended.
func (s *slurmStudy) published(ended <-chan struct{}) (cluster.Submitted, error) {
	for {
		select {
		case <-ended:
			return cluster.Submitted{}, errors.New("no run published a checkpoint")
		case <-time.After(50 * time.Millisecond):
		}
		jobs, err := s.spool.Submitted()
		if err != nil {
			return cluster.Submitted{}, err
		}
		for _, j := range jobs {
			st, err := s.spool.State(j.ID)
			if err == nil && j.Until == "" && st.Status == cluster.Running && st.Checkpoint > 0 {
				return j, nil
			}
		}
	}
}

// restarted checks how often jobs were started again, that each went on from its bundle,
// and that every job says it is done.
func (s *slurmStudy) restarted(atLeast int) {
	s.Helper()
	jobs, err := s.spool.Submitted()
	if err != nil {
		s.Fatal(err)
	}
	sum := 0
	for _, j := range jobs {
		st, err := s.spool.State(j.ID)
		if err != nil || st.Status != cluster.Done {
			s.Errorf("%s: %+v, %v", j.Name, st, err)
		}
		if j.Until != "" || st.Restarts == 0 {
			continue
		}
		sum += st.Restarts
		if n := s.attempts(j); n < 2 {
			s.Errorf("%s was restarted %d times, but has %d attempts: it began again", j.Name, st.Restarts, n)
		}
	}
	if sum < atLeast {
		s.Errorf("%d restarts, want %d or more", sum, atLeast)
	}
}

// attempts returns how many attempts are recorded of a job's run.
func (s *slurmStudy) attempts(j cluster.Submitted) int {
	s.Helper()
	got := call{}.run("query", fmt.Sprintf("SELECT count(*) FROM attempts a JOIN runs r ON r.id = a.run WHERE hex(r.rid) = upper('%s')",
		j.RID), "--store", s.dir, "-o", "csv", "--no-header")
	n, err := strconv.Atoi(strings.TrimSpace(got.stdout))
	if err != nil {
		s.Fatal(got.stderr, err)
	}
	return n
}

// findProcess returns the id of the exp with a command and words in its arguments.
func findProcess(command string, words ...string) (int, error) {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0, err
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil || !strings.Contains(string(text), "\x00"+command+"\x00") ||
			slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(string(text), w+"\x00") }) {
			continue
		}
		return strconv.Atoi(filepath.Base(filepath.Dir(f)))
	}
	return 0, fmt.Errorf("no process executes %s %q", command, words)
}

// kill kills the program that executes a job's run.
func (s *slurmStudy) kill(j cluster.Submitted) error {
	pid, err := findProcess("run", s.spool.Path(j.Config), "--seeds\x00"+strconv.FormatInt(j.Seed, 10))
	if err != nil {
		return err
	}
	return syscall.Kill(pid, syscall.SIGKILL)
}

// Two arms and two seeds, undisturbed: the shared stages are made once.
func TestSlurmStudy(t *testing.T) {
	slurmNode(t, true)
	arms := []string{"--grid", "algo.kind=flowrl,ppo", "--seeds", "0-1"}
	s := newSlurmStudy(t, nil, arms...)
	got := call{}.run(s.args...)
	got.check(t, 0, "4 runs done\n", "job 1  exp-smoke_algo.kind-flowrl-sft, 1 task", "job 2  exp-smoke_algo.kind-flowrl, 4 tasks",
		"smoke_algo.kind-ppo#1  collected")
	if n := stagesDone(t, s.dir, "sft"); n != 1 {
		t.Errorf("%d sft stages are done, want 1", n)
	}
	s.same(4, s.alone(arms...))
	bad := slices.Concat(s.args[:len(s.args):len(s.args)], []string{"--seeds", "2", "--set", "cluster.slurm.partition=nowhere"})
	call{}.run(bad...).check(t, 7, "", "error: sbatch: invalid partition specified: nowhere",
		"set cluster.slurm.partition to one that sinfo lists")
}

// After its program is killed, a job continues from its last checkpoint.
func TestSlurmKilled(t *testing.T) {
	slurmNode(t, true)
	runs := append([]string{"--set", "train.steps=60", "--set", "checkpoint.every_steps=10"}, longSteps...)
	s := newSlurmStudy(t, nil, runs...)
	s.run(s.kill)
	s.restarted(1)
	s.same(1, s.alone(runs...))
}

// A job that matters more takes the node: Slurm warns the runs, they save and queue again.
func TestSlurmPreempted(t *testing.T) {
	slurmNode(t, false)
	runs := append([]string{"--grid", "algo.kind=flowrl,ppo", "--seeds", "0-1", "--set", "train.steps=120",
		"--set", "checkpoint.every_steps=20"}, longSteps...)
	s := newSlurmStudy(t, nil, runs...)
	s.run(func(cluster.Submitted) error {
		return exec.Command("sbatch", "--partition=high", "--ntasks=2", "--output=/dev/null", "--wrap", "sleep 1").Run()
	})
	s.restarted(1)
	s.same(4, s.alone(runs...))
}

// Runs that need more than a job's time limit go on in the next job. A limit has whole
// minutes, and the warning comes half a minute early or more.
func TestSlurmTimeLimit(t *testing.T) {
	slurmNode(t, false)
	runs := append([]string{"--seeds", "0-1", "--set", "train.steps=1800", "--set", "checkpoint.every_steps=50"}, longSteps...)
	s := newSlurmStudy(t, []string{`cluster.slurm.time="1"`, "cluster.slurm.signal_before=55"}, runs...)
	s.run(func(cluster.Submitted) error { return nil })
	s.restarted(1)
	s.same(2, s.alone(runs...))
}

// A cancelled job saves its work and stays cancelled; the same command continues it.
func TestSlurmCancelled(t *testing.T) {
	slurmNode(t, false)
	runs := append([]string{"--set", "train.steps=120", "--set", "checkpoint.every_steps=10"}, longSteps...)
	s := newSlurmStudy(t, nil, runs...)
	ended, cancelled := make(chan struct{}), make(chan error, 1)
	go func() {
		j, err := s.published(ended)
		if err == nil {
			err = exec.Command("scancel", j.Number).Run()
		}
		cancelled <- err
	}()
	got := call{}.run(s.args...)
	close(ended)
	if err := <-cancelled; err != nil {
		t.Fatal(err)
	}
	got.check(t, 1, "", "job 1  exp-smoke, 1 task", "smoke#0: cancelled", "the same command again submits only the missing jobs")
	left, err := exec.Command("squeue", "--noheader").Output()
	if err != nil || len(left) > 0 {
		t.Errorf("Slurm still has %q, %v", left, err)
	}
	listed := call{}.run("jobs", s.spool.Dir, "-o", "csv", "--no-header", "--fields", "job,state")
	listed.check(t, 0, "1_0,stopped\n")
	call{}.run(s.args...).check(t, 0, "1 run done\n", "job 2  exp-smoke, 1 task")
	if jobs, err := s.spool.Submitted(); err != nil || len(jobs) != 1 || s.attempts(jobs[0]) != 2 {
		t.Errorf("%+v, %v; want one job with two attempts", jobs, err)
	}
	s.same(1, s.alone(runs...))
}
