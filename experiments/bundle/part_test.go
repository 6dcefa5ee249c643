package bundle

import (
	"context"
	"errors"
	"testing"

	"exp/experiments/store"
)

// part makes a store in which run b did the work of "score" or reused what run a did, and the bundle
// of b. In other stores a did not get that far.
type part struct {
	db   *store.DB
	path string
	a, b store.Run
	gen  store.Stage // of b
}

// newPart makes a part. byA means that a finished the evaluation and b reused it; otherwise a was
// interrupted in it.
func newPart(t *testing.T, byA bool) part {
	ctx := context.Background()
	db := open(t, t.TempDir())
	m := maker{t, db}
	p := part{db: db, a: m.run("a", 0), b: m.run("b", 0)}
	m.stage(p.a, "init", "", []store.IO{m.blob("weights", "weights", "start")}, nil)
	out := []store.IO{m.blob("completions", "completions", "start completions")}
	if byA {
		m.stage(p.a, "eval.gen", "test", out, nil)
	} else {
		s := store.Stage{SID: digestOf("sid %s %s %v", "eval.gen", "test", out), Run: p.a.ID, Kind: "eval.gen", Label: "test",
			Inputs: []store.IO{{Role: "tokenizer", Digest: digestOf("tokenizer")}}}
		s, err := db.BeginStage(ctx, s)
		m.must(err)
		m.must(db.InterruptStage(ctx, s.ID))
	}
	m.stage(p.b, "init", "", []store.IO{m.blob("weights", "weights", "start")}, nil)
	p.gen = m.stage(p.b, "eval.gen", "test", out, nil)
	rows := []store.Sample{
		{Stage: p.gen.Home, Scope: "eval", Item: "p1", Reward: 1},
		{Stage: p.gen.Home, Scope: "eval", Item: "p2", Reward: 2},
	}
	m.must(db.AddSamples(ctx, rows, nil))
	m.must(db.AddVerdicts(ctx, store.Scorer{Digest: digestOf("scorer"), Name: "countdown/1"},
		[]store.Verdict{{Sample: rows[0].ID, Graded: true, Answer: "1"}, {Sample: rows[1].ID, Graded: true, Answer: "2"}}))
	p.path, _ = write(t, db, Options{}, p.b)
	return p
}

// A run whose work belongs to a run that is here, but got less far, comes with all of it.
func TestImportPartOfWork(t *testing.T) {
	ctx := context.Background()
	for _, byA := range []bool{true, false} {
		from := newPart(t, byA)
		to := open(t, t.TempDir())
		m := maker{t, to}
		a := m.run("a", 0)
		m.stage(a, "init", "", []store.IO{m.blob("weights", "weights", "start")}, nil)
		if done, err := load(t, from.path, to); err != nil || len(done.Added) != 1 || len(done.Present) != 1 {
			t.Fatalf("%+v, %v", done, err)
		}
		b, err := to.Run(ctx, from.b.RID)
		m.must(err)
		stages, err := to.Stages(ctx, b.ID)
		m.must(err)
		gen := stages[1]
		if gen.Status != store.Done || len(gen.Inputs) != 1 || len(gen.Outputs) != 1 || gen.WallS != 1.5 || string(gen.Result) != `{"n":1}` {
			t.Errorf("by a %t: evaluation %+v, want the one that was done", byA, gen)
		}
		samples, err := to.Samples(ctx, b.ID, store.SampleQuery{})
		m.must(err)
		if len(samples) != 2 || samples[0].Verdict == nil || samples[0].Verdict.Answer != "1" || samples[1].Verdict.Answer != "2" {
			t.Errorf("by a %t: samples %+v", byA, samples)
		}
		// When a gets there, it takes the work from b.
		again := m.stage(a, "eval.gen", "test", []store.IO{m.blob("completions", "completions", "start completions")}, nil)
		if again.Status != store.Cached || again.ReusedFrom != gen.ID {
			t.Errorf("by a %t: a's evaluation %+v, want b's", byA, again)
		}
		if done, err := load(t, from.path, to); err != nil || len(done.Present) != 2 {
			t.Errorf("by a %t: the second time %+v, %v", byA, done, err)
		}
		if err := to.Check(ctx); err != nil {
			t.Error(err)
		}
	}
}

// A run that reuses a stage of a run that is here is refused if that stage had other outputs there.
func TestImportOfOtherOutputs(t *testing.T) {
	ctx := context.Background()
	from := newPart(t, true)
	to := open(t, t.TempDir())
	m := maker{t, to}
	a := m.run("a", 0)
	s, err := to.BeginStage(ctx, store.Stage{SID: from.gen.SID, Run: a.ID, Kind: "eval.gen", Label: "test"})
	m.must(err)
	m.must(to.FinishStage(ctx, s.ID, []store.IO{m.blob("completions", "completions", "others")}, store.StageResult{}, nil))
	_, err = load(t, from.path, to)
	if d := (*store.DivergenceError)(nil); !errors.As(err, &d) || d.Field != "output completions" || d.SID != from.gen.SID {
		t.Errorf("%v, want a divergence", err)
	}
	if runs, err := to.Runs(ctx, store.RunQuery{}); err != nil || len(runs) != 1 {
		t.Errorf("%d runs, %v; want the one that was here", len(runs), err)
	}
}

// A run that is here stays as it is, and the import says which scores it lacks.
func TestImportOfMoreScores(t *testing.T) {
	ctx := context.Background()
	from, to := open(t, t.TempDir()), open(t, t.TempDir())
	score := func(db *store.DB, suites ...string) store.Run {
		m := maker{t, db}
		r := m.run("a", 0)
		for _, name := range suites {
			suite, err := db.EnsureSuite(ctx, store.Suite{Digest: digestOf("suite %s", name), Name: name})
			m.must(err)
			m.stage(r, "eval.score", name, []store.IO{m.blob("scores", "scores", name)}, func(store.Stage) []store.Eval {
				return []store.Eval{{Suite: suite, Protocol: digestOf("p"), Metric: "pass@1"}, {Suite: suite, Protocol: digestOf("p"), Metric: "pass@4"}}
			})
		}
		return r
	}
	path, _ := write(t, from, Options{}, score(from, "x", "y", "z"))
	score(to, "other", "y")
	for range 2 {
		done, err := load(t, path, to)
		if err != nil || len(done.Present) != 1 || done.Present[0].Scores != 4 {
			t.Errorf("%+v, %v; want 4 scores that are not here", done, err)
		}
	}
}

// What a run was imported without is not among the blobs that it needs; a blob without bytes is.
func TestBlobsOfLeftOut(t *testing.T) {
	ctx := context.Background()
	from, to := open(t, t.TempDir()), open(t, t.TempDir())
	m := maker{t, from}
	r := m.run("a", 0)
	m.stage(r, "sft", "", []store.IO{m.blob("weights", "weights", "weights"), m.blob("curve", "curve", "")}, nil)
	path, _ := write(t, from, Options{NoWeights: true}, r)
	if _, err := load(t, path, to); err != nil {
		t.Fatal(err)
	}
	for db, want := range map[*store.DB]int{from: 2, to: 1} {
		r, err := db.Run(ctx, r.RID)
		m.must(err)
		if list, err := db.BlobsOf(ctx, r.ID); err != nil || len(list) != want || list[0].Use != "stage sft: curve" {
			t.Errorf("%+v, %v; want %d blobs", list, err, want)
		}
	}
}
