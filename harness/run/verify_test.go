package run

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/experiments/ident"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/plan"
	"exp/harness/stage"
	"exp/kernels"
)

func (l *lab) verify(p *plan.Run, o VerifyOptions) Verification {
	l.t.Helper()
	run, err := l.db.Run(context.Background(), p.RID)
	if err != nil {
		l.t.Fatal(err)
	}
	return l.verifyRun(run, p, o)
}

func (l *lab) verifyRun(run store.Run, p *plan.Run, o VerifyOptions) Verification {
	l.t.Helper()
	r := Runner{DB: l.db, Backend: l.be, Watch: &quiet{}, Build: "test"}
	v, err := r.Verify(context.Background(), run, p, o)
	if err != nil {
		l.t.Fatal(err)
	}
	return v
}

// sql changes the database behind the store's back.
func (l *lab) sql(text string, args ...any) {
	l.t.Helper()
	if n := l.change("off", text, args...); n != 1 {
		l.t.Fatalf("%s: changed %d rows, want 1", text, n)
	}
}

// change executes a statement with foreign keys on or off, and returns how many rows it changed itself.
func (l *lab) change(foreignKeys, text string, args ...any) int64 {
	l.t.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(l.db.Dir(), "exp.db")+"?_foreign_keys="+foreignKeys)
	if err != nil {
		l.t.Fatal(err)
	}
	defer db.Close()
	res, err := db.Exec(text, args...)
	if err != nil {
		l.t.Fatal(err)
	}
	n, err := res.RowsAffected()
	if err != nil {
		l.t.Fatal(err)
	}
	return n
}

// flip changes one bit in the middle of a file, and again gives the file back.
func flip(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := errors.Join(os.Chmod(path, 0o644), os.WriteFile(path, b, 0o644)); err != nil {
		t.Fatal(err)
	}
}

