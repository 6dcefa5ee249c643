package run

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"exp/experiments/ident"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/stage"
	"exp/kernels"
	"exp/train/model"
	"exp/train/ranks"
	"exp/train/rl"
)

// execute runs a stage and records how it ended.
func (x *execution) execute(ctx context.Context, i int, row store.Stage, in map[string]ident.Digest) error {
	keep := context.WithoutCancel(ctx)         // record even if the run is being stopped
	if err := x.readable(ctx, i); err != nil { // before an attempt begins, which would fail
		if trial := (*stage.TrialError)(nil); errors.As(err, &trial) {
			return x.recordTrial(keep, row, err)
		}
		return err
	}
	if err := x.begin(keep); err != nil {
		return err
	}
	if err := x.room(x.p.Stages[i].Kind); err != nil {
		return err
	}
	row.Attempt = x.attempt.ID
	row, err := x.DB.BeginStage(keep, row)
	if err != nil {
		return err
	}
	info := x.info(i)
	x.Watch.StageStart(info)
	start, cpu := time.Now(), cpuSeconds()
	forget(x.Backend, x.p.Stages[i].Kind)
	out, err := x.work(ctx, i, row, in)
	end := StageEnd{Wall: time.Since(start)}
	if err != nil {
		stopped := onlyStopped(err)
		end.Stopped, end.Failed = stopped, !stopped
		x.Watch.StageDone(info, end)
		switch {
		case stopped && x.stopped != nil:
			return errors.Join(x.stopped, x.recordStop(keep), x.DB.InterruptStage(keep, row.ID))
		case stopped:
			return errors.Join(x.interrupted(keep, x.p.Stages[i], err), x.DB.InterruptStage(keep, row.ID))
		}
		return errors.Join(&StageError{Stage: x.p.Stages[i].Name(), Err: err},
			x.DB.FailStage(keep, row.ID, err.Error()))
	}
	row.Outputs = make([]store.IO, len(out.Outputs))
	for k, o := range out.Outputs {
		row.Outputs[k] = store.IO{Role: o.Role, Digest: o.Digest, Size: o.Size, Kind: o.Kind}
	}
	if err := x.keepOutcome(keep, i, row, out, store.StageResult{WallS: end.Wall.Seconds(), CPUS: cpuSeconds() - cpu,
		PeakMem: peakMemory()}); err != nil {
		end.Failed = true
		x.Watch.StageDone(info, end)
		return errors.Join(&StageError{Stage: x.p.Stages[i].Name(), Err: err},
			x.DB.FailStage(keep, row.ID, err.Error()))
	}
	if x.apart(x.p.Stages[i].Kind) {
		err := stage.Materialize(x.env(i, row.SID), out.Outputs)
		if err := errors.Join(err, x.sweep()); err != nil {
			return err
		}
	}
	x.DB.RemoveLiveSteps(x.run.RID, row.SID)
	x.done[i] = row
	x.result.Executed++
	end.Facts = factsOf(out)
	x.Watch.StageDone(info, end)
	return nil
}

