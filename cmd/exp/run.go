package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
	"exp/experiments/ident"
	"exp/experiments/keep"
	"exp/experiments/quantity"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/device"
	"exp/harness/fault"
	"exp/harness/hub"
	"exp/harness/metric"
	"exp/harness/plan"
	harness "exp/harness/run"
	"exp/harness/stage"
	"exp/harness/sweep"
)

func runCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "run",
		Category:  "Experiments",
		Usage:     "train, merge and evaluate what a configuration describes",
		ArgsUsage: "CONFIG...",
		Description: "Executes the stages of each configuration for each seed and records them. Stages whose " +
			"results are in the store are reused: a complete run prints its stored result and trains nothing; " +
			"an interrupted one continues from its checkpoint. Ctrl-C finishes the current step, saves, and " +
			"says how to continue. It uses no network unless a configuration asks a judge (reward.kind: judge; " +
			"exp config explain reward.kind) or --get fetches models and data.\n" +
			"--grid runs every combination of its keys. --search random draws --trials of the --range keys and ends " +
			"with a table of the --objective, the best first; a longer search repeats a shorter one from the cache. " +
			"There is no TPE.",
		UsageText: strings.Join([]string{
			"exp run configs/smoke_cpu.yaml # the whole pipeline in seconds",
			"exp run configs/countdown_cpu_flowrl.yaml --seeds 0-2 # three replicates; they share the " +
				"fine-tuned start",
			"exp run configs/countdown_cpu_flowrl.yaml --set algo.flowrl.beta=5 # another experiment",
			"exp run my.yaml --grid algo.flowrl.beta=1,5 --grid train.optim.lr=1e-4,3e-4 # four arms",
			"exp run my.yaml --search random --range train.optim.lr=log:1e-6..1e-4 # ten by " +
				"eval.test.pass@1",
			"exp run my.yaml --stop-if 'kl/ref_k3 > 1' --stop-if 'actor/entropy < 0.05' # give up early",
			"exp run a.yaml b.yaml --seeds 0-4 --on local -j 4 # ten runs, four at once, on divided processors",
			"exp run configs/flowrl_7b_math.yaml --dry-run # what it would do and need",
			"exp run configs/countdown_cpu_ppo.yaml --ranks 4 # the same bits from four processes",
		}, "\n"),
		Flags: append([]cli.Flag{
			&cli.StringSliceFlag{Name: "set", Usage: "set a configuration key: `KEY=VALUE`, KEY+=ITEM, KEY=null"},
			&cli.StringSliceFlag{Name: "overlay", Usage: "override CONFIG with the configuration `FILE`"},
			&cli.StringSliceFlag{Name: "grid", Usage: "run an arm per value of `KEY=LIST`, as in " +
				"train.optim.lr=1e-5,1e-4; several --grid multiply"},
			&cli.StringFlag{Name: "search", Usage: "run trials of the --range keys, drawn by `METHOD`: random"},
			&cli.StringSliceFlag{Name: "range", Usage: "search `KEY=LOW..HIGH`, KEY=log:LOW..HIGH or KEY=LIST; ends " +
				"like 0.0 draw any number, 0 whole ones"},
			&cli.StringFlag{Name: "objective", Usage: "rank the trials by `FIELD`: eval.SUITE.NAME, metric.NAME",
				DefaultText: "eval.test.pass@1"},
			&cli.IntFlag{Name: "trials", Usage: "run `N` trials; more later continue the search",
				DefaultText: strconv.Itoa(defaultTrials)},
			&cli.Int64Flag{Name: "search-seed", Usage: "draw other trials for another `SEED`"},
			&cli.StringSliceFlag{Name: "stop-if", Usage: "save and stop after a step where `EXPR` holds " +
				"(run.stop_if); none drops the configured ones"},
			&cli.StringFlag{Name: "seeds", Usage: "run these seeds: `LIST` such as 0-2 or 1,5,7"},
			&cli.StringFlag{Name: "until", Usage: "stop after this `STAGE`: " + strings.Join(stageNames(), ", ")},
			&cli.BoolFlag{Name: "dry-run", Usage: "print the plan and execute nothing"},
			&cli.BoolFlag{Name: "get", Usage: "first fetch what the configuration names on the hub and the cache " +
				"lacks (exp hub)"},
			&cli.BoolFlag{Name: "no-cache", Usage: "execute stages from the start even if their results are " +
				"stored; different bits are a divergence"},
			&cli.BoolFlag{Name: "verify-cache", Usage: "hash stored results before reusing them"},
			&cli.BoolFlag{Name: "keep-going", Usage: "continue with the next run when one fails"},
			deviceFlag("config"),
			&cli.IntFlag{Name: "threads", Usage: "use `N` threads, 0 for all (compute.threads)",
				DefaultText: "config"},
			ranksFlag(),
			&cli.StringSliceFlag{Name: "tag", Usage: "tag the runs with `NAME`"},
		}, onFlags()...),
		BashComplete: a.Completes(func(_ *cli.Context, w cli.Word) []cli.Candidate { return configCandidates(w) }),
		Action:       a.runRuns,
	}
}

