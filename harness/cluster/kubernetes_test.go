package cluster

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"exp/harness/config"
	"exp/harness/plan"
)

// TestManifests freezes the Jobs of a study, with every option and with none. Where kubectl
// is installed, it must be able to read them.
func TestManifests(t *testing.T) {
	runs := []*plan.Run{planned(t, 0), planned(t, 1)}
	jobs, err := List(context.Background(), nil, runs)
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]config.Kubernetes{
		"plain": {Image: "debian:12", Claim: "spool", CPUs: 1, MaxRestarts: 20},
		"every": {Image: "registry.example/cuda:12", Claim: "shared", Mount: "/shared", Namespace: "lab", CPUs: 8, GPUs: 1,
			Memory: "64Gi", MaxRestarts: 5, MaxParallel: 1},
	} {
		k := &Kubernetes{Spool: Spool{"/shared/it's"}, Program: "bin/exp", Dir: "/shared/work",
			Batches: Batches(jobs, []Entry{{ID: "shared", Until: "sft"}, {ID: "first"}, {ID: "second"}})}
		for i := range k.Batches {
			k.Batches[i].Options.Kubernetes = o
		}
		got, err := k.Manifests()
		if err != nil {
			t.Fatal(err)
		}
		compareGolden(t, "kubernetes_"+name, got)
		t.Run(name, func(t *testing.T) { readByKubectl(t, got) })
	}
}

// readByKubectl lets kubectl read manifests, without a cluster.
func readByKubectl(t *testing.T, text string) {
	t.Helper()
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("no kubectl")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"jobs.yaml": text, "kustomization.yaml": "resources: [jobs.yaml]\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command(kubectl, "kustomize", dir).CombinedOutput()
	if err != nil || strings.Count(string(out), "kind: Job\n") != 2 ||
		!strings.Contains(string(out), `exec '/shared/it'\''s/bin/exp' job `) {
		t.Errorf("%v\n%s", err, out)
	}
}

// A pod that waits goes on when the job that it needs is done, gives up when it failed, and waits
// for one that failed before its manifest was printed again.
func TestWaitFor(t *testing.T) {
	spool := Spool{filepath.Join(t.TempDir(), "it's")}
	if err := spool.Make(); err != nil {
		t.Fatal(err)
	}
	k := &Kubernetes{Spool: spool, Batches: []Batch{{Entries: []Entry{{ID: "x"}}}}}
	wait := strings.NewReplacer("sleep 5", "exit 70").Replace(waitFor(spool.Path(StatePath("x")), "smoke's#0"))
	silent := strings.NewReplacer("sleep 5", "sleep 0", "-ge 720", "-ge 3").Replace(waitFor(spool.Path(StatePath("x")), "x"))
	absent := strings.NewReplacer("sleep 5", "sleep 0", "-ge 17280", "-ge 3").Replace(waitFor(spool.Path(StatePath("x")), "x"))
	for _, tt := range []struct {
		status, script string
		again          bool
		code           int
	}{
		{"", wait, false, 70}, {"", absent, false, 1}, {Stopped, absent, false, 1}, {Running, wait, false, 70}, {Stopped, wait, false, 70}, {Failed, wait, false, 2},
		{Failed, wait, true, 70}, {Stopped, wait, true, 70}, {Done, wait, false, 0}, {Done, wait, true, 0}, {Running, silent, false, 1},
	} {
		if tt.status != "" {
			if err := writeJSON(spool.Path(StatePath("x")), State{ID: "x", Status: tt.status, Step: 7, Checkpoint: 6}); err != nil {
				t.Fatal(err)
			}
		}
		if tt.again {
			if err := k.Prepare(); err != nil {
				t.Fatal(err)
			}
			if st, err := spool.State("x"); err != nil || st.Step != 7 || st.Checkpoint != 6 {
				t.Errorf("%s: %+v, %v", tt.status, st, err)
			}
		}
		cmd := exec.Command("sh", "-c", tt.script)
		out, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != tt.code {
			t.Errorf("%+v: exit code %d: %s", tt, cmd.ProcessState.ExitCode(), out)
		}
	}
}

// The state counts the attempts of a pod that ended by themselves; the last one fails the job.
func TestUncounted(t *testing.T) {
	spool := Spool{t.TempDir()}
	if err := spool.Make(); err != nil {
		t.Fatal(err)
	}
	before := State{Number: "job_0"}
	for i, tt := range []struct {
		left     string // by the last attempt
		text     string
		how      End
		asked    bool
		restarts int
		status   string
	}{
		{Stopped, "asked to stop", End{Code: 143}, true, 0, Stopped},
		{Running, "", End{Code: 1, Said: "no space left"}, false, 1, Stopped},
		{Stopped, "exit code 1", End{Code: 137}, false, 2, Failed},
	} {
		before.Status, before.Text = tt.left, tt.text
		before.Restarts = before.restarts("job_0")
		a := &Attempt{Entry: Entry{ID: "x", MaxRestarts: 2}, Spool: spool, Uncounted: true, Restarts: before.Restarts,
			Log: t.Output(), state: State{ID: "x", Number: "job_0", Restarts: before.Restarts}}
		if _, err := a.settle(tt.asked, tt.how); err != nil {
			t.Fatal(err)
		}
		st, err := spool.State("x")
		if err != nil || st.Status != tt.status || st.Restarts != tt.restarts {
			t.Errorf("attempt %d: %+v, %v; want %s, restart %d", i, st, err, tt.status, tt.restarts)
		}
	}
	if n := before.restarts("another_0"); n != 0 {
		t.Errorf("%d restarts of another job", n)
	}
}