// work calls the stage with hooks into the record. A panic becomes an error.
func (x *execution) work(ctx context.Context, i int, row store.Stage,
	in map[string]ident.Digest) (out *stage.Outcome, err error) {
	defer recovered(&err)
	e := x.env(i, row.SID)
	e.Hooks.Warn = x.Watch.Warn
	e.Hooks.Event = x.event
	now := newActivity(x.DB, x.run.RID, x.info(i))
	defer now.close()
	steps := x.liveSteps(i, row)
	defer steps.Close()
	e.Hooks.Phase = func(step int, phase string, done, total int) {
		now.phase(step, phase, done, total)
		x.Watch.StagePhase(phase, done, total)
	}
	e.Hooks.Progress = func(done, total int, measured []rl.Metric) {
		now.progress(done, total)
		steps.add(done, measured)
		x.Watch.StageProgress(done, total, onProgress(measured))
	}
	e.Hooks.Stop = func() bool { return ctx.Err() != nil }
	kind := x.p.Stages[i].Kind
	if x.apart(kind) {
		e.Dir = filepath.Join(e.Dir, scratchDir)
		if err := os.MkdirAll(e.Dir, 0o777); err != nil {
			return nil, err
		}
	}
	if kind == config.EvalGen && !x.Options.NoCache {
		if e.Sampled, err = x.sampled(context.WithoutCancel(ctx), row); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(x.warnStops(e, kind), x.warnContamination(e, x.p.Stages[i])); err != nil {
		return nil, err
	}
	if !kind.Facts().Shared() {
		return stage.Run(ctx, e, kind, x.p.Stages[i].Label, in)
	}
	// These stages end between steps, through Stop: a step is never torn.
	e.Start.Fresh = x.Options.NoCache
	if kind == config.Train {
		rec := x.newStepRecord(row)
		defer func() { err = errors.Join(err, rec.close()) }()
		e.Hooks.Step, e.Hooks.Validated, e.Hooks.Brought = rec.step, rec.validated, rec.texts.images
		e.Hooks.Save, e.Hooks.Checkpoint, e.Hooks.Pinned = rec.settle, rec.checkpoint, rec.pinned
		if err := x.start(e, rec); err != nil {
			return nil, err
		}
		if x.stopped != nil { // the recorded steps end where a condition holds
			return nil, stage.ErrStopped
		}
		e.Hooks.Stop = func() bool { return ctx.Err() != nil || x.stopped != nil } // it saves a checkpoint
	}
	return x.learn(context.WithoutCancel(ctx), e, i, row.SID, in)
}

// learn executes a stage that ranks share, with the other ranks if there are any.
func (x *execution) learn(ctx context.Context, e *stage.Env, i int, sid ident.Digest,
	in map[string]ident.Digest) (*stage.Outcome, error) {
	leave, err := x.lead(e, i, sid, in)
	defer leave()
	if err != nil {
		return nil, err
	}
	out, err := stage.Run(ctx, e, x.p.Stages[i].Kind, "", in)
	if x.Ranks != nil && (err == nil || onlyStopped(err)) {
		x.Ranks.broken = false
	}
	return out, err
}

// recovered, deferred, turns a panic into an error: the failure of a device, its lack of room or the failure
// of another rank as it is, as an image that cannot be read, anything else with its stack.
func recovered(err *error) {
	p := recover()
	if p == nil {
		return
	}
	var failure *kernels.DeviceError
	var room *kernels.RoomError
	var lost *ranks.Error
	var image *model.ImageError
	if cause, ok := p.(error); ok && (errors.As(cause, &failure) || errors.As(cause, &room) ||
		errors.As(cause, &lost) || errors.As(cause, &image)) {
		*err = errors.Join(cause, *err)
		return
	}
	*err = errors.Join(&PanicError{Value: p, Stack: debug.Stack()}, *err)
}

// keepOutcome records a stage's outcome and marks it done.
func (x *execution) keepOutcome(ctx context.Context, i int, row store.Stage, out *stage.Outcome,
	r store.StageResult) (err error) {
	if r.Result, err = json.Marshal(out.Summary); err != nil {
		return err
	}
	if r.Result, err = x.withMemory(x.p.Stages[i].Kind, r.Result, takePeak(x.Backend)); err != nil {
		return err
	}
	evals, err := x.recordEvaluation(ctx, i, row, out.Evaluation)
	if err != nil {
		return err
	}
	return x.DB.FinishStage(ctx, row.ID, row.Outputs, r, evals)
}

// recordTrial records that the stage to come failed because the reward could not score a row: lists then show why.
func (x *execution) recordTrial(ctx context.Context, row store.Stage, trial error) error {
	if err := x.begin(ctx); err != nil {
		return errors.Join(trial, err)
	}
	row.Attempt = x.attempt.ID
	row, err := x.DB.BeginStage(ctx, row)
	if err != nil {
		return errors.Join(trial, err)
	}
	return errors.Join(trial, x.DB.FailStage(ctx, row.ID, trial.Error()))
}

// onlyStopped reports whether a stage ended only because it was told to. A stop that
// could not save its checkpoint is a failure.
func onlyStopped(err error) bool {
	if list, ok := err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(list.Unwrap(), func(e error) bool { return !onlyStopped(e) })
	}
	return errors.Is(err, stage.ErrStopped) || errors.Is(err, context.Canceled)
}

// apart reports whether a stage works in its own directory, because the run's directory
// holds a result that the new one may differ from.
func (x *execution) apart(kind config.Stage) bool {
	return x.Options.NoCache && kind == config.Merge
}

// begin begins an attempt, once, and locks the run unless claim has.
func (x *execution) begin(ctx context.Context) (err error) {
	if x.attempt.ID != 0 {
		return nil
	}
	if x.lock == nil {
		if x.lock, err = x.DB.LockRun(x.p.RID); err != nil {
			return err
		}
	}
	if err := errors.Join(x.sweep(), x.keepSources(ctx)); err != nil {
		return err
	}
	a := x.provenance()
	switch {
	case x.Options.Resume:
		a.Kind = store.AttemptResume
	case x.Options.NoCache:
		a.Kind = store.AttemptForced
	}
	a.Aside = x.Options.Joins && x.run.Status == store.Done
	if x.attempt, err = x.DB.BeginAttempt(ctx, a); err != nil {
		return err
	}
	x.warnDeaf()
	return x.recordConditions(ctx)
}

// finish ends the attempt and sets what lists show of the run.
func (x *execution) finish(cause error) error {
	ctx := context.Background()
	var errs []error
	if cause == nil && !x.Options.Joins {
		errs = append(errs, x.setHeadline(ctx))
	}
	if x.lock == nil {
		if cause == nil && !x.result.Partial && x.run.Status != store.Done {
			// Everything came from the cache: nothing was attempted, and the run is
			// done.
			errs = append(errs, x.adopt(ctx))
		}
		return errors.Join(errs...)
	}
	status, code := statusAfter(cause), x.exitCode(cause)
	if cause == nil && x.result.Partial {
		status = store.Interrupted
	}
	if x.attempt.ID != 0 {
		errs = append(errs, x.DB.EndAttempt(ctx, x.attempt.ID, status, code))
	}
	return errors.Join(append(errs, x.lock.Release())...)
}

// adopt records an attempt that found everything done.
func (x *execution) adopt(ctx context.Context) error {
	err := x.begin(ctx)
	if x.lock == nil {
		return err
	}
	if err == nil {
		err = x.DB.EndAttempt(ctx, x.attempt.ID, store.Done, 0)
	}
	return errors.Join(err, x.lock.Release())
}