// stageNames lists the kinds of stages in order; with parts, only theirs.
func stageNames(parts ...config.Part) []string {
	var names []string
	for _, kind := range config.StagesOf(parts...) {
		names = append(names, string(kind))
	}
	return names
}

func (a *app) runRuns(c *cli.Context) error {
	if c.NArg() == 0 {
		return a.Usagef("no configuration given")
	}
	until := c.String("until")
	if until != "" {
		if _, err := cli.OneOf("--until", until, stageNames()); err != nil {
			return err
		}
	}
	on, err := a.checkOn(c)
	if err != nil {
		return err
	}
	if c.Bool("get") && c.Bool("dry-run") {
		return a.Usagef("--get fetches, and --dry-run does nothing: choose one")
	}
	configs, err := a.loadConfigs(c)
	if err != nil {
		return err
	}
	if c.Bool("get") {
		fetched, err := a.fetchMissing(c.Context, configs)
		if err != nil {
			return err
		}
		if fetched {
			if configs, err = a.loadConfigs(c); err != nil {
				return err
			}
		}
	}
	seeds, err := parseSeeds(c.String("seeds"))
	if err != nil {
		return err
	}
	goal, err := a.objectiveOf(c, configs)
	if err != nil {
		return err
	}
	a.announce(c, configs, seeds)
	if c.Bool("dry-run") {
		return a.dryRun(c.Context, configs, seeds)
	}
	if on {
		return a.runLocal(c, configs, seeds, goal)
	}
	if err := a.requireAll(c.Context, configs); err != nil { // before the first of several runs takes its hours
		return err
	}
	if done, err := a.launchRanks(c, configs); done {
		return err
	}
	db, err := a.OpenStoreToWrite()
	if err != nil {
		return err
	}
	defer db.Close()
	options := harness.Options{Until: config.Stage(until), NoCache: c.Bool("no-cache"),
		VerifyCache: c.Bool("verify-cache")}
	return a.executeAll(c, db, configs, seeds, options, goal)
}

// requireAll checks that the configurations can be executed here. It creates no store,
// and opens one only for the suites that they name: another process may be creating it.
func (a *app) requireAll(ctx context.Context, configs []*config.Resolved) error {
	var db *store.DB
	if slices.ContainsFunc(configs, func(r *config.Resolved) bool { return len(stage.ForeignSuites(&r.Run)) > 0 }) {
		var err error
		var none *cli.Failure
		db, err = a.OpenStore()
		if err != nil && !(errors.As(err, &none) && none.Code == cli.ExitNotFound) &&
			!errors.Is(err, store.ErrNoStore) {
			return err
		}
		if db != nil {
			defer db.Close()
		}
	}
	for _, r := range configs {
		if _, err := harness.RequireAll(ctx, db, r); err != nil {
			return err
		}
	}
	return nil
}

