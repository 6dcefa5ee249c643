package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"exp/cmd/exp/cli"
	"exp/eval"
	"exp/experiments/ident"
	"exp/experiments/query"
	"exp/experiments/recorded"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/evaluate"
	"exp/harness/hub"
	"exp/harness/inspect"
	"exp/harness/plan"
	"exp/harness/replan"
	harness "exp/harness/run"
	"exp/harness/stage"
)

// evalSettings lists the flags of exp eval RUN and exp eval FOLDER that set keys.
var evalSettings = []evalSetting{
	{"protocol", "eval.final.protocol"}, {"n", "eval.final.n"}, {"temperature", "eval.final.temperature"},
	{"top-p", "eval.final.top_p"}, {"top-k", "eval.final.top_k"}, {"min-p", "eval.final.min_p"},
	{"repetition-penalty", "eval.final.repetition_penalty"}, {"presence-penalty", "eval.final.presence_penalty"},
	{"frequency-penalty", "eval.final.frequency_penalty"},
	{"max-new-tokens", "eval.final.max_new_tokens"}, {"prompt", "eval.final.prompt"}, {"device", "compute.device"},
	{"max-not-graded", "eval.final.max_not_graded"}, {"truncate", "eval.final.truncate"},
	{"likelihood", "eval.final.likelihood"},
	{"shots", "eval.final.shots"}, {"shots-suite", "eval.final.shots_suite"},
	{"description", "eval.final.description"},
}

// samplingFlags have no effect where likelihoods of options are compared.
var samplingFlags = []string{"n", "temperature", "top-p", "top-k", "min-p", "repetition-penalty", "presence-penalty",
	"frequency-penalty", "max-new-tokens", "k", "protocol", "score-by", "score-with"}

// evalSetting is a flag that sets a key.
type evalSetting struct{ flag, key string }

// appendTo adds the flag's value if it is given.
func (s evalSetting) appendTo(values []config.Value, c *cli.Context) []config.Value {
	if !c.IsSet(s.flag) {
		return values
	}
	return append(values, config.Value{Path: s.key, Value: s.value(c.String(s.flag)), From: "--" + s.flag})
}

// value returns the key's value for a flag's text. A text that leaves the choice to the suite's definition, in a
// configuration, is the user's choice in a flag.
func (s evalSetting) value(text string) string {
	if s.flag == "prompt" && text == config.ProblemMark || s.flag == "description" && text == "" {
		return config.None
	}
	return text
}

