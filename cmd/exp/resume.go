package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"exp/cmd/exp/cli"
	"exp/experiments/keep"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/plan"
	"exp/harness/replan"
	harness "exp/harness/run"
)

func resumeCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "resume",
		Category:  "Experiments",
		Usage:     "continue an interrupted run, or extend a finished one",
		ArgsUsage: "RUN",
		Description: "Continues from the newest intact checkpoint: executes the steps recorded after it again, " +
			"checks that each is equal to the record, then does the rest. A step that differs is a divergence: " +
			"the first one is reported with the field, and the exit code is 5. Configuration and seed are the " +
			"recorded ones.\n" +
			"--extend-steps makes a new, longer run with this one as its parent, equal bit for bit to training " +
			"it from the start; --end-at makes a shorter one, to get the weights of an earlier step and score " +
			"them: it executes the steps from a checkpoint before its last; with eval.online.best it ends with the " +
			"best weights up to that step. The learning rate must not depend on the number of steps.",
		UsageText: strings.Join([]string{
			"exp resume @last # after Ctrl-C, a crash or kill -9",
			"exp resume @last --stop-if none # past the condition that stopped it",
			"exp resume 5e8d --from 50 # from an older checkpoint, which re-checks more steps",
			"exp resume countdown-flowrl#0 --extend-steps 100 # 100 more steps",
			"exp resume countdown-flowrl#0 --end-at 50 # the weights after step 50, merged and scored",
			"exp resume @last --ranks 2 # on two processes, however many there were",
		}, "\n"),
		Flags: append([]cli.Flag{
			&cli.IntFlag{Name: "from", Usage: "continue from the newest checkpoint at or before `STEP`",
				DefaultText: "the newest"},
			&cli.IntFlag{Name: "extend-steps", Usage: "make a run with `N` more steps", DefaultText: "none"},
			&cli.IntFlag{Name: "end-at", Usage: "make a run that ends with `STEP`", DefaultText: "none"},
			&cli.StringSliceFlag{Name: "stop-if", Usage: "save and stop after a step where `EXPR` holds " +
				"(run.stop_if); none drops the run's", DefaultText: "as in its last attempt"},
			ranksFlag(),
			rankTimeoutFlag(),
		}, computeFlags()...),
		BashComplete: a.completesRunAndDevice(),
		Action:       cli.WithArgs(1, 1, a.resumeRun),
	}
}

func (a *app) resumeRun(c *cli.Context, args []string) error {
	for _, flag := range []string{"from", "extend-steps", "end-at"} {
		if c.IsSet(flag) && c.Int(flag) < 1 {
			return a.Usagef("--%s %d: it must be at least 1", flag, c.Int(flag))
		}
	}
	if c.IsSet("end-at") && (c.IsSet("from") || c.IsSet("extend-steps")) {
		return a.Usagef("--end-at finds the checkpoint itself, and no run becomes longer and shorter: give it alone")
	}
	db, err := a.OpenStoreWith(store.Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	run, err := a.oneRun(c.Context, db, args[0])
	if err != nil {
		return err
	}
	a.nameRun(args[0], run.RID)
	o := harness.Options{Resume: true, UpTo: c.Int("from")}
	r, err := a.resumedConfig(c, db, &run, &o)
	if err != nil {
		return err
	}
	n := c.Int("ranks")
	if err := a.ranksFit([]*config.Resolved{r}, n); err != nil {
		return err
	}
	if err := harness.Require(r, a.processes(n)); err != nil {
		return replan.Elsewhere(c.Context, db, run, err)
	}
	if done, err := a.launchRanks(c, []*config.Resolved{r}); done {
		return err
	}
	j := plan.Wanted{Config: r, Seed: run.Seed}
	sources, err := plan.Sources()
	if err != nil {
		return err
	}
	display := a.Progress()
	defer context.AfterFunc(c.Context, func() {
		display.Note("stopping after the current step and saving it; Ctrl-C again stops at once")
	})()
	res, err := a.executeOne(c.Context, db, j, 1, 1, o, sources, display)
	if held := onlyCondition(err); held != nil {
		a.CloseProgress()
		return endError(nil, []*harness.StoppedError{held})
	}
	if err != nil {
		return replan.Elsewhere(c.Context, db, run, a.explainStop(c.Context, err))
	}
	a.CloseProgress()
	if res.Executed == 0 {
		a.Note("run %s is complete; nothing is left to do", res.Run.RID.Short())
	}
	if err := a.printResults(c.Context, db, []harness.Result{res}); err != nil {
		return err
	}
	return a.suggestNext(c.Context, db, []harness.Result{res})
}

// resumedConfig returns the configuration to execute: the recorded one, or one with more
// steps; o then names the parent.
func (a *app) resumedConfig(c *cli.Context, db *store.DB, run *store.Run, o *harness.Options) (*config.Resolved,
	error) {
	stops := stopValues(c)
	if stops == nil {
		had, err := harness.Conditions(c.Context, db, *run)
		if err != nil {
			return nil, err
		}
		stops = []config.Value{{Path: stopIfKey, Value: append([]string{}, had...), From: "the run's record"}}
	}
	values := append(computeValues(c), stops...)
	// Check first that it is the same run: a child has another id.
	p, be, err := replan.Plan(c.Context, db, *run, replan.Options{Kinds: trainingStages(), Values: values,
		Getenv: a.Getenv})
	if err != nil {
		return nil, err
	}
	be.Close()
	r := p.Config
	n, from := r.Run.Train.Steps+c.Int("extend-steps"), "--extend-steps"
	if c.IsSet("end-at") {
		n, from = c.Int("end-at"), "--end-at"
	}
	switch {
	case n == r.Run.Train.Steps && from == "--extend-steps":
		return r, nil
	case from == "--end-at" && n >= r.Run.Train.Steps:
		return nil, a.Usagef("--end-at %d: run %s has %d steps; --extend-steps makes it longer", n, run.RID.Short(),
			r.Run.Train.Steps)
	}
	other, err := replan.WithSteps(c.Context, db, *run, n, from, values, a.Getenv)
	if errors.Is(err, harness.ErrSchedule) {
		return nil, cli.Usagef("run %s cannot have another length: %w, so such a run differs from the first step on",
			run.RID.Short(), err).
			Advise(fmt.Sprintf("train it from the start: exp run CONFIG --set train.steps=%d", n))
	}
	if o.Parent = run; from == "--end-at" {
		err = errors.Join(err, a.cutAt(db, n, o))
	}
	return other, err
}

// cutAt makes a run that ends with a step begin at a checkpoint before it: the last step of a run is executed, since
// it records more than others.
func (a *app) cutAt(db *store.DB, step int, o *harness.Options) error {
	list, err := keep.Saved(db, o.Parent.RID)
	before := slices.ContainsFunc(list, func(s keep.SavedCheckpoint) bool {
		return strings.HasPrefix(s.Stage, "train-") && s.Step < int64(step)
	})
	if o.UpTo = step - 1; !before {
		a.Note("run %s keeps no checkpoint before step %d: the steps are executed from the first",
			o.Parent.RID.Short(), step)
		o.Parent = nil
	}
	return err
}

// trainingStages are the kinds of stages that define a run; evaluations attach to it and
// may come from newer sources.
func trainingStages() []string {
	return stageNames(config.Upstream, config.Learning, config.Publishing)
}
