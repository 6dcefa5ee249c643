package bundle

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"exp/experiments/ident"
	"exp/experiments/store"
)

// A bundle with weights and texts completes a run that came without them: the run is then the same as if this bundle
// had come first.
func TestImportCompletes(t *testing.T) {
	for name, tt := range map[string]struct {
		without        Options
		weights, texts bool
	}{
		"weights": {Options{NoWeights: true}, true, false},
		"texts":   {Options{NoTexts: true}, false, true},
		"both":    {Options{NoWeights: true, NoTexts: true}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			from, b := record(t, t.TempDir())
			whole, _ := write(t, from, Options{}, b)
			part, _ := write(t, from, tt.without, b)
			to := open(t, t.TempDir())
			if _, err := load(t, part, to); err != nil {
				t.Fatal(err)
			}
			done, err := load(t, whole, to)
			if err != nil || len(done.Added) != 0 || len(done.Present) != 2 {
				t.Fatalf("%+v, %v", done, err)
			}
			if p := done.Present[1]; p.Weights != tt.weights || p.Texts != tt.texts {
				t.Errorf("it says %+v", p)
			}
			same(t, from, to, b.RID)
			mine := b1(t, to, b.RID)
			again, _ := write(t, to, Options{}, mine)
			if !bytes.Equal(read(t, whole), read(t, again)) {
				t.Error("exported, it is another file than the one that completed it")
			}
			stages, err := to.Stages(ctx, mine.ID)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range stages {
				if hit, err := to.Hit(ctx, s.SID); err != nil || hit == nil {
					t.Errorf("stage %s is not a hit: %v", s.Kind, err)
				}
			}
			done, err = load(t, whole, to)
			if err != nil || done.Present[1].Weights || done.Present[1].Texts {
				t.Errorf("imported twice: %+v, %v", done, err)
			}
		})
	}
}

// A run that is being executed, or has a later checkpoint, gets no folder of weights.
func TestImportLeavesFolders(t *testing.T) {
	from, b := record(t, t.TempDir())
	whole, _ := write(t, from, Options{}, b)
	part, _ := write(t, from, Options{NoWeights: true}, b)
	to := open(t, t.TempDir())
	if _, err := load(t, part, to); err != nil {
		t.Fatal(err)
	}
	lock, err := to.LockRun(b.RID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := load(t, whole, to); err != nil {
		t.Fatal(err)
	}
	stages := filepath.Join(to.RunDir(b.RID), "ckpt", "train-1")
	if _, err := os.Stat(stages); err == nil {
		t.Error("a run that is being executed has a checkpoint more")
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(stages, "step-00000003"), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := load(t, whole, to); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(stages, "step-00000002")); err == nil {
		t.Error("it has a checkpoint older than its own")
	}
	if _, err := os.Stat(filepath.Join(to.RunDir(b.RID), "model", "config.json")); err != nil {
		t.Errorf("the merged model is missing: %v", err)
	}
}

// A run that has fewer steps here gets no checkpoint or model of the steps that it lacks.
func TestImportOfContinuedRun(t *testing.T) {
	from, b := record(t, t.TempDir())
	whole, _ := write(t, from, Options{}, b)
	to := open(t, t.TempDir())
	m := maker{t, to}
	here, _, err := to.EnsureRun(context.Background(), store.NewRun{RID: b.RID, XID: b.XID, Name: "b", Seed: 1, Numerics: "cpu/fma",
		StepsTotal: 3, Config: store.Config{Digest: digestOf("config b"), JSON: `{"name":"b"}`}})
	m.must(err)
	a, err := to.BeginAttempt(context.Background(), store.Attempt{Run: here.ID, Kind: store.AttemptRun, Host: "host", PID: 7})
	m.must(err)
	m.steps(here, 1, 0.25)
	m.must(to.EndAttempt(context.Background(), a.ID, store.Interrupted, 0))
	done, err := load(t, whole, to)
	if err != nil || len(done.Present) != 1 || done.Present[0].Weights || done.Present[0].Theirs != 3 {
		t.Fatalf("%+v, %v", done, err)
	}
	for _, folder := range WeightFolders() {
		if _, err := os.Stat(filepath.Join(to.RunDir(b.RID), folder)); err == nil {
			t.Errorf("it has a folder %s", folder)
		}
	}
}

// Work done again in a store without its results is done.
func TestRepeatedWorkIsDone(t *testing.T) {
	ctx := context.Background()
	from, b := record(t, t.TempDir())
	part, _ := write(t, from, Options{NoWeights: true}, b)
	to := open(t, t.TempDir())
	if _, err := load(t, part, to); err != nil {
		t.Fatal(err)
	}
	r := b1(t, to, b.RID)
	left, err := to.LeftOut(ctx, r.ID)
	if err != nil || len(left) != 2 || left[ident.Sum([]byte("weights of b"))] == "" {
		t.Errorf("left out: %v, %v", left, err)
	}
	m := maker{t, to}
	s := m.stage(r, "train", "", []store.IO{m.blob("weights", "weights", "weights of b")}, nil)
	if hit, err := to.Hit(ctx, s.SID); err != nil || hit == nil {
		t.Errorf("executed again, it is not a hit: %v", err)
	}
	if left, err = to.LeftOut(ctx, r.ID); err != nil || len(left) != 1 {
		t.Errorf("left out: %v, %v", left, err)
	}
}
