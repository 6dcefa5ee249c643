package run

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"exp/experiments/ident"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/plan"
	"exp/harness/stage"
	"exp/train/rl"
	"exp/train/rollout"
)

// evaluations verifies the evaluations added to the run after it was planned. It lists those that this program
// cannot plan again, for example because other sources made them.
func (v *verifier) evaluations(ctx context.Context) error {
	dir := v.scratch
	for k, p := range v.o.Evaluations {
		v.p, v.scratch = p, filepath.Join(dir, fmt.Sprint("evaluation", k))
		if err := v.recorded(ctx); err != nil {
			return err
		}
		if err := v.repeat(ctx); err != nil {
			return err
		}
	}
	v.scratch = dir
	if v.v.Diverged() {
		return nil // repeat stopped there
	}
	return v.unchecked(ctx)
}

// unchecked lists the evaluations with scores in the record that were not scored again.
func (v *verifier) unchecked(ctx context.Context) error {
	stages, err := v.DB.Stages(ctx, v.run.ID)
	if err != nil {
		return err
	}
	ids, labels := map[int64]ident.Digest{}, map[int64]string{}
	for _, s := range stages {
		ids[s.ID], labels[s.ID] = s.SID, s.Label
	}
	scores, err := v.DB.Evals(ctx, v.run.ID)
	if err != nil {
		return err
	}
	listed := map[ident.Digest]bool{}
	for _, e := range scores {
		label, ok := labels[e.StageScore]
		if !ok || v.repeated[ids[e.StageScore]] || listed[ids[e.StageScore]] {
			continue
		}
		listed[ids[e.StageScore]] = true
		v.v.Unchecked = append(v.v.Unchecked, fmt.Sprintf("%s, %d samples each", label, e.N))
	}
	return nil
}

// again executes a stage again from the recorded inputs and compares.
func (v *verifier) again(ctx context.Context, i int) error {
	s := v.p.Stages[i]
	hashed, in, ok := v.p.Inputs(i, v.output)
	if !ok {
		return nil // its inputs were never made
	}
	sid, err := v.p.SID(i, hashed)
	if err != nil {
		return err
	}
	info := v.info(i)
	v.Watch.StageStart(info)
	start := time.Now()
	e := v.againEnv(i, sid)
	e.Hooks.Stop = func() bool { return ctx.Err() != nil }
	if err := os.MkdirAll(e.Dir, 0o777); err != nil {
		return err
	}
	if s.Kind == config.Train {
		v.replaySteps(ctx, e)
	}
	workCtx := ctx
	if s.Kind.Facts().Shared() {
		workCtx = context.WithoutCancel(ctx) // Stop ends the work
	}
	out, err := v.redo(workCtx, e, s, in)
	end := StageEnd{Wall: time.Since(start)}
	switch {
	case errors.Is(err, errEnough), errors.Is(err, stage.ErrStopped) && ctx.Err() == nil:
		v.Watch.StageDone(info, end)
		if v.o.From > 0 && v.v.FromStep == 0 {
			return &NoCheckpointError{RID: v.run.RID, Step: v.o.From}
		}
		return nil
	case err != nil:
		end.Failed = true
		v.Watch.StageDone(info, end)
		return &StageError{Stage: s.Name(), Err: err}
	}
	end.Facts = factsOf(out)
	v.Watch.StageDone(info, end)
	return v.compareStage(ctx, i, out)
}

// againEnv is the environment of a stage that is executed only to be compared.
func (v *verifier) againEnv(i int, sid ident.Digest) *stage.Env {
	e := v.env(i, sid)
	e.Dir, e.Again = filepath.Join(v.scratch, fmt.Sprint(i)), true
	e.Start.Fresh = true
	e.Hooks.Warn = v.Watch.Warn
	e.Hooks.Progress = func(done, total int, measured []rl.Metric) {
		v.Watch.StageProgress(done, total, onProgress(measured))
	}
	return e
}

// compareStage compares a stage's outputs with the record.
func (v *verifier) compareStage(ctx context.Context, i int, out *stage.Outcome) error {
	s, row := v.p.Stages[i], v.done[i]
	if row.ID == 0 {
		return nil // it was never finished
	}
	v.v.Stages = append(v.v.Stages, s.Name())
	want, got := map[string]ident.Digest{}, map[string]ident.Digest{}
	for _, o := range row.Outputs {
		want[o.Role] = o.Digest
	}
	for _, o := range out.Outputs {
		got[o.Role] = o.Digest
		if _, ok := want[o.Role]; !ok {
			want[o.Role] = ident.Digest{}
		}
	}
	for _, role := range sortedKeys(want) {
		if want[role] == got[role] {
			continue
		}
		d := &store.DivergenceError{SID: row.SID, Kind: row.Kind, Field: "output " + role, Want: want[role],
			Got: got[role]}
		if err := v.diverged("stage "+s.Name(), d); err != nil {
			return err
		}
	}
	if s.Kind == config.EvalScore && !v.v.Diverged() {
		return v.compareEvaluation(ctx, i, out.Evaluation)
	}
	return nil
}

// redo is stage.Run that returns a panic as an error.
func (v *verifier) redo(ctx context.Context, e *stage.Env, s plan.Stage,
	in map[string]ident.Digest) (out *stage.Outcome, err error) {
	defer recovered(&err)
	return stage.Run(ctx, e, s.Kind, s.Label, in)
}