// An intact run passes at every level, and the record says so.
func TestVerifyIntact(t *testing.T) {
	l := newLab(t)
	p := l.plan(0)
	res, _ := l.execute(p)
	before := l.outputs(res.Run.ID)
	for _, tt := range []struct {
		o        VerifyOptions
		from, to int64
		stages   int
		verdicts int
		sampled  [4]int // evaluations, and those left out; training steps, and those left out
	}{
		{VerifyOptions{Level: LevelBlobs}, 0, 0, 0, 0, [4]int{}},
		{VerifyOptions{Level: LevelScore}, 0, 0, 2, 2 * 16 * 4, [4]int{}},
		{VerifyOptions{Level: LevelSample}, 0, 0, 2, 2*16*4 + 2*8, [4]int{2, 0, 2, 0}}, // steps 1 and 3
		{VerifyOptions{Level: LevelSample, Completions: 3}, 0, 0, 2, 2*16*4 + 2*3, [4]int{2, 0, 2, 0}},
		{VerifyOptions{Level: LevelSample, SampleLimit: 1}, 0, 0, 2, 2*16*4 + 8,
			[4]int{1, 1, 1, 1}}, // one evaluation exceeds it, one step as well
		{VerifyOptions{Level: LevelPrefix, Steps: 3}, 1, 3, 2, 2 * 16 * 4, [4]int{2, 0, 0, 0}},
		{VerifyOptions{Level: LevelPrefix, From: 3, Steps: 1}, 3, 3, 2, 2*16*4 + 8,
			[4]int{2, 0, 1, 0}}, // from the checkpoint of step 2
		{VerifyOptions{Level: LevelPrefix}, 1, 4, 2, 2 * 16 * 4, [4]int{2, 0, 0, 0}},
		{VerifyOptions{Level: LevelPrefix, Limit: 1}, 1, 1, 2, 2*16*4 + 8, [4]int{2, 0, 1, 0}}, // one step exceeds it
		{VerifyOptions{Level: LevelFull}, 1, 4, 9, 2 * 16 * 4, [4]int{}},
	} {
		v := l.verify(p, tt.o)
		if !v.OK || len(v.Findings) > 0 || v.FromStep != tt.from || v.ToStep != tt.to || len(v.Stages) != tt.stages || v.Verdicts != tt.verdicts || v.Chain != 4 || v.Inexact != 0 || v.Blobs < 20 {
			t.Errorf("%+v: %+v", tt.o, v)
		}
		if of := [4]int{v.Evaluated, v.Unsampled, v.SampledSteps, v.UnsampledSteps}; of != tt.sampled ||
			len(v.Sampled) != (of[0]+of[2])*cmp.Or(tt.o.Completions, DefaultCompletions) {
			t.Errorf("%+v: %d completions of %v sampled again", tt.o, len(v.Sampled), of)
		}
		if cut := v.CutAt == 4; cut != (tt.o.Limit > 0) {
			t.Errorf("%+v: cut at %d of 4 steps", tt.o, v.CutAt)
		}
	}
	few := VerifyOptions{Level: LevelSample, Completions: 3} // of 64: the same three times is one chance in 10⁹
	sampled := func() []string { return slices.Sorted(slices.Values(l.verify(p, few).Sampled)) }
	first, second, third := sampled(), sampled(), sampled()
	if slices.Equal(first, second) && slices.Equal(second, third) {
		t.Errorf("three times the same completions: %q", first)
	}
	list, err := l.db.Verifications(context.Background(), res.Run.ID)
	if err != nil || len(list) != 13 || !list[9].OK || list[9].Level != "full" || list[9].ToStep != 4 {
		t.Errorf("recorded: %+v, %v", list, err)
	}
	run, err := l.db.RunByID(context.Background(), res.Run.ID)
	if err != nil || run.Status != store.Done || run.Chain != res.Run.Chain || run.WallS != res.Run.WallS {
		t.Errorf("verifying changed the run: %+v, %v", run, err)
	}
	sameOutputs(t, l.outputs(res.Run.ID), before)
	if _, err := os.Stat(filepath.Join(l.db.RunDir(p.RID), scratchDir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("left behind: %v", err)
	}
	r := Runner{DB: l.db, Backend: l.be, Watch: &quiet{}}
	var none *NoCheckpointError
	if _, err := r.Verify(context.Background(), run, p, VerifyOptions{Level: LevelPrefix, From: 1}); !errors.As(err, &none) {
		t.Errorf("from a step before the first checkpoint: %v", err)
	}
}

// samplesAgain checks that rollouts of two training steps, sampled and graded again, are as recorded.
func (l *lab) samplesAgain(p *plan.Run) {
	l.t.Helper()
	if v := l.verify(p, VerifyOptions{Level: LevelSample}); !v.OK || v.SampledSteps != 2 {
		l.t.Errorf("%d steps sampled again: %+v", v.SampledSteps, v.Findings)
	}
}

// Rollouts of every step whose policy is stored can be sampled again, whatever sampled them.
func TestVerifyRollouts(t *testing.T) {
	f32, bf16 := startedLab(t), labOf(t, kernels.BF16)
	dir, data := publishedFolder(t), verlFile(t)
	ofReward := func(set string) bool { return strings.HasPrefix(set, "reward=") }
	for name, tt := range map[string]struct {
		l    *lab
		sets []string
	}{
		"plain":            {f32, nil},
		"bf16":             {bf16, []string{"model.dtype=bf16"}},
		"ahead":            {f32, []string{"rollout.staleness=1"}},
		"filters":          {f32, []string{"algo={kind: dapo}", "algo.filter_groups.max_batches=3"}},
		"with a baseline":  {f32, []string{"algo={kind: remax}"}},
		"confidence":       {f32, []string{"algo={kind: grpo}", "reward={kind: confidence}"}},
		"likelihood":       {f32, append(likely, "reward.likelihood.baseline=true", "rollout.staleness=1")},
		"without places":   {f32, append(slices.DeleteFunc(loraSets(dir, data, "grpo"), ofReward), "reward={kind: likelihood, likelihood: {learn: 1}}")},
		"demonstrations":   {f32, []string{"algo={kind: luffy}"}},
		"adapters":         {f32, loraSets(dir, data, "grpo")},
		"adapters, log Z":  {f32, loraSets(dir, data, "flowrl")},
		"adapters in bf16": {bf16, append(loraSets(dir, data, "grpo"), "model.dtype=bf16")},
	} {
		t.Run(name, func(t *testing.T) {
			l := *tt.l
			l.t = t
			p := l.plan(0, append(tt.sets, "train.steps=4", "checkpoint={every_steps: 1, keep: 9}", "eval.final.suites=[]")...)
			l.execute(p)
			opts := VerifyOptions{Level: LevelSample, Completions: 1000}
			v := l.verify(p, opts)
			if last := fmt.Sprintf(": sample %d of", p.Config.Run.Rollout.N-1); name == "demonstrations" && slices.ContainsFunc(v.Sampled,
				func(where string) bool { return strings.Contains(where, last) }) {
				t.Errorf("demonstrations are sampled again: %q", v.Sampled)
			}
			if !v.OK || v.SampledSteps != 4 || v.UnsampledSteps != 0 || len(v.Sampled) < 4*8 {
				t.Errorf("%d completions of %d steps: %+v", len(v.Sampled), v.SampledSteps, v.Findings)
			}
			if name == "demonstrations" { // where the record keeps no other of the first step
				l.change("off", `DELETE FROM samples WHERE step = 1 AND finish <> 'shown'`)
				if v := l.verify(p, opts); v.SampledSteps != 3 {
					t.Errorf("%d steps without the first one's completions", v.SampledSteps)
				}
			}
		})
	}
}

// A record with a share of the rollouts is not one with changed rollouts, whatever share the plan names.
func TestVerifySomeRollouts(t *testing.T) {
	l := startedLab(t)
	l.execute(l.plan(0, "store.samples.train=sampled(0.5)"))
	l.samplesAgain(l.plan(0, "store.samples.train=all"))
}

// Rollouts that the policy did not sample, and rows with texts of others, are found.
func TestVerifyForgedRollouts(t *testing.T) {
	l := startedLab(t)
	p := l.plan(0, "eval.final.suites=[]")
	res, _ := l.execute(p)
	all := VerifyOptions{Level: LevelSample, Completions: 1000}
	good := l.be
	l.be = forging{good}
	v := l.verify(p, all)
	if v.OK || !v.Diverged() || !strings.HasPrefix(v.Findings[0].Where, "step ") ||
		!strings.Contains(v.Findings[0].What, "logprobs") {
		t.Errorf("completions that the model did not write: %+v", v)
	}
	l.be = good
	rows, err := l.db.Samples(t.Context(), res.Run.ID, store.SampleQuery{Scope: "train", Step: 3})
	if err != nil || len(rows) < 2 {
		t.Fatal(len(rows), err)
	}
	a, b := rows[0], rows[1]
	text := func(row, of store.Sample) {
		l.sql(`UPDATE samples SET off = ?, len = ?, out_tokens = ?, logprob_sum = ? WHERE id = ?`, of.Ref.Off, of.Ref.Len,
			of.OutTokens, of.LogProbSum, row.ID)
	}
	text(a, b)
	text(b, a)
	v = l.verify(p, VerifyOptions{Level: LevelSample, Completions: 1})
	if v.OK || v.Findings[0].Where != "step 3: completions" || !strings.Contains(v.Findings[0].What, "but the chain") {
		t.Errorf("exchanged completions: %+v", v.Findings)
	}
	if v = l.verify(p, all); !v.Diverged() {
		t.Errorf("exchanged completions, sampled again: %+v", v.Findings)
	}
	text(a, a)
	text(b, b)
	l.sql(`UPDATE samples SET out_tokens = out_tokens + 1 WHERE id = ?`, a.ID)
	if v = l.verify(p, all); v.OK || v.Diverged() || !strings.Contains(v.Findings[0].What, "the row has") {
		t.Errorf("a row of another length: %+v", v.Findings)
	}
	l.sql(`UPDATE samples SET out_tokens = out_tokens - 1, finish = 'shown' WHERE id = ?`, a.ID)
	if v = l.verify(p, all); v.OK || !strings.Contains(v.Findings[0].What, "finish") {
		t.Errorf("another finish: %+v", v.Findings)
	}
	l.sql(`UPDATE samples SET finish = ?, reward = reward + 1 WHERE id = ?`, a.Finish, a.ID)
	if v = l.verify(p, all); v.OK || v.Diverged() || !strings.Contains(v.Findings[0].What, "reward differs from the grader's") {
		t.Errorf("another reward: %+v", v.Findings)
	}
	l.sql(`UPDATE samples SET reward = ? WHERE id = ?`, a.Reward, a.ID)
	l.sql(`UPDATE verdicts SET answer = 'other' WHERE sample = ?`, a.ID)
	if v = l.verify(p, all); v.OK || v.Diverged() || !strings.Contains(v.Findings[0].What, "answer differs from the grader's") {
		t.Errorf("another answer: %+v", v.Findings)
	}
	l.sql(`UPDATE verdicts SET answer = ? WHERE sample = ?`, a.Verdict.Answer, a.ID)
	if v = l.verify(p, all); !v.OK {
		t.Errorf("the record is as before: %+v", v.Findings)
	}
}

// LevelFull executes all recorded steps of a run that its condition stopped, however long they take.
func TestVerifyUnfinished(t *testing.T) {
	l := newLab(t)
	p := l.plan(0, "train.steps=4", "run.stop_if=[training/global_step == 3]")
	var held *StoppedError
	if _, err := l.try(context.Background(), p, &quiet{}); !errors.As(err, &held) {
		t.Fatalf("not stopped: %v", err)
	}
	v := l.verify(p, VerifyOptions{Level: LevelFull, Limit: 1}) // one step exceeds it
	if !v.OK || v.FromStep != 1 || v.ToStep != 3 || v.CutAt != 0 {
		t.Errorf("proved steps %d to %d, cut at %d, ok %v: want all 3", v.FromStep, v.ToStep, v.CutAt, v.OK)
	}
}

// One bit that is changed is found at its level, and named; below that level nothing
// is.
func TestVerifyFindsOneBit(t *testing.T) {
	l := newLab(t)
	p := l.plan(0)
	res, _ := l.execute(p)
	ctx := context.Background()
	output := func(kind, role string) string {
		d, ok := l.outputs(res.Run.ID)[kind+"/"+role]
		if !ok {
			t.Fatalf("no output %s of %s", role, kind)
		}
		return l.db.Blobs.Path(d)
	}
	samples, err := l.db.Samples(ctx, res.Run.ID, store.SampleQuery{Scope: "eval", Label: "test"})
	if err != nil {
		t.Fatal(err)
	}
	trained, err := l.db.Samples(ctx, res.Run.ID, store.SampleQuery{Scope: "train", Step: 2})
	if err != nil {
		t.Fatal(err)
	}
	src, err := l.db.Source(ctx, res.Run.Code)
	if err != nil {
		t.Fatal(err)
	}
	dir := l.db.RunDir(p.RID)
	id := res.Run.ID
	file := func(path string) func() { return func() { flip(t, path) } }
	row := func(do, undo string, args ...any) [2]func() {
		return [2]func(){func() { l.sql(do, args...) }, func() { l.sql(undo, args...) }}
	}
	both := func(f func()) [2]func() { return [2]func(){f, f} }
	start := func(score float64) { // and the summary, which blobs would find
		l.sql(`UPDATE metrics SET value = ?2 WHERE run = ?1 AND step = 0 AND series = (SELECT id FROM series WHERE run = ?1 AND name = 'val/pass@1')`, id, score)
		l.sql(`UPDATE series SET max = ?2, argmin = iif(?2 > 0, 2, 0) WHERE run = ?1 AND name = 'val/pass@1'`, id, score)
	}
	for _, tt := range []struct {
		name   string
		change [2]func() // do and undo
		level  Level     // that finds it
		where  string
		what   string
	}{
		{"weights", both(file(output("train[]", "weights"))), LevelBlobs, "stage train: weights", "digest"},
		{"data", both(file(output("prepare[]", "problems/train"))), LevelBlobs, "stage prepare: problems/train", "digest"},
		{"completions", both(file(output("eval.gen[test]", "completions"))), LevelBlobs, "stage eval.gen test: completions", "digest"},
		{"text of a sample", both(file(l.db.Blobs.Path(samples[3].Ref.Pack))), LevelBlobs, "samples of eval.gen test", "digest"},
		{"sources", both(file(l.db.Blobs.Path(src.Archive))), LevelBlobs, "sources of", "digest"},
		{"digest of a source", row(`UPDATE sources SET files = json_set(files, '$[0].path', files ->> '$[0].path' || '~') WHERE code = ?`,
			`UPDATE sources SET files = json_set(files, '$[0].path', rtrim(files ->> '$[0].path', '~')) WHERE code = ?`, res.Run.Code), LevelBlobs, "sources of train", "~"},
		{"checkpoint", both(file(filepath.Join(stage.CheckpointsDir(dir), "train-"+l.stageOf(id, "train").SID.Short(), "step-00000002", "actor.safetensors"))), LevelBlobs, "checkpoint of step 2", "sha256"},
		{"merged model", both(file(filepath.Join(dir, stage.MergedDir, "model.safetensors"))), LevelBlobs, "model/model.safetensors", "digest"},
		{"a metric", row(`UPDATE metrics SET value = value * (1 + 2.3e-16) WHERE run = ?1 AND step = 3 AND series = (SELECT id FROM series WHERE run = ?1 AND name = 'actor/entropy')`,
			`UPDATE metrics SET value = value / (1 + 2.3e-16) WHERE run = ?1 AND step = 3 AND series = (SELECT id FROM series WHERE run = ?1 AND name = 'actor/entropy')`, id), LevelBlobs, "step 3", "does not follow"},
		{"a verdict", row(`UPDATE verdicts SET reward = 0.25 WHERE sample = ?`, `UPDATE verdicts SET reward = 0 WHERE sample = ?`, samples[5].ID), LevelScore,
			fmt.Sprintf("test: sample %d of %s", samples[5].K, samples[5].Item), "reward"},
		{"a sample", row(`UPDATE samples SET out_tokens = out_tokens + 1 WHERE id = ?`, `UPDATE samples SET out_tokens = out_tokens - 1 WHERE id = ?`, samples[5].ID), LevelScore,
			fmt.Sprintf("test: sample %d of %s", samples[5].K, samples[5].Item), "tokens"},
		{"a score", row(`UPDATE evals SET value = value + 1 WHERE metric = 'length_mean' AND stage_score = ?`, `UPDATE evals SET value = value - 1 WHERE metric = 'length_mean' AND stage_score = ?`, l.lastStageOf(id, "eval.score")),
			LevelScore, "test: length_mean", "the scores give"},
		{"a sample of training", row(`UPDATE samples SET reward = reward + 1 WHERE id = ?`, `UPDATE samples SET reward = reward - 1 WHERE id = ?`, trained[0].ID), LevelPrefix,
			fmt.Sprintf("step 2: sample %d of %s", trained[0].K, trained[0].Item), "reward"},
		{"a score of the start", [2]func(){func() { start(1) }, func() { start(0) }}, LevelPrefix, "step 0", "val/pass@1 is"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l.t = t
			tt.change[0]()
			for _, level := range Levels() {
				v := l.verify(p, VerifyOptions{Level: level})
				if below := !atLeast(level, tt.level); below != v.OK {
					t.Errorf("%s: ok %v, findings %+v", level, v.OK, v.Findings)
				}
				if v.OK {
					continue
				}
				f := v.Findings[len(v.Findings)-1] // of a file with a second name in the store, the name that was meant
				if tt.name == "a metric" {
					f = v.Findings[0]
				}
				if !strings.HasPrefix(f.Where, tt.where) || !strings.Contains(f.What, tt.what) || f.Diverged {
					t.Errorf("%s: finding %+v, want %s … %s", level, f, tt.where, tt.what)
				}
				if last := v.Findings[len(v.Findings)-1]; tt.name == "a metric" && level == LevelPrefix && !strings.Contains(last.What, "metrics.actor/entropy") {
					t.Errorf("the metric is not named: %+v", v.Findings)
				}
				if level == tt.level && tt.name != "a metric" || level == LevelPrefix {
					break // higher levels find the same and take longer
				}
			}
			tt.change[1]()
			if v := l.verify(p, VerifyOptions{Level: LevelBlobs}); !v.OK {
				t.Fatalf("after it was mended: %+v", v.Findings)
			}
		})
	}
}

