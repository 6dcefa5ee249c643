package main

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"strings"

	"exp/cmd/exp/cli"
	"exp/harness/translate"
)

func (a *app) configTranslateCommand() *cli.Command {
	return &cli.Command{
		Name: "translate", ArgsUsage: "FILE [NAME=VALUE...]",
		Usage: "write a recipe of a script for verl or Megatron-LM",
		Description: "FILE is a shell script that starts verl's RL trainer (main_ppo, main_dapo, main_flowrl), the " +
			"overrides.yaml or config.yaml that Hydra left of a run, or a resolved configuration; or arguments " +
			"of Megatron-LM's train_rl.py: a script that starts it or sets them in variables, a list of them, " +
			"or a test's MODEL_ARGS. Nothing in it is executed. NAME=VALUE gives a variable that the script " +
			"reads and does not set. Files that it names (--config-name, lists of defaults, tools, sourced " +
			"scripts, Megatron's environments) are read from its own folder, those above it, or --config-path; " +
			"the recipe's comments name them. The recipe has what differs from our defaults; its comments, and " +
			"standard error, list the settings without a place here and the keys left to set. Settings that say " +
			"where and how fast to compute are left out. verl grades each row by its data_source, which is read " +
			"from the files that are here; problems of several kinds make a recipe of task.kind mixed.",
		UsageText: "exp config translate run_qwen2-7b.sh > qwen2-7b.yaml # then: exp config check qwen2-7b.yaml\n" +
			"exp config translate run.sh MODEL_PATH=models/Qwen2.5-7B --out my.yaml\n" +
			"exp config translate outputs/2026-01-05/10-20-30/.hydra/overrides.yaml\n" +
			"exp config translate qwen_2p5_3b.sh ENV_CONFIG=dapo.yaml --config-path rl",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "out", Usage: "write `FILE`", DefaultText: "stdout"},
			&cli.StringSliceFlag{Name: "config-path", Usage: "look in `FOLDER` for the files that the script names, " +
				"before its own folder and those above it"},
		},
		BashComplete: a.Completes(func(_ *cli.Context, w cli.Word) []cli.Candidate {
			return cli.PathCandidates(w.Text, cli.HasExt(".sh", ".yaml", ".yml"))
		}),
		Action: cli.WithArgs(1, math.MaxInt, a.configTranslate),
	}
}

func (a *app) configTranslate(c *cli.Context, args []string) error {
	set := map[string]string{}
	for _, text := range args[1:] {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return cli.Usagef("%q is not of the form NAME=VALUE", text)
		}
		set[name] = value
	}
	r, err := translate.From(args[0], translate.Options{Set: set, Folders: c.StringSlice("config-path")})
	if err != nil {
		return notTranslated(err)
	}
	if out := c.String("out"); out != "" {
		if err := writeRecipe(out, r.Text); err != nil {
			return err
		}
	} else if _, err := io.WriteString(a.Stdout, r.Text); err != nil {
		return err
	}
	for _, n := range r.Notes {
		a.Note("%s", n)
	}
	if r.Errs != nil {
		a.Note("the recipe is not complete:\n%v", r.Errs)
	}
	return nil
}

// notTranslated gives the error about a script its exit code.
func notTranslated(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return &cli.Failure{Code: cli.ExitNotFound, Err: err}
	}
	return &cli.Failure{Code: cli.ExitUsage, Err: err, Help: "exp config new writes a recipe to start from; " +
		"docs/recipes.md says what TRL's settings are called here, and sft.source is fine-tuning"}
}
