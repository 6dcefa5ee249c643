package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"exp/experiments/store"
	"exp/harness/plan"
	harness "exp/harness/run"
)

// evalSettings are the flags of exp eval RUN that stand for keys of the protocol.
var evalSettings = []struct{ flag, key string }{
	{"protocol", "eval.final.protocol"}, {"n", "eval.final.n"}, {"temperature", "eval.final.temperature"}, {"top-p", "eval.final.top_p"}, {"top-k", "eval.final.top_k"},
	{"max-new-tokens", "eval.final.max_new_tokens"}, {"prompt", "eval.final.prompt"},
}

// evalRunFlags are those that need a run.
func evalRunFlags() []cli.Flag {
	unset := "as in the run's configuration"
	return []cli.Flag{
		&cli.IntFlag{Name: "n", Usage: "of a run: sample `N` completions of each problem", DefaultText: unset},
		&cli.StringFlag{Name: "temperature", Usage: "of a run: sample at temperature `T`, 0 for greedy", DefaultText: unset},
		&cli.StringFlag{Name: "top-p", Usage: "of a run: sample from the likeliest tokens of total probability `P`", DefaultText: unset},
		&cli.IntFlag{Name: "top-k", Usage: "of a run: sample from the `K` likeliest tokens, 0 for all", DefaultText: unset},
		&cli.IntFlag{Name: "max-new-tokens", Usage: "of a run: sample at most `N` tokens", DefaultText: unset},
		&cli.StringFlag{Name: "prompt", Usage: "of a run: ask `TEXT`, with {problem} where the problem goes", DefaultText: unset},
		&cli.BoolFlag{Name: "rescore", Usage: "of a run: score again although scores are stored; other bits are a divergence"},
	}
}

// responsesFlags are those that need a file of responses.
var responsesFlags = []string{"partial", "published", "out", "write"}

// evalRun samples and scores a suite with the final weights of a run. The results join
// the run's: nothing of it is trained, and what is stored is not made again.
func (a *app) evalRun(c *cli.Context, ref string) error {
	for _, f := range responsesFlags {
		if c.IsSet(f) {
			return usagef("--%s is for --responses, not for a run", f).see(a.line.command())
		}
	}
	if c.String("suite") == "" {
		return usagef("--suite NAME is needed: what the run is scored on, a suite of the store or test or val").see(a.line.command())
	}
	if info, err := os.Stat(ref); err == nil && info.IsDir() {
		f := failf(exitUsage, "%s is a folder; exp eval scores the weights of a run", ref)
		f.Help = "a folder of weights is evaluated by a run without training: model.init: pretrained, model.base: " + ref + ", train.steps: 0, eval.final.suites: [" + c.String("suite") + "]"
		return f
	}
	db, err := a.openStoreToWrite()
	if err != nil {
		return err
	}
	defer db.Close()
	run, err := a.oneRun(c.Context, db, ref)
	if err != nil {
		return err
	}
	if err := mergedWeights(c.Context, db, run); err != nil {
		return err
	}
	again, err := a.replan(c.Context, db, run, trainingStages(), evalSets(c)...)
	if err != nil {
		return err
	}
	again.backend.Close()
	sources, err := plan.Sources()
	if err != nil {
		return err
	}
	display := a.progressDisplay()
	res, err := a.executeOne(c.Context, db, job{again.plan.Config, run.Seed}, 1, 1, harness.Options{Joins: true, Rescore: c.Bool("rescore")}, sources, display)
	if err != nil {
		var stopped *harness.InterruptedError
		if errors.As(err, &stopped) {
			return stoppedf(c.Context, "%v", stopped)
		}
		return err
	}
	a.closeProgress()
	return a.printSuite(c, db, res.Run, again.plan)
}

// evalSets writes the flags as settings.
func evalSets(c *cli.Context) []string {
	sets := []string{"eval.final.suites=[" + c.String("suite") + "]"}
	for _, s := range evalSettings {
		if c.IsSet(s.flag) {
			sets = append(sets, fmt.Sprintf("%s=%s", s.key, yamlText(c.String(s.flag), s.flag == "prompt")))
		}
	}
	if list := c.StringSlice("grader"); len(list) > 0 {
		sets = append(sets, "eval.final.graders=["+strings.Join(list, ", ")+"]")
	}
	switch {
	case c.IsSet("k"):
		sets = append(sets, "eval.final.pass_k=["+c.String("k")+"]")
	case c.IsSet("n"): // the configuration's may be above it
		var ks []string
		for k := 1; k <= max(1, c.Int("n")); k *= 2 {
			ks = append(ks, fmt.Sprint(k))
		}
		sets = append(sets, "eval.final.pass_k=["+strings.Join(ks, ", ")+"]")
	}
	return sets
}

// yamlText quotes a text for --set.
func yamlText(s string, quote bool) string {
	if !quote {
		return s
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

// mergedWeights checks that a run has final weights: it would be trained otherwise.
func mergedWeights(ctx context.Context, db *store.DB, run store.Run) error {
	stages, err := db.Stages(ctx, run.ID)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(stages, func(s store.Stage) bool {
		return s.Kind == "merge" && (s.Status == store.Done || s.Status == store.Cached || s.Status == store.Repeated)
	}) {
		return nil
	}
	f := failf(exitNotFound, "run %s has no final weights yet", run.RID.Short())
	f.Help = "exp resume " + run.RID.Short() + " goes on with it"
	return f
}

// printSuite prints the run's scores on the suite under the protocol of p.
func (a *app) printSuite(c *cli.Context, db *store.DB, run store.Run, p *plan.Run) error {
	evals, err := db.Evals(c.Context, run.ID)
	if err != nil {
		return err
	}
	protocol, err := p.Protocol()
	if err != nil {
		return err
	}
	name := c.String("suite")
	if p.Suite(name) == nil {
		name = run.Task + "/" + name
	}
	evals = slices.DeleteFunc(evals, func(e store.Eval) bool { return e.Protocol != protocol })
	t := table{Schema: "exp.eval.run/1", Columns: []column{{Key: "run", ID: true}, {Key: "suite"}, {Key: "metric"}, {Key: "n"}, {Key: "items"},
		{Key: "start", Digits: 3}, {Key: "value", Digits: 3}, {Key: "lo", Digits: 3}, {Key: "hi", Digits: 3}}}
	list := slices.DeleteFunc(resultsOf(evals), func(r shownResult) bool { return r.Suite != name || r.After == nil })
	if a.out.forPeople() {
		list = mainResults(list)
	}
	for _, r := range list {
		row := []any{hexID(run.RID.String()), r.Suite, r.Metric, r.N, r.Items, nil, r.After.Value, nil, nil}
		if r.Before != nil {
			row[5] = r.Before.Value
		}
		if r.After.Lo != nil {
			row[7], row[8] = *r.After.Lo, *r.After.Hi
		}
		t.Rows = append(t.Rows, row)
	}
	return a.out.printTable(t)
}