func atLeast(a, b Level) bool {
	for _, l := range Levels() {
		switch l {
		case b:
			return true
		case a:
			return false
		}
	}
	return false
}

// lastStageOf is the row of the newest stage of a kind.
func (l *lab) lastStageOf(run int64, kind string) (id int64) {
	stages, err := l.db.Stages(context.Background(), run)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, s := range stages {
		if s.Kind == kind {
			id = s.ID
		}
	}
	return id
}

// Executing gives other bits: a divergence, which is recorded and named by its first
// step and field.
func TestVerifyDivergence(t *testing.T) {
	l := newLab(t)
	p := l.plan(0)
	res, _ := l.execute(p)
	before := l.outputs(res.Run.ID)
	good := l.be
	for _, tt := range []struct {
		level Level
		where string
	}{{LevelPrefix, "step 1"}, {LevelFull, "stage sft"}} {
		l.be = crooked{good}
		v := l.verify(p, VerifyOptions{Level: tt.level})
		if v.OK || !v.Diverged() || v.Findings[0].Where != tt.where {
			t.Fatalf("%s: %+v, want a divergence in %s", tt.level, v, tt.where)
		}
		if tt.level == LevelPrefix && !strings.Contains(v.Findings[0].What, "params") {
			t.Errorf("the field is not named: %s", v.Findings[0].What)
		}
	}
	l.be = forging{good}
	v := l.verify(p, VerifyOptions{Level: LevelSample, Completions: 16 * 4})
	if v.OK || !v.Diverged() || !strings.HasPrefix(v.Findings[0].Where, "test@start: sample ") ||
		!strings.Contains(v.Findings[0].What, "logprobs") {
		t.Errorf("completions that the model did not write: %+v", v)
	}
	if v := l.verify(p, VerifyOptions{Level: LevelScore}); !v.OK {
		t.Errorf("grading them again: %+v", v)
	}
	list, err := l.db.Divergences(context.Background(), res.Run.ID)
	if err != nil || len(list) < 2 || list[0].What.Step != 1 || list[0].What.Field != "params" {
		t.Errorf("recorded divergences %+v, %v", list, err)
	}
	l.be = good
	sameOutputs(t, l.outputs(res.Run.ID), before)
	if v := l.verify(p, VerifyOptions{Level: LevelFull}); !v.OK {
		t.Errorf("the record was changed: %+v", v.Findings)
	}
}

