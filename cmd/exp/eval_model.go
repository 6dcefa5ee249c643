package main

import (
	"exp/cmd/exp/cli"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/evaluate"
	harness "exp/harness/run"
	"exp/harness/suites"
)

// evalModel scores a folder of weights on suites: a run that trains nothing and is
// recorded like any other, so that the same again is taken from the store.
func (a *app) evalModel(c *cli.Context, db *store.DB, dir string, suites []string) error {
	f, err := a.modelAndAdapter(c, dir)
	if err != nil {
		return err
	}
	if f.Dir == "" {
		return adapterWithoutModel(f.Adapter, "exp eval MODEL --adapter")
	}
	values := evalValues(c, suites)
	if v := a.Getenv("EXP_THREADS"); v != "" {
		values = append(values, config.Value{Path: "compute.threads", Value: v, From: "EXP_THREADS"})
	}
	for _, s := range modelSettings() {
		values = s.appendTo(values, c)
	}
	r, err := evaluate.Folder{Folder: f, User: a.userConfig(), Values: values, Sets: c.StringSlice("set")}.Config()
	if err != nil {
		return err
	}
	if c.Bool("dry-run") {
		return a.dryRun(c.Context, []*config.Resolved{r}, nil)
	}
	if _, err := harness.RequireAll(c.Context, db, r); err != nil {
		return err
	}
	return a.scoreSuites(c, db, job{r, r.Run.Seed}, suites, harness.Options{NoCache: c.Bool("rescore")})
}

// modelSettings are the flags of exp eval FOLDER that stand for keys beyond the protocol.
func modelSettings() []evalSetting {
	return []evalSetting{{"template", "data.chat"}, {"system", "data.system"}}
}

// evalSuites are the suites that --suite names. With --limit N those of the store are
// cut to their first N problems, each under a name that says so.
func (a *app) evalSuites(c *cli.Context, db *store.DB) ([]string, error) {
	names := c.StringSlice("suite")
	if !c.IsSet("limit") {
		return names, nil
	}
	n := c.Int("limit")
	if n < 1 {
		return nil, cli.Usagef("--limit %d: at least one problem is needed", n)
	}
	var out []string
	for _, name := range names {
		if name == "test" || name == "val" {
			return nil, cli.Usagef("--limit is for suites of the store; %s is the run's own data", name)
		}
		part, err := suites.Limit(c.Context, db, name, n)
		if err != nil {
			return nil, suiteMissing(err)
		}
		out = append(out, part)
	}
	return out, nil
}
