package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"exp/experiments/ident"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/plan"
	"exp/harness/stage"
)

// Level says how much of a run to prove. Each level includes the ones before.
type Level string

const (
	LevelBlobs  Level = "blobs"  // the files are unchanged; chain and summaries follow from the recorded rows
	LevelScore  Level = "score"  // scoring the stored completions gives the recorded verdicts and scores
	LevelSample Level = "sample" // some completions of evaluations and training, sampled again, are the same
	LevelPrefix Level = "prefix" // some training steps give the same bits
	LevelFull   Level = "full"   // all stages give the same bits
)

// Levels returns all levels in order.
func Levels() []Level { return []Level{LevelBlobs, LevelScore, LevelSample, LevelPrefix, LevelFull} }

// DefaultPrefix is how many steps LevelPrefix executes by default.
const DefaultPrefix = 20

// DefaultCompletions is how many completions of each evaluation and training step are sampled again by default.
const DefaultCompletions = 8

// DefaultLimit is the time after which, by default, LevelPrefix takes no further step and LevelSample no further
// evaluation or step. A large model needs minutes for each.
const DefaultLimit = 2 * time.Minute

// VerifyOptions select the checks.
type VerifyOptions struct {
	Level Level
	Steps int // for LevelPrefix; 0: DefaultPrefix
	// Limit ends LevelPrefix after the step that exceeds it; 0: no limit.
	Limit       time.Duration
	Completions int // of each evaluation and training step, from LevelSample on; 0: DefaultCompletions
	// SampleLimit is after how long no further evaluation or step is sampled again; 0: no limit.
	SampleLimit time.Duration
	From        int // LevelPrefix begins at the newest checkpoint of at most that step; 0: at the start
	// Evaluations are plans of the run with other suites, or with other settings of the evaluation, whose
	// scores the run has too (replan.Evaluations). LevelBlobs ignores them.
	Evaluations []*plan.Run
}

// Finding is something that differs from the record.
type Finding struct {
	Where    string `json:"where"` // "stage train: weights", "step 3", "test: sample 1 of 3,4=12"
	What     string `json:"what"`
	Diverged bool   `json:"diverged"` // executing it again gave other bits; otherwise stored data was changed
}

// Verification is the result of a verification.
type Verification struct {
	Run      ident.Digest `json:"run"`
	Level    Level        `json:"level"`
	OK       bool         `json:"ok"`
	Blobs    int          `json:"blobs"`     // files hashed
	Chain    int64        `json:"chain"`     // steps whose chain follows from the record
	Inexact  int64        `json:"inexact"`   // steps whose chain cannot be computed from the record
	Verdicts int          `json:"verdicts"`  // verdicts given again
	FromStep int64        `json:"from_step"` // training steps executed again; 0: none
	ToStep   int64        `json:"to_step"`
	CutAt    int64        `json:"cut_at,omitempty"` // the step it would have gone to, had time allowed
	// Sampled are the completions that were sampled again: "test: sample 1 of 3,4=12".
	Sampled   []string `json:"sampled,omitempty"`
	Evaluated int      `json:"evaluated,omitempty"` // evaluations that they are of
	Unsampled int      `json:"unsampled,omitempty"` // evaluations for which time did not suffice
	// SampledSteps counts the training steps that some are of, UnsampledSteps those for which time did not suffice.
	SampledSteps   int      `json:"sampled_steps,omitempty"`
	UnsampledSteps int      `json:"unsampled_steps,omitempty"`
	Stages         []string `json:"stages"` // stages executed again to their end
	// Unchecked are evaluations of the run whose scores no plan gives: "svamp, 4 samples each".
	Unchecked []string  `json:"unchecked,omitempty"`
	Findings  []Finding `json:"findings"`
	WallS     float64   `json:"wall_s"`
}

// Diverged reports whether some work gave other bits than recorded.
func (v *Verification) Diverged() bool {
	return slices.ContainsFunc(v.Findings, func(f Finding) bool { return f.Diverged })
}

// NoCheckpointError reports that no checkpoint is left to begin a verification at.
type NoCheckpointError struct {
	RID  ident.Digest
	Step int
}

func (e *NoCheckpointError) Error() string {
	return fmt.Sprintf("run %s has no complete checkpoint at step %d or before", e.RID.Short(), e.Step)
}

// ExitCode is the code for something that was not found.
func (e *NoCheckpointError) ExitCode() int { return 3 }

// errEnough ends a re-execution once it has proved or refuted enough.
var errEnough = errors.New("enough steps were executed")

// verifier is one call of Verify.
type verifier struct {
	*execution
	o       VerifyOptions
	v       Verification
	scratch string // directory for re-executed stages
	// repeated are the ids of stages that were executed again; zero of a stage that was never finished.
	repeated map[ident.Digest]bool
	sampling time.Duration // that sampling completions again took
}

