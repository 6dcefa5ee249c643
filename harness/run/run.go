// Package run executes planned runs against a store: it reuses cached results, executes
// the rest stage by stage, and records everything. It alone knows both the record
// (experiments) and the work (harness/stage).
//
// A run whose stages are all done is not executed: its stored result is returned. If a
// stage gives other outputs than before, that is a divergence: an error, never a silent
// overwrite.
package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"exp/experiments/blob"
	"exp/experiments/ident"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/forecast"
	"exp/harness/plan"
	"exp/harness/stage"
	"exp/kernels"
	"exp/train/rl"
)

// Runner executes runs. It must not be used concurrently.
type Runner struct {
	DB      *store.DB
	Backend kernels.Backend
	Watch   Observer
	Build   string // version of the program, for the record
	Options Options
	// Code returns the process's exit code after an error, for the record; nil: 1, 130
	// after an interruption, 9 after a condition held.
	Code func(err error) int
	// Ranks execute learning stages with this process; nil: it does so alone.
	Ranks *Ranks
	// Endpoint is the address of the hub, for the record of what came from it.
	Endpoint string
	// Getenv reads the environment; nil: the process's.
	Getenv func(string) string
}

// Options select the work to do.
type Options struct {
	Until       config.Stage // last kind to execute; empty: all
	NoCache     bool         // ignore cached results and checkpoints
	VerifyCache bool         // hash the blobs of a result before reusing it
	Resume      bool         // report the checkpoint that training resumes from, and the replayed steps
	UpTo        int          // training resumes from a checkpoint of at most that step; 0: any
	Parent      *store.Run   // the run that this one extends
	Joins       bool         // an evaluation joins an existing run and keeps its headline
	Rescore     bool         // score again despite existing scores
}

// Metric is a named number of a step or a stage.
type Metric = rl.Metric

// Observer hears about events, in the order of term.Progress. Implementations must not
// fail.
type Observer interface {
	StageStart(s StageInfo)
	StageProgress(done, total int, headline []Metric)
	StagePhase(phase string, done, total int) // of the step after those done (metric.Activity)
	StageDone(s StageInfo, r StageEnd)
	Note(text string)
	Warn(text string)
}

// StageInfo identifies a stage.
type StageInfo struct {
	Kind, Label string
	Steps       int    // total steps, if known
	Unit        string // what one step is; "": a step
}

// StageEnd says how a stage ended.
type StageEnd struct {
	Cached, Stopped, Failed bool
	From                    ident.Digest // run id of the run that produced a cached result
	Facts                   []Metric
	Wall                    time.Duration
}

// Result is the outcome of a run.
type Result struct {
	Run      store.Run
	Executed int // stages
	Cached   int
	Partial  bool     // Options.Until skipped stages
	Start    *float64 // StartScore
}

// execution is one call of Execute.
type execution struct {
	*Runner
	p        *plan.Run
	run      store.Run
	attempt  store.Attempt
	lock     *store.Lock
	result   Result
	done     []store.Stage // by index in the plan; zero ID if not reached
	checked  bool          // the problems' prompts were checked
	compared bool          // the evaluations' problems were compared with training's
	stops    stopConditions

	stopsTold bool          // warnStops has looked
	stopped   *StoppedError // a condition held
}

// Execute finishes a run, or runs it up to Options.Until. If ctx is cancelled, it
// finishes the current training step, saves a checkpoint and returns an
// *InterruptedError; if a condition of run.stop_if holds, a *StoppedError.
func (r *Runner) Execute(ctx context.Context, p *plan.Run) (Result, error) {
	defer spaceCollections(forecast.HeapRoom(&p.Config.Run))()
	x := &execution{Runner: r, p: p, done: make([]store.Stage, len(p.Stages))}
	if err := x.register(context.WithoutCancel(ctx)); err != nil {
		return x.result, err
	}
	err := x.stages(ctx)
	start, e := StartScore(context.WithoutCancel(ctx), r.DB, p, x.run.ID)
	err = errors.Join(err, x.finish(err), e)
	x.result.Start, x.result.Run = start, x.run
	if fresh, e := r.DB.RunByID(context.WithoutCancel(ctx), x.run.ID); e == nil {
		x.result.Run = fresh
	}
	x.notify(context.WithoutCancel(ctx), err)
	return x.result, err
}

