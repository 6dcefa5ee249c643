package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/experiments/ident"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/device"
	"exp/harness/fault"
	"exp/harness/metric"
	"exp/harness/plan"
	"exp/harness/stage"
	"exp/kernels"
	"exp/kernels/cpu"
	"exp/train"
	"exp/train/checkpoint"
	"exp/train/rl"
)

// quiet is an Observer that counts, and can cancel after some training steps.
type quiet struct {
	started  []string
	cached   []string
	warnings []string
	notes    []string
	facts    map[string][]Metric // of each stage
	began    func(stage string)
	progress func(stage string, done int)
	ended    func(stage string)
}

func (q *quiet) StageStart(s StageInfo) {
	q.started = append(q.started, name(s))
	if q.began != nil {
		q.began(name(s))
	}
}
func (q *quiet) StageDone(s StageInfo, r StageEnd) {
	if r.Cached {
		q.cached = append(q.cached, name(s))
	}
	if q.facts == nil {
		q.facts = map[string][]Metric{}
	}
	q.facts[name(s)] = r.Facts
	if q.ended != nil {
		q.ended(name(s))
	}
}
func (q *quiet) Note(text string)            { q.notes = append(q.notes, text) }
func (q *quiet) Warn(text string)            { q.warnings = append(q.warnings, text) }
func (q *quiet) StagePhase(string, int, int) {}
func (q *quiet) StageProgress(done, _ int, _ []rl.Metric) {
	if q.progress != nil && len(q.started) > 0 {
		q.progress(q.started[len(q.started)-1], done)
	}
}

func name(s StageInfo) string {
	if s.Label != "" {
		return s.Kind + "[" + s.Label + "]"
	}
	return s.Kind
}

// lab is a store with what executes runs in it.
type lab struct {
	t       *testing.T
	db      *store.DB
	be      kernels.Backend
	sources map[config.Stage]plan.Code
	options Options
}

func newLab(t *testing.T) *lab { return labOf(t, kernels.F32) }

// labOf is newLab for models of another dtype.
func labOf(t *testing.T, operand kernels.DType) *lab {
	t.Helper()
	be, err := cpu.Open(cpu.Options{Threads: 2, Operand: operand})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(be.Close)
	return labOn(t, be)
}

// labOn makes a laboratory of a backend, with a store without runs that keeps the sources.
func labOn(t *testing.T, be kernels.Backend) *lab {
	t.Helper()
	dir, err := emptyStore()
	if err != nil {
		t.Fatal(err)
	}
	return labIn(t, be, dir)
}

