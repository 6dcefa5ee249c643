package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"exp/experiments/ident"
	"exp/experiments/recorded"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/plan"
	"exp/harness/stage"
	"exp/kernels"
	"exp/kernels/cpu"
	"exp/train/ranks"
)

// rating are settings of a run that rates its 64 problems 8 at a time, and trains on those that it solves in at most
// half of 4 attempts.
func rating(sets ...string) []string {
	return append([]string{"data.pass_rate={samples: 4, min: 0, max: 0.5}", "rollout.max_sequences=8",
		"sft.steps=200"}, sets...)
}

// rated returns a run's problems with their pass rates.
func (l *lab) rated(run int64) []recorded.RatedProblem {
	l.t.Helper()
	stages, err := l.db.Stages(context.Background(), run)
	if err != nil {
		l.t.Fatal(err)
	}
	list, err := recorded.RatedProblems(l.db, stages)
	if err != nil {
		l.t.Fatal(err)
	}
	return list
}

// A run measures how often the weights that training starts from solve each problem, and trains on those in the range.
// All seeds share that, other ranges share the measurements, and a verification repeats them.
func TestPassRates(t *testing.T) {
	l := newLab(t)
	p := l.plan(0, rating("store.samples.train=all")...)
	res, q := l.execute(p)
	if got, want := executedStages(q), "prepare init sft pass_rate select train merge eval.gen[test@start] "+
		"eval.score[test@start] "+
		"eval.gen[test] eval.score[test]"; got != want {
		t.Errorf("stages %s\nwant   %s", got, want)
	}
	l.checkRoles(res.Run.ID, config.RewardModel, config.Prefer)
	list := l.rated(res.Run.ID)
	kept, counts := map[string]bool{}, map[int]int{}
	for _, x := range list {
		if x.Samples != 4 || x.Graded != 4 || *x.Rate != float64(x.Correct)/4 || *x.Kept != (x.Correct <= 2) ||
			x.Prompt == "" {
			t.Errorf("%+v, rate %v, kept %t", x, *x.Rate, *x.Kept)
		}
		kept[x.ID] = *x.Kept
		counts[x.Correct]++
	}
	if len(list) != 64 || len(counts) < 3 || counts[3]+counts[4] == 0 {
		t.Fatalf("%d problems, by right completions %v: the test shows nothing", len(list), counts)
	}
	var s recorded.Selection
	if err := json.Unmarshal(l.stageOf(res.Run.ID, "select").Result, &s); err != nil {
		t.Fatal(err)
	}
	if s.Kept != 64-counts[3]-counts[4] || s.Never != counts[0] || s.Always != counts[4] ||
		s.Above != counts[3]+counts[4] || s.Below != 0 {
		t.Errorf("%+v, by right completions %v", s, counts)
	}
	samples, err := l.db.Samples(t.Context(), res.Run.ID, store.SampleQuery{Scope: "train"})
	if err != nil || len(samples) != 4*8*4 {
		t.Fatalf("%d samples, %v", len(samples), err)
	}
	for _, x := range samples {
		if !kept[x.Item] {
			t.Errorf("step %d trains on %s", x.Step, x.Item)
		}
	}
	v := l.verify(p, VerifyOptions{Level: LevelFull})
	if !v.OK || !slices.Contains(v.Stages, "pass_rate") || !slices.Contains(v.Stages, "select") {
		t.Errorf("verified %v: %+v", v.Stages, v.Findings)
	}
	if v := l.verify(p, VerifyOptions{Level: LevelSample}); !v.OK {
		t.Errorf("%+v", v.Findings)
	}
	const after = "train merge eval.gen[test] eval.score[test]"
	for _, tt := range []struct {
		seed int64
		sets []string
		want string
	}{
		{1, nil, after},
		{0, []string{"rollout.n=2"}, after},
		{0, []string{"data.pass_rate={samples: 4, min: 0, max: 0.25}"}, "select " + after},
		{0, []string{"data.pass_rate={samples: 3, min: 0, max: 0.5}"}, "pass_rate select " + after},
		{0, []string{"data.pass_rate={samples: 4, min: 0, max: 0.5, seed: 1}"}, "pass_rate select " + after},
		{0, []string{"rollout.temperature=0.9"}, "pass_rate select " + after},
	} {
		p := l.plan(tt.seed, rating(tt.sets...)...)
		if _, q := l.execute(p); executedStages(q) != tt.want || p.RID == res.Run.RID {
			t.Errorf("seed %d, %v: executed %s, want %s", tt.seed, tt.sets, executedStages(q), tt.want)
		}
	}
}

