package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"exp/experiments/ident"
	"exp/experiments/store"
)

// hostile is a completion that pages must not treat as markup.
const hostile = "<script>alert(1)</script> \" ' & </pre>\x1b[31m\u202e"

// now is when the pages are made; the runs were made before.
var now = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)

// study is a store with runs to look at.
type study struct {
	t    testing.TB
	db   *store.DB
	tick time.Time
	n    int // samples of a problem in evaluations
}

func digestOf(text string) ident.Digest { return ident.Sum([]byte(text)) }

func newStudy(t testing.TB) *study {
	t.Helper()
	s := &study{t: t, tick: now.Add(-5 * time.Hour), n: 4}
	db, err := store.Open(t.TempDir(), store.Options{Create: true, Clock: func() time.Time {
		s.tick = s.tick.Add(time.Second)
		return s.tick
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	s.db = db
	return s
}

func (s *study) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// begin records a run that has an attempt and a stage of training.
func (s *study) begin(name, algo string, seed, steps int64) (store.Run, store.Attempt, store.Stage) {
	ctx := context.Background()
	config := fmt.Sprintf(`{"name":%q,"algo":{"kind":%q},"task":{"kind":"countdown"},"train":{"steps":%d},"compare":{"vary":["algo"]},"eval":{"final":{"n":2}}}`, name, algo, steps)
	run, _, err := s.db.EnsureRun(ctx, store.NewRun{RID: digestOf(fmt.Sprint("rid", name, seed)), XID: digestOf("xid" + name),
		Name: name, Task: "countdown", Algo: algo, Model: "2x32", Seed: seed, Numerics: "cpu/fma", StepsTotal: steps,
		Code: digestOf("code"), Config: store.Config{Digest: digestOf(config), JSON: config, Source: "name: " + name + "\n"}})
	s.must(err)
	at, err := s.db.BeginAttempt(ctx, store.Attempt{Run: run.ID, Kind: store.AttemptRun, Host: "host", Device: "cpu/test", Build: "exp test",
		Env: json.RawMessage(`{"go":"go1.26","cpu":"Testor 1","cpus":2,"memory_bytes":1073741824}`)})
	s.must(err)
	st, err := s.db.BeginStage(ctx, store.Stage{SID: digestOf("train" + run.RID.String()), Run: run.ID, Attempt: at.ID, Kind: "train",
		Code: digestOf("code"), Inputs: []store.IO{{Role: "tokenizer", Digest: digestOf("tokenizer")}}})
	s.must(err)
	return run, at, st
}

// steps records steps from first to last.
func (s *study) steps(run store.Run, attempt, first, last int64, rate float64) {
	w := s.db.NewStepWriter(run.ID, attempt, nil)
	for n := first; n <= last; n++ {
		x, seed := float64(n), float64(run.Seed)
		wave := 0.02*math.Sin(x*1.7+seed*2) + 0.015*math.Sin(x*0.61+rate*30)
		det := ident.Det{Step: n, Metrics: map[string]float64{
			"critic/score/mean": 0.1 + rate*(1-math.Exp(-x/40)) + wave + 0.01*seed, "actor/entropy": 1.5*math.Exp(-x*rate/60) + wave,
			"train/accuracy": 0.1 + rate*(1-math.Exp(-x/50)) + wave, "kl/ref_k3": rate*x/200 + math.Abs(wave),
			"response_length/mean": 8 - x/100 + 3*wave, "actor/grad_norm": 1 + math.Abs(30*wave)}}
		if n%10 == 0 {
			det.Metrics["val/pass@1"] = 0.12 + rate*(1-math.Exp(-x/45)) + 0.01*seed
		}
		s.must(w.Record(store.Step{Det: det, Chain: digestOf(fmt.Sprint("chain", run.Name, run.Seed, n)), Tokens: 4096, Measured: map[string]float64{
			"timing_s/gen": 0.25, "timing_s/reward": 0.02, "timing_s/ref": 0.1, "timing_s/update_actor": 0.5, "timing_s/step": 0.87, "perf/throughput": 4700}}))
	}
	s.must(w.Close())
}

// completions records what the policy wrote at a step, under one grader or two that
// disagree.
func (s *study) completions(stage store.Stage, scope string, step int64, right bool) {
	ctx := context.Background()
	w := s.db.Blobs.NewPackWriter()
	texts := []string{hostile, "3*4+5", "(7-2)*3 = 15, so the answer is 15", "12"}
	if scope == "eval" {
		texts = texts[:s.n]
	}
	var samples []store.Sample
	for item := range 3 {
		for k, text := range texts {
			s.must(w.Add(map[string]any{"prompt": fmt.Sprintf("Make %d from 3, 4 and 5.", 15+item), "text": text}))
			samples = append(samples, store.Sample{Stage: stage.Home, Scope: scope, Step: step, Item: fmt.Sprintf("3,4,5=%d", 15+item), K: k,
				PromptTokens: 12, OutTokens: int64(5 + 7*k), Finish: "stop", Reward: math.NaN(), LogProbSum: -0.5 * float64(k)})
		}
	}
	refs, packs, err := w.Close()
	s.must(err)
	for i := range samples {
		samples[i].Ref = refs[i]
	}
	s.must(s.db.AddSamples(ctx, samples, packs))
	for _, name := range []string{"countdown/1", "strict/1"} {
		var list []store.Verdict
		for i, x := range samples {
			k := i % len(texts)
			good := k == 0 || right && k == 2
			list = append(list, store.Verdict{Sample: x.ID, Graded: true, Correct: good && !(name == "strict/1" && k == 2), Reward: 0.5,
				Answer: "15", Reason: name + " says so"})
		}
		s.must(s.db.AddVerdicts(ctx, store.Scorer{Digest: digestOf(name), Name: name}, list))
	}
}

// run records a finished run: trained, sampled and scored.
func (s *study) run(name, algo string, seed int64, rate float64) store.Run {
	return s.runOf(name, algo, seed, rate, 120)
}

// runOf is run with a number of steps.
func (s *study) runOf(name, algo string, seed int64, rate float64, steps int64) store.Run {
	ctx := context.Background()
	run, at, st := s.begin(name, algo, seed, steps)
	s.steps(run, at.ID, 1, steps, rate)
	s.completions(st, "train", steps, true)
	weights, err := s.db.Blobs.PutBytes([]byte("weights " + name + fmt.Sprint(seed)))
	s.must(err)
	s.must(s.db.FinishStage(ctx, st.ID, []store.IO{{Role: "weights", Digest: weights, Size: int64(len("weights " + name + fmt.Sprint(seed))), Kind: "weights"}},
		store.StageResult{WallS: 104, CPUS: 190, PeakMem: 1 << 28}, nil))
	for _, label := range []string{"test@start", "test"} {
		s.score(run, at.ID, label, weights, rate, seed)
	}
	s.must(s.db.AddEvent(ctx, store.Event{Run: run.ID, Attempt: at.ID, Level: store.LevelWarn, Kind: "skipped", Data: json.RawMessage(`{"step":7,"text":"an update was skipped <b>"}`)}))
	s.must(s.db.AddTag(ctx, run.ID, "sweep"))
	s.must(s.db.SetHeadline(ctx, run.ID, []store.Headline{{Name: "pass@1", Value: 0.12 + rate + 0.01*float64(seed)}, {Name: "pass@2", Value: 0.3 + rate}}))
	s.must(s.db.EndAttempt(ctx, at.ID, store.Done, 0))
	run, err = s.db.RunByID(ctx, run.ID)
	s.must(err)
	return run
}

// score records the scores of a suite of three problems.
func (s *study) score(run store.Run, attempt int64, label string, weights ident.Digest, rate float64, seed int64) {
	ctx := context.Background()
	problems, err := s.db.Blobs.PutBytes([]byte(`{"id":"3,4,5=15","target":"(4-1)*5<b>"}` + "\n"))
	s.must(err)
	input := []store.IO{{Role: "problems", Digest: problems}, {Role: "weights", Digest: weights}}
	gen, err := s.db.BeginStage(ctx, store.Stage{SID: digestOf(fmt.Sprint("gen", label, run.RID, s.n)), Run: run.ID, Attempt: attempt, Kind: "eval.gen",
		Label: label, Code: digestOf("code"), Params: fmt.Appendf(nil, `{"eval.final.n":%d}`, s.n), Inputs: input})
	s.must(err)
	trained := label == "test"
	s.completions(gen, "eval", 0, trained)
	s.must(s.db.FinishStage(ctx, gen.ID, nil, store.StageResult{WallS: 2}, nil))
	suite, err := s.db.EnsureSuite(ctx, store.Suite{Digest: digestOf("suite " + label), Name: "countdown/" + label, Items: []store.Item{
		{ID: "3,4,5=15", Cluster: "a"}, {ID: "3,4,5=16", Cluster: "b"}, {ID: "3,4,5=17", Cluster: "c"}}})
	s.must(err)
	st, err := s.db.BeginStage(ctx, store.Stage{SID: digestOf(fmt.Sprint("score", label, run.RID, s.n)), Run: run.ID, Attempt: attempt, Kind: "eval.score",
		Label: label, Code: digestOf("code")})
	s.must(err)
	right, value := 1, 0.25
	if trained {
		right, value = 2, 0.25+rate
	}
	type item struct {
		Problem string `json:"problem"`
		N       int    `json:"n"`
		C       int    `json:"c"`
	}
	var items []item
	for i := range 3 {
		items = append(items, item{fmt.Sprintf("3,4,5=%d", 15+i), 4, min(4, right+int(seed+int64(i))%2)})
	}
	text, err := json.Marshal(map[string]any{"items": items})
	s.must(err)
	scores, err := s.db.Blobs.PutBytes(text)
	s.must(err)
	eval := store.Eval{StageGen: gen.ID, Suite: suite, Protocol: digestOf(fmt.Sprint("protocol", s.n)), N: int64(s.n), Metric: "pass@1", Value: value, SE: 0.02,
		Lo: value - 0.04, Hi: value + 0.04, Items: 3, Clusters: 3}
	s.must(s.db.FinishStage(ctx, st.ID, []store.IO{{Role: "scores", Digest: scores, Size: int64(len(text)), Kind: "scores"}},
		store.StageResult{WallS: 1}, []store.Eval{eval}))
}