// A file of the merged folder that is gone is found, and written again by the next execution. The whole folder may
// be gone.
func TestVerifyMergedFolder(t *testing.T) {
	l := newLab(t)
	res, _ := l.execute(l.plan(0))
	dir := filepath.Join(l.db.RunDir(res.Run.RID), stage.MergedDir)
	for _, name := range []string{"config.json", "model.safetensors"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		v := l.verify(l.plan(0), VerifyOptions{Level: LevelBlobs})
		if v.OK || len(v.Findings) != 1 || !strings.Contains(v.Findings[0].What, "it is missing") {
			t.Errorf("without %s: %+v", name, v.Findings)
		}
		l.execute(l.plan(0))
		if v := l.verify(l.plan(0), VerifyOptions{Level: LevelBlobs}); !v.OK {
			t.Errorf("%s again: %+v", name, v.Findings)
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if v := l.verify(l.plan(0), VerifyOptions{Level: LevelBlobs}); !v.OK {
		t.Errorf("without the folder: %+v", v.Findings)
	}
}

// What lists and comparisons read of a configuration is proved at every level, without a plan too.
func TestVerifyConfiguration(t *testing.T) {
	l := newLab(t)
	p := l.plan(0, "data.train.size=64", "sft={steps: 0}", "eval.final.suites=[]")
	res, _ := l.execute(p)
	undo, err := l.db.Config(t.Context(), res.Run.Config)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ change, what string }{
		{`json_set(json, '$.train.optim.lr', 0.5)`, "train.optim.lr is 0.5, but 0.001 in its source"},
		{`json_set(json, '$.compare.min_seeds', 99)`, "compare.min_seeds is 99"},
		{`json_set(json, '$.train.optim.of', 1)`, ""}, // of no key that this program has
		{`json_remove(json, '$.train.optim.lr')`, "its digest is"},
	} {
		l.sql(`UPDATE configs SET json = ` + tt.change)
		for _, level := range Levels() {
			plan := p
			if level == LevelBlobs {
				plan = nil
			}
			v := l.verifyRun(res.Run, plan, VerifyOptions{Level: level})
			found := len(v.Findings) == 1 && v.Findings[0].Where == "configuration" && !v.Findings[0].Diverged &&
				strings.Contains(v.Findings[0].What, tt.what) && strings.Contains(v.Findings[0].What, "was changed after it was recorded")
			if tt.what == "" {
				found = v.OK
			}
			if !found {
				t.Errorf("%s, %s: %+v", tt.change, level, v.Findings)
			}
		}
		l.sql(`UPDATE configs SET json = ?`, undo.JSON)
	}
	values := map[string]any{"train": map[string]any{"optim": map[string]any{"lr": 0.5}}}
	d, err := ident.Hash("exp/config/1", values)
	if err != nil {
		t.Fatal(err)
	}
	forged, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	l.sql(`UPDATE configs SET json = ?, digest = ?`, string(forged), d)
	l.sql(`UPDATE runs SET config = ?`, d)
	run, err := l.db.Run(t.Context(), p.RID)
	if err != nil {
		t.Fatal(err)
	}
	if v := l.verifyRun(run, p, VerifyOptions{Level: LevelScore}); v.OK || !strings.Contains(v.Findings[0].What, "train.optim.lr is 0.5, but 0.001") {
		t.Errorf("another configuration with its own digest: %+v", v.Findings)
	}
}

// No recipe's configuration looks changed: the numbers come back from JSON as what they were.
func TestConfigurationsUnchanged(t *testing.T) {
	files, err := filepath.Glob("../../configs/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		r, err := config.Load(config.Input{File: file})
		if err != nil {
			t.Logf("%s: %v", file, err)
			continue
		}
		c, err := storedConfig(r)
		if err != nil {
			t.Fatal(err)
		}
		if changed := ConfigChanged(c); changed != "" {
			t.Errorf("%s: %s", file, changed)
		}
		if c.Source = ""; ConfigChanged(c) != "" {
			t.Errorf("%s: its digest does not follow from its JSON", file)
		}
	}
}

// What lists print in place of the rows that it sums up is proved from the record alone.
func TestVerifySummaries(t *testing.T) {
	l := newLab(t)
	p := l.plan(0)
	res, _ := l.execute(p)
	series := func(set string) string {
		return `UPDATE series SET ` + set + ` WHERE name = 'actor/entropy'`
	}
	for _, tt := range []struct{ change, undo, where, what string }{
		{series("last = last + 1"), series("last = last - 1"), "series actor/entropy", "last is"},
		{series("min = min - 1"), series("min = min + 1"), "series actor/entropy", "min is"},
		{series("max = NULL"), series("max = (SELECT max(value) FROM metrics m WHERE m.series = series.id)"), "series actor/entropy", "max is NaN, but the rows in metrics give"},
		{series("n = 5"), series("n = 4"), "series actor/entropy", "n is 5, but the rows in metrics give 4"},
		{series("argmin = 10 - argmin"), series("argmin = 10 - argmin"), "series actor/entropy", "argmin is"},
		{`UPDATE runs SET h1 = 0.9`, `UPDATE runs SET h1 = 0`, "runs pass@1", "h1 is 0.9, but the rows in evals give 0"},
		{`UPDATE runs SET headline = 'majority,pass@4,distinct_correct', h1 = 2`, `UPDATE runs SET headline = 'pass@1,pass@4,distinct_correct', h1 = 0`, "runs majority", "h1 is 2"},
		{`UPDATE runs SET tokens = tokens + 1`, `UPDATE runs SET tokens = tokens - 1`, "runs", "tokens is"},
		{`UPDATE runs SET steps_total = 400`, `UPDATE runs SET steps_total = 4`, "runs", "steps_total is 400, but the configuration gives 4"},
	} {
		l.sql(tt.change)
		for _, level := range []Level{LevelBlobs, LevelScore} {
			v := l.verify(p, VerifyOptions{Level: level})
			if len(v.Findings) != 1 || v.Findings[0].Where != tt.where || !strings.HasPrefix(v.Findings[0].What, tt.what) || v.Findings[0].Diverged {
				t.Errorf("%s, %s: %+v", tt.change, level, v.Findings)
			}
		}
		l.sql(tt.undo)
	}
	// An evaluation that another one replaced gave the headline.
	l.sql(`UPDATE evals SET value = 1 WHERE metric = 'pass@1' AND stage_score = ?`, l.lastStageOf(res.Run.ID, "eval.score"))
	if v := l.verify(p, VerifyOptions{Level: LevelBlobs}); v.OK {
		t.Error("no evaluation has the headline")
	}
	l.options.Rescore = true
	l.execute(p)
	if v := l.verify(p, VerifyOptions{Level: LevelBlobs}); !v.OK {
		t.Errorf("scored again: %+v", v.Findings)
	}
}

// remove deletes rows behind the store's back, and those that refer to them.
func (l *lab) remove(text string, args ...any) {
	l.t.Helper()
	if l.change("on", text, args...) == 0 {
		l.t.Fatalf("%s: removed nothing", text)
	}
}

// found returns a verification's findings as text.
func found(v Verification) (list []string) {
	for _, f := range v.Findings {
		list = append(list, f.Where+": "+f.What)
	}
	return list
}

// Rows that executing again gives and the record lacks are damage.
func TestVerifyMissingRows(t *testing.T) {
	l := newLab(t)
	p := l.plan(0)
	l.execute(p)
	l.remove(`DELETE FROM samples WHERE scope = 'train' AND (step = 2 OR step = 3 AND k = 0)`)
	l.remove(`DELETE FROM samples WHERE scope = 'eval' AND k = 1 AND stage = (SELECT max(stage) FROM samples WHERE scope = 'eval')`)
	l.remove(`DELETE FROM evals WHERE metric = 'pass@2' AND stage_score = (SELECT max(stage_score) FROM evals)`)
	l.remove(`DELETE FROM evals WHERE stage_score = (SELECT min(stage_score) FROM evals)`)
	scores := []string{"test@start: the scores give pass@1, pass@2, pass@4, pass_gap@4 and 21 more, missing in the table evals",
		"test: 16 of its 64 completions are missing in the table samples", "test: the scores give pass@2, missing in the table evals"}
	steps := []string{"step 2: 32 of its 32 completions are missing in the table samples",
		"step 3: 8 of its 32 completions are missing in the table samples"}
	for level, want := range map[Level][]string{LevelScore: scores, LevelPrefix: append(steps, scores...), LevelFull: append(steps, scores...)} {
		if v := l.verify(p, VerifyOptions{Level: level}); !slices.Equal(found(v), want) || v.Diverged() {
			t.Errorf("%s: found %q, want %q", level, found(v), want)
		}
	}
	l.remove(`DELETE FROM samples WHERE scope = 'train'`)
	if v := l.verify(p, VerifyOptions{Level: LevelPrefix}); len(v.Findings) != 4+len(scores) {
		t.Errorf("without any completion of training: %q", found(v))
	}
}

// A record may lack rows for a reason.
func TestVerifyRowsNeverKept(t *testing.T) {
	full := VerifyOptions{Level: LevelFull}
	intact := func(t *testing.T, l *lab, p *plan.Run) {
		t.Helper()
		if v := l.verify(p, full); !v.OK {
			t.Errorf("found %q", found(v))
		}
	}
	t.Run("share", func(t *testing.T) {
		l := newLab(t)
		p := l.plan(0, "store.samples={train: sampled(0.5), eval: none}")
		l.execute(p)
		intact(t, l, p)
	})
	t.Run("killed", func(t *testing.T) {
		l := newLab(t)
		p := l.plan(0)
		l.execute(p)
		l.remove(`DELETE FROM samples WHERE scope = 'train' AND step > 2`)
		l.remove(`UPDATE stages SET status = 'interrupted' WHERE kind = 'train'`)
		intact(t, l, p)
		l.remove(`DELETE FROM samples WHERE scope = 'train' AND step = 2`)
		if v := l.verify(p, VerifyOptions{Level: LevelPrefix}); len(v.Findings) != 1 || !strings.HasPrefix(found(v)[0], "step 2: 32 of") {
			t.Errorf("before the last checkpoint: found %q", found(v))
		}
	})
	t.Run("share changed", func(t *testing.T) {
		l := newLab(t)
		p := l.plan(0)
		l.be = &breaking{Backend: l.be, at: 30 + 2*3}
		if _, err := l.try(t.Context(), p, &quiet{}); err == nil {
			t.Fatal("it did not die")
		}
		l.be = l.be.(*breaking).Backend
		l.execute(l.plan(0, "store.samples={train: none, eval: none}"))
		intact(t, l, p)
	})
	t.Run("extended", func(t *testing.T) {
		l := newLab(t)
		parent, _ := l.execute(l.plan(0))
		l.options.Resume, l.options.Parent = true, &parent.Run
		p := l.plan(0, "train.steps=7", "name=longer")
		child, _ := l.execute(p)
		intact(t, l, p)
		l.remove(`DELETE FROM samples WHERE scope = 'train' AND step = 6 AND stage IN (SELECT home FROM stages WHERE run = ?)`, child.Run.ID)
		if v := l.verify(p, full); len(v.Findings) != 1 || !strings.HasPrefix(found(v)[0], "step 6: 32 of") {
			t.Errorf("its own steps: found %q", found(v))
		}
	})
}