// startedLab is newLab with a store in which another run has executed the smoke recipe's prepare, init and sft: a run
// of this start takes them from the cache.
func startedLab(t *testing.T) *lab {
	t.Helper()
	be, err := cpu.Open(cpu.Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(be.Close)
	dir, err := startedStore()
	if err != nil {
		t.Fatal(err)
	}
	return labIn(t, be, dir)
}

// bareLab is newLab with a store that keeps no sources yet.
func bareLab(t *testing.T) *lab {
	t.Helper()
	be, err := cpu.Open(cpu.Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(be.Close)
	return labIn(t, be, "")
}

// labIn makes a laboratory with a copy of a store, or with a new one if from is empty.
func labIn(t *testing.T, be kernels.Backend, from string) *lab {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	if from != "" {
		if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	db, err := store.Open(dir, store.Options{Create: from == ""})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	sources, err := plan.Sources()
	if err != nil {
		t.Fatal(err)
	}
	return &lab{t: t, db: db, be: be, sources: sources}
}

// smoke loads the smoke recipe with settings over it.
func smoke(t *testing.T, sets ...string) *config.Resolved {
	t.Helper()
	return recipe(t, "smoke_cpu.yaml", sets...)
}

// recipe loads a configuration of the repository.
func recipe(t *testing.T, file string, sets ...string) *config.Resolved {
	t.Helper()
	r, err := config.Load(config.Input{File: "../../configs/" + file, Sets: sets})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (l *lab) plan(seed int64, sets ...string) *plan.Run {
	l.t.Helper()
	p, err := plan.New(smoke(l.t, sets...), seed, l.be.Class(), l.sources)
	if err != nil {
		l.t.Fatal(err)
	}
	return p
}

func (l *lab) try(ctx context.Context, p *plan.Run, q *quiet) (Result, error) {
	r := Runner{DB: l.db, Backend: l.be, Watch: q, Build: "test", Options: l.options}
	return r.Execute(ctx, p)
}

func (l *lab) execute(p *plan.Run) (Result, *quiet) {
	l.t.Helper()
	q := &quiet{}
	res, err := l.try(context.Background(), p, q)
	if err != nil {
		l.t.Fatal(err)
	}
	stages, err := l.db.Stages(context.Background(), res.Run.ID)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, s := range stages {
		if changed := StageChanged(s); changed != "" {
			l.t.Errorf("%s %s, as recorded: %s", s.Kind, s.Label, changed)
		}
	}
	return res, q
}

// outputs returns the digests of all stages of a run, by stage and role.
func (l *lab) outputs(run int64) map[string]ident.Digest {
	l.t.Helper()
	stages, err := l.db.Stages(context.Background(), run)
	if err != nil {
		l.t.Fatal(err)
	}
	out := map[string]ident.Digest{}
	for _, s := range stages {
		for _, o := range s.Outputs {
			out[s.Kind+"["+s.Label+"]/"+o.Role] = o.Digest
		}
	}
	return out
}

// sameOutputs reports outputs of a that b has otherwise.
func sameOutputs(t *testing.T, a, b map[string]ident.Digest) {
	t.Helper()
	if len(a) == 0 || len(a) != len(b) {
		t.Errorf("%d outputs and %d", len(a), len(b))
	}
	for k, d := range a {
		if b[k] != d {
			t.Errorf("%s differs: %s, %s", k, d.Short(), b[k].Short())
		}
	}
}

func TestRunOnceThenCached(t *testing.T) {
	l := bareLab(t)
	p := l.plan(0)
	first, q := l.execute(p)
	if first.Executed != 9 || first.Cached != 0 || first.Run.Status != store.Done || first.Run.Steps != 4 {
		t.Errorf("first: executed %d, cached %d, status %s, %d steps", first.Executed, first.Cached, first.Run.Status, first.Run.Steps)
	}
	want := "prepare init sft train merge eval.gen[test@start] eval.score[test@start] eval.gen[test] eval.score[test]"
	if got := strings.Join(q.started, " "); got != want {
		t.Errorf("stages %s\nwant   %s", got, want)
	}
	again, q := l.execute(p)
	if again.Executed != 0 || again.Cached != 9 || len(q.started) != 0 {
		t.Errorf("again: executed %d, cached %d, started %v", again.Executed, again.Cached, q.started)
	}
	if again.Run.Chain != first.Run.Chain || fmt.Sprint(again.Run.Headline) != fmt.Sprint(first.Run.Headline) {
		t.Error("the stored result changed")
	}
	attempts, err := l.db.Attempts(context.Background(), first.Run.ID)
	if err != nil || len(attempts) != 1 {
		t.Errorf("%d attempts, %v; a run that is complete is not attempted", len(attempts), err)
	}
}

// checkRoles compares what the stages of a run made with the table of stages; the run has all of them but without.
func (l *lab) checkRoles(run int64, without ...config.Stage) {
	stages, err := l.db.Stages(context.Background(), run)
	if err != nil {
		l.t.Fatal(err)
	}
	seen := map[config.Stage]bool{}
	for _, s := range stages {
		kind := config.Stage(s.Kind)
		seen[kind] = true
		for _, o := range s.Outputs {
			role := o.Role
			switch {
			case kind == config.Merge:
				role = config.RoleFiles
			case strings.HasPrefix(role, config.RoleProblems+"/") && role != config.RoleTrain && role != config.RoleVal:
				role = config.RoleProblems
			}
			if !slices.Contains(kind.Facts().Makes, role) {
				l.t.Errorf("%s made %s, the table has %q", kind, o.Role, kind.Facts().Makes)
			}
		}
	}
	for _, kind := range config.StagesOf() {
		if seen[kind] == slices.Contains(without, kind) {
			l.t.Errorf("stages %v, want all but %s", seen, without)
			break
		}
	}
}

// The record of a run: steps with verl's metrics, samples with verdicts,
// evaluations with intervals, the sources, the merged folder.
func TestRecord(t *testing.T) {
	l := bareLab(t)
	res, _ := l.execute(l.plan(3, "store.samples.train=all"))
	ctx := context.Background()
	curves, err := l.db.Metrics(ctx, res.Run.ID, "*", 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]int{}
	for _, c := range curves {
		names[c.Series.Name] = len(c.Values)
		if m, ok := metric.Find(c.Series.Name); !ok || m.Unit != c.Series.Unit {
			t.Errorf("%s was recorded in %q, the catalogue has %q, %t", c.Series.Name, c.Series.Unit, m.Unit, ok)
		}
	}
	for name, n := range map[string]int{"critic/score/mean": 4, "actor/log_z": 4, "timing_s/gen": 4, "val/pass@1": 3, "val-core/countdown/acc/mean@1": 3} {
		if names[name] != n {
			t.Errorf("metric %s has %d points, want %d", name, names[name], n)
		}
	}
	for scope, want := range map[string]int{"train": 4 * 8 * 4, "eval": 2 * 16 * 4} {
		samples, err := l.db.Samples(ctx, res.Run.ID, store.SampleQuery{Scope: scope})
		if err != nil || len(samples) != want {
			t.Fatalf("%d samples of %s, %v; want %d", len(samples), scope, err, want)
		}
		for _, s := range samples {
			if s.Verdict == nil || s.Ref.Pack.IsZero() || s.PromptTokens == 0 {
				t.Fatalf("sample %d of %s has verdict %v, pack %s, %d prompt tokens", s.ID, scope, s.Verdict, s.Ref.Pack.Short(), s.PromptTokens)
			}
		}
	}
	evals, err := l.db.Evals(ctx, res.Run.ID)
	if err != nil {
		t.Fatal(err)
	}
	suites := map[string]int{}
	for _, e := range evals {
		suites[e.SuiteName]++
	}
	if suites["countdown/test"] < 5 || suites["countdown/test@start"] != suites["countdown/test"] {
		t.Errorf("metrics by suite: %v", suites)
	}
	if _, err := l.db.Source(ctx, res.Run.Code); err != nil {
		t.Errorf("sources of the training code: %v", err)
	}
	l.checkRoles(res.Run.ID, config.RewardModel, config.Prefer, config.PassRate, config.Select)
	dir := filepath.Join(l.db.RunDir(res.Run.RID), stage.MergedDir)
	if _, err := checkpoint.ReadConfig(dir); err != nil {
		t.Error(err)
	}
	for _, f := range []string{"model.safetensors", "proj_z.safetensors", "tokenizer.json"} {
		if _, err := os.Stat(filepath.Join(dir, f)); err != nil {
			t.Error(err)
		}
	}
	if steps, err := checkpoint.Steps(filepath.Join(l.db.RunDir(res.Run.RID), "ckpt")); err == nil && len(steps) > 0 {
		t.Errorf("checkpoints of steps %v are left in the run's folder itself", steps)
	}
}

// Seeds and algorithms share what does not depend on them.
func TestSharedStages(t *testing.T) {
	l := newLab(t)
	l.execute(l.plan(0))
	for _, tt := range []struct {
		name string
		seed int64
		sets []string
		want string // executed
	}{
		{"another seed", 1, nil, "train merge eval.gen[test] eval.score[test]"},
		{"another algorithm", 0, []string{"algo.kind=ppo", "name=ppo"}, "train merge eval.gen[test] eval.score[test]"},
		{"another name", 0, []string{"name=other"}, ""},
		{"more samples", 0, []string{"eval.final.n=8"}, "eval.gen[test@start] eval.score[test@start] eval.gen[test] eval.score[test]"},
		{"another pass_k", 0, []string{"eval.final.pass_k=[1,2]"}, "eval.score[test@start] eval.score[test]"},
	} {
		_, q := l.execute(l.plan(tt.seed, tt.sets...))
		if got := strings.Join(q.started, " "); got != tt.want {
			t.Errorf("%s: executed %q, want %q", tt.name, got, tt.want)
		}
	}
	a, b := l.plan(0), l.plan(0, "name=other")
	if a.RID != b.RID {
		t.Error("a name changes the run's id")
	}
	if a.RID == l.plan(1).RID || a.XID != l.plan(1).XID {
		t.Error("a seed must change the run's id and not the experiment's")
	}
	if a.XID == l.plan(0, "algo.flowrl.beta=3").XID {
		t.Error("beta does not change the experiment's id")
	}
}

// Keys that are declared to change no bit of a result change none, online
// evaluation among them.
func TestNonsemanticKeys(t *testing.T) {
	want := newLab(t)
	p := want.plan(2)
	res, _ := want.execute(p)
	outputs := want.outputs(res.Run.ID)
	for _, sets := range [][]string{
		{"compute.threads=1", "compute.micro_batch_tokens=90"},
		{"compute.recompute=true", "compute.micro_batch_tokens=2000"},
		{"rollout.max_sequences=3", "rollout.page_tokens=32"},
		{"checkpoint.every_steps=1", "checkpoint.keep=1", "store.samples.train=none", "store.samples.eval=none"},
		{"verify.logprob_rate=0"},
	} {
		l := newLab(t)
		q := l.plan(2, sets...)
		if q.RID != p.RID {
			t.Errorf("%v: another run id", sets)
		}
		got, _ := l.execute(q)
		if verify := strings.HasPrefix(sets[0], "verify"); verify != (got.Run.Chain != res.Run.Chain) {
			// The chain holds the metrics, and verification reports some.
			t.Errorf("%v: chain %s, want %s", sets, got.Run.Chain.Short(), res.Run.Chain.Short())
		}
		sameOutputs(t, l.outputs(got.Run.ID), outputs)
	}
	l := newLab(t)
	got, _ := l.execute(l.plan(2, "eval.online.every_steps=0"))
	sameOutputs(t, l.outputs(got.Run.ID), outputs)
}

// An evaluation on the way draws from the tokens that eval.online allows: from one alone it is greedy. Whoever allows
// all keeps the run's id.
func TestOnlineSampling(t *testing.T) {
	l := startedLab(t)
	few := func(sets ...string) *plan.Run {
		return l.plan(0, append(sets, "train.steps=2", "eval.online.every_steps=1", "eval.online.n=1")...)
	}
	curves := map[string]map[string]string{}
	for name, sets := range map[string][]string{"greedy": {"eval.online.temperature=0"}, "all": nil,
		"one": {"eval.online.top_k=1"}, "likeliest": {"eval.online.top_p=1e-9"}} {
		res, _ := l.execute(few(sets...))
		all, err := l.db.Metrics(t.Context(), res.Run.ID, "val*", 0, 100)
		if err != nil || len(all) == 0 {
			t.Fatalf("%s: %d curves, %v", name, len(all), err)
		}
		curves[name] = map[string]string{}
		for _, c := range all {
			curves[name][c.Series.Name] = fmt.Sprint(c.Values)
		}
	}
	for _, name := range []string{"one", "likeliest"} {
		if !maps.Equal(curves["greedy"], curves[name]) {
			t.Errorf("%s: %v, greedy %v", name, curves[name], curves["greedy"])
		}
	}
	if maps.Equal(curves["greedy"], curves["all"]) {
		t.Errorf("the likeliest tokens score as all do: %v", curves["all"])
	}
	if a, b := few(), few("eval.online.top_k=0", "eval.online.top_p=1"); a.RID != b.RID {
		t.Errorf("run ids %s and %s", a.RID, b.RID)
	}
}

// A stopped run continues where it was, and ends with the bits of an undisturbed run.
func TestStopAndGoOn(t *testing.T) {
	whole := newLab(t)
	res, _ := whole.execute(whole.plan(0))
	want := whole.outputs(res.Run.ID)
	for _, at := range []struct {
		stage string
		step  int
	}{{"sft", 0}, {"sft", 7}, {"train", 0}, {"train", 1}, {"train", 3}} {
		t.Run(fmt.Sprintf("%s at step %d", at.stage, at.step), func(t *testing.T) {
			l := newLab(t)
			ctx, cancel := context.WithCancel(context.Background())
			stop := func(stage string, done int) {
				if stage == at.stage && done == at.step {
					cancel()
				}
			}
			q := &quiet{began: func(stage string) { stop(stage, 0) }, progress: stop}
			stopped, err := l.try(ctx, l.plan(0), q)
			var e *InterruptedError
			if !errors.As(err, &e) || e.Stage != at.stage || stopped.Run.Status != store.Interrupted {
				t.Fatalf("stopped with %v, status %s", err, stopped.Run.Status)
			}
			if at.stage == "train" && stopped.Run.Steps != int64(at.step) {
				t.Errorf("%d steps recorded, want %d", stopped.Run.Steps, at.step)
			}
			done, again := l.execute(l.plan(0))
			if slices.Contains(again.started, "prepare") || !slices.Contains(again.started, at.stage) {
				t.Errorf("executed %v", again.started)
			}
			if done.Run.Steps != 4 || done.Run.Chain != res.Run.Chain {
				t.Errorf("%d steps, chain %s; want 4 and %s", done.Run.Steps, done.Run.Chain.Short(), res.Run.Chain.Short())
			}
			sameOutputs(t, l.outputs(done.Run.ID), want)
		})
	}
}

// A stop that comes while the record is read or written, or in a stage that cannot
// be stopped, takes effect before the next stage.
func TestStopBetweenStages(t *testing.T) {
	whole := newLab(t)
	res, _ := whole.execute(whole.plan(0))
	for _, stage := range []string{"prepare", "merge", "eval.gen[test@start]"} {
		l := newLab(t)
		ctx, cancel := context.WithCancel(context.Background())
		if stage == "prepare" {
			cancel()
		}
		_, err := l.try(ctx, l.plan(0), &quiet{ended: func(name string) {
			if name == stage {
				cancel()
			}
		}})
		cancel()
		var e *InterruptedError
		if !errors.As(err, &e) || e.Stage == "" {
			t.Fatalf("after %s: error %v, want an *InterruptedError", stage, err)
		}
		again, _ := l.execute(l.plan(0))
		if again.Run.Chain != res.Run.Chain || again.Run.Status != store.Done {
			t.Errorf("after %s: run %s with chain %s, want %s", stage, again.Run.Status, again.Run.Chain.Short(), res.Run.Chain.Short())
		}
	}
}

// crooked is a backend whose optimizer is off by one unit in the last place.
type crooked struct{ kernels.Backend }

func (c crooked) AdamW(p, m, v, g kernels.Buffer, a kernels.AdamW) {
	c.Backend.AdamW(p, m, v, g, a)
	x := kernels.Elems[float32](p)
	x[0] += x[0] * 1e-6
}

// forging is a backend that samples with other log-probs, as if another model had written the completions.
type forging struct{ kernels.Backend }

func (f forging) Sample(ids kernels.Buffer, out kernels.Scores, h kernels.Buffer, w kernels.Matrix, u kernels.Buffer,
	p kernels.Sampling) {
	f.Backend.Sample(ids, out, h, w, u, p)
	f.Backend.Sync()
	x := kernels.Elems[float32](out.LogProb)
	x[0] += x[0] * 1e-6
}

// The same id with other bits is a divergence: exit code 5 material, and the first
// result stays.
func TestDivergence(t *testing.T) {
	l := newLab(t)
	res, _ := l.execute(l.plan(0))
	want := l.outputs(res.Run.ID)
	l.options.NoCache = true
	if again, q := l.execute(l.plan(0)); again.Executed != 9 || len(q.cached) != 0 {
		t.Errorf("executed %d again, want 9", again.Executed)
	}
	l.be = crooked{l.be}
	_, err := l.try(context.Background(), l.plan(0), &quiet{})
	var d *store.DivergenceError
	if !errors.As(err, &d) {
		t.Fatalf("error %v, want a divergence", err)
	}
	if list, err := l.db.Divergences(context.Background(), res.Run.ID); err != nil || len(list) == 0 {
		t.Errorf("recorded divergences: %v, %v", list, err)
	}
	sid := l.stageOf(res.Run.ID, "sft").SID
	hit, err := l.db.Hit(context.Background(), sid)
	if err != nil || hit == nil || hit.Outputs[0].Digest != want["sft[]/"+hit.Outputs[0].Role] {
		t.Errorf("the first result is gone: %v, %v", hit, err)
	}
}

func (l *lab) stageOf(run int64, kind string) store.Stage {
	l.t.Helper()
	stages, err := l.db.Stages(context.Background(), run)
	if err != nil {
		l.t.Fatal(err)
	}
	i := slices.IndexFunc(stages, func(s store.Stage) bool { return s.Kind == kind })
	if i < 0 {
		l.t.Fatalf("run %d has no stage %s", run, kind)
	}
	return stages[i]
}

// A blob that is gone or damaged is not a hit: the stage is executed again.
func TestDamagedCache(t *testing.T) {
	l := newLab(t)
	res, _ := l.execute(l.plan(0))
	path := l.db.Blobs.Path(l.stageOf(res.Run.ID, "sft").Outputs[0].Digest)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	again, q := l.execute(l.plan(0))
	if !slices.Contains(q.started, "sft") || again.Run.Chain != res.Run.Chain {
		t.Errorf("executed %v", q.started)
	}
	// Damage of the same size is found when asked to look.
	path = l.db.Blobs.Path(l.stageOf(res.Run.ID, "train").Outputs[0].Digest)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	raw[len(raw)/2] ^= 1
	if err := errors.Join(os.Chmod(path, 0o644), os.WriteFile(path, raw, 0o644)); err != nil {
		t.Fatal(err)
	}
	l.options.VerifyCache = true
	if _, err := l.try(context.Background(), l.plan(0), &quiet{}); err == nil || !strings.Contains(err.Error(), "corrupt") && !strings.Contains(err.Error(), "digest") {
		t.Errorf("damaged blob: error %v", err)
	}
}

func TestUntil(t *testing.T) {
	l := newLab(t)
	l.options.Until = config.SFT
	part, q := l.execute(l.plan(0))
	if strings.Join(q.started, " ") != "prepare init sft" || !part.Partial || part.Run.Status == store.Done {
		t.Errorf("until sft: executed %v, status %s", q.started, part.Run.Status)
	}
	l.options.Until = ""
	rest, q := l.execute(l.plan(0))
	if rest.Run.Status != store.Done || q.started[0] != "train" {
		t.Errorf("then: executed %v, status %s", q.started, rest.Run.Status)
	}
}

// Two processes may not execute one run; two runs may.
func TestLocked(t *testing.T) {
	l := newLab(t)
	p := l.plan(0)
	lock, err := l.db.LockRun(p.RID)
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.try(context.Background(), p, &quiet{})
	var busy *store.LockedError
	if !errors.As(err, &busy) {
		t.Errorf("error %v, want a LockedError", err)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	l.execute(p)
}

// A process that finds a stage undone and then waits for the lock takes the result that came meanwhile.
func TestClaim(t *testing.T) {
	l := newLab(t)
	p := l.plan(0)
	lock, err := l.db.LockRun(p.RID)
	if err != nil {
		t.Fatal(err)
	}
	l.options.Until = config.Prepare
	waited := make(chan Result)
	go func() {
		for busy := (*store.LockedError)(nil); ; {
			res, err := l.try(context.Background(), p, &quiet{})
			if errors.As(err, &busy) {
				continue
			}
			if err != nil {
				t.Error(err)
			}
			waited <- res
			return
		}
	}()
	other, _ := l.execute(l.plan(1)) // whose first stage is the same
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	if res := <-waited; res.Executed != 0 || res.Cached != 1 {
		t.Errorf("executed %d stages and reused %d, want the one that the other run recorded", res.Executed, res.Cached)
	}

	x := &execution{Runner: &Runner{DB: l.db, Backend: l.be, Watch: &quiet{}}, p: p}
	done := l.stageOf(other.Run.ID, "prepare")
	if found, err := x.claim(context.Background(), config.Prepare, done.SID); err != nil || found == nil ||
		found.SID != done.SID || x.lock != nil {
		t.Errorf("a done stage: claimed %v, %v, locked %v", found, err, x.lock != nil)
	}
	for range 2 { // it locks once
		if found, err := x.claim(context.Background(), config.Init, ident.Digest{}); found != nil || err != nil ||
			x.lock == nil {
			t.Fatalf("claimed %v, %v, locked %v", found, err, x.lock != nil)
		}
	}
	if err := x.lock.Release(); err != nil {
		t.Fatal(err)
	}
}

// A run whose attempt cannot begin does not stay locked.
func TestAdoptUnlocks(t *testing.T) {
	l := newLab(t)
	p := l.plan(0)
	x := &execution{Runner: &Runner{DB: l.db, Backend: l.be, Watch: &quiet{}}, p: p, run: store.Run{ID: 7, RID: p.RID}}
	if err := x.finish(nil); err == nil {
		t.Error("no error for a run that is not recorded")
	}
	lock, err := l.db.LockRun(p.RID)
	if err != nil {
		t.Fatal(err)
	}
	lock.Release()
}

// A panic in a stage fails the run, with its stack, and leaves a record of it.
func TestPanic(t *testing.T) {
	l := newLab(t)
	l.be = bomb{l.be, "kernels: on purpose"}
	res, err := l.try(context.Background(), l.plan(0), &quiet{})
	var p *PanicError
	if !errors.As(err, &p) || len(p.Stack) == 0 || res.Run.Status != store.Failed {
		t.Fatalf("error %v, status %s", err, res.Run.Status)
	}
	if s := l.stageOf(res.Run.ID, "sft"); s.Status != store.Failed || !strings.Contains(s.Error, "kernels: on purpose") {
		t.Errorf("stage: %s, %q", s.Status, s.Error)
	}
	// A device that fails does not count as a bug.
	l.be = bomb{l.be.(bomb).Backend, &kernels.DeviceError{Device: "cuda:0", Op: "synchronize", Code: 719, Lasting: true}}
	_, err = l.try(context.Background(), l.plan(0), &quiet{})
	var failure *kernels.DeviceError
	if errors.As(err, &p) || !errors.As(err, &failure) || !fault.DeviceLost(err) || fault.Of(err) != fault.Unavailable {
		t.Errorf("a lost device: %v", err)
	}
	l.be = l.be.(bomb).Backend
	l.execute(l.plan(0))
}

// bomb is a backend that panics with its charge.
type bomb struct {
	kernels.Backend
	charge any
}

func (b bomb) AdamW(_, _, _, _ kernels.Buffer, _ kernels.AdamW) { panic(b.charge) }

// The toy with a known optimum: exact probabilities are recorded and compared with
// π ∝ π_ref·exp(βr).
func TestOutcomes(t *testing.T) {
	l := newLab(t)
	res, _ := l.execute(l.plan(0, "task={kind: outcomes, outcomes: {count: 8, modes: [{center: 1, width: 0.5, height: 1}, {center: 6, width: 0.5, height: 1}], beta: 2}}",
		"sft.steps=0", "rollout.max_new_tokens=1", "algo.flowrl={beta: 2, reward: raw}", "data={train: {size: 8}, val: {size: 8}, test: {size: 1}}", "train={steps: 40, optim: {lr: 1e-2}}", "rollout.n=16"))
	evals, err := l.db.Evals(context.Background(), res.Run.ID)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, e := range evals {
		got[e.Metric] = e.Value
	}
	if kl, ok := got["kl_target"]; !ok || !(kl >= 0 && kl < 0.5) {
		t.Errorf("KL(target‖π) = %v, %v", kl, ok)
	}
	raw, err := l.db.Blobs.Bytes(l.outputs(res.Run.ID)["eval.gen[test]/"+stage.RolePolicy])
	if err != nil {
		t.Fatal(err)
	}
	var policy []stage.OutcomeProb
	if err := json.Unmarshal(raw, &policy); err != nil || len(policy) != 10 {
		t.Errorf("%d outcomes, %v; want 8, the prompt and the end", len(policy), err)
	}
}

func TestRequire(t *testing.T) {
	if err := Require(smoke(t), Alone()); err != nil {
		t.Errorf("smoke: %v", err)
	}
	r, err := config.Load(config.Input{File: "../../configs/flowrl_7b_math.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	err = Require(r, Alone())
	var e *RequireError
	if !errors.As(err, &e) || e.ExitCode() != 7 {
		t.Fatalf("flowrl_7b_math: %v", err)
	}
	for _, want := range []string{"compute.device is cuda", "Qwen/Qwen2.5-7B", "dapo-math-17k.parquet", "7.62B parameters", "4096 completions", "exp hub get Qwen/Qwen2.5-7B@main", "hub.tar", "run --get"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the message lacks %q:\n%v", want, err)
		}
	}
	// Unusable files are named together with missing ones.
	broken := t.TempDir()
	if err := os.WriteFile(filepath.Join(broken, "config.json"), []byte(`{"architectures": ["FooForCausalLM"]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if r, err = config.Load(config.Input{File: "../../configs/flowrl_7b_math.yaml", Sets: []string{"model.base=" + broken}}); err != nil {
		t.Fatal(err)
	}
	_, err = RequireAll(t.Context(), nil, r, Alone())
	if !errors.As(err, &e) || e.ExitCode() != 7 {
		t.Fatalf("a broken folder: %v", err)
	}
	for _, want := range []string{"compute.device is cuda", "dapo-math-17k.parquet", "FooForCausalLM", "model.safetensors", "tokenizer.json is missing", "minerva, olympiad: they are not in the store", "exp suite add aime24 FILE"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the message lacks %q:\n%v", want, err)
		}
	}
	// Also where nothing but a suite is missing.
	r = smoke(t, "model.init=pretrained", "model.base="+broken, "tokenizer.kind=model", `eval.final.suites=["nothing"]`)
	if _, err = RequireAll(t.Context(), nil, r, Alone()); err == nil || !strings.Contains(err.Error(), "the suite nothing") || !strings.Contains(err.Error(), "FooForCausalLM") {
		t.Errorf("a suite and a folder: %v", err)
	}
	r = smoke(t, "compute.micro_batch_tokens=1000000000", "rollout.n=10000000")
	if err := Require(r, Alone()); device.HostMemory() > 0 && (err == nil || !strings.Contains(err.Error(), "memory")) {
		t.Errorf("a batch that no machine holds: %v", err)
	}
}

// Where no GPU is, the memory of the one that the plan assumes must suffice, on each rank.
func TestRequirePlannedMemory(t *testing.T) {
	r := recipe(t, "flowrl_32b_math.yaml", "compute.device=cuda:99")
	for _, tt := range []struct {
		ranks int
		lacks bool
	}{{1, true}, {32, false}} {
		err := Require(r, Processes{Ranks: tt.ranks, Here: 1})
		if err == nil {
			t.Fatalf("%d ranks: nothing is missing without a GPU", tt.ranks)
		}
		for _, want := range []string{"missing  memory: the run needs ", "the planned GPU (NVIDIA H200, 141 GB) has room for 138 GiB",
			"more --ranks with compute.tensor_parallel"} {
			if strings.Contains(err.Error(), want) != tt.lacks {
				t.Errorf("%d ranks, %q: want %v in\n%v", tt.ranks, want, tt.lacks, err)
			}
		}
	}
}

// A stop that cannot save its checkpoint is a failure and says so: nothing claims
// that the steps are safe.
func TestStopThatCannotSave(t *testing.T) {
	for _, stage := range []string{"sft", "train"} {
		l := newLab(t)
		p := l.plan(0, "checkpoint.every_steps=0")
		ctx, cancel := context.WithCancel(context.Background())
		q := &quiet{progress: func(at string, done int) {
			if at == stage && done == 2 {
				dir := filepath.Join(l.db.RunDir(p.RID), "ckpt")
				if err := errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600)); err != nil {
					t.Error(err)
				}
				cancel()
			}
		}}
		res, err := l.try(ctx, p, q)
		var e *InterruptedError
		if err == nil || errors.As(err, &e) || res.Run.Status != store.Failed || !strings.Contains(err.Error(), "checkpoint") {
			t.Errorf("%s: error %v, status %s; want a failed run that names the checkpoint", stage, err, res.Run.Status)
		}
	}
}

// poisoned is a backend whose updates make every parameter NaN from the n-th on.
type poisoned struct {
	kernels.Backend
	updates, from int
}

func (b *poisoned) AdamW(p, m, v, g kernels.Buffer, a kernels.AdamW) {
	if b.updates++; b.updates >= b.from {
		a.LR = math.NaN()
	}
	b.Backend.AdamW(p, m, v, g, a)
}

// A policy that has become NaN stops the run with what, where and what to do; in
// fine-tuning the loss is an event, and sampling finds it out.
func TestBrokenPolicy(t *testing.T) {
	for _, from := range []int{5, 30 + 2} { // in sft, in training
		l := newLab(t)
		l.be = &poisoned{Backend: l.be, from: from}
		res, err := l.try(context.Background(), l.plan(0, "verify.logprob_rate=0"), &quiet{})
		var e *train.NonFiniteError
		if !errors.As(err, &e) || res.Run.Status != store.Failed || !strings.Contains(err.Error(), "learning rate") {
			t.Errorf("from update %d: error %v, status %s; want a *NonFiniteError", from, err, res.Run.Status)
		}
	}
}