// evalRunFlags are the flags that need weights.
func evalRunFlags() []cli.Flag {
	unset := "as in the configuration"
	return []cli.Flag{
		&cli.IntFlag{Name: "n", Aliases: []string{"samples"},
			Usage:       "RUN, FOLDER: sample `N` completions of each problem",
			DefaultText: unset},
		&cli.StringFlag{Name: "temperature", Usage: "RUN, FOLDER: sample at temperature `T`, 0 for greedy",
			DefaultText: unset},
		&cli.StringFlag{Name: "top-p", Usage: "RUN, FOLDER: sample from the likeliest tokens of total probability `P`",
			DefaultText: unset},
		&cli.IntFlag{Name: "top-k", Usage: "RUN, FOLDER: sample from the `K` likeliest tokens, 0 for all",
			DefaultText: unset},
		&cli.StringFlag{Name: "min-p", Usage: "RUN, FOLDER: sample from tokens at least `P` times as likely as the " +
			"likeliest", DefaultText: unset},
		&cli.StringFlag{Name: "repetition-penalty", Usage: "RUN, FOLDER: divide the positive logits of tokens that " +
			"the prompt or the completion has by `X`, and multiply negative ones; 1 is off", DefaultText: unset},
		&cli.StringFlag{Name: "presence-penalty", Usage: "RUN, FOLDER: lower the logits of tokens that the " +
			"completion has by `X`", DefaultText: unset},
		&cli.StringFlag{Name: "frequency-penalty", Usage: "RUN, FOLDER: lower a token's logit by `X` each time that " +
			"the completion has it", DefaultText: unset},
		generationFlag("FOLDER: "),
		&cli.IntFlag{Name: "max-new-tokens", Aliases: []string{"max-tokens"},
			Usage: "RUN, FOLDER: sample at most `N` tokens", DefaultText: unset},
		&cli.StringFlag{Name: "prompt", Usage: "RUN, FOLDER: ask `TEXT`, with {problem} where the problem goes; " +
			"'{problem}' or none: the problem alone", DefaultText: "as in the configuration, or the suite"},
		&cli.StringFlag{Name: "likelihood", Usage: "RUN, FOLDER: answer with the likeliest option instead of " +
			"sampling: `letter`, behind the prompt with all options, or option, its text behind the question alone; " +
			"off", DefaultText: "as in the suite"},
		&cli.IntFlag{Name: "shots", Usage: "RUN, FOLDER: put `K` solved problems of --shots-suite before each problem",
			DefaultText: "as in the suite"},
		&cli.StringFlag{Name: "shots-suite", Usage: "RUN, FOLDER: take them from `SUITE` of the store",
			DefaultText: "as in the suite"},
		&cli.StringFlag{Name: "description", Usage: "RUN, FOLDER: begin each prompt with `TEXT`, with {source} " +
			"where the problem's source goes; none: with nothing", DefaultText: "as in the suite"},
		&cli.StringFlag{Name: "truncate", Usage: "RUN, FOLDER: cut prompts of more than data.max_prompt_tokens " +
			"on the `SIDE` left, right or middle, and count them, or refuse the suite: error", DefaultText: unset},
		&cli.StringFlag{Name: "max-not-graded", Usage: "RUN, FOLDER: score also if a `SHARE` of the completions " +
			"has no verdict, such as 5%", DefaultText: unset},
		&cli.StringFlag{Name: "score-by", Usage: "RUN, FOLDER: have `SCORER` score the completions, for best@k, " +
			"maj@k and weighted votes: a reward model's folder, hub:ORG/NAME@REV, a run that trained one, the " +
			"URL of a judge's server, or a program, [python3, score.py]", DefaultText: unset},
		&cli.StringSliceFlag{Name: "score-with", Usage: "RUN, FOLDER: how it scores them: `KEY=VALUE`, a key of " +
			"eval.final.scorer, such as end=true or split=\"\\n\\n\"; may be given again"},
		&cli.IntFlag{Name: "limit", Usage: "RUN, FOLDER: score the first `N` problems of each suite, stored " +
			"as a new suite", DefaultText: "all"},
		&cli.StringFlag{Name: "template", Usage: "FOLDER: render chats with the template in `FILE`, or none " +
			"for plain text", DefaultText: "the folder's own"},
		&cli.StringFlag{Name: "system", Usage: "FOLDER: begin each chat with the system message `TEXT`",
			DefaultText: "the template's own"},
		&cli.StringFlag{Name: "adapter", Usage: "FOLDER: add the LoRA adapters in folder `DIR`, in " +
			"PEFT's layout", DefaultText: "none"},
		&cli.StringFlag{Name: "part", Usage: "FOLDER: " + partUsage, DefaultText: "the whole"},
		&cli.StringSliceFlag{Name: "set", Usage: "FOLDER: set a key of the configuration, `KEY=VALUE` (exp " +
			"config schema lists them)"},
		&cli.BoolFlag{Name: "dry-run", Usage: "FOLDER: print the plan, the chat template, the stop " +
			"tokens and the memory needed, and sample nothing"},
		&cli.StringFlag{Name: "device", Usage: "RUN, FOLDER: compute on `DEVICE`: cpu, cuda, cuda:N, auto",
			DefaultText: unset},
		&cli.BoolFlag{Name: "rescore", Usage: "RUN, FOLDER: score again even if scores are stored; different bits " +
			"are a divergence"},
	}
}

// responsesFlags are the flags that need a file of responses.
var responsesFlags = []string{"partial", "published", "out", "write"}

// evalWeights samples and scores suites with the final weights of a run, or the weights
// in a folder.
func (a *app) evalWeights(c *cli.Context, ref string) error {
	for _, f := range responsesFlags {
		if c.IsSet(f) {
			return a.Usagef("--%s needs --responses; it does not apply to a run or a folder", f)
		}
	}
	if mode := c.String("likelihood"); mode == eval.ByLetter || mode == eval.ByOption {
		for _, f := range samplingFlags {
			if c.IsSet(f) {
				return a.Usagef("--%s is about sampled answers, and --likelihood %s samples none: it compares the "+
					"options' likelihoods at temperature 1", f, mode)
			}
		}
	}
	if c.IsSet("shots-suite") && c.String("shots-suite") == "" {
		return a.Usagef("--shots-suite names no suite; --shots 0 asks without examples")
	}
	if len(c.StringSlice("suite")) == 0 {
		return a.Usagef("--suite NAME is needed: a suite of the store, a file or, for a run, test or val")
	}
	db, err := a.OpenStoreToWrite()
	if err != nil {
		return err
	}
	defer db.Close()
	model := inspect.IsModel(ref) || hub.IsRef(ref)
	var run store.Run
	if !model {
		if run, err = a.runWithWeights(c, db, ref); err != nil {
			return err
		}
	}
	scorer, err := a.scorerValues(c, db)
	if err != nil {
		return err
	}
	suites, err := a.evalSuites(c, db) // last: it may add suites to the store
	if err != nil {
		return err
	}
	values := append(evalValues(c, suites), scorer...)
	if model {
		return a.evalModel(c, db, ref, suites, values)
	}
	return a.evalRun(c, db, run, suites, values)
}

