package bundle

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"exp/experiments/store"
)

// travelled makes a store with a run that was interrupted after two steps, and a bundle of the run after it was
// continued in another store, where its steps have the given score.
func travelled(t *testing.T, score float64) (here maker, r store.Run, there *store.DB, path string) {
	ctx := context.Background()
	here = maker{t, open(t, t.TempDir())}
	r = here.run("b", 0)
	attempt := func(m maker, r store.Run, pid int, steps int64, score float64, end store.Status) {
		a, err := m.db.BeginAttempt(ctx, store.Attempt{Run: r.ID, Kind: store.AttemptRun, Host: "host", PID: pid})
		m.must(err)
		m.steps(r, steps, score)
		if end == store.Done {
			m.stage(r, "train", "", []store.IO{m.blob("weights", "weights", "weights of b")}, nil)
			m.finish(r)
		}
		m.must(m.db.EndAttempt(ctx, a.ID, end, 0))
	}
	attempt(here, r, 1, 2, score, store.Interrupted)
	train, err := here.db.BeginStage(ctx, store.Stage{SID: digestOf("sid of training"), Run: r.ID, Kind: "train"})
	here.must(err)
	pack := here.db.Blobs.NewPackWriter()
	here.must(pack.Add("a text"))
	refs, packs, err := pack.Close()
	here.must(err)
	here.must(here.db.AddSamples(ctx, []store.Sample{{Stage: train.Home, Scope: "train", Step: 1, Item: "p", Ref: refs[0]}}, packs))
	here.must(here.db.InterruptStage(ctx, train.ID))
	first, _ := write(t, here.db, Options{}, r)
	there = open(t, t.TempDir())
	m := maker{t, there}
	m.steps(m.run("other", 0), 1, 1) // numbers of rows differ
	if _, err := load(t, first, there); err != nil {
		t.Fatal(err)
	}
	attempt(m, b1(t, there, r.RID), 2, 3, score, store.Done)
	path, _ = write(t, there, Options{}, b1(t, there, r.RID))
	return here, r, there, path
}

// A run that was continued elsewhere comes back whole, and keeps the tags and remarks that it got here.
func TestImportContinues(t *testing.T) {
	ctx := context.Background()
	here, r, there, path := travelled(t, 0.5)
	here.must(here.db.AddTag(ctx, r.ID, "mine"))
	here.must(here.db.AddNote(ctx, r.ID, "remark"))
	done, err := load(t, path, here.db)
	if err != nil || len(done.Continued) != 1 || len(done.Added)+len(done.Present) != 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	if p := done.Continued[0]; p.RID != r.RID || p.Steps != 2 || p.Theirs != 3 {
		t.Errorf("it says %+v", p)
	}
	got := b1(t, here.db, r.RID)
	tags, err := here.db.Tags(ctx, got.ID)
	if err != nil || !slices.Equal(tags, []string{"kept", "mine"}) {
		t.Errorf("tags %q, %v", tags, err)
	}
	notes, err := here.db.Notes(ctx, got.ID)
	if err != nil || len(notes) != 2 || notes[1].Text != "remark" {
		t.Errorf("remarks %+v, %v", notes, err)
	}
	steps, err := here.db.Steps(ctx, got.ID, 0, 100)
	if err != nil || len(steps) != 3 || got.Status != store.Done || got.Chain != b1(t, there, r.RID).Chain {
		t.Errorf("%d steps, %s, chain %s, %v", len(steps), got.Status, got.Chain.Short(), err)
	}
	if err := here.db.Check(ctx); err != nil {
		t.Error(err)
	}
	model := filepath.Join("model", "model.safetensors")
	a, b := read(t, filepath.Join(here.db.RunDir(r.RID), model)), read(t, filepath.Join(there.RunDir(r.RID), model))
	if !bytes.Equal(a, b) {
		t.Error("the merged model is not the same")
	}
	if done, err := load(t, path, here.db); err != nil || len(done.Present) != 1 || len(done.Continued) != 0 {
		t.Errorf("imported twice: %+v, %v", done, err)
	}
}