// register creates the run's rows.
func (x *execution) register(ctx context.Context) error {
	c := x.p.Config
	conf, err := storedConfig(c)
	if err != nil {
		return err
	}
	parent := int64(0)
	if x.Options.Parent != nil {
		parent = x.Options.Parent.ID
	}
	x.run, _, err = x.DB.EnsureRun(ctx, store.NewRun{
		RID: x.p.RID, XID: x.p.XID, Name: c.Run.Name, Task: c.Run.Task.Kind, Algo: c.Run.Algorithm(),
		Model: c.Run.Model.Title(),
		Seed:  x.p.Seed, Numerics: x.p.Numerics, StepsTotal: int64(c.Run.Train.Steps), Config: conf,
		Code: x.p.Code[config.Train].Digest, Parent: parent,
	})
	if err != nil {
		return err
	}
	return errors.Join(x.joinName(ctx, c.Run.Name), x.recordHub(ctx))
}

// joinName tags a run with its recipe's name if the run is recorded under another name.
func (x *execution) joinName(ctx context.Context, name string) error {
	if name == x.run.Name {
		return nil
	}
	x.Watch.Note(fmt.Sprintf("run %s is recorded as %s already; %s now finds it too", x.run.RID.Short(), x.run.Name,
		name))
	return x.DB.AddTag(ctx, x.run.ID, store.NameTag(name))
}

