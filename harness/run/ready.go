package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"exp/experiments/ident"
	"exp/experiments/quantity"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/plan"
	"exp/harness/stage"
)

// readable checks before stage i, once the problems exist, that the model can read all of them and,
// if training is to come, that the reward can score one. Otherwise the run would fail late.
func (x *execution) readable(ctx context.Context, i int) error {
	kind := x.p.Stages[i].Kind
	if x.checked || kind == config.Prepare {
		return nil
	}
	x.checked = true
	e := x.env(i, ident.Digest{})
	err := stage.CheckProblems(e, func(role string) (ident.Digest, bool) { return x.output(0, role) })
	var faults config.Errors
	if errors.As(err, &faults) {
		return faults.AfterPrepare()
	}
	if err != nil {
		return err
	}
	if err := x.tryReward(ctx, e, kind); err != nil {
		return err
	}
	return x.tryScorer(ctx, e, i)
}

// tryReward has the reward score a row before a stage of the kind, if one that asks for rewards is to come.
func (x *execution) tryReward(ctx context.Context, e *stage.Env, kind config.Stage) error {
	role, asks := stage.RoleTrain, config.Train // the stage that asks for rewards
	problems, ok := x.output(0, role)
	if x.p.Config.Run.JudgesAlone() {
		asks = config.EvalScore
		if !ok {
			role = stage.RoleTest
			problems, ok = x.output(0, role)
		}
	}
	until := x.Options.Until
	if !ok || kind.After(asks) || until != "" && config.Train.After(until) {
		return nil
	}
	e.Hooks.Warn = x.Watch.Warn
	if !kind.After(config.Train) && role == stage.RoleTrain {
		if err := stage.TryTool(e); err != nil {
			return err
		}
	}
	return stage.TryReward(ctx, e, stage.Inputs{role: problems})
}

// tryScorer has what scores the final evaluation score a row before stage i, unless that stage or an earlier one
// scores.
func (x *execution) tryScorer(ctx context.Context, e *stage.Env, i int) error {
	next := slices.IndexFunc(x.p.Stages, func(s plan.Stage) bool {
		return s.Kind == config.EvalScore && x.p.ScoredByModel(stage.SuiteOf(s.Label))
	})
	if until := x.Options.Until; next <= i || until != "" && config.EvalScore.After(until) {
		return nil
	}
	e.Hooks.Warn = x.Watch.Warn
	return stage.TryScorer(ctx, e, x.p.Stages[next].Label, func(role string) (ident.Digest, bool) {
		return x.output(0, role)
	})
}

// warnStops reports stop ids that end nothing, before the first stage that samples.
func (x *execution) warnStops(e *stage.Env, kind config.Stage) error {
	if x.stopsTold || kind != config.Train && kind != config.EvalGen && kind != config.PassRate {
		return nil
	}
	x.stopsTold = true
	return stage.WarnStops(e)
}

// warnContamination reports problems of evaluations that training has too, before training or, where that
// is done, before an evaluation.
func (x *execution) warnContamination(e *stage.Env, s plan.Stage) error {
	later := s.Kind == config.EvalGen && !x.compared && s.Label == stage.SuiteOf(s.Label)
	if s.Kind != config.Train && !later {
		return nil
	}
	x.compared = x.compared || s.Kind == config.Train
	return stage.WarnContamination(e, x.problems, s.Label)
}

// room checks that a stage's files fit on the disk. It ignores rows and samples, which
// are small: a full disk then gives an error and loses nothing.
func (x *execution) room(kind config.Stage) error {
	e, err := x.forecast().Estimate()
	if err != nil {
		return err
	}
	free, err := x.DB.Blobs.Free()
	need := e.StageBytes(kind)
	if err != nil || free >= need {
		return err
	}
	return &RequireError{Name: x.p.Config.Run.Name,
		Missing: []string{fmt.Sprintf("disk space: %s writes up to %s, %s has %s free", kind, quantity.Bytes(need),
			x.DB.Dir(), quantity.Bytes(free))},
		Do: []string{"free some space and run again: finished work is kept; or use another store: --store " +
			"DIR"}}
}

// event records something that happened outside a step. If recording fails, the run
// continues: the user has seen the event, and the next write will fail.
func (x *execution) event(kind, text string) {
	data, err := json.Marshal(map[string]string{"text": text})
	if err == nil {
		err = x.DB.AddEvent(context.Background(),
			store.Event{Run: x.run.ID, Attempt: x.attempt.ID, Level: store.LevelWarn, Kind: kind, Data: data})
	}
	if err != nil {
		x.Watch.Warn(err.Error())
	}
}

// sweep removes half-written files of a killed process from the run's directory. The
// caller holds the run's lock. Checkpoints sweep their own.
func (x *execution) sweep() error {
	dir := x.DB.RunDir(x.run.RID)
	errs := []error{os.RemoveAll(filepath.Join(dir, scratchDir))}
	for _, folder := range stage.Folders() {
		errs = append(errs, os.RemoveAll(filepath.Join(dir, folder+stage.Unfinished)))
	}
	return errors.Join(errs...)
}
