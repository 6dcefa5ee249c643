package main

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"exp/cmd/exp/cli"
	"exp/experiments/store"
	"exp/harness/config"
	harness "exp/harness/run"
	"exp/harness/stage"
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
			"Bayesian searches such as TPE are missing.",
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
			"exp run a.yaml b.yaml --seeds 0-4 --on ssh:gpu1,gpu2 # two hosts, a run at a time on each",
			"exp run a.yaml b.yaml --seeds 0-4 --on slurm --dry-run # the batch scripts",
			"exp run my.yaml --seeds 0-4 --on slurm --ranks 8 # jobs of eight processes",
			"exp run a.yaml b.yaml --seeds 0-4 --on kubernetes > jobs.yaml # then kubectl apply -f jobs.yaml",
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
			&cli.StringFlag{Name: "objective", Usage: "rank the trials by `FIELD`: eval.SUITE.NAME, metric.NAME, " +
				"min:metric.NAME",
				DefaultText: "eval.test.pass@1"},
			&cli.IntFlag{Name: "trials", Usage: "run `N` trials; more later continue the search",
				DefaultText: strconv.Itoa(defaultTrials)},
			&cli.Int64Flag{Name: "search-seed", Usage: "draw other trials for another `SEED`"},
			&cli.StringSliceFlag{Name: "stop-if", Usage: "save and stop after a step where `EXPR` holds " +
				"(run.stop_if); none drops the configured ones"},
			&cli.StringFlag{Name: "seeds", Aliases: []string{"seed"},
				Usage: "run these seeds: `LIST` such as 0-2 or 1,5,7"},
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
			rankTimeoutFlag(),
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
	if on {
		return a.runOn(c, configs, seeds, goal)
	}
	if c.Bool("dry-run") {
		return a.dryRun(c.Context, configs, seeds, c.Int("ranks"))
	}
	if err := a.requireAll(c, configs); err != nil { // before the first of several runs takes its hours
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

// requireAll checks that the configurations can be executed here, on the ranks of --ranks. It
// creates no store, and opens one only for the suites that they name: another process may be
// creating it.
func (a *app) requireAll(c *cli.Context, configs []*config.Resolved) error {
	n := c.Int("ranks")
	if err := a.ranksFit(configs, n); err != nil {
		return err
	}
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
		if _, err := harness.RequireAll(c.Context, db, r, a.processes(n)); err != nil {
			return err
		}
	}
	return nil
}