// runWithWeights returns the run to score.
func (a *app) runWithWeights(c *cli.Context, db *store.DB, ref string) (store.Run, error) {
	run, err := a.oneRun(c.Context, db, ref)
	if err != nil {
		return run, noFolder(ref, err)
	}
	for _, flag := range []string{"template", "system", "adapter", "part", "set", "dry-run", generationConfig} {
		if c.IsSet(flag) {
			return run, a.Usagef("--%s needs a FOLDER: a run's prompts are built as in its training", flag).
				Advise("the run's folder is scored as a run of its own: exp eval " +
					filepath.Join(db.RunDir(run.RID), stage.MergedDir) + " …")
		}
	}
	if by := run.Foreign(); by != "" {
		return run, &replan.ForeignError{Run: run.RID, By: by}
	}
	there, err := replan.HasWeights(c.Context, db, run)
	if err == nil && !there {
		return run, cli.Failf(cli.ExitNotFound, "run %s has no final weights yet", run.RID.Short()).
			Advise("exp resume " + run.RID.Short() + " continues it")
	}
	if err != nil {
		return run, err
	}
	lacks, err := replan.LacksWeights(c.Context, db, run)
	if err == nil && lacks {
		return run, cli.Failf(cli.ExitNotFound, "the weights of run %s are not in this store", run.RID.Short()).
			Advise(withoutWeights(run))
	}
	return run, err
}

// withoutWeights says how to get the weights of a run that are not in the store.
func withoutWeights(run store.Run) string {
	return fmt.Sprintf("import a bundle with weights over it (exp export without --no-weights), or compute them "+
		"again: exp resume %s; exp show %[1]s prints the scores that it has", run.RID.Short())
}

// noFolder extends "no such run" where the folder is missing too.
func noFolder(ref string, err error) error {
	var several *query.AmbiguousError
	if _, e := os.Stat(ref); e == nil || strings.HasPrefix(ref, "@") || errors.As(err, &several) {
		return err
	}
	return fmt.Errorf("%w, and no such folder exists", err)
}

// evalRun scores the final weights of a run and stores the results with the run. It
// trains nothing and recomputes nothing that is stored.
func (a *app) evalRun(c *cli.Context, db *store.DB, run store.Run, suites []string, values []config.Value) error {
	o := replan.Options{Kinds: trainingStages(), Getenv: a.Getenv}
	o.Values = append(unsetByProtocol(c, db, run), values...)
	p, be, err := replan.Plan(c.Context, db, run, o)
	var other *replan.SourcesError
	if dir := filepath.Join(db.RunDir(run.RID), stage.MergedDir); errors.As(err, &other) && inspect.IsModel(dir) {
		f := describe(err, nil)
		f.Help = fmt.Sprintf("score its folder, as a run of its own: exp eval %s …; or with the program that "+
			"trained it: exp show %s --source DIR, then in DIR: go build -trimpath -o exp ./cmd/exp", dir,
			run.RID.Short())
		return f
	}
	if err != nil {
		return err
	}
	be.Close()
	return a.scoreSuites(c, db, plan.Wanted{Config: p.Config, Seed: run.Seed}, suites,
		harness.Options{Joins: true, Rescore: c.Bool("rescore")})
}

// unsetByProtocol returns the settings of a run that --protocol replaces by its own, as values for their defaults. A
// run's configuration records all of them, whoever set them.
func unsetByProtocol(c *cli.Context, db *store.DB, run store.Run) (values []config.Value) {
	const flag = "protocol"
	if !c.IsSet(flag) || c.String(flag) == config.None &&
		recorded.ConfigValue(c.Context, db, run, "eval.final.protocol") == config.None {
		return nil
	}
	for _, path := range config.ProtocolKeys() {
		values = append(values, config.Value{Path: path, From: "--" + flag})
	}
	return values
}