// What a bundle leaves out stays: texts, weights, events that belong to no attempt. One of more attempts at the
// same steps, such as an evaluation, continues a run too.
func TestImportContinuesWithoutLoss(t *testing.T) {
	ctx := context.Background()
	here, r, there, path := travelled(t, 0.5)
	here.must(here.db.AddEvent(ctx, store.Event{Run: r.ID, Level: store.LevelWarn, Kind: "seen", Data: []byte(`{"text":"here"}`)}))
	if _, err := load(t, path, here.db); err != nil {
		t.Fatal(err)
	}
	m := maker{t, there}
	far := b1(t, there, r.RID)
	a, err := there.BeginAttempt(ctx, store.Attempt{Run: far.ID, Kind: store.AttemptRun, Host: "host", PID: 3, Aside: true})
	m.must(err)
	m.stage(far, "eval.gen", "more", []store.IO{m.blob("completions", "completions", "more")}, nil)
	m.must(there.EndAttempt(ctx, a.ID, store.Done, 0))
	small, _ := write(t, there, Options{NoWeights: true, NoTexts: true}, far)
	done, err := load(t, small, here.db)
	if err != nil || len(done.Continued) != 1 || done.Continued[0].Steps != 3 {
		t.Fatalf("%+v, %v", done, err)
	}
	got := b1(t, here.db, r.RID)
	samples, err := here.db.Samples(ctx, got.ID, store.SampleQuery{})
	if err != nil || len(samples) != 4 {
		t.Fatalf("%d samples, %v", len(samples), err)
	}
	for _, s := range samples {
		if s.Ref.Pack.IsZero() {
			t.Errorf("the text of a sample of %s is lost", s.Scope)
		}
	}
	stages, err := here.db.Stages(ctx, got.ID)
	here.must(err)
	added := false
	for _, s := range stages {
		if s.Label == "more" { // its completions were left out
			added = true
			continue
		}
		if hit, err := here.db.Hit(ctx, s.SID); s.Status == store.Done && (err != nil || hit == nil) {
			t.Errorf("stage %s lost its outputs: %v", s.Kind, err)
		}
	}
	events, err := here.db.Events(ctx, got.ID, 0)
	if !added || err != nil || !slices.ContainsFunc(events, func(e store.Event) bool { return e.Kind == "seen" }) {
		t.Errorf("the evaluation is here: %t; events %+v, %v", added, events, err)
	}
	here.must(here.db.Check(ctx))
}

// It stays as it is if its record would lose something, or contradicts the bundle.
func TestImportDoesNotContinue(t *testing.T) {
	ctx := context.Background()
	for name, do := range map[string]func(here maker, r store.Run){
		"an attempt of its own": func(here maker, r store.Run) {
			a, err := here.db.BeginAttempt(ctx, store.Attempt{Run: r.ID, Kind: store.AttemptVerify, Host: "host", PID: 3})
			here.must(err)
			here.must(here.db.EndAttempt(ctx, a.ID, store.Done, 0))
		},
		"a run that depends on it": func(here maker, r store.Run) {
			_, _, err := here.db.EnsureRun(ctx, store.NewRun{RID: digestOf("rid longer"), XID: digestOf("xid longer"), Name: "longer",
				Numerics: "cpu/fma", Parent: r.ID, Config: store.Config{Digest: digestOf("longer"), JSON: "{}"}})
			here.must(err)
		},
		"a process that executes it": func(here maker, r store.Run) {
			lock, err := here.db.LockRun(r.RID)
			here.must(err)
			t.Cleanup(func() { lock.Release() })
		},
	} {
		t.Run(name, func(t *testing.T) {
			here, r, _, path := travelled(t, 0.5)
			do(here, r)
			done, err := load(t, path, here.db)
			if err != nil || len(done.Present) != 1 || len(done.Continued) != 0 || done.Present[0].Theirs != 3 {
				t.Fatalf("%+v, %v", done, err)
			}
			if got := b1(t, here.db, r.RID); got.Steps != 2 || got.ID != r.ID {
				t.Errorf("it has %d steps", got.Steps)
			}
			if _, err := os.Stat(filepath.Join(here.db.RunDir(r.RID), "model")); err == nil {
				t.Error("files of the bundle are there")
			}
		})
	}
	t.Run("other steps", func(t *testing.T) {
		here, r, _, _ := travelled(t, 0.5)
		_, _, _, path := travelled(t, 0.25)
		var d *store.DivergenceError
		if _, err := load(t, path, here.db); !errors.As(err, &d) || d.Step != 2 || d.Field != "chain" {
			t.Errorf("%v, want a divergence at step 2", err)
		}
		if got := b1(t, here.db, r.RID); got.Steps != 2 || got.ID != r.ID {
			t.Errorf("it has %d steps", got.Steps)
		}
		if _, err := os.Stat(filepath.Join(here.db.RunDir(r.RID), "model")); err == nil {
			t.Error("files of the bundle are there")
		}
	})
}
