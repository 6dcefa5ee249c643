package reports

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"exp/experiments/blob"
	"exp/experiments/ident"
	"exp/experiments/store"
	"exp/reports/compare"
)

// study is a synthetic store with two arms of two seeds, FlowRL and PPO.
type study struct {
	t       testing.TB
	db      *store.DB
	flowrl  []store.Run
	ppo     []store.Run
	elapsed time.Duration // of the store's clock
	again   string        // settings of further evaluations
}

// What a policy wrote that must not be taken for markup, a table, or a terminal.
const hostileText = "<script>alert(1)</script> | `a` **b**\x1b[31m\u202e"

func digestOf(text string) ident.Digest { return ident.Sum([]byte(text)) }

func newStudy(t testing.TB) *study {
	t.Helper()
	s := &study{t: t}
	start := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	db, err := store.Open(t.TempDir(), store.Options{Create: true, Clock: func() time.Time { return start.Add(s.elapsed) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	s.db = db
	for seed := range int64(2) {
		s.flowrl = append(s.flowrl, s.run("flow", "flowrl", seed))
		s.ppo = append(s.ppo, s.run("ppo & co", "ppo", seed))
	}
	return s
}

func (s *study) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// run records a run of three steps, scored on three problems with two samples each.
func (s *study) run(name, algo string, seed int64) store.Run {
	ctx := context.Background()
	s.elapsed += time.Minute
	config := fmt.Sprintf(`{"name":%q,"algo":{"kind":%q},"task":{"kind":"countdown"},"compare":{"vary":["algo"]},"eval":{"final":{"n":2}}}`, name, algo)
	run, _, err := s.db.EnsureRun(ctx, store.NewRun{RID: digestOf(fmt.Sprint("rid", name, seed)), XID: digestOf("xid" + name), Name: name, Task: "countdown",
		Algo: algo, Model: "2x32", Seed: seed, Numerics: "cpu/fma", StepsTotal: 3, Code: digestOf("code"),
		Config: store.Config{Digest: digestOf(config), JSON: config, Source: "version: 1\nname: " + name + "\n"}})
	s.must(err)
	at, err := s.db.BeginAttempt(ctx, store.Attempt{Run: run.ID, Kind: store.AttemptRun, Host: "host", Device: "cpu/test", Build: "exp test",
		Env: json.RawMessage(`{"go":"go1.26","os":"linux","arch":"amd64","cpu":"Testor 1","cpus":2,"memory_bytes":1073741824}`)})
	s.must(err)
	s.train(run, at.ID, algo, seed)
	s.evaluate(run, at.ID, "test@start", seed, 0)
	s.evaluate(run, at.ID, "test", seed, 1)
	s.elapsed += time.Minute
	s.must(s.db.EndAttempt(ctx, at.ID, store.Done, 0))
	run, err = s.db.RunByID(ctx, run.ID)
	s.must(err)
	return run
}

// train records steps whose reward grows; entropy is kept by one method only.
func (s *study) train(run store.Run, attempt int64, algo string, seed int64) {
	ctx := context.Background()
	st, err := s.db.BeginStage(ctx, store.Stage{SID: digestOf("train" + run.RID.String()), Run: run.ID, Attempt: attempt, Kind: "train", Code: digestOf("code")})
	s.must(err)
	w := s.db.NewStepWriter(run.ID, attempt, nil)
	chain := ident.ChainStart(run.RID)
	for step := range int64(3) {
		x := float64(step) + 0.25*float64(seed)
		det := ident.Det{Step: step + 1, Metrics: map[string]float64{
			"critic/score/mean": 0.1 + 0.1*x, "train/accuracy": 0.1 + 0.1*x, "actor/entropy": 1.5 - 0.1*x, "response_length/mean": 6 + x,
			"response_length/clip_ratio": 0, "actor/grad_norm": 1 / (1 + x), "actor/ppo_kl": 0.001 * x, "training/rollout_probs_diff_max": 0}}
		if algo == "flowrl" {
			det.Metrics["actor/log_z"], det.Metrics["kl/ref_k3"] = 0.2*x, 0.01*x
		} else {
			det.Metrics["critic/vf_loss"], det.Metrics["actor/entropy"] = 0.5-0.1*x, 1.5-0.5*x
		}
		chain, err = det.Next(chain)
		s.must(err)
		s.must(w.Record(store.Step{Det: det, Chain: chain, Tokens: 100, Measured: map[string]float64{
			"timing_s/gen": 0.25, "timing_s/update_actor": 0.5, "timing_s/step": 1, "perf/throughput": 400, "perf/total_num_tokens": 400}}))
	}
	s.must(w.Close())
	s.must(s.db.FinishStage(ctx, st.ID, nil, store.StageResult{WallS: 3, CPUS: 4, PeakMem: 1 << 20}, nil))
}

// rightOf is how many of the two samples of problem p are right.
func rightOf(algo string, p int, seed int64, trained int) int {
	switch {
	case trained == 0:
		return 0
	case algo == "flowrl":
		return []int{2, 1, int(seed)}[p]
	}
	return []int{0, 1, 2}[p]
}

// evaluate records the scores of a suite: pass@1, pass@2 and distinct solutions.
func (s *study) evaluate(run store.Run, attempt int64, label string, seed int64, trained int) {
	ctx := context.Background()
	var items []item
	var pack []keptText
	var samples []store.Sample
	var verdicts []bool
	for p := range 3 {
		id := fmt.Sprintf("p%d", p)
		c := rightOf(run.Algo, p, seed, trained)
		items = append(items, item{id, 2, c})
		for k := range 2 {
			answer := "1+2"
			if k >= c {
				answer = hostileText
			}
			pack = append(pack, keptText{"1,2=3:", answer})
			samples = append(samples, store.Sample{Scope: "eval", Item: id, K: k, OutTokens: 4, Finish: "stop", Reward: math.NaN()})
			verdicts = append(verdicts, k < c)
		}
	}
	gen, err := s.db.BeginStage(ctx, store.Stage{SID: digestOf("gen" + label + run.RID.String() + s.again), Run: run.ID, Attempt: attempt, Kind: "eval.gen", Label: label, Code: digestOf("code")})
	s.must(err)
	s.keep(gen.Home, pack, samples)
	s.must(s.db.FinishStage(ctx, gen.ID, nil, store.StageResult{WallS: 1}, nil))
	s.judge(run, gen.Home, verdicts)

	score, err := s.db.BeginStage(ctx, store.Stage{SID: digestOf("score" + label + run.RID.String() + s.again), Run: run.ID, Attempt: attempt, Kind: "eval.score", Label: label, Code: digestOf("code")})
	s.must(err)
	b, err := json.Marshal(map[string]any{"items": items})
	s.must(err)
	d, err := s.db.Blobs.PutBytes(b)
	s.must(err)
	s.must(s.db.FinishStage(ctx, score.ID, []store.IO{{Role: "scores", Digest: d, Size: int64(len(b))}}, store.StageResult{WallS: 0.5}, s.metrics(run, label, items)))
}

func (s *study) keep(home int64, pack []keptText, samples []store.Sample) {
	w := s.db.Blobs.NewPackWriter()
	for _, p := range pack {
		s.must(w.Add(p))
	}
	refs, packs, err := w.Close()
	s.must(err)
	for i := range samples {
		samples[i].Stage, samples[i].Ref = home, refs[i]
	}
	s.must(s.db.AddSamples(context.Background(), samples, []blob.Pack(packs)))
}

func (s *study) judge(run store.Run, home int64, right []bool) {
	ctx := context.Background()
	all, err := s.db.Samples(ctx, run.ID, store.SampleQuery{Scope: "eval", Stage: home})
	s.must(err)
	var list []store.Verdict
	for i, smp := range all {
		list = append(list, store.Verdict{Sample: smp.ID, Graded: true, Correct: right[i]})
	}
	s.must(s.db.AddVerdicts(ctx, store.Scorer{Digest: digestOf("scorer"), Name: "countdown/1"}, list))
}

func (s *study) metrics(run store.Run, label string, items []item) []store.Eval {
	suite := store.Suite{Digest: digestOf("suite" + label), Name: "countdown/" + label, Version: "1"}
	var p1, p2 float64
	for _, it := range items {
		suite.Items = append(suite.Items, store.Item{ID: it.Problem, Difficulty: math.NaN()})
		p1 += it.share() / 3
		if it.Correct > 0 {
			p2 += 1. / 3
		}
	}
	id, err := s.db.EnsureSuite(context.Background(), suite)
	s.must(err)
	one := func(metric string, v float64) store.Eval {
		return store.Eval{Suite: id, Protocol: digestOf("protocol" + s.again), N: 2, Metric: metric, Value: v, SE: math.NaN(), Lo: v - 0.1, Hi: v + 0.1, Items: 3, Clusters: 3}
	}
	return []store.Eval{one("pass@1", p1), one("pass@2", p2), one("distinct_correct", p2)}
}

// comparison is a result as package compare gives it, with numbers made up.
func (s *study) comparison() *compare.Result {
	arm := func(runs []store.Run, algo string) compare.ArmResult {
		a := compare.ArmResult{Label: runs[0].Name, Name: runs[0].Name, Task: "countdown", Algo: algo, Treatment: map[string]string{"algo.kind": algo}}
		for _, r := range runs {
			a.Runs = append(a.Runs, compare.Run{ID: r.ID, RID: r.RID.String(), Name: r.Name, Seed: r.Seed, Status: string(r.Status), Numerics: r.Numerics, Steps: r.Steps})
		}
		return a
	}
	num := func(v float64) *float64 { return &v }
	iv := func(lo, hi float64) *compare.Interval {
		return &compare.Interval{Lo: lo, Hi: hi, Kind: compare.OverItems}
	}
	est := func(v float64, seeds ...float64) compare.Estimate {
		e := compare.Estimate{Mean: num(v), Interval: iv(v-0.1, v+0.1), Start: num(0), Gain: num(v)}
		for i, x := range seeds {
			e.Seeds = append(e.Seeds, compare.SeedValue{Seed: int64(i), Value: num(x)})
		}
		return e
	}
	suite := compare.Suite{Name: "countdown/test", Samples: 2, Items: 3, Clusters: 3, Metrics: []compare.Metric{
		{Name: "pass@1", Unit: "share", Direction: "up", Tested: true, Items: 3, Arms: []compare.Estimate{est(0.58, 0.5, 0.67), est(0.5, 0.5, 0.5)},
			Pairs: []compare.Pair{{A: 0, B: 1, Delta: num(0.08), Interval: iv(-0.2, 0.36), P: num(0.5), PHolm: num(0.5), MDE: num(0.4), Verdict: compare.Underpowered}}},
		{Name: "pass@2", Unit: "share", Direction: "up", Items: 3, Arms: []compare.Estimate{est(0.83), est(0.67)}, Pairs: []compare.Pair{{A: 0, B: 1, Delta: num(0.16)}}},
		{Name: "distinct_correct", Unit: "solutions", Direction: "up", Tested: true, Items: 3, Arms: []compare.Estimate{est(0.83, 0.67, 1), est(0.67, 0.67, 0.67)},
			Pairs: []compare.Pair{{A: 0, B: 1, Delta: num(0.16), Interval: iv(0.1, 0.2), P: num(0.0001), PHolm: num(0.0002), MDE: num(0.1), Verdict: compare.Better}}},
	}}
	for i := range 2 {
		suite.Curves = append(suite.Curves, compare.Curve{Arm: i, Points: []compare.Point{
			{K: 1, Mean: suite.Metrics[0].Arms[i].Mean, Interval: suite.Metrics[0].Arms[i].Interval}, {K: 2, Mean: suite.Metrics[1].Arms[i].Mean, Interval: suite.Metrics[1].Arms[i].Interval}}})
	}
	aggregate := func(v float64) compare.Aggregate { return compare.Aggregate{Value: num(v), Interval: iv(v-0.1, v+0.1)} }
	across := &compare.Across{Suites: []string{"countdown/test"}, Draws: 2000, Kind: string(compare.OverItems), Thresholds: []float64{0, 0.5},
		Pairs: []compare.AcrossPair{{A: 0, B: 1}}, Arms: []compare.AcrossArm{
			{Scores: 2, Mean: aggregate(0.58), IQM: aggregate(0.58), Gap: aggregate(0.42), Profile: []compare.Aggregate{aggregate(0.83), aggregate(0.33)}},
			{Scores: 2, Mean: aggregate(0.5), IQM: aggregate(0.5), Gap: aggregate(0.5), Profile: []compare.Aggregate{aggregate(0.67), aggregate(0.33)}}}}
	return &compare.Result{Across: across, Arms: []compare.ArmResult{arm(s.flowrl, "flowrl"), arm(s.ppo, "ppo")}, Baseline: 1, Tests: 2, Alpha: 0.05, Level: 0.95, Draws: 5000,
		Suites: []compare.Suite{suite}, Notes: []string{"2 runs an arm"},
		Comparability: compare.Comparability{OK: true, Vary: []string{"algo"}, Allow: []string{"train.optim.lr"}, Differences: []compare.Difference{
			{Key: "train.optim.lr", Class: compare.Controlled, Values: []string{"1e-3", "1e-4"}, Waived: true},
			{Key: "algo.kind", Class: compare.Treatment, Values: []string{"flowrl", "ppo"}}},
			Excluded: []compare.Excluded{{Run: compare.Run{RID: digestOf("x").String(), Name: "flow", Seed: 7}, Reason: "interrupted at step 1 of 3"}}}}
}

// bundle writes the report of an input.
func (s *study) bundle(in Input, f Formats) Bundle {
	s.t.Helper()
	in.DB = s.db
	r, err := New(context.Background(), in)
	s.must(err)
	b, err := r.Bundle(f)
	s.must(err)
	return b
}