// loadConfigs loads each CONFIG with the overlays, the --set expressions and the flags
// that set keys, once for each arm of the grid.
func (a *app) loadConfigs(c *cli.Context) ([]*config.Resolved, error) {
	sets := c.StringSlice("set")
	if c.IsSet("device") {
		sets = append(sets, "compute.device="+c.String("device"))
	}
	if c.IsSet("threads") {
		sets = append(sets, "compute.threads="+strconv.Itoa(c.Int("threads")))
	} else if v := a.Getenv("EXP_THREADS"); v != "" {
		sets = append(sets, "compute.threads="+v)
	}
	sets = append(sets, stopSets(c)...)
	arms, from, err := armsOf(c)
	if err != nil {
		return nil, err
	}
	var out []*config.Resolved
	var errs config.Errors
	for _, file := range c.Args().Slice() {
		list, err := sweep.Load(config.Input{File: file, User: a.userConfig(), Overlays: c.StringSlice("overlay"),
			Sets: sets, Find: a.hubCache().Find}, arms, from)
		var bad config.Errors
		if errors.As(err, &bad) {
			errs = append(errs, bad...)
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, r := range list {
			for _, d := range r.Dropped {
				a.Log.Info("inherited setting has no effect", "key", d.Path, "because", d.Because)
			}
		}
		out = append(out, list...)
	}
	if len(errs) > 0 {
		return nil, errs
	}
	return out, nil
}

// announce says which runs a grid or a search makes, in order.
func (a *app) announce(c *cli.Context, configs []*config.Resolved, seeds []int64) {
	if !c.IsSet("grid") && !c.IsSet("search") {
		return
	}
	list := jobs(configs, seeds)
	each := ""
	if len(seeds) > 1 {
		each = fmt.Sprintf(", %d seeds each", len(seeds))
	}
	a.Note("%s%s: %s, in this order", quantity.Plural(len(configs), "arm"), each, quantity.Plural(len(list), "run"))
	const shown = 24
	for _, r := range configs[:min(len(configs), shown)] {
		a.Note("  %s", r.Run.Name)
	}
	if more := len(configs) - shown; more > 0 {
		a.Note("  and %d more", more)
	}
}

// mostSeeds is more than anyone trains, and still quick to list.
const mostSeeds = 10000

// parseSeeds reads "0-2,5"; nil means the configured seeds.
func parseSeeds(list string) ([]int64, error) {
	if list == "" {
		return nil, nil
	}
	var seeds []int64
	for _, part := range strings.Split(list, ",") {
		lo, hi, ranged := strings.Cut(strings.TrimSpace(part), "-")
		first, err := strconv.ParseInt(lo, 10, 63)
		last := first
		if err == nil && ranged {
			last, err = strconv.ParseInt(hi, 10, 63)
		}
		switch {
		case err != nil:
			return nil, cli.Usagef("--seeds %q: %q is not a seed or a range such as 0-2", list, part)
		case last < first:
			return nil, cli.Usagef("--seeds %q: the range %s ends before it begins", list, part)
		case last-first >= mostSeeds-int64(len(seeds)):
			return nil, cli.Usagef("--seeds %q: at most %d seeds at once", list, mostSeeds)
		}
		for s := first; s <= last; s++ {
			seeds = append(seeds, s)
		}
	}
	return seeds, nil
}

// job is a run to be executed.
type job struct {
	config *config.Resolved
	seed   int64
}

func jobs(configs []*config.Resolved, seeds []int64) []job {
	var list []job
	for _, r := range configs {
		own := seeds
		if own == nil {
			own = []int64{r.Run.Seed}
		}
		for _, s := range own {
			list = append(list, job{r, s})
		}
	}
	return list
}

func (a *app) executeAll(c *cli.Context, db *store.DB, configs []*config.Resolved, seeds []int64,
	o harness.Options, goal *objective) error {
	ctx := c.Context
	list := jobs(configs, seeds)
	sources, err := plan.Sources()
	if err != nil {
		return err
	}
	display := a.Progress()
	// A step may take minutes, so answer the first Ctrl-C at once.
	defer context.AfterFunc(ctx, func() {
		display.Note("stopping after the current step and saving it; Ctrl-C again stops at once")
	})()
	var results []harness.Result
	var failed []error
	var conditions []*harness.StoppedError
	for i, j := range list {
		res, err := a.executeOne(ctx, db, j, i+1, len(list), o, sources, display)
		if err == nil || res.Run.ID != 0 {
			results = append(results, res)
		}
		for _, tag := range c.StringSlice("tag") {
			if res.Run.ID != 0 {
				err = errors.Join(err, db.AddTag(context.WithoutCancel(ctx), res.Run.ID, tag))
			}
		}
		if held := onlyCondition(err); held != nil {
			conditions = append(conditions, held)
			continue
		}
		if err != nil {
			if ctx.Err() != nil || !c.Bool("keep-going") {
				return a.explainStop(ctx, err)
			}
			failed = append(failed, err)
			display.Warn(err.Error())
		}
	}
	a.CloseProgress()
	show := a.printResults
	if goal != nil {
		show = goal.print
	}
	if err := show(ctx, db, results); err != nil {
		return err
	}
	if len(failed) > 0 {
		return errors.Join(failed...)
	}
	if len(conditions) > 0 {
		return a.explainConditions(conditions)
	}
	if goal != nil {
		return nil
	}
	return a.suggestNext(ctx, db, results)
}

func (a *app) executeOne(ctx context.Context, db *store.DB, j job, index, of int, o harness.Options,
	sources map[config.Stage]plan.Code, display term.Progress) (harness.Result, error) {
	be, err := device.ForRun(&j.config.Run, a.Getenv)
	if err != nil {
		return harness.Result{}, err
	}
	defer be.Close()
	suites, err := harness.Suites(ctx, db, j.config)
	if err != nil {
		return harness.Result{}, err
	}
	p, err := plan.New(j.config, j.seed, be.Class(), sources, suites...)
	if err != nil {
		return harness.Result{}, err
	}
	if of == 1 {
		index, of = 0, 0
	}
	display.Note(fmt.Sprintf("%s  xid %s  %s  %s", withAlgo(j.config.Run.Name, p.Config.Run.Algorithm()),
		p.XID.Short(), p.Numerics, be.Where()))
	if choice, err := device.OfRun(&j.config.Run); err == nil && choice.Why != "" {
		display.Note(choice.Why)
	}
	display.RunStart(term.Run{ID: p.RID.Short(), Seed: j.seed, Index: index, Of: of})
	a.OnSecondSignal(func() string { return keptOf(db, p.RID) + a.again() })
	defer a.OnSecondSignal(nil)
	start := time.Now()
	r := harness.Runner{DB: db, Backend: be, Watch: &watcher{p: display}, Build: buildName(), Options: o,
		Ranks: a.ranks, Endpoint: hub.FromEnv(a.Getenv).Endpoint(), Getenv: a.Getenv,
		Code: func(err error) int { return int(describe(err, context.Cause(ctx)).Code) }}
	res, err := r.Execute(ctx, p)
	outcome := term.Outcome{Status: term.Done, Wall: time.Since(start)}
	var stopped *harness.InterruptedError
	switch {
	case errors.As(err, &stopped), isAny[*harness.StoppedError](err):
		outcome.Status = term.Stopped
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

// keptOf says what a run keeps if it is stopped at once.
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
	case fault.DeviceLost(err):
		return fmt.Errorf("%w%s", err, a.again())
	}
	return err
}

// again is the line that says how to continue: the command of this execution, without
// --no-cache, which would start over.
func (a *app) again() string {
	words := slices.DeleteFunc(slices.Clone(a.Args), func(w string) bool { return w == "--no-cache" })
	return "\n  to continue: " + strings.Join(quoteAll(words), " ")
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

// watcher shows the progress of the harness.
type watcher struct{ p term.Progress }

func (w *watcher) StageStart(s harness.StageInfo) {
	w.p.StageStart(term.Stage{Kind: s.Kind, Label: s.Label, Total: s.Steps})
}

func (w *watcher) StageProgress(done, total int, headline []harness.Metric) {
	step := term.Step{Step: done}
	for _, m := range headline {
		step.Metrics = append(step.Metrics, term.Metric{Name: m.Name, Value: m.Value})
	}
	w.p.StageProgress(step)
}

func (w *watcher) StageDone(s harness.StageInfo, r harness.StageEnd) {
	if r.Cached {
		w.p.StageCached(term.Stage{Kind: s.Kind, Label: s.Label}, r.From.Short())
		return
	}
	res := term.Result{Status: term.Done, Wall: r.Wall}
	switch {
	case r.Stopped:
		res.Status = term.Stopped
	case r.Failed:
		res.Status = term.Failed
	}
	for _, f := range r.Facts {
		res.Facts = append(res.Facts, factOf(f))
	}
	w.p.StageDone(res)
}

// factOf formats a fact about a stage for people: counts with their noun, scores with
// three digits.
func factOf(f harness.Metric) term.Fact {
	switch f.Name {
	case "train", "val", "test", "steps", "files", "parameters", "samples", "reused":
		return term.Fact{Name: f.Name, Text: quantity.Count(int64(f.Value)), Counts: true}
	}
	name := f.Name
	if m, _ := metric.Find(name); m.Heading != "" {
		name = m.Heading
	}
	return term.Fact{Name: name, Text: quantity.Short(f.Value)}
}

func (w *watcher) Note(text string) { w.p.Note(text) }

func (w *watcher) Warn(text string) { w.p.Warn(text) }

// buildName is the program's version for the record.
func buildName() string { return "exp " + runtime.Version() }