// Verify proves a run's record at a level, and records the outcome. Findings are in the
// result, not in the error. p is the run's plan, which LevelBlobs does not need. Verify
// changes nothing recorded of the run.
func (r *Runner) Verify(ctx context.Context, run store.Run, p *plan.Run, o VerifyOptions) (Verification, error) {
	v := &verifier{execution: &execution{Runner: r, p: p, run: run, checked: true}, o: o,
		repeated: map[ident.Digest]bool{},
		v:        Verification{Run: run.RID, Level: o.Level, Findings: []Finding{}, Stages: []string{}}}
	if err := v.inputsLeftOut(ctx); err != nil {
		return v.v, err
	}
	lock, err := r.DB.LockRun(run.RID)
	if err != nil {
		return v.v, err
	}
	a := v.provenance()
	a.Kind = store.AttemptVerify
	keep := context.WithoutCancel(ctx)
	if v.attempt, err = r.DB.BeginAttempt(keep, a); err != nil {
		return v.v, errors.Join(err, lock.Release())
	}
	start := time.Now()
	err = v.verify(ctx)
	v.v.WallS = time.Since(start).Seconds()
	v.v.OK = err == nil && len(v.v.Findings) == 0
	status, code := store.Done, 0
	switch {
	case ctx.Err() != nil:
		status, code, err = store.Interrupted, 130, errors.Join(err, ctx.Err())
	case err != nil:
		status, code = store.Failed, 1
	case v.v.Diverged():
		code = 5
	case !v.v.OK:
		code = 4
	}
	if err == nil {
		err = v.record(keep)
	} else if r.Code != nil {
		code = r.Code(err)
	}
	return v.v, errors.Join(err, r.DB.EndAttempt(keep, v.attempt.ID, status, code), lock.Release())
}

func (v *verifier) record(ctx context.Context) error {
	detail, err := json.Marshal(v.v)
	if err != nil {
		return err
	}
	return v.DB.AddVerification(ctx, store.Verification{Run: v.run.ID, Attempt: v.attempt.ID,
		Level:    string(v.o.Level),
		FromStep: v.v.FromStep, ToStep: v.v.ToStep, OK: v.v.OK, Detail: detail})
}

// verify does what the level requires. It computes nothing with damaged files.
func (v *verifier) verify(ctx context.Context) error {
	if err := v.files(ctx); err != nil || len(v.v.Findings) > 0 {
		return err
	}
	if err := errors.Join(v.chain(ctx), v.summaries(ctx)); err != nil || v.o.Level == LevelBlobs {
		return err
	}
	if same, err := v.source(); err != nil || !same {
		return err
	}
	if err := v.recorded(ctx); err != nil {
		return err
	}
	v.scratch = filepath.Join(v.DB.RunDir(v.run.RID), scratchDir)
	err := v.sweep() // remove the files of a killed verification
	if err == nil {
		err = v.repeat(ctx)
	}
	if i := v.p.TrainStage(); err == nil && i >= 0 && v.o.Level != LevelFull && v.wanted(config.Train) {
		err = v.sampleSteps(ctx, i)
	}
	if err == nil {
		err = v.evaluations(ctx)
	}
	return errors.Join(err, os.RemoveAll(v.scratch))
}

// repeat executes the stages that the level asks for again, each once.
func (v *verifier) repeat(ctx context.Context) error {
	for i, s := range v.p.Stages {
		if err := ctx.Err(); err != nil {
			return err
		}
		switch {
		case v.v.Diverged(), !v.wanted(s.Kind):
		case v.done[i].ID == 0 && s.Kind != config.Train: // never done
		case v.repeated[v.done[i].SID]: // by another plan
		case s.Kind == config.Train && v.o.Level == LevelSample: // sampleSteps does it
		default:
			redo := v.again
			if s.Kind == config.EvalGen && v.o.Level != LevelFull {
				redo = v.sampleAgain
			}
			if err := redo(ctx, i); err != nil {
				return err
			}
			v.repeated[v.done[i].SID] = true
		}
	}
	return nil
}

// scratchDir is where stages are executed again, within a run's directory.
const scratchDir = "verify" + stage.Unfinished

func (v *verifier) wanted(kind config.Stage) bool {
	switch v.o.Level {
	case LevelFull:
		return true
	case LevelPrefix, LevelSample:
		return kind == config.Train || kind == config.EvalGen || kind == config.EvalScore
	}
	return kind == config.EvalScore
}

// recorded finds the plan's finished stages in the record.
func (v *verifier) recorded(ctx context.Context) error {
	stages, err := v.DB.Stages(ctx, v.run.ID)
	if err != nil {
		return err
	}
	v.done = make([]store.Stage, len(v.p.Stages))
	for i := range v.p.Stages {
		hashed, _, ok := v.p.Inputs(i, v.output)
		if !ok {
			continue
		}
		sid, err := v.p.SID(i, hashed)
		if err != nil {
			return err
		}
		for _, s := range stages {
			if s.SID == sid && (s.Status == store.Done || s.Status == store.Cached || s.Status == store.Repeated) {
				v.done[i] = s
				if len(s.Outputs) > 0 {
					break // a repeated stage has its own, and they are equal
				}
			}
		}
	}
	return nil
}

// found adds a finding.
func (v *verifier) found(diverged bool, where, format string, args ...any) {
	v.v.Findings = append(v.v.Findings, Finding{Where: where, What: fmt.Sprintf(format, args...), Diverged: diverged})
}

// diverged records that work gave other bits.
func (v *verifier) diverged(where string, d *store.DivergenceError) error {
	v.found(true, where, "executed again, %s is %s, but %s is recorded", d.Field, short(d.Got), short(d.Want))
	return v.DB.AddDivergence(context.Background(), v.run.ID, v.attempt.ID, d)
}

func short(d ident.Digest) string {
	if d.IsZero() {
		return "none"
	}
	return d.Short()
}
