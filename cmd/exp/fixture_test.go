package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"exp/experiments/blob"
	"exp/experiments/ident"
	"exp/experiments/store"
	"exp/experiments/storetest"
	"exp/harness/metric"
)

// fixtureNow is when the commands of golden tests run; the runs of fixtureStore
// were made in the hours before.
var fixtureNow = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)

// fixtureStore makes a store whose every byte is fixed, with these runs, oldest
// first:
//
//	flowrl-a#0 #1 #2   one experiment, done; #0 has everything that a run can have
//	ppo-b#0            another algorithm on the same data, done
//	ppo-b#1            recorded as running, by a process that is gone
//	grpo-c#0           failed in training
//	old#0              deleted
func fixtureStore(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	tick := fixtureNow.Add(-6 * time.Hour)
	db, err := store.Open(dir, store.Options{Create: true, Clock: func() time.Time {
		tick = tick.Add(time.Second)
		return tick
	}})
	if err != nil {
		t.Fatal(err)
	}
	b := builder{t: t, db: db}
	for seed := range int64(3) {
		r := b.run("flowrl-a", "flowrl", seed, `"flowrl":{"beta":15}`)
		b.attempt(r, store.Done)
		if seed == 0 {
			b.everything(r)
		}
		b.steps(r, 20, 0.1+0.05*float64(seed))
		b.headline(r, 0.41+0.02*float64(seed))
	}
	tick = fixtureNow.Add(-90 * time.Minute)
	ppo := b.run("ppo-b", "ppo", 0, `"gamma":1,"lambda":0.95`)
	b.attempt(ppo, store.Done)
	b.stage(ppo, "prepare", "", []store.IO{b.blob("problems/train", "train problems\n")})
	b.steps(ppo, 20, 0.2)
	b.headline(ppo, 0.375)
	killed := b.run("ppo-b", "ppo", 1, `"gamma":1,"lambda":0.95`)
	b.attempt(killed, store.Running)
	b.steps(killed, 5, 0.2)
	tick = fixtureNow.Add(-90 * time.Second)
	failed := b.run("grpo-c", "grpo", 0, `"grpo":{"scale_std":true}`)
	a := b.attempt(failed, store.Running)
	st, err := db.BeginStage(b.ctx(), store.Stage{SID: digestOf("sid of grpo"), Run: failed.ID, Attempt: a.ID, Kind: "train", Code: digestOf("code")})
	b.must(err)
	b.must(db.FailStage(b.ctx(), st.ID, "step 3: loss is not finite"))
	b.must(db.EndAttempt(b.ctx(), a.ID, store.Failed, 1))
	old := b.run("old", "ppo", 0, "")
	b.must(db.DeleteRun(b.ctx(), old.ID))
	b.must(db.Close())
	return dir
}

func digestOf(text string) ident.Digest { return ident.Sum([]byte(text)) }

// builder fills a store.
type builder struct {
	t  testing.TB
	db *store.DB
}

func (b builder) ctx() context.Context { return context.Background() }

func (b builder) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b builder) run(name, algo string, seed int64, algoConfig string) store.Run {
	b.t.Helper()
	if algoConfig != "" {
		algoConfig = "," + algoConfig
	}
	text := fmt.Sprintf(`{"name":%q,"seed":0,"algo":{"kind":%q%s},"compare":{"vary":["algo"]},"store":{"samples":{"eval":1,"train":0}},"train":{"steps":20}}`,
		name, algo, algoConfig)
	r, _, err := b.db.EnsureRun(b.ctx(), store.NewRun{
		RID: digestOf(fmt.Sprint("rid", name, seed)), XID: digestOf("xid" + name), Name: name, Task: "countdown", Algo: algo, Model: "2x32",
		Seed: seed, Numerics: "cpu/fma", StepsTotal: 20, Code: digestOf("code"),
		Config: store.Config{Digest: digestOf(text), JSON: text, Source: "version: 1\nname: " + name + "\n"},
	})
	b.must(err)
	return r
}

func (b builder) attempt(r store.Run, end store.Status) store.Attempt {
	b.t.Helper()
	a, err := b.db.BeginAttempt(b.ctx(), store.Attempt{Run: r.ID, Kind: store.AttemptRun, Host: "host", PID: 42, Device: "cpu/avx512", Build: "exp 1.0",
		Env: json.RawMessage(`{"cpu":"A Processor","cpus":2,"go":"go1.26","memory_bytes":8589934592,"args":["exp","run","a b.yaml"]}`)})
	b.must(err)
	if end != store.Running {
		b.must(b.db.EndAttempt(b.ctx(), a.ID, end, 0))
	}
	return a
}

