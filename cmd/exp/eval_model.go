package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/urfave/cli/v2"

	"exp/experiments/store"
	"exp/harness/config"
	harness "exp/harness/run"
	"exp/harness/stage"
	"exp/harness/suites"
)

// modelTokens is how long a completion of a folder's weights may be where no flag and
// no protocol says it.
const modelTokens = 1024

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
	if dir, err = modelFolder(f.Dir); err != nil {
		return err
	}
	sets := append(evalSets(c, suites), "model.base="+yamlText(dir, true))
	name := modelName(dir)
	if f.Adapter != "" {
		if f.Adapter, err = filepath.Abs(f.Adapter); err != nil {
			return err
		}
		sets = append(sets, "model.adapter="+yamlText(f.Adapter, true))
		name = adaptedName(name, f.Adapter)
	}
	if f.Text {
		sets = append(sets, "model.part=text")
	}
	if v := a.getenv("EXP_THREADS"); v != "" {
		sets = append(sets, "compute.threads="+v)
	}
	for _, s := range modelSettings() {
		if c.IsSet(s.flag) {
			sets = append(sets, s.key+"="+yamlText(c.String(s.flag), true))
		}
	}
	r, err := a.fittingConfig(dir, name, append(sets, c.StringSlice("set")...))
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
func modelSettings() []struct{ flag, key string } {
	return []struct{ flag, key string }{{"template", "data.chat"}, {"system", "data.system"}}
}

// fittingConfig is the configuration of an evaluation of a folder. Unless
// rollout.max_sequences is set, it halves that until sampling fits into half of the memory
// that the weights leave free. The number changes no result.
func (a *app) fittingConfig(dir, name string, sets []string) (*config.Resolved, error) {
	load := func(extra ...string) (*config.Resolved, error) {
		return config.Load(config.Input{File: "exp eval " + dir, Data: []byte(modelConfig(name)), User: a.userConfig(), Sets: append(extra, sets...)})
	}
	r, err := load()
	if err != nil || r.Origin("rollout.max_sequences") != "default" {
		return r, err
	}
	memory := harness.ThisMachine().Memory
	for n := r.Run.Rollout.MaxSequences; n > 1 && memory > 0; {
		e, err := harness.NewEstimate(r)
		if err != nil || e.Total()-e.Memory[0].Bytes <= (memory-e.Memory[0].Bytes)/2 {
			break // the plan reports what is wrong with the model
		}
		n /= 2
		if r, err = load(fmt.Sprintf("rollout.max_sequences=%d", n)); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// modelConfig is the configuration of an evaluation without training. What it must say
// of training is never read.
func modelConfig(name string) string {
	return fmt.Sprintf(`version: 1
name: %s
task: {kind: math}
data: {train: {source: none}, val: {source: none}, test: {source: none}}
model: {init: pretrained, base: model}
algo: {kind: grpo}
rollout: {max_new_tokens: %d}
train: {steps: 0, prompts_per_step: 1, optim: {lr: 1e-6}}
`, name, modelTokens)
}

var notInNames = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// modelName names an evaluation after the folder; the folder of a run's merged weights
// after the run.
func modelName(dir string) string {
	name := filepath.Base(dir)
	if parent := filepath.Base(filepath.Dir(dir)); name == stage.MergedDir && len(parent) == 64 {
		name = parent[:8]
	}
	name = "eval-" + strings.Trim(notInNames.ReplaceAllString(name, "-"), "-")
	return name[:min(len(name), 64)]
}

// adaptedName is the name of an evaluation of a model with adapters.
func adaptedName(name, adapter string) string {
	own := strings.Trim(notInNames.ReplaceAllString(filepath.Base(adapter), "-"), "-")
	return name[:min(len(name), 40)] + "-" + own[:min(len(own), 23)]
}

// modelFolder is the absolute path of a folder of weights: one with a config.json, or
// a run's own folder, whose merged weights are meant.
func modelFolder(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for _, d := range []string{dir, filepath.Join(dir, stage.MergedDir)} {
		if _, err := os.Stat(filepath.Join(d, "config.json")); err == nil {
			return d, nil
		}
	}
	f := failf(exitNotFound, "%s has no config.json: it is no folder of weights", dir)
	f.Help = "a folder in the layout of Hugging Face is needed, with config.json, tokenizer.json and *.safetensors; every run that trains leaves one, model, in its own folder"
	return "", f
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
		return nil, usagef("--limit %d: at least one problem is needed", n)
	}
	var out []string
	for _, name := range names {
		if name == "test" || name == "val" {
			return nil, usagef("--limit is for suites of the store; %s is the run's own data", name)
		}
		part, err := suites.Limit(c.Context, db, name, n)
		if err != nil {
			return nil, suiteMissing(err)
		}
		out = append(out, part)
	}
	return out, nil
}