// replaySteps makes the train stage compare each step with the record and stop where
// the level says.
func (v *verifier) replaySteps(ctx context.Context, e *stage.Env) {
	last, resumed := v.run.Steps, false
	if v.o.Level == LevelPrefix {
		if v.o.From > 0 {
			// At least one recorded step must remain.
			e.Start = stage.Start{UpTo: int(min(int64(v.o.From), v.run.Steps-1)), Fresh: v.run.Steps < 2,
				Checkpoints: stage.CheckpointsDir(v.DB.RunDir(v.run.RID)), Accept: v.acceptCheckpoint}
		}
		steps := v.o.Steps
		if steps == 0 {
			steps = DefaultPrefix
		}
		e.Hooks.Resumed = func(s stage.Saved) {
			resumed = true
			last = min(last, int64(s.Step+steps))
			v.Watch.Note(fmt.Sprintf("from the checkpoint of step %d", s.Step))
		}
		if v.o.From == 0 {
			last = min(last, int64(steps))
		}
	}
	e.Hooks.Validated = v.compareScores
	start := time.Now()
	next, full := int64(1), v.o.Level == LevelFull && v.done[v.p.TrainStage()].ID != 0
	e.Hooks.Step = func(s stage.Step) error {
		next = s.Det.Step + 1
		if err := v.compareStep(s); err != nil {
			return err
		}
		if next > last && !full {
			return errEnough
		}
		if v.o.Level == LevelPrefix && v.o.Limit > 0 && time.Since(start) > v.o.Limit {
			v.v.CutAt = last
			return errEnough
		}
		return nil
	}
	e.Hooks.Stop = func() bool {
		return ctx.Err() != nil || !full && next > last || v.o.From > 0 && !resumed
	}
}

// compareScores compares the scores of the weights after a step with the record, if they are in it; step 0 are the
// weights that training started from.
func (v *verifier) compareScores(step int, measured map[string]float64) error {
	had, err := scoresOf(context.Background(), v.DB, v.run.ID, int64(step))
	if err != nil {
		return err
	}
	for _, name := range sortedKeys(had) {
		got, ok := measured[name]
		if same := ok && (got == had[name] || math.IsNaN(got) && math.IsNaN(had[name])); !same && (ok || step == 0) {
			v.found(false, fmt.Sprintf("step %d", step), "%s is %v, but %v is recorded", name, got, had[name])
		}
	}
	return nil
}

// compareStep compares a step and its completions with the record.
func (v *verifier) compareStep(s stage.Step) error {
	ctx := context.Background()
	if s.Det.Step > v.run.Steps {
		return nil // training came from another run, or the process died before recording it
	}
	if v.v.FromStep == 0 {
		v.v.FromStep = s.Det.Step
	}
	v.v.ToStep = s.Det.Step
	where := fmt.Sprintf("step %d", s.Det.Step)
	field, diverged, err := v.DB.CheckStep(ctx, v.run.ID, &store.Step{Det: s.Det, Chain: s.Chain})
	switch {
	case err != nil:
		return err
	case diverged != nil:
		if err := v.diverged(where, diverged); err != nil {
			return err
		}
		return errEnough
	case field != "":
		v.found(false, where, "%s was changed after it was recorded: the chain belongs to another value", field)
	}
	return v.compareRollouts(ctx, s)
}

// compareRollouts compares a step's completions with the record.
func (v *verifier) compareRollouts(ctx context.Context, s stage.Step) error {
	samples, err := v.DB.Samples(ctx, v.run.ID, store.SampleQuery{Scope: "train", Step: s.Det.Step})
	if err != nil {
		return err
	}
	where := fmt.Sprintf("step %d", s.Det.Step)
	made := map[sampleKey]store.Sample{}
	for i := range s.Trajectories {
		row := trainSample(0, s.Det.Step, &s.Trajectories[i])
		made[sampleKey{row.Step, row.Item, row.K}] = row
	}
	all := len(made)
	for _, had := range samples {
		key := sampleKey{had.Step, had.Item, had.K}
		got, ok := made[key]
		if what := differs(had, got); !ok || what != "" {
			v.found(false, fmt.Sprintf("%s: sample %d of %s", where, had.K, had.Item),
				"%s was changed after it was recorded", or(what, "it"))
		}
		delete(made, key)
	}
	if len(made) == 0 {
		return nil
	}
	from, to, err := v.keptSteps(ctx)
	if err == nil && from <= s.Det.Step && s.Det.Step <= to {
		v.found(false, where, "%d of its %d completions are missing in the table samples", len(made), all)
	}
	return err
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// sameBits compares numbers as the store keeps them: all NaNs are alike, and so are all
// zeros.
func sameBits(a, b float64) bool {
	return a == b || math.IsNaN(a) && math.IsNaN(b)
}

// differs returns the first field that differs between a recorded sample and the one made
// again; "" if none does.
func differs(had, got store.Sample) string {
	switch {
	case had.OutTokens != got.OutTokens:
		return "the number of tokens"
	case had.Finish != got.Finish:
		return "the finish"
	case !sameBits(had.LogProbSum, got.LogProbSum):
		return "the log-prob"
	case !sameBits(had.Reward, got.Reward):
		return "the reward"
	}
	return ""
}

func differsVerdict(had *store.Verdict, got rollout.Verdict) string {
	graded := got.Status == rollout.Graded
	switch {
	case had.Graded != graded:
		return "state of grading"
	case graded && had.Correct != got.Correct:
		return "verdict"
	case !sameBits(had.Reward, got.Reward):
		return "reward"
	case had.Answer != got.Answer:
		return "answer"
	case had.Reason != got.Reason:
		return "reason"
	}
	return ""
}