// steps records n steps of a few metrics; the score rises from start by 0.01.
func (b builder) steps(r store.Run, n int64, start float64) {
	b.t.Helper()
	w := b.db.NewStepWriter(r.ID, 0, metric.Unit)
	for i := int64(1); i <= n; i++ {
		s := store.Step{Tokens: 100, Chain: digestOf(fmt.Sprint(r.Name, r.Seed, i)), Measured: map[string]float64{"perf/throughput": 1000}}
		// The first three steps are the same for all runs of a seed.
		tokens, score := fmt.Sprint("tokens", i, r.Seed), 0.1
		if i > 3 {
			tokens += r.Name
			score = start + 0.01*float64(i)
		}
		s.Det = ident.Det{Step: i, Items: digestOf(fmt.Sprint("items", i)), Tokens: digestOf(tokens), Metrics: map[string]float64{
			"critic/score/mean": score, "actor/entropy": 2 - 0.05*float64(i), "actor/lr": 1e-6}}
		if i > 3 && r.Algo == "flowrl" {
			s.Det.Metrics["actor/log_z"] = -0.1 * float64(i)
		}
		if i%5 == 0 {
			s.Measured["val/pass@1"] = start + 0.02*float64(i)
		}
		b.must(w.Record(s))
	}
	b.must(w.Close())
}

func (b builder) headline(r store.Run, pass float64) {
	b.must(b.db.SetHeadline(b.ctx(), r.ID, []store.Headline{{Name: "pass@1", Value: pass}, {Name: "pass@16", Value: pass + 0.25}, {Name: "distinct_correct", Value: 1.5}}))
}

func (b builder) blob(role, text string) store.IO {
	d, err := b.db.Blobs.PutBytes([]byte(text))
	b.must(err)
	return store.IO{Role: role, Digest: d, Size: int64(len(text)), Kind: "text"}
}

func (b builder) stage(r store.Run, kind, label string, out []store.IO, in ...store.IO) store.Stage {
	b.t.Helper()
	st, err := b.db.BeginStage(b.ctx(), store.Stage{SID: digestOf(fmt.Sprint("sid", kind, label, out)), Run: r.ID, Kind: kind, Label: label,
		Code: digestOf("code"), Inputs: in, Numerics: "cpu/fma"})
	b.must(err)
	b.must(b.db.FinishStage(b.ctx(), st.ID, out, store.StageResult{Result: json.RawMessage(`{"n":1}`), WallS: 1.25, CPUS: 2.5, PeakMem: 1 << 20}, nil))
	return st
}

// everything gives a run one of each thing that a run can have.
func (b builder) everything(r store.Run) {
	ctx := b.ctx()
	b.must(b.db.AddTag(ctx, r.ID, "baseline"))
	b.must(b.db.AddTag(ctx, r.ID, "v2"))
	b.must(b.db.AddNote(ctx, r.ID, "the first that learned"))
	problems := b.blob("problems/train", "train problems\n")
	b.stage(r, "prepare", "", []store.IO{problems})
	weights := b.blob("weights", "initial")
	trained := b.blob("weights", "trained")
	b.stage(r, "train", "", []store.IO{trained}, weights, store.IO{Role: "problems/train", Digest: problems.Digest})
	b.evaluation(r, "test@start", 0.125, weights)
	b.evaluation(r, "test", 0.41, trained)
	b.must(b.db.AddCheckpoint(ctx, store.Checkpoint{Run: r.ID, Step: 10, Digest: digestOf("c"), Chain: digestOf("chain"), Bytes: 3 << 20}))
	log := b.blob("log", "log\n")
	st := b.stage(r, "merge", "", []store.IO{b.blob("config.json", "{}"), b.blob("model.safetensors", "w"), b.blob("a", "a"), b.blob("b", "b"), b.blob("c", "c")})
	storetest.AddArtifact(b.t, b.db, store.Artifact{Run: r.ID, Stage: st.ID, Name: "console.log", Media: "text/plain",
		Digest: log.Digest, Size: log.Size})
	b.must(b.db.AddEvent(ctx, store.Event{Run: r.ID, Level: store.LevelWarn, Kind: "nonfinite", Data: json.RawMessage(`{"step":3,"text":"gradient of head.weight is NaN at 7; the update was skipped"}`)}))
	b.must(b.db.AddEvent(ctx, store.Event{Run: r.ID, Level: store.LevelInfo, Kind: "checkpoint", Data: json.RawMessage(`{"step":10}`)}))
	b.must(b.db.AddSource(ctx, b.source()))
	b.must(os.MkdirAll(filepath.Join(b.db.RunDir(r.RID), "model"), 0o755))
}

