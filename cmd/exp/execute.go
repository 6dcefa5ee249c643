package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
	"exp/experiments/ident"
	"exp/experiments/keep"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/device"
	"exp/harness/fault"
	"exp/harness/hub"
	"exp/harness/plan"
	harness "exp/harness/run"
)

func (a *app) executeAll(c *cli.Context, db *store.DB, configs []*config.Resolved, seeds []int64,
	o harness.Options, goal *objective) error {
	ctx := c.Context
	list := plan.WantedOf(configs, seeds)
	sources, err := plan.Sources()
	if err != nil {
		return err
	}
	if err := checkLater(ctx, db, configs); err != nil {
		return err
	}
	display := a.Progress()
	// A step may take minutes, so answer the first Ctrl-C at once.
	defer context.AfterFunc(ctx, func() {
		display.Note("stopping after the current step and saving it; Ctrl-C again stops at once")
	})()
	x := &series{app: a, c: c, db: db, options: o, sources: sources, display: display, of: len(list)}
	var busy []int
	for i, j := range list {
		switch err := x.execute(ctx, j, i+1); {
		case len(list) > 1 && isAny[*store.LockedError](err):
			display.Note(err.Error() + ": the other runs go first")
			busy = append(busy, i)
		case err != nil:
			return a.explainStop(ctx, err)
		}
	}
	for _, i := range busy {
		switch err := x.execute(ctx, list[i], i+1); {
		case isAny[*store.LockedError](err):
			x.failed = append(x.failed, err)
		case err != nil:
			return a.explainStop(ctx, err)
		}
	}
	a.CloseProgress()
	show := a.printResults
	if goal != nil {
		show = goal.print
	}
	if err := show(ctx, db, x.results); err != nil {
		return err
	}
	if err := endError(x.failed, x.conditions); err != nil {
		return err
	}
	if goal != nil {
		return nil
	}
	return a.suggestNext(ctx, db, x.results)
}

// series are the runs of one command.
type series struct {
	*app
	c       *cli.Context
	db      *store.DB
	options harness.Options
	sources map[config.Stage]plan.Code
	display term.Progress
	of      int // runs

	results    []harness.Result
	failed     []error // with --keep-going, and of runs that other processes execute
	conditions []*harness.StoppedError
}

// execute executes the run with a 1-based index and keeps what came of it. Its error ends the series, unless
// another process executes the run, a *store.LockedError: then nothing is kept.
func (x *series) execute(ctx context.Context, j plan.Wanted, index int) error {
	res, err := x.executeOne(ctx, x.db, j, index, x.of, x.options, x.sources, x.display)
	if isAny[*store.LockedError](err) {
		return err
	}
	if err == nil || res.Run.ID != 0 {
		x.results = append(x.results, res)
	}
	for _, tag := range x.c.StringSlice("tag") {
		if res.Run.ID != 0 {
			err = errors.Join(err, x.db.AddTag(context.WithoutCancel(ctx), res.Run.ID, tag))
		}
	}
	if held := onlyCondition(err); held != nil {
		x.conditions = append(x.conditions, held)
		return nil
	}
	if err != nil && ctx.Err() == nil && x.c.Bool("keep-going") {
		x.failed = append(x.failed, err)
		x.display.Warn(err.Error())
		return nil
	}
	return err
}

// checkLater checks the files of all configurations but the first, which is planned at once: the first may take
// hours. Of several that read the same, as the arms of a grid do, it checks one.
func checkLater(ctx context.Context, db *store.DB, configs []*config.Resolved) error {
	for i, r := range configs {
		seen := slices.ContainsFunc(configs[:i], func(earlier *config.Resolved) bool { return readsSame(r, earlier) })
		if i == 0 || seen {
			continue
		}
		if err := harness.CheckInputs(ctx, db, r); err != nil {
			return err
		}
	}
	return nil
}

// readsSame reports whether all that two configurations may differ in is how they train.
func readsSame(a, b *config.Resolved) bool {
	x, y := a.Run, b.Run
	x.Name, x.Seed, x.Train.Optim, x.Algo, x.Rollout.N = y.Name, y.Seed, y.Train.Optim, y.Algo, y.Rollout.N
	p, q := a.Run.Algo, b.Run.Algo
	return reflect.DeepEqual(x, y) && p.HasTeacher() == q.HasTeacher() &&
		(!p.HasTeacher() || p.Reference == q.Reference) && slices.Equal(p.Teachers, q.Teachers) &&
		p.Prime.Model == q.Prime.Model
}

