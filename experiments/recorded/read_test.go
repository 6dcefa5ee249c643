package recorded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"exp/experiments/ident"
	"exp/experiments/store"
	"exp/experiments/storetest"
)

func digest(text string) ident.Digest { return ident.Sum([]byte(text)) }

// fixture is a store with two runs:
//
//	parent   prepared problems
//	child    continues it, reused its problems, trained, and was killed while scoring
type fixture struct {
	*testing.T
	ctx           context.Context
	db            *store.DB
	parent, child store.Run
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	db, err := store.Open(t.TempDir(), store.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	f := &fixture{T: t, ctx: context.Background(), db: db}
	f.parent = f.run("parent", 0)
	f.child = f.run("child", f.parent.ID)
	a, err := db.BeginAttempt(f.ctx, store.Attempt{Run: f.child.ID, Kind: store.AttemptRun, Host: "here",
		Env: json.RawMessage(`{"cpus":2}`)})
	f.must(err)
	prepare := f.stage(store.Stage{Run: f.parent.ID, Kind: "prepare", Code: digest("code")}, "problems")
	hit, err := db.Hit(f.ctx, prepare.SID)
	f.must(err)
	_, err = db.ReuseStage(f.ctx, store.Stage{SID: prepare.SID, Run: f.child.ID, Kind: "prepare",
		Code: digest("code")}, hit)
	f.must(err)
	f.stage(store.Stage{Run: f.child.ID, Kind: "train", Code: digest("other code")}, "weights")
	_, err = db.BeginStage(f.ctx, store.Stage{SID: digest("score"), Run: f.child.ID, Attempt: a.ID,
		Kind: "eval.score", Label: "test", Code: digest("code")})
	f.must(err)
	f.must(db.AddCheckpoint(f.ctx, store.Checkpoint{Run: f.child.ID, Step: 2, Digest: digest("c2"),
		Chain: digest("chain"), Bytes: 7}))
	f.must(db.AddCheckpoint(f.ctx, store.Checkpoint{Run: f.child.ID, Step: 4, Digest: digest("c4"),
		Chain: digest("chain"), Bytes: 7}))
	f.must(os.MkdirAll(f.checkpoint(4), 0o777))
	f.must(os.MkdirAll(filepath.Join(db.RunDir(f.child.RID), "merged"), 0o777))
	f.must(db.AddNote(f.ctx, f.child.ID, "a note"))
	f.must(db.AddTag(f.ctx, f.child.ID, "a tag"))
	f.must(db.AddEvent(f.ctx, store.Event{Run: f.child.ID, Level: store.LevelWarn, Kind: "nan",
		Data: json.RawMessage(`{"step":1}`)}))
	f.child, err = db.RunByID(f.ctx, f.child.ID)
	f.must(err)
	f.child.Status = db.StatusNow(&f.child)
	return f
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) run(name string, parent int64) store.Run {
	f.Helper()
	r, _, err := f.db.EnsureRun(f.ctx, store.NewRun{RID: digest(name), XID: digest("x"), Name: name, Parent: parent,
		Code:   digest("code"),
		Config: store.Config{Digest: digest("config"), JSON: `{"train":{"steps":4}}`, Source: "train: {steps: 4}\n"}})
	f.must(err)
	return r
}

// stage records a finished stage whose one output is a blob of the role's name.
func (f *fixture) stage(s store.Stage, role string) store.Stage {
	f.Helper()
	d, err := f.db.Blobs.PutBytes([]byte(role))
	f.must(err)
	s.SID = digest("sid " + role)
	s, err = f.db.BeginStage(f.ctx, s)
	f.must(err)
	out := []store.IO{{Role: role, Digest: d, Size: int64(len(role)), Kind: "text"}}
	f.must(f.db.FinishStage(f.ctx, s.ID, out, store.StageResult{WallS: 1}, nil))
	return s
}

func (f *fixture) checkpoint(step int) string {
	return filepath.Join(f.db.RunDir(f.child.RID), "ckpt", "train-1", fmt.Sprintf("step-%08d", step))
}

func (f *fixture) read(p Parts) *Run {
	f.Helper()
	r, err := Read(f.ctx, f.db, f.child, Options{Parts: p, Metrics: []string{"*"}, Model: "merged"})
	f.must(err)
	return r
}

func TestReadSummary(t *testing.T) {
	f := newFixture(t)
	r := f.read(Parts{})
	if r.Parent != f.parent.RID || r.Status != store.Interrupted || r.Configuration != nil || r.Lineage != nil {
		t.Errorf("got %+v", r)
	}
	var stages []string
	for _, s := range r.Stages {
		stages = append(stages, fmt.Sprintf("%s: %s %s", s.Name(), s.Status, s.From.Short()))
	}
	want := []string{"prepare: cached " + f.parent.RID.Short(), "train: done ", "eval.score test: interrupted "}
	if d := cmp.Diff(want, stages); d != "" {
		t.Errorf("stages (-want +got):\n%s", d)
	}
	if r.Stages[0].Inputs == nil || r.Stages[2].Outputs == nil {
		t.Error("a stage without inputs or outputs has nil and not an empty list")
	}
	if len(r.Attempts) != 1 || r.Attempts[0].Status != store.Interrupted || !cmp.Equal(r.Attempts[0].Env,
		map[string]any{"cpus": 2.0}) {
		t.Errorf("attempts %+v", r.Attempts)
	}
	if len(r.Checkpoints) != 2 || r.Checkpoints[0].Path != f.checkpoint(4) || r.Checkpoints[1].Path != "" {
		t.Errorf("checkpoints %+v, want step 4 in its folder, step 2 removed", r.Checkpoints)
	}
	if r.ModelDir != filepath.Join(f.db.RunDir(f.child.RID), "merged") {
		t.Errorf("model in %q", r.ModelDir)
	}
	if len(r.Notes) != 1 || r.Notes[0].Text != "a note" || !cmp.Equal(r.Tags, []string{"a tag"}) ||
		len(r.Events) != 1 || len(r.Damage) != 0 {
		t.Errorf("notes %v, tags %v, events %v, damage %v", r.Notes, r.Tags, r.Events, r.Damage)
	}
}

func TestReadParts(t *testing.T) {
	f := newFixture(t)
	if r := f.read(Parts{Config: true}); r.Source != "train: {steps: 4}\n" || r.Stages != nil ||
		!cmp.Equal(r.Configuration, map[string]any{"train": map[string]any{"steps": 4.0}}) {
		t.Errorf("configuration: %+v", r)
	}
	if r := f.read(Parts{Stages: true}); len(r.Stages) != 3 || r.Attempts != nil || r.Events != nil {
		t.Errorf("stages: %+v", r)
	}
	if r := f.read(Parts{Env: true}); len(r.Attempts) != 1 || r.Stages != nil {
		t.Errorf("attempts: %+v", r)
	}
	// The reused stage has no outputs itself; its maker is the parent.
	r := f.read(Parts{Lineage: true})
	if len(r.Lineage) != 2 || r.Lineage[0].MadeBy.String() != "prepare of "+f.parent.RID.Short() ||
		r.Lineage[1].MadeBy.Run != f.child.RID {
		t.Errorf("lineage: %+v", r.Lineage)
	}
}

// Each lost blob is named once: as an output where it is one.
func TestDamage(t *testing.T) {
	f := newFixture(t)
	for _, text := range []string{"weights", "problems"} {
		f.must(os.Remove(f.db.Blobs.Path(digest(text))))
	}
	var got []string
	for _, d := range f.read(Parts{}).Damage {
		got = append(got, d.String())
	}
	want := []string{
		"prepare: output problems (" + digest("problems").Short() + ") is missing or has the wrong size",
		"train: output weights (" + digest("weights").Short() + ") is missing or has the wrong size",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	// A picture that no stage wrote is looked for unless it is too much to ask.
	picture, err := f.db.Blobs.PutBytes([]byte("picture"))
	f.must(err)
	stages, err := f.db.Stages(f.ctx, f.child.ID)
	f.must(err)
	storetest.AddArtifact(f.T, f.db, store.Artifact{Run: f.child.ID, Stage: stages[1].ID, Name: "a.png",
		Media: "image/png", Digest: picture, Size: 7})
	f.must(os.Remove(f.db.Blobs.Path(picture)))
	if got := f.read(Parts{}).Damage; len(got) != 3 || got[2].Digest != picture {
		t.Errorf("damage %v", got)
	}
	quick, err := Read(f.ctx, f.db, f.child, Options{Unchecked: true})
	if err != nil || len(quick.Damage) != 2 {
		t.Errorf("unchecked: damage %v, %v", quick.Damage, err)
	}
	blob := "blob " + digest("x").Short() + " is missing or has the wrong size"
	if got := (Damage{Digest: digest("x")}).String(); got != blob {
		t.Errorf("got %q, want %q", got, blob)
	}
}

func TestWriteSources(t *testing.T) {
	f := newFixture(t)
	dir := filepath.Join(t.TempDir(), "deep", "sources")
	if _, err := WriteSources(f.ctx, f.db, f.child, dir); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("without sources: %v", err)
	}
	tree := fstest.MapFS{"a.go": {Data: []byte("package a")}, "sub/b.go": {Data: []byte("package b")}}
	archive, size, err := f.db.Blobs.PutTree(tree, []string{"a.go", "sub/b.go"})
	f.must(err)
	files := []ident.File{{Path: "a.go", SHA256: digest("package a")}}
	f.must(f.db.AddSource(f.ctx, store.Source{Code: digest("code"), Go: "go1", Archive: archive, Size: size,
		Files: files}))
	files = []ident.File{{Path: "a.go", SHA256: digest("package c")}}
	f.must(f.db.AddSource(f.ctx, store.Source{Code: digest("other code"), Go: "go1", Archive: archive, Size: size,
		Files: files}))
	got, err := WriteSources(f.ctx, f.db, f.child, dir)
	f.must(err)
	want := &Sources{Run: f.child.RID, Code: digest("code"), Go: "go1", Dir: dir, Files: 2, Others: []string{"train"}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "sub", "b.go")); err != nil || string(text) != "package b" {
		t.Errorf("b.go: %q, %v", text, err)
	}
	if _, err := WriteSources(f.ctx, f.db, f.child, dir); !errors.Is(err, ErrOccupied) {
		t.Errorf("over the same folder: %v", err)
	}
	left, err := fs.Glob(os.DirFS(filepath.Dir(dir)), ".exp-source-*")
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}
