package cluster

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/plan"
)

// withSqueue puts a squeue in PATH that prints the jobs, as "12_3|PENDING" in lines.
func withSqueue(t *testing.T, jobs string) {
	t.Helper()
	dir := t.TempDir()
	text := "#!/bin/sh\nprintf '%s' '" + jobs + "'\n"
	if err := os.WriteFile(filepath.Join(dir, "squeue"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// smokeStudy plans seeds 0 to 5 of the smoke run, seed 1 twice. All but the last two were submitted: job
// 7_0 is with Slurm, 7_1 is done, 7_2 ended without saying why, 7_3 never started.
func smokeStudy(t *testing.T) *Study {
	t.Helper()
	r, err := config.Load(config.Input{File: "../../configs/smoke_cpu.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	s := &Study{DB: openNode(t).db, Spool: Spool{t.TempDir()}, Tags: []string{"study"},
		Getenv: func(string) string { return "" }}
	if err := s.Plan(context.Background(), plan.WantedOf([]*config.Resolved{r}, []int64{0, 1, 1, 2, 3, 4, 5})); err != nil {
		t.Fatal(err)
	}
	if len(s.Plans) != 6 {
		t.Fatalf("%d plans of 6 different runs", len(s.Plans))
	}
	if err := s.Spool.Make(); err != nil {
		t.Fatal(err)
	}
	for i, number := range []string{"7_0", "7_1", "7_2", "7_3"} {
		rid := s.Plans[i].RID
		e := Entry{ID: rid.String(), Name: "job " + number, RID: rid}
		st := State{ID: e.ID, RID: rid, Number: number, Host: "node1", Status: Running}
		if number == "7_1" {
			st.Status = StoppedEarly
		}
		err := s.Spool.note(Submitted{e, number})
		if err == nil && number != "7_3" {
			err = writeJSON(s.Spool.Path(StatePath(e.ID)), st)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// begin records a run of a study, with an attempt that ended so; "" means that it still runs.
func begin(t *testing.T, s *Study, i int, end store.Status) {
	t.Helper()
	ctx := context.Background()
	p := s.Plans[i]
	r, _, err := s.DB.EnsureRun(ctx, store.NewRun{RID: p.RID, XID: p.XID, Name: "smoke", Seed: p.Seed,
		Numerics: "cpu/fma", Code: p.XID, Config: store.Config{Digest: p.XID, JSON: "{}"}})
	if err != nil {
		t.Fatal(err)
	}
	at, err := s.DB.BeginAttempt(ctx, store.Attempt{Run: r.ID, Kind: store.AttemptRun})
	if err == nil && end != "" {
		err = s.DB.EndAttempt(ctx, at.ID, end, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestStudy: where the runs of a study are, what became of their jobs, and which are left.
func TestStudy(t *testing.T) {
	withSqueue(t, "7_0|RUNNING\n8_0|PENDING\n")
	ctx := context.Background()
	s := smokeStudy(t)
	begin(t, s, 4, store.Stopped)
	begin(t, s, 5, store.Interrupted)
	states, err := Slurm{}.States(ctx)
	if err != nil {
		t.Fatal(err)
	}
	at, err := s.Standings(ctx, states)
	if err != nil {
		t.Fatal(err)
	}
	var places []Place
	for _, a := range at {
		places = append(places, a.Place)
	}
	if want := []Place{Queued, Published, Missing, Missing, Complete, Begun}; !slices.Equal(places, want) {
		t.Errorf("places %v, want %v", places, want)
	}
	if missing := MissingOf(at); len(missing) != 2 || missing[0] != s.Plans[2] || missing[1] != s.Plans[3] {
		t.Errorf("missing: %+v", missing)
	}
	if q := at[0]; q.Number != "7_0" || q.State != "running" || at[4].Status != store.Stopped {
		t.Errorf("%+v, %+v", q, at[4])
	}
	if left, err := s.left(ctx); left != 1 || err != nil {
		t.Errorf("%d jobs are left, %v; want 1", left, err)
	}
	never := "never started: it was cancelled, a job that it needs failed, or its node does not see " + s.Spool.Dir
	const silent = "ended on node1 without saying why"
	listed := map[string]string{}
	jobs, err := s.Spool.Jobs(ctx)
	for _, l := range jobs {
		listed[l.Job.Number] = l.State + ": " + l.Text
	}
	want := map[string]string{"7_0": "running: ", "7_1": "stopped-early: ", "7_2": "lost: " + silent, "7_3": "lost: " + never}
	if diff := cmp.Diff(want, listed); diff != "" || err != nil {
		t.Errorf("%v; jobs (-want +got):\n%s", err, diff)
	}
	losses, err := s.Losses(ctx, at, &Collected{})
	var whys []string
	for _, l := range losses {
		whys = append(whys, l.Why)
	}
	if diff := cmp.Diff([]string{silent, "is done, but waits for the run whose stages it reuses", silent, never}, whys); err != nil || diff != "" {
		t.Errorf("%v; losses (-want +got):\n%s", err, diff)
	}
}

// TestEntries: jobs need the bundles of the jobs that they share stages with; pods and hosts have settings
// of their own. The spool gets what they read.
func TestEntries(t *testing.T) {
	ctx := context.Background()
	s := smokeStudy(t)
	sub, err := s.Submission(ctx, s.Plans[:2])
	if err != nil || len(sub.Batches) != 2 {
		t.Fatalf("%+v, %v", sub, err)
	}
	first, runs := sub.Batches[0].Entries[0], sub.Batches[1].Entries
	if first.ID != s.Plans[0].RID.String()+".sft" || len(runs) != 2 ||
		!slices.Equal(runs[0].Needs, []string{BundlePath(first.ID)}) ||
		!slices.Equal(runs[1].Tags, []string{"study"}) || runs[0].Threads == 0 {
		t.Errorf("%+v", sub.Batches)
	}
	if _, err := os.Stat(s.Spool.Path(sub.Program)); err == nil {
		t.Error("a submission that nobody submits wrote the program")
	}
	k, err := s.Pods(ctx, s.Plans[:2], "/", false)
	if err != nil {
		t.Fatal(err)
	}
	o := s.Plans[0].Config.Run.Cluster.Kubernetes
	if e := k.Batches[0].Entries[0]; e.Threads != o.CPUs || e.MaxRestarts != o.MaxRestarts || e.Store != NodeStore {
		t.Errorf("in a pod: %+v", e)
	}
	_, remote, err := s.RemoteJobs(ctx, s.Plans[:1], "/")
	if err != nil || len(remote) != 1 || remote[0].Threads != 0 {
		t.Fatalf("on a host: %+v, %v", remote, err)
	}
	for _, name := range []string{sub.Program, remote[0].Config} {
		if _, err := os.Stat(s.Spool.Path(name)); err != nil {
			t.Error(err)
		}
	}
	other := *s.Plans[0]
	other.RID = s.Plans[1].RID
	if _, _, err := s.RemoteJobs(ctx, []*plan.Run{&other}, "/"); err == nil || !strings.Contains(err.Error(), "written out in full") {
		t.Errorf("a configuration that makes another run: %v", err)
	}
}

// TestResults: a run counts if its job started, or if nobody is executing it; stages that several processes
// executed add up.
func TestResults(t *testing.T) {
	s := smokeStudy(t)
	begin(t, s, 0, store.Done)
	begin(t, s, 1, "")                // not started here: another process has it
	begin(t, s, 2, store.Interrupted) // not started here: it was begun before
	jobs := append([]Job{{Run: s.Plans[0], Until: config.SFT}}, Alone(s.Plans[:4])...)
	ends := []End{{}, {}, {Code: -1, Err: ErrNotStarted}, {Code: -1, Err: ErrNotStarted}, {Code: 1}}
	r := make(Results, 4)
	for _, facts := range []map[string]string{{"executed": "3", "cached": "1"}, {"executed": "5", "cached": "4"}, nil} {
		r.Add(0, &Event{Event: "run_end", Facts: facts})
	}
	list, err := r.InStore(context.Background(), s.DB, jobs, ends)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 2 || list[0].Run.RID != s.Plans[0].RID || list[1].Run.RID != s.Plans[2].RID ||
		list[0].Executed != 8 || list[0].Cached != 4 {
		t.Errorf("%+v", list)
	}
}

// TestNewAttempt: the environment names the job. Slurm's can be queued again, a pod's state counts its
// restarts, and one of ssh stops with its input.
func TestNewAttempt(t *testing.T) {
	spool := Spool{t.TempDir()}
	if err := spool.Make(); err != nil {
		t.Fatal(err)
	}
	list := spool.Path("jobs/list.json")
	if err := writeJSON(list, []Entry{{ID: "a"}, {ID: "b"}}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, number          string
		env                   map[string]string
		slurm, uncounted, ssh bool
	}{
		{"pod", "exp-smoke_1", map[string]string{JobVariable: "exp-smoke"}, false, true, false},
		{"slurm", "12_1", map[string]string{"SLURM_ARRAY_JOB_ID": "12", "SLURM_ARRAY_TASK_ID": "1",
			"SLURM_RESTART_COUNT": "2", "SLURM_TMPDIR": "/scratch"}, true, false, false},
		{"ssh", "ssh:gpu1_1", map[string]string{JobVariable: OverSSH + "gpu1"}, false, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log strings.Builder
			a, err := NewAttempt(list, 1, "exp", &log, func(name string) string { return tt.env[name] })
			if err != nil {
				t.Fatal(err)
			}
			slurm := a.Requeue != nil && a.Fate != nil && a.Restarts == 2 && a.Store == "/scratch"
			if a.ID != "b" || a.Number != tt.number || slurm != tt.slurm || a.Uncounted != tt.uncounted {
				t.Errorf("%+v", a)
			}
			in, out := io.Pipe()
			ctx := a.FollowSSH(context.Background(), in)
			out.Close()
			if !tt.ssh {
				if ctx != context.Background() || a.Progress != nil {
					t.Error("it follows an input")
				}
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Second):
				t.Fatal("the end of its input did not stop it")
			}
			if a.Progress(Event{Event: "step", Step: 3}); !strings.Contains(log.String(), `"step":3`) {
				t.Errorf("it reported %q", log.String())
			}
		})
	}
	if _, err := NewAttempt(list, 2, "exp", io.Discard, func(string) string { return "" }); err == nil {
		t.Error("an entry that is not in the list was read")
	}
}