// A stage that is stopped, or whose process dies, continues with the problems that it has not rated, to the same bits.
func TestPassRatesGoOn(t *testing.T) {
	whole := newLab(t)
	res, _ := whole.execute(whole.plan(0, rating()...))
	want := whole.outputs(res.Run.ID)
	l := newLab(t)
	ctx, cancel := context.WithCancel(context.Background())
	seen := 0
	q := &quiet{progress: func(stage string, done int) {
		if stage == "pass_rate" {
			if seen = done; done >= 3*32-16 { // in the third call of 8 problems
				cancel()
			}
		}
	}}
	stopped, err := l.try(ctx, l.plan(0, rating()...), q)
	var e *InterruptedError
	if !errors.As(err, &e) || e.Stage != "pass_rate" || stopped.Run.Status != store.Interrupted || seen != 3*32 {
		t.Fatalf("stopped with %v, status %s, after %d completions", err, stopped.Run.Status, seen)
	}
	file := filepath.Join(stage.CheckpointsDir(l.db.RunDir(res.Run.RID)), "pass_rate-"+whole.stageOf(res.Run.ID,
		"pass_rate").SID.Short(), "rated.jsonl")
	b, err := os.ReadFile(file)
	if err != nil || bytes.Count(b, []byte{'\n'}) != 24 {
		t.Fatalf("%d problems are rated, %v", bytes.Count(b, []byte{'\n'}), err)
	}
	if err := os.WriteFile(file, b[:len(b)-7], 0o666); err != nil { // a process that died while it wrote
		t.Fatal(err)
	}
	first := -1
	q = &quiet{progress: func(stage string, done int) {
		if stage == "pass_rate" && first < 0 {
			first = done
		}
	}}
	done, err := l.try(context.Background(), l.plan(0, rating()...), q)
	if err != nil {
		t.Fatal(err)
	}
	if first <= 23*4 || !strings.Contains(strings.Join(q.warnings, "\n"), "resuming with 23 problems of 64 rated") {
		t.Errorf("went on at completion %d: %q", first, q.warnings)
	}
	if done.Run.Chain != res.Run.Chain {
		t.Errorf("chain %s, want %s", done.Run.Chain.Short(), res.Run.Chain.Short())
	}
	sameOutputs(t, l.outputs(done.Run.ID), want)
	if _, err := os.Stat(filepath.Dir(file)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the ratings are left: %v", err)
	}
}

// A range that leaves fewer problems than a step has ends the run with their distribution; another range then measures
// nothing again.
func TestPassRatesLeaveTooFew(t *testing.T) {
	l := newLab(t)
	narrow := l.plan(0, rating("data.pass_rate={samples: 4, min: 1, max: 1}", "sft.steps=0")...)
	_, err := l.try(context.Background(), narrow, &quiet{})
	var few *stage.FewProblemsError
	if !errors.As(err, &few) || !strings.Contains(err.Error(), "0 of 64 training problems have a pass rate from "+
		"data.pass_rate.min (1) to max (1)") ||
		few.Counts.Never != 64 || !strings.Contains(err.Error(), "\n  0                  64") {
		t.Fatalf("%v", err)
	}
	run, err := l.db.Run(t.Context(), narrow.RID)
	if err != nil || run.Status != store.Failed {
		t.Fatalf("status %s, %v", run.Status, err)
	}
	if list := l.rated(run.ID); len(list) != 64 || list[0].Kept != nil {
		t.Errorf("%d problems, the first %+v", len(list), list[0])
	}
	_, q := l.execute(l.plan(0, rating("data.pass_rate={samples: 4, min: 0, max: 1}", "sft.steps=0")...))
	if got := executedStages(q); got != "select train merge eval.gen[test] eval.score[test]" {
		t.Errorf("executed %s", got)
	}
}

