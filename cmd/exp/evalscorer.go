package main

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"exp/cmd/exp/cli"
	"exp/experiments/recorded"
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
			return nil, a.Usagef("--score-with needs --score-by, which names what scores")
		}
		return nil, nil
	}
	reads, err := a.scorer(c, db, c.String("score-by"))
	if err != nil {
		return nil, err
	}
	var values []config.Value
	block := strings.TrimSuffix(config.ScorerKey, "weights")
	for _, own := range reads {
		key, value, _ := strings.Cut(own, "=")
		if !slices.ContainsFunc(c.StringSlice("score-with"), func(set string) bool {
			return strings.HasPrefix(set, key+"=")
		}) {
			values = append(values, config.Value{Path: block + key, Value: value, From: "--score-by"})
		}
	}
	for _, set := range c.StringSlice("score-with") {
		key, value, ok := strings.Cut(set, "=")
		if !ok {
			return nil, a.Usagef("--score-with %s: want KEY=VALUE", set)
		}
		path := block + key
		if _, known := config.Lookup(path); !known || path == config.ScorerKey {
			return nil, a.Usagef("--score-with %s: unknown key %s", set, path).
				Advise("exp config explain " + strings.TrimSuffix(block, ".") + " lists them")
		}
		if strings.HasPrefix(value, `"`) { // a shell passes no line end, and flags lose one
			text, err := strconv.Unquote(value)
			if err != nil {
				return nil, a.Usagef("--score-with %s: the value is not a text in quotes", set)
			}
			value = text
		}
		if path == block+"judge.template" { // it is read again wherever the evaluation is verified
			if value, err = filepath.Abs(value); err != nil {
				return nil, err
			}
		}
		values = append(values, config.Value{Path: path, Value: value, From: "--score-with"})
	}
	return values, nil
}

// scorer returns what ref names as settings KEY=VALUE, keys of eval.final.scorer: a program in brackets, a judge on a
// server, or a reward model.
func (a *app) scorer(c *cli.Context, db *store.DB, ref string) ([]string, error) {
	switch {
	case strings.HasPrefix(ref, "["):
		return []string{"kind=command", "command=" + ref}, nil
	case strings.HasPrefix(ref, "http://"), strings.HasPrefix(ref, "https://"):
		return []string{"kind=judge", "judge.url=" + ref}, nil
	}
	model, reads, err := a.scorerFolder(c, db, ref)
	return append([]string{"kind=model", "weights=" + model}, reads...), err
}

// scorerFolder returns where the reward model is that ref names: a reference to a hub, a folder, or a run that trained
// one. Of a run it also returns how the model reads completions: KEY=VALUE, keys of eval.final.scorer.
func (a *app) scorerFolder(c *cli.Context, db *store.DB, ref string) (path string, reads []string, err error) {
	if hub.IsRef(ref) || ref == config.None {
		return ref, nil, nil
	}
	if inspect.IsModel(ref) {
		path, err = filepath.Abs(ref)
		return path, nil, err
	}
	run, err := a.oneRun(c.Context, db, ref)
	if err != nil {
		return "", nil, noFolder(ref, err)
	}
	dir := filepath.Join(db.RunDir(run.RID), stage.RewardModelDir)
	if _, err := os.Stat(dir); err != nil {
		return "", nil, cli.Failf(cli.ExitNotFound, "--score-by %s: run %s has trained no reward model", ref,
			run.RID.Short()).Advise("name a run with reward_model.steps, or the folder of a reward model")
	}
	reads = []string{"end=true"} // if it reads texts
	if kind := recorded.ConfigValue(c.Context, db, run, "reward_model.kind"); kind == config.RewardOfSteps {
		reads = []string{"steps=min"}
		if text, ok := recorded.ConfigValue(c.Context, db, run, "reward_model.separator").(string); ok {
			reads = append(reads, "separator="+text)
		}
	}
	path, err = filepath.Abs(dir)
	return path, reads, err
}