// stages walks the plan. The first stage to execute takes the run's lock and begins an
// attempt. Cancellation stops the work between and within stages, not the recording.
func (x *execution) stages(ctx context.Context) error {
	keep := context.WithoutCancel(ctx)
	for i, s := range x.p.Stages {
		if x.Options.Until != "" && s.Kind.After(x.Options.Until) {
			x.result.Partial = true
			continue
		}
		if err := ctx.Err(); err != nil {
			return x.interrupted(keep, s, err)
		}
		hashed, all, ok := x.p.Inputs(i, x.output)
		if !ok {
			return fmt.Errorf("%s: an input is missing", s.Name())
		}
		sid, err := x.p.SID(i, hashed)
		if err != nil {
			return err
		}
		row, err := x.row(i, sid, hashed)
		if err != nil {
			return err
		}
		hit, err := x.hit(keep, s.Kind, sid)
		if hit == nil && err == nil {
			hit, err = x.claim(keep, s.Kind, sid)
		}
		if err != nil {
			return err
		}
		if hit != nil {
			err = x.reuse(keep, i, row, hit)
		}
		if hit == nil || errors.Is(err, store.ErrGone) {
			err = x.execute(ctx, i, row, all)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// problems returns the digest of the run's problems of a role: those that training draws from, if it is told of them.
func (x *execution) problems(role string) (ident.Digest, bool) {
	for i, s := range x.p.Stages {
		if s.Kind != config.Select {
			continue
		}
		if d, ok := x.output(i, role); ok {
			return d, ok
		}
	}
	return x.output(0, role)
}

// output returns the digest of a stage's output.
func (x *execution) output(i int, role string) (ident.Digest, bool) {
	for _, o := range x.done[i].Outputs {
		if o.Role == role {
			return o.Digest, true
		}
	}
	return ident.Digest{}, false
}

// row returns the stage's record before it is executed.
func (x *execution) row(i int, sid ident.Digest, hashed map[string]ident.Digest) (store.Stage, error) {
	s := x.p.Stages[i]
	params, err := json.Marshal(x.p.Params(i))
	if err != nil {
		return store.Stage{}, err
	}
	row := store.Stage{SID: sid, Run: x.run.ID, Attempt: x.attempt.ID, Kind: string(s.Kind), Label: s.Label,
		Params: params,
		Code:   x.p.Code[s.Kind].Digest, Numerics: x.p.Numerics, Seed: s.Seed}
	for _, role := range sortedKeys(hashed) {
		row.Inputs = append(row.Inputs, store.IO{Role: role, Digest: hashed[role]})
	}
	return row, nil
}

// hit looks up a stage's cached result.
func (x *execution) hit(ctx context.Context, kind config.Stage, sid ident.Digest) (*store.Stage, error) {
	if x.Options.NoCache || x.Options.Rescore && kind == config.EvalScore {
		return nil, nil
	}
	hit, err := x.DB.Hit(ctx, sid)
	if hit == nil || err != nil || !x.Options.VerifyCache {
		return hit, err
	}
	outputs := make([]blob.Recorded, len(hit.Outputs))
	for i, o := range hit.Outputs {
		outputs[i] = blob.Recorded{Digest: o.Digest, Size: o.Size}
	}
	for _, err := range x.DB.Blobs.VerifyAll(ctx, outputs, nil) {
		if err != nil {
			return nil, err
		}
	}
	return hit, nil
}

// claim takes the run's lock, once, for a stage without a cached result. If another process has finished the stage
// since the look-up, claim returns that result and leaves the run unlocked.
func (x *execution) claim(ctx context.Context, kind config.Stage, sid ident.Digest) (*store.Stage, error) {
	if x.lock != nil {
		return nil, nil
	}
	lock, err := x.DB.LockRun(x.p.RID)
	if err != nil {
		return nil, err
	}
	hit, err := x.hit(ctx, kind, sid)
	if hit != nil || err != nil {
		return hit, errors.Join(err, lock.Release())
	}
	x.lock = lock
	return nil, nil
}

func (x *execution) info(i int) StageInfo {
	s := x.p.Stages[i]
	info := StageInfo{Kind: string(s.Kind), Label: s.Label}
	switch s.Kind {
	case config.Train:
		info.Steps = x.p.Config.Run.Train.Steps
	case config.SFT:
		info.Steps = x.p.Config.Run.SFT.Steps
	case config.RewardModel:
		info.Steps = x.p.Config.Run.RewardModel.Steps
	case config.Prefer:
		info.Steps = x.p.Config.Run.Prefer.Steps
	case config.PassRate, config.EvalGen:
		info.Unit = "completion"
	}
	return info
}

// reuse takes a stage's result from the cache.
func (x *execution) reuse(ctx context.Context, i int, row store.Stage, hit *store.Stage) error {
	var err error
	if x.done[i], err = x.DB.ReuseStage(ctx, row, hit); err != nil {
		return err
	}
	if x.p.Stages[i].Kind == config.Merge {
		if err := stage.Materialize(x.env(i, hit.SID), outputsOf(hit.Outputs)); err != nil {
			return err
		}
	}
	end := StageEnd{Cached: true}
	if from, err := x.DB.RunByID(ctx, hit.Run); err == nil {
		end.From = from.RID
	}
	x.result.Cached++
	x.Watch.StageDone(x.info(i), end)
	if x.p.Stages[i].Kind == config.Train {
		x.warnNoBoard()
	}
	return x.noteUnheeded(ctx, x.p.Stages[i].Kind)
}

func outputsOf(list []store.IO) []stage.Output {
	out := make([]stage.Output, len(list))
	for i, o := range list {
		out[i] = stage.Output{Role: o.Role, Digest: o.Digest, Size: o.Size}
	}
	return out
}

// env returns the environment of stage i.
func (x *execution) env(i int, sid ident.Digest) *stage.Env {
	return &stage.Env{Config: x.p.Config, Backend: x.Backend, Blobs: x.DB.Blobs, Dir: x.DB.RunDir(x.p.RID),
		RID: x.p.RID, SID: sid, Placement: x.forecast().Placement(x.p.Stages[i].Kind),
		Seed: x.p.Stages[i].Root, Suites: x.p.Suites, Prompter: x.p.External.Prompter,
		Answers: store.JudgeDir(x.DB.Dir())}
}