// rateFile writes countdown problems, every second one with a pass rate that grows from 0 to 1.
func rateFile(t *testing.T, last string) string {
	t.Helper()
	var b strings.Builder
	for i := range 32 {
		rate := ""
		if i%2 == 0 {
			rate = fmt.Sprintf(`, "solve_rate": %v`, float64(i)/32)
		}
		fmt.Fprintf(&b, `{"nums": [%d, %d], "target": %d, "solution": "%d+%d"%s}`+"\n", 1+i%9, 1+i/9, 2+i%9+i/9,
			1+i%9, 1+i/9, rate)
	}
	fmt.Fprintf(&b, `{"nums": [9, 9], "target": 18, "solution": "9+9", "solve_rate": %s}`+"\n", last)
	path := filepath.Join(t.TempDir(), "rated.jsonl")
	if err := os.WriteFile(path, []byte(b.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// Rows bring pass rates along: nothing is sampled before training, rates are part of the data, and problems without
// one are left out.
func TestPassRatesOfRows(t *testing.T) {
	l := newLab(t)
	unrated := func(last string) *plan.Run {
		return l.plan(0, "data.train={source: "+rateFile(t, last)+", size: 0}")
	}
	plan := func(last string) *plan.Run {
		return l.plan(0, "data.train={source: "+rateFile(t, last)+", size: 0}",
			"data.pass_rate={column: solve_rate, min: 0.25, max: 0.75}")
	}
	p := plan("0.5")
	res, q := l.execute(p)
	if got := executedStages(q); !strings.HasPrefix(got, "prepare init sft select train merge ") {
		t.Errorf("stages %s", got)
	}
	var ids []string
	for _, x := range l.rated(res.Run.ID) {
		if *x.Kept {
			ids = append(ids, fmt.Sprint(*x.Rate))
		}
	}
	// 8/32, 10/32, …, 24/32, and the last.
	if got := strings.Join(ids, " "); got != "0.25 0.3125 0.375 0.4375 0.5 0.5625 0.625 0.6875 0.75 0.5" {
		t.Errorf("kept %s", got)
	}
	if got := strings.Join(q.warnings, "\n"); !strings.Contains(got, "data.pass_rate: 16 problems of 33 left out "+
		"without a pass rate: their rows have none in the column solve_rate") {
		t.Errorf("warnings %s", got)
	}
	if v := l.verify(p, VerifyOptions{Level: LevelFull}); !v.OK {
		t.Errorf("%+v", v.Findings)
	}
	if plan("1").RID == p.RID {
		t.Error("another rate is the same run")
	}
	if unrated("1").RID != unrated("0.5").RID {
		t.Error("rates that nothing reads change the run")
	}
}

// Ranks that share the work, and those that share products, measure the same pass rates as one process.
func TestPassRatesOnRanks(t *testing.T) {
	l := newLab(t)
	sets := rating("sft.steps=40", "train.steps=1", "eval.final.suites=[]", "eval.online.every_steps=0",
		"model.arch={heads: 4, kv_heads: 4, head_size: 32, width: 128, ffn: 128}", "data.train.size=24",
		"data.pass_rate.max=1")
	p := l.plan(0, sets...)
	res, _ := l.execute(p)
	want := l.outputs(res.Run.ID)["pass_rate[]/"+config.RolePassRates]
	i := slices.IndexFunc(p.Stages, func(s plan.Stage) bool { return s.Kind == config.PassRate })
	in := map[string]ident.Digest{}
	row := l.stageOf(res.Run.ID, "pass_rate")
	for _, x := range row.Inputs {
		in[x.Role] = x.Digest
	}
	for _, tt := range []struct{ size, tensor int }{{2, 1}, {3, 1}, {2, 2}, {4, 2}} {
		shared := smoke(t, append(sets, fmt.Sprint("compute.tensor_parallel=", tt.tensor))...)
		outcomes, errs := make([]*stage.Outcome, tt.size), make([]error, tt.size)
		var done sync.WaitGroup
		dir := t.TempDir()
		for r, group := range ranks.InProcess(tt.size) {
			be, err := cpu.Open(cpu.Options{Threads: 1, Operand: kernels.F32})
			if err != nil {
				t.Fatal(err)
			}
			defer be.Close()
			g := &Ranks{Group: group, hosts: make([]string, tt.size)}
			e := &stage.Env{Config: shared, Backend: be, Blobs: l.db.Blobs, Dir: dir, RID: p.RID, SID: row.SID,
				Seed:     p.Stages[i].Root,
				Prompter: p.External.Prompter}
			done.Go(func() {
				leave, err := g.join(e, config.PassRate)
				defer leave()
				if err == nil {
					outcomes[r], err = stage.Run(context.Background(), e, config.PassRate, "", in)
				}
				errs[r] = err
			})
		}
		done.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		if got := outcomes[0].Outputs[0].Digest; got != want || outcomes[1] != nil {
			t.Errorf("%d ranks, %d share products: %s, want %s; the second rank has %v", tt.size, tt.tensor,
				got.Short(), want.Short(), outcomes[1])
		}
	}
}

// Where the reward judges alone, it also measures pass rates: their id depends on its program, and the record keeps
// its mean score.
func TestPassRatesOfPrompts(t *testing.T) {
	l := newLab(t)
	seen := filepath.Join(t.TempDir(), "seen")
	p := promptsRun(l, seen, false, "data.pass_rate={samples: 4}", "train={steps: 1, prompts_per_step: 4, "+
		"prompts_per_update: 4}")
	res, _ := l.execute(p)
	kept := 0
	for _, x := range l.rated(res.Run.ID) {
		if want := (float64(x.Correct) + 0.25*float64(4-x.Correct)) / 4; x.Score == nil || *x.Score != want ||
			*x.Kept != (0 < x.Correct && x.Correct < 4) {
			t.Errorf("%+v, score %v, want %v", x, x.Score, want)
		}
		if *x.Kept {
			kept++
		}
	}
	if kept < 4 || kept == 24 {
		t.Errorf("%d of 24 problems are kept: the test shows nothing", kept)
	}
	if v := l.verify(p, VerifyOptions{Level: LevelFull}); !v.OK {
		t.Errorf("%+v", v.Findings)
	}
	again := promptsRun(l, filepath.Join(t.TempDir(), "seen"), false, "data.pass_rate={samples: 4}",
		"task.prompts.pass=2",
		"train={steps: 1, prompts_per_step: 4, prompts_per_update: 4}")
	if _, q := l.execute(again); !slices.Contains(q.started, "pass_rate") {
		t.Errorf("another threshold measured nothing: %v", q.started)
	}
}

// Every algorithm trains on the problems that were chosen, and all share the measurement: adapters, critics, values
// of problems and process rewards begin after it.
func TestPassRatesWithAlgorithms(t *testing.T) {
	l := newLab(t)
	first, _ := l.execute(l.plan(0, rating("train={steps: 1, prompts_per_step: 8, prompts_per_update: 8}",
		"eval.final.suites=[]")...))
	kept := map[string]bool{}
	for _, x := range l.rated(first.Run.ID) {
		kept[x.ID] = *x.Kept
	}
	for _, sets := range [][]string{
		{"algo.kind=ppo"},
		{"algo.kind=spo", "rollout.n=1"},
		{"algo.kind=grpo", "train.lora.rank=4"},
		{"algo.kind=dapo"},
		{"algo.kind=remax", "rollout.n=1"},
		{"algo.kind=prime"},
		{"algo.kind=grpo", "rollout.staleness=1"},
		{"algo.kind=grpo", "reward.kind=confidence"},
	} {
		all := rating(append(sets, "train={steps: 1, prompts_per_step: 8, prompts_per_update: 8}",
			"store.samples.train=all", "eval.final.suites=[]")...)
		res, q := l.execute(l.plan(0, all...))
		if got := executedStages(q); got != "train merge" {
			t.Errorf("%v: executed %s", sets, got)
		}
		samples, err := l.db.Samples(t.Context(), res.Run.ID, store.SampleQuery{Scope: "train"})
		if err != nil || len(samples) == 0 || slices.ContainsFunc(samples,
			func(s store.Sample) bool { return !kept[s.Item] }) {
			t.Errorf("%v: %d samples, %v, some of problems that were left out", sets, len(samples), err)
		}
	}
}
