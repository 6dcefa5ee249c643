package cluster

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/harness/config"
	"exp/harness/plan"
)

var update = flag.Bool("update", false, "rewrite testdata/*.golden")

// compareGolden compares a text with a golden file, whose path it returns.
func compareGolden(t *testing.T, name, got string) (path string) {
	t.Helper()
	path = filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
	return path
}

// TestScript freezes the scripts of a study, with every option and with none; a shell
// must be able to read them.
func TestScript(t *testing.T) {
	runs := []*plan.Run{planned(t, 0), planned(t, 1)}
	jobs, err := List(context.Background(), nil, runs)
	if err != nil {
		t.Fatal(err)
	}
	entries := []Entry{{ID: "shared"}, {ID: "first"}, {ID: "second"}}
	batches := Batches(jobs, entries)
	if len(batches) != 2 || len(batches[1].Entries) != 2 || !cmp.Equal(batches[1].After, []int{0}) {
		t.Fatalf("%+v", batches)
	}
	for name, s := range map[string]config.Slurm{
		"plain": {CPUs: 1, SignalBefore: 120},
		"every": {CPUs: 8, SignalBefore: 300, Partition: "gpu", Account: "lab", QOS: "long", Time: "12:00:00", Gres: "gpu:1",
			Mem: "64G", Exclude: "node[3-4]", MaxParallel: 4, Extra: []string{"--mail-type=FAIL", "--comment=rl"},
			Prolog: []string{"module load cuda", "ulimit -c 0"}},
		"ranks":  {CPUs: 8, SignalBefore: 120, RanksPerNode: 4, MPI: "pmix", Gres: "gpu:a100:4,ssd:1"},
		"mpirun": {CPUs: 1, SignalBefore: 120, MPI: "mpirun"},
	} {
		b := batches[1]
		b.Options.Slurm = s
		switch name {
		case "ranks":
			b.Ranks, b.GPU = 8, "a100:1"
		case "mpirun":
			b.Ranks = 2
		}
		got, err := b.Script("/spool/it's/bin/exp", "/spool/jobs/first.json", "/spool/log/%A_%a.log")
		if err != nil {
			t.Fatal(err)
		}
		path := compareGolden(t, "script_"+name, got)
		if out, err := exec.Command("sh", "-n", path).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", path, err, out)
		}
	}
}

// What a job does after its program ended: done, back into the queue, or failed.
func TestConclude(t *testing.T) {
	killed := End{Code: -1, Signal: 9}
	for _, tt := range []struct {
		name     string
		asked    bool
		how      End
		restarts int
		crash    int // step of the last crash, plus 1
		status   string
		waiting  bool
		code     int
	}{
		{"a rank is lost", false, End{Code: 10, Said: "error: rank 1 was killed"}, 0, 0, Requeued, true, 0},
		{"cancelled, and its ranks are lost", true, End{Code: 10}, 0, 0, Stopped, false, 130},
		{"an evaluation fails", false, End{Code: 8}, 0, 0, Failed, false, 8},
		{"no rank is lost, but the reward program fails", false, End{Code: 8}, 0, 0, Failed, false, 8},
		{"done", false, End{}, 0, 0, Done, false, 0},
		{"asked to stop", true, End{Code: 130}, 0, 0, Requeued, true, 0},
		{"ended by Slurm's own signal", true, End{Code: 143}, 3, 0, Requeued, true, 0},
		{"cancelled", true, End{Code: 143}, 0, 0, Stopped, false, 130},
		{"Slurm is silent", true, End{Code: 130}, 0, 0, Stopped, false, 130},
		{"preempted", true, End{Code: 143}, 0, 0, Requeued, true, 0},
		{"killed", false, killed, 0, 0, Requeued, true, 0},
		{"killed again, further on", false, killed, 1, 3, Requeued, true, 0},
		{"killed twice at one step", false, killed, 1, 8, Failed, false, 1},
		{"killed after too many restarts", false, killed, 5, 0, Failed, false, 1},
		{"a fault of the recipe", false, End{Code: 2, Said: "error: x"}, 0, 0, Failed, false, 2},
		{"stopped by its condition", false, End{Code: 9, Said: "error: run 01: stopped"}, 0, 0, StoppedEarly, false, 9},
		{"stopped by its condition, and asked to stop", true, End{Code: 9}, 0, 0, StoppedEarly, false, 9},
		{"a divergence", true, End{Code: 5}, 0, 0, Failed, false, 5},
		{"a crash of Go", false, End{Code: 2, Said: "fatal error: x\n\ngoroutine 1 [running]:"}, 0, 0, Requeued, true, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spool := Spool{t.TempDir()}
			if err := spool.Make(); err != nil {
				t.Fatal(err)
			}
			requeued := false
			a := &Attempt{Entry: Entry{ID: "x", MaxRestarts: 5}, Spool: spool, Restarts: tt.restarts, Log: t.Output(),
				Fate: func() Fate {
					return map[string]Fate{"cancelled": Cancelled, "cancelled, and its ranks are lost": Cancelled, "preempted": Requeuing, "Slurm is silent": Unknown}[tt.name]
				},
				Requeue: func() error { requeued = true; return nil }, state: State{ID: "x", Step: 7, Crash: tt.crash}}
			if strings.Contains(tt.name, "lost") {
				a.Ranks = 2
			}
			got, err := a.settle(tt.asked, tt.how)
			if err != nil {
				t.Fatal(err)
			}
			st, err := spool.State("x")
			if err != nil || st.Status != tt.status || got.Waiting != tt.waiting || got.Code != tt.code ||
				requeued != (tt.waiting && tt.name != "preempted") {
				t.Errorf("%+v, %+v, requeued %v, %v", got, st, requeued, err)
			}
		})
	}
}