// scoreSuites executes a run whose configuration names suites, and prints its scores
// on them.
func (a *app) scoreSuites(c *cli.Context, db *store.DB, j plan.Wanted, suites []string, o harness.Options) error {
	sources, err := plan.Sources()
	if err != nil {
		return err
	}
	res, err := a.executeOne(c.Context, db, j, 1, 1, o, sources, a.Progress())
	if err != nil {
		var stopped *harness.InterruptedError
		if errors.As(err, &stopped) {
			return cli.Stoppedf(c.Context, "%v", stopped)
		}
		return err
	}
	a.CloseProgress()
	return a.printSuites(c.Context, db, res.Run, j.Config, suites, c.IsSet("k"))
}

// evalValues returns the protocol flags as settings.
func evalValues(c *cli.Context, suites []string) []config.Value {
	values := []config.Value{{Path: config.SuitesKey, Value: suites, From: "--suite"}}
	for _, s := range evalSettings {
		values = s.appendTo(values, c)
	}
	switch list := c.StringSlice("grader"); {
	case slices.Equal(list, []string{config.None}):
		values = append(values, config.Value{Path: "eval.final.graders", From: "--grader"})
	case len(list) > 0:
		values = append(values, config.Value{Path: "eval.final.graders", Value: list, From: "--grader"})
	}
	switch {
	case c.IsSet("k"):
		var ks []string
		for k := range strings.SplitSeq(c.String("k"), ",") {
			ks = append(ks, strings.TrimSpace(k))
		}
		values = append(values, config.Value{Path: "eval.final.pass_k", Value: ks, From: "--k"})
	case c.IsSet("n"): // the configured k may exceed n
		values = append(values, config.Value{Path: "eval.final.pass_k", Value: evaluate.PassK(c.Int("n")),
			From: "--n"})
	}
	return values
}

// printSuites prints the run's scores on suites under the configured protocol; people see all its k of
// pass@k only if they chose them.
func (a *app) printSuites(ctx context.Context, db *store.DB, run store.Run, r *config.Resolved,
	suites []string, allK bool) error {
	evals, err := db.Evals(ctx, run.ID)
	if err != nil {
		return err
	}
	p := plan.Run{Config: r}
	if r.Run.JudgesAlone() || r.Run.Eval.Final.Scorer.Used() {
		if p.External, err = stage.Externals(r); err != nil {
			return err
		}
	}
	if p.Suites, err = harness.Suites(ctx, db, r); err != nil {
		return err
	}
	protocols := map[string]ident.Digest{}
	for _, name := range suites {
		if protocols[suiteLabel(run, r, name)], err = p.Protocol(name); err != nil {
			return err
		}
	}
	evals = slices.DeleteFunc(evals, func(e store.Eval) bool {
		return e.Protocol != protocols[strings.TrimSuffix(e.SuiteName, ident.StartSuffix)]
	})
	results := recorded.Results(evals)
	t := cli.Table{Schema: "exp.eval.run/1", Columns: []cli.Column{{Key: "run", ID: true}, {Key: "suite"},
		{Key: "metric"}, {Key: "n"}, {Key: "items"},
		{Key: "start", Digits: 3}, {Key: "value", Digits: 3}, {Key: "lo", Digits: 3}, {Key: "hi", Digits: 3}}}
	for _, name := range suites {
		name = suiteLabel(run, r, name)
		list := slices.DeleteFunc(slices.Clone(results), func(r recorded.Result) bool {
			return r.Suite != name || r.After == nil
		})
		if a.Out.ForPeople() {
			list = mainResults(list, allK)
		}
		for _, r := range list {
			row := []any{cli.HexID(run.RID.String()), r.Suite, r.Metric, r.N, r.Items, nil, r.After.Value, nil, nil}
			if r.Before != nil {
				row[5] = r.Before.Value
			}
			if r.After.Lo != nil {
				row[7], row[8] = *r.After.Lo, *r.After.Hi
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return a.Out.PrintTable(t)
}

// suiteLabel returns the name under which a run's scores on a suite are stored.
func suiteLabel(run store.Run, r *config.Resolved, suite string) string {
	if slices.Contains(stage.ForeignSuites(&r.Run), suite) {
		return suite
	}
	return run.Task + "/" + suite
}
