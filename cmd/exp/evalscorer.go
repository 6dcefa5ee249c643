package main

import (
	"os"
	"path/filepath"
	"strings"

	"exp/cmd/exp/cli"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/hub"
	"exp/harness/inspect"
	"exp/harness/stage"
)

// scorerValues returns the settings of --score-by and --score-with.
func (a *app) scorerValues(c *cli.Context, db *store.DB) ([]config.Value, error) {
	if !c.IsSet("score-by") {
		if c.IsSet("score-with") {
			return nil, a.Usagef("--score-with is for the reward model of --score-by, and there is none")
		}
		return nil, nil
	}
	model, err := a.scorerFolder(c, db, c.String("score-by"))
	if err != nil {
		return nil, err
	}
	values := []config.Value{{Path: config.ScorerKey, Value: model, From: "--score-by"}}
	block := strings.TrimSuffix(config.ScorerKey, "weights")
	for _, set := range c.StringSlice("score-with") {
		key, value, ok := strings.Cut(set, "=")
		if !ok {
			return nil, a.Usagef("--score-with %s: want KEY=VALUE", set)
		}
		path := block + key
		if _, known := config.Lookup(path); !known || path == config.ScorerKey {
			return nil, a.Usagef("--score-with %s: there is no key %s", set, path).
				Advise("exp config explain " + strings.TrimSuffix(block, ".") + " lists them")
		}
		values = append(values, config.Value{Path: path, Value: value, From: "--score-with"})
	}
	return values, nil
}

// scorerFolder returns where the reward model is that ref names: a reference to a hub, a folder, or a run that trained
// one.
func (a *app) scorerFolder(c *cli.Context, db *store.DB, ref string) (string, error) {
	if hub.IsRef(ref) || ref == config.None {
		return ref, nil
	}
	if inspect.IsModel(ref) {
		return filepath.Abs(ref)
	}
	run, err := a.oneRun(c.Context, db, ref)
	if err != nil {
		return "", noFolder(ref, err)
	}
	dir := filepath.Join(db.RunDir(run.RID), stage.RewardModelDir)
	if _, err := os.Stat(dir); err != nil {
		return "", cli.Failf(cli.ExitNotFound, "--score-by %s: run %s has trained no reward model", ref,
			run.RID.Short()).Advise("name a run with reward_model.steps, or the folder of a reward model")
	}
	return filepath.Abs(dir)
}