// Slurm ends a job in three ways that look alike to it: only one must queue it again.
func TestFate(t *testing.T) {
	for _, tt := range []struct {
		name, shown string
		restarts    int
		want        Fate
	}{
		{"warned", "JobId=3 JobState=RUNNING Reason=None Restarts=0", 0, Kept},
		{"warned after a restart", "JobId=3 JobState=RUNNING Reason=None Restarts=2", 2, Kept},
		{"cancelled", "JobId=3 JobState=COMPLETING Reason=None Restarts=0", 0, Cancelled},
		{"preempted", "JobId=3 JobState=COMPLETING Reason=None Restarts=1", 0, Requeuing},
		{"too late for its time limit", "JobId=3 JobState=COMPLETING Reason=TimeLimit Restarts=0", 0, Kept},
	} {
		if got := fateOf(tt.shown, tt.restarts); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// Slurm stops a job again and again: it fails after two stops without progress, and goes on
// while it gets further.
func TestStoppedWithoutProgress(t *testing.T) {
	spool := Spool{t.TempDir()}
	if err := spool.Make(); err != nil {
		t.Fatal(err)
	}
	var last Stop
	for i, tt := range []struct {
		stages, step int
		status       string
	}{{0, 0, Requeued}, {1, 3, Requeued}, {1, 3, Requeued}, {1, 4, Requeued}, {2, 0, Requeued}, {1, 9, Requeued},
		{2, 0, Failed}} {
		a := &Attempt{Entry: Entry{ID: "x", MaxRestarts: 5}, Spool: spool, Log: t.Output(), state: State{ID: "x", Stop: last},
			Requeue: func() error { return nil }}
		for range tt.stages {
			a.hear(Event{Event: "step", Stage: "sft", Step: 30})
			a.hear(Event{Event: "stage_end", Stage: "sft", Status: "done"})
		}
		a.hear(Event{Event: "step", Stage: "train", Step: tt.step})
		a.hear(Event{Event: "stage_end", Stage: "train", Status: "interrupted"})
		if _, err := a.settle(true, End{Code: 130}); err != nil {
			t.Fatal(err)
		}
		st, err := spool.State("x")
		if err != nil || st.Status != tt.status || st.Step != tt.step {
			t.Fatalf("stop %d: %+v, %v; want %s", i, st, err, tt.status)
		}
		last = st.Stop
	}
	if st, _ := spool.State("x"); !strings.Contains(st.Text, "raise cluster.slurm.time") {
		t.Errorf("it says %q", st.Text)
	}
}

// A job asks Slurm again that did not answer at first.
func TestFateOfBusySlurm(t *testing.T) {
	dir := t.TempDir()
	text := "#!/bin/sh\n[ -e " + dir + "/asked ] && echo JobState=COMPLETING && exit\n: >" + dir + "/asked\nexit 1\n"
	if err := os.WriteFile(filepath.Join(dir, "scontrol"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	if fate, err := (Slurm{}).FateOf(context.Background(), "1_0", 0); fate != Cancelled || err != nil {
		t.Errorf("fate %v, %v; want %v", fate, err, Cancelled)
	}
}

// The number of a job is in the last line, before the name of a cluster; other texts have none.
func TestJobNumber(t *testing.T) {
	for out, want := range map[string]string{"77\n": "77", "77;east\n": "77", "Welcome to east\n\n78\n": "78", "": "", "\n": "",
		"Submitted batch job 77\n": "", "77\nbye\n": "", ";east\n": ""} {
		got, err := jobNumber(out)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%q: %q, %v; want %q", out, got, err, want)
		}
	}
}
