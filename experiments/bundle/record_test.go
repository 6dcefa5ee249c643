package bundle

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"exp/experiments/ident"
	"exp/experiments/store"
	"exp/experiments/storetest"
)

func digestOf(format string, args ...any) ident.Digest {
	return ident.Sum(fmt.Appendf(nil, format, args...))
}

// open opens a store with a clock that ticks.
func open(t testing.TB, dir string) *store.DB {
	t.Helper()
	now := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	db, err := store.Open(dir, store.Options{Create: true, Clock: func() time.Time { now = now.Add(time.Second); return now }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// maker fills a store.
type maker struct {
	t  testing.TB
	db *store.DB
}

func (m maker) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m maker) run(name string, seed int64) store.Run {
	m.t.Helper()
	text := fmt.Sprintf(`{"name":%q,"train":{"steps":3}}`, name)
	r, _, err := m.db.EnsureRun(context.Background(), store.NewRun{RID: digestOf("rid %s %d", name, seed), XID: digestOf("xid %s", name), Name: name,
		Task: "countdown", Algo: "flowrl", Model: "2x32", Seed: seed, Numerics: "cpu/fma", StepsTotal: 3, Code: digestOf("code"),
		Config: store.Config{Digest: digestOf("%s", text), JSON: text, Source: "name: " + name + "\n"}})
	m.must(err)
	return r
}

func (m maker) blob(role, kind, text string) store.IO {
	m.t.Helper()
	d, err := m.db.Blobs.PutBytes([]byte(text))
	m.must(err)
	return store.IO{Role: role, Digest: d, Size: int64(len(text)), Kind: kind}
}

// stage executes a stage, or reuses it where it was executed.
func (m maker) stage(r store.Run, kind, label string, out []store.IO, evals func(gen store.Stage) []store.Eval) store.Stage {
	m.t.Helper()
	ctx := context.Background()
	s := store.Stage{SID: digestOf("sid %s %s %v", kind, label, out), Run: r.ID, Kind: kind, Label: label, Code: digestOf("code"), Numerics: "cpu/fma",
		Inputs: []store.IO{{Role: "tokenizer", Digest: digestOf("tokenizer")}}}
	hit, err := m.db.Hit(ctx, s.SID)
	m.must(err)
	if hit != nil {
		s, err = m.db.ReuseStage(ctx, s, hit)
		m.must(err)
		return s
	}
	s, err = m.db.BeginStage(ctx, s)
	m.must(err)
	var list []store.Eval
	if evals != nil {
		list = evals(s)
	}
	m.must(m.db.FinishStage(ctx, s.ID, out, store.StageResult{Result: json.RawMessage(`{"n":1}`), WallS: 1.5}, list))
	return s
}

func (m maker) steps(r store.Run, n int64, score float64) {
	w := m.db.NewStepWriter(r.ID, 0, nil)
	for i := int64(1); i <= n; i++ {
		s := store.Step{Tokens: 10, Chain: digestOf("chain %v %d %g", r.RID, i, score), Measured: map[string]float64{"timing_s/step": 0.1}}
		s.Det = ident.Det{Step: i, Items: digestOf("i%d", i), Metrics: map[string]float64{"critic/score/mean": score * float64(i), "actor/ppo_kl": math.Inf(-1)}}
		if i == 2 {
			s.Det.Metrics["actor/entropy"] = math.NaN()
		}
		m.must(w.Record(s))
	}
	m.must(w.Close())
}

// finish gives a run samples with verdicts, an evaluation, files and remarks.
func (m maker) finish(r store.Run) {
	m.t.Helper()
	ctx := context.Background()
	m.must(m.db.AddTag(ctx, r.ID, "kept"))
	m.must(m.db.AddNote(ctx, r.ID, "a \"note\"\nof two lines, with [brackets]"))
	gen := m.stage(r, "eval.gen", "test", []store.IO{m.blob("completions", "completions", "completions of "+r.Name)}, nil)
	pack := m.db.Blobs.NewPackWriter()
	for k := range 3 {
		m.must(pack.Add(map[string]any{"prompt": "p", "text": fmt.Sprint("completion ", r.Name, k)}))
	}
	refs, packs, err := pack.Close()
	m.must(err)
	var rows []store.Sample
	for k, ref := range refs {
		rows = append(rows, store.Sample{Stage: gen.Home, Scope: "eval", Item: "p1", K: k, Finish: "stop", Reward: math.NaN(), LogProbSum: -0.25, Ref: ref})
	}
	m.must(m.db.AddSamples(ctx, rows, packs))
	kept, err := m.db.Samples(ctx, r.ID, store.SampleQuery{Scope: "eval"})
	m.must(err)
	// What a model writes need not be UTF-8.
	m.must(m.db.AddVerdicts(ctx, store.Scorer{Digest: digestOf("scorer"), Name: "countdown/1"}, []store.Verdict{
		{Sample: kept[0].ID, Graded: true, Correct: true, Reward: 1, Answer: "3+4 \xff"}, {Sample: kept[1].ID, Graded: true, Reason: "7 is not 8"}}))
	suite, err := m.db.EnsureSuite(ctx, store.Suite{Digest: digestOf("suite"), Name: "countdown/test", Items: []store.Item{{ID: "p1", Difficulty: math.NaN()}, {ID: "p2", Difficulty: 0.5}}})
	m.must(err)
	score := m.stage(r, "eval.score", "test", []store.IO{m.blob("scores", "scores", "scores of "+r.Name)}, func(s store.Stage) []store.Eval {
		return []store.Eval{{StageGen: gen.ID, Suite: suite, Protocol: digestOf("protocol"), N: 3, Metric: "pass@1", Value: 1. / 3, SE: math.NaN(), Lo: 0.1, Hi: 0.7, Items: 2, Clusters: 2}}
	})
	log := m.blob("log", "text", "log of "+r.Name)
	storetest.AddArtifact(m.t, m.db, store.Artifact{Run: r.ID, Stage: score.ID, Name: "console.log", Media: "text/plain",
		Digest: log.Digest, Size: log.Size})
	image := m.blob("image", "image", "image of "+r.Name)
	m.must(m.db.AddImages(ctx, r.ID, gen.ID, []store.Image{{Digest: image.Digest, Format: "png"}}))
	m.must(m.db.AddCheckpoint(ctx, store.Checkpoint{Run: r.ID, Step: 2, Digest: digestOf("c"), Chain: digestOf("chain"), Bytes: 7}))
	for name, text := range map[string]string{"ckpt/train-1/step-00000002/actor.safetensors": "moments", "model/model.safetensors": "weights of " + r.Name,
		"model/config.json": "{}", "lock": "held", "model.partial/x": "half"} {
		path := filepath.Join(m.db.RunDir(r.RID), name)
		m.must(os.MkdirAll(filepath.Dir(path), 0o777))
		m.must(os.WriteFile(path, []byte(text), 0o666))
	}
}

// record makes a store with run a, run b that reuses a stage of a and continues it,
// and run c that has nothing to do with them; b is returned.
func record(t testing.TB, dir string) (*store.DB, store.Run) {
	t.Helper()
	db := open(t, dir)
	m := maker{t, db}
	ctx := context.Background()
	archive := m.blob("", "sources", "the sources")
	m.must(db.AddSource(ctx, store.Source{Code: digestOf("code"), Go: "go1.26", Files: []ident.File{{Path: "a.go", SHA256: digestOf("a")}}, Archive: archive.Digest, Size: archive.Size}))
	c := m.run("c", 0)
	m.stage(c, "train", "", []store.IO{m.blob("weights", "weights", "weights of c")}, nil)
	m.steps(c, 1, 9)
	a := m.run("a", 0)
	initial := []store.IO{m.blob("weights", "weights", "initial weights")}
	m.stage(a, "init", "", initial, nil)
	m.steps(a, 2, 0.5)
	b, _, err := db.EnsureRun(ctx, store.NewRun{RID: digestOf("rid b"), XID: digestOf("xid b"), Name: "b", Seed: 1, Numerics: "cpu/fma", StepsTotal: 3,
		Code: digestOf("code"), Parent: a.ID, Config: store.Config{Digest: digestOf("config b"), JSON: `{"name":"b"}`}})
	m.must(err)
	at, err := db.BeginAttempt(ctx, store.Attempt{Run: b.ID, Kind: store.AttemptRun, Host: "host", PID: 42})
	m.must(err)
	m.stage(b, "init", "", initial, nil)
	m.stage(b, "train", "", []store.IO{m.blob("weights", "weights", "weights of b")}, nil)
	m.stage(b, "merge", "", []store.IO{m.blob("model.safetensors", "weights", "weights of b")}, nil)
	m.steps(b, 3, 0.25)
	m.finish(b)
	m.must(db.EndAttempt(ctx, at.ID, store.Done, 0))
	b, err = db.Run(ctx, b.RID)
	m.must(err)
	return db, b
}