// source holds the sources behind the code digest of all runs.
func (b builder) source() store.Source {
	tree := os.DirFS("testdata")
	paths := []string{"source/a.go", "source/sub/b.go"}
	archive, size, err := b.db.Blobs.PutTree(tree, paths)
	b.must(err)
	s := store.Source{Code: digestOf("code"), Go: "go1.26", Archive: archive, Size: size}
	for _, p := range paths {
		text, err := os.ReadFile(filepath.Join("testdata", p))
		b.must(err)
		s.Files = append(s.Files, ident.File{Path: p, SHA256: ident.Sum(text)})
	}
	return s
}

// evaluation records a suite with samples and verdicts.
func (b builder) evaluation(r store.Run, label string, pass float64, weights store.IO) {
	ctx := b.ctx()
	gen := b.stage(r, "eval.gen", label, []store.IO{b.blob("completions", "of "+label)}, weights)
	b.samples(gen, label)
	suite, err := b.db.EnsureSuite(ctx, store.Suite{Digest: digestOf("suite " + label), Name: "countdown/" + label, Items: []store.Item{{ID: "p1"}, {ID: "p2"}}})
	b.must(err)
	score, err := b.db.BeginStage(ctx, store.Stage{SID: digestOf("score" + label), Run: r.ID, Kind: "eval.score", Label: label, Code: digestOf("code")})
	b.must(err)
	var evals []store.Eval
	for _, m := range []struct {
		name        string
		value, half float64
	}{{"pass@1", pass, 0.04}, {"pass@4", pass + 0.1, 0.05}, {"pass@16", pass + 0.25, math.NaN()}, {"distinct_correct", 1.5, 0.2}, {"not_graded", 0, 0}} {
		evals = append(evals, store.Eval{StageGen: gen.ID, Suite: suite, Protocol: digestOf("protocol"), N: 16, Metric: m.name, Value: m.value,
			SE: math.NaN(), Lo: m.value - m.half, Hi: m.value + m.half, Items: 2, Clusters: 2})
	}
	b.must(b.db.FinishStage(ctx, score.ID, []store.IO{b.blob("scores", "of "+label)}, store.StageResult{WallS: 0.5}, evals))
}

// samples records two samples for each of two problems: one right, one wrong, one not
// graded, and one without its text.
func (b builder) samples(gen store.Stage, label string) {
	ctx := b.ctx()
	pack := b.db.Blobs.NewPackWriter()
	texts := []string{"4*(3+5)", "3+4\nno, 5", "\x1b[31mred\x1b[0m 世界"}
	for _, text := range texts {
		b.must(pack.Add(map[string]any{"prompt": "3,4,5=32:", "text": text}))
	}
	refs, packs, err := pack.Close()
	b.must(err)
	refs = append(refs, blob.Ref{})
	var rows []store.Sample
	for i, ref := range refs {
		rows = append(rows, store.Sample{Stage: gen.Home, Scope: "eval", Item: fmt.Sprintf("p%d", 1+i/2), K: i % 2, OutTokens: int64(7 + i),
			Finish: "stop", Reward: math.NaN(), LogProbSum: -1.5 - float64(i), Ref: ref})
	}
	b.must(b.db.AddSamples(ctx, rows, packs))
	stored, err := b.db.Samples(ctx, gen.Run, store.SampleQuery{Scope: "eval", Label: label})
	b.must(err)
	b.must(b.db.AddVerdicts(ctx, store.Scorer{Digest: digestOf("scorer"), Name: "countdown/1"}, []store.Verdict{
		{Sample: stored[0].ID, Graded: true, Correct: true, Reward: 1, Answer: "(3+5)*4"},
		{Sample: stored[1].ID, Graded: true, Reward: 0, Answer: "3+4", Reason: "7 is not 32"},
		{Sample: stored[2].ID, Reason: "the grader is out of order"},
		{Sample: stored[3].ID, Graded: true, Reward: 0, Reason: "empty"},
	}))
}

// smokeStore runs the smoke configuration, once for all tests: name smoke with two
// seeds, and smoke-ppo with one. The store must not be changed.
func smokeStore(t testing.TB) string {
	t.Helper()
	smokeOnce.Do(func() {
		smokeDir, smokeErr = os.MkdirTemp("", "exp-smoke-*")
		if smokeErr != nil {
			return
		}
		for _, args := range []string{"--seeds 0-1", "--set algo.kind=ppo --set name=smoke-ppo --tag arm"} {
			args := append([]string{"run", filepath.Join("..", "..", "configs", "smoke_cpu.yaml"), "--store", smokeDir, "-q"}, strings.Fields(args)...)
			if got := (call{}).run(args...); got.code != 0 {
				smokeErr = fmt.Errorf("exp %s: exit code %d: %s", strings.Join(args, " "), got.code, got.stderr)
				return
			}
		}
	})
	if smokeErr != nil {
		t.Fatal(smokeErr)
	}
	return smokeDir
}

var (
	smokeOnce sync.Once
	smokeDir  string
	smokeErr  error
)