func (a *app) executeOne(ctx context.Context, db *store.DB, j plan.Wanted, index, of int, o harness.Options,
	sources map[config.Stage]plan.Code, display term.Progress) (harness.Result, error) {
	be, err := device.ForRun(&j.Config.Run, a.Getenv)
	if err != nil {
		return harness.Result{}, err
	}
	defer be.Close()
	suites, err := harness.Suites(ctx, db, j.Config)
	if err != nil {
		return harness.Result{}, err
	}
	p, err := plan.New(j.Config, j.Seed, be.Class(), sources, suites...)
	if err != nil {
		return harness.Result{}, err
	}
	if of == 1 {
		index, of = 0, 0
	}
	display.Note(fmt.Sprintf("%s  xid %s  %s  %s", withAlgo(j.Config.Run.Name, p.Config.Run.Algorithm()),
		p.XID.Short(), p.Numerics, be.Where()))
	if choice, err := device.OfRun(&j.Config.Run); err == nil && choice.Why != "" {
		display.Note(choice.Why)
	}
	display.RunStart(term.Run{ID: p.RID.Short(), Seed: j.Seed, Index: index, Of: of})
	a.OnSecondSignal(func() string { return keptOf(db, p.RID) + a.again() })
	start := time.Now()
	r := harness.Runner{DB: db, Backend: be, Watch: &watcher{p: display}, Build: buildName(), Options: o,
		Ranks: a.ranks, Endpoint: hub.FromEnv(a.Getenv).Endpoint(), Getenv: a.Getenv,
		Code: func(err error) int { return int(describe(a.explainStop(ctx, err), context.Cause(ctx)).Code) }}
	res, err := r.Execute(ctx, p)
	if err == nil { // if it failed, a second signal still says what was saved
		a.OnSecondSignal(nil)
	}
	outcome := term.Outcome{Status: term.Done, Wall: time.Since(start)}
	var stopped *harness.InterruptedError
	switch {
	case errors.As(err, &stopped), isAny[*harness.StoppedError](err):
		outcome.Status = term.Stopped
	case isAny[*store.LockedError](err):
		outcome.Status = term.Busy
	case err != nil:
		outcome.Status = term.Failed
	case res.Executed == 0:
		outcome.Status = term.Cached
	}
	outcome.Facts = []term.Fact{{Name: "executed", Text: strconv.Itoa(res.Executed), Counts: true},
		{Name: "cached", Text: strconv.Itoa(res.Cached), Counts: true}}
	display.RunDone(outcome)
	return res, err
}

// keptOf describes what remains of a run that is stopped at once.
func keptOf(db *store.DB, rid ident.Digest) string {
	kept := "run " + rid.Short() + " keeps its finished stages"
	if list, err := keep.Saved(db, rid); err == nil && len(list) > 0 {
		last := list[len(list)-1]
		kept += fmt.Sprintf(" and the checkpoint of step %d", last.Step)
	}
	return kept
}

// explainStop says how to continue after an interruption, or on another device after a failure
// of this one.
func (a *app) explainStop(ctx context.Context, err error) error {
	var stopped *harness.InterruptedError
	switch {
	case errors.As(err, &stopped):
		return cli.Stoppedf(ctx, "%v; saved%s", stopped, a.again())
	case fault.DeviceLost(err) && a.ranks != nil:
		return lostDevice(describe(fmt.Errorf("%w%s", err, a.again()), nil))
	case fault.DeviceLost(err):
		return fmt.Errorf("%w%s", err, a.again())
	}
	return err
}

// again returns the line that says how to continue: this command without --no-cache, which would
// start over.
func (a *app) again() string {
	words := slices.DeleteFunc(slices.Clone(a.Args), func(w string) bool { return w == "--no-cache" })
	return "\n  to continue: " + strings.Join(quoteAll(words), " ")
}

// nameRun lets again name a run by its id: @last may be another run by then.
func (a *app) nameRun(ref string, rid ident.Digest) {
	a.Args = slices.Clone(a.Args)
	if i := slices.Index(a.Args, ref); i >= 0 && strings.HasPrefix(ref, "@") {
		a.Args[i] = rid.Short()
	}
}

// quoteAll quotes words for a shell where they need it.
func quoteAll(words []string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = w
		if w == "" || strings.ContainsAny(w, " \t\n'\"\\$&|;<>()[]{}*?#~`!") {
			out[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return out
}

// buildName is the program's version for the record.
func buildName() string { return "exp " + runtime.Version() }
