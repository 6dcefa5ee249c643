package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"exp/cmd/exp/cli"
	"exp/harness/config"
	"exp/harness/inspect"
)

func (a *app) configNewCommand() *cli.Command {
	files := strings.Join(config.StartersFromFiles(), ", ")
	return &cli.Command{
		Name: "new", ArgsUsage: "[FILE]", Usage: "write a short commented recipe, ready to run",
		Description: "Writes FILE, or stdout without FILE or with -. The recipe trains a small model from nothing " +
			"on generated problems, in minutes on a CPU; for the tasks " + files + " it trains adapters of " +
			"--model on the problems of --data.\n" +
			"tasks       " + strings.Join(config.StarterTasks(), ", ") + "\n" +
			"algorithms  " + strings.Join(config.StarterAlgos(""), ", "),
		UsageText: "exp config new my.yaml --task countdown --algo grpo # then: exp run my.yaml\n" +
			"exp config new math.yaml --task math --model ./Qwen2.5-0.5B --data train.jsonl",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "task", Usage: "the `TASK`", DefaultText: config.StarterTasks()[0]},
			&cli.StringFlag{Name: "algo", Usage: "the `ALGORITHM`", DefaultText: config.StarterAlgos("")[0]},
			&cli.StringFlag{Name: "model", Usage: "start from `PATH`, a Hugging Face folder or " +
				"hub:ORG/NAME@REVISION", DefaultText: "none"},
			&cli.StringFlag{Name: "data", Usage: "train on the problems of `FILE` (.jsonl, .csv, .parquet …)",
				DefaultText: "generated"},
			&cli.StringFlag{Name: "test", Usage: "score on the problems of `FILE`", DefaultText: "the --data file"},
		},
		BashComplete: a.Completes(func(_ *cli.Context, w cli.Word) []cli.Candidate {
			switch w.Flag {
			case "task":
				return cli.Candidates(config.StarterTasks())
			case "algo":
				return cli.Candidates(config.StarterAlgos(""))
			}
			return cli.PathCandidates(w.Text, nil)
		}),
		Action: cli.WithArgs(0, 1, a.configNew),
	}
}

func (a *app) configNew(c *cli.Context, args []string) error {
	s := config.Starter{Model: c.String("model"), Data: c.String("data"), Test: c.String("test")}
	var err error
	if s.Task, err = cli.OneOf("--task", c.String("task"), config.StarterTasks()); err != nil {
		return err
	}
	if s.Algo, err = cli.OneOf("--algo", c.String("algo"), config.StarterAlgos("")); err != nil {
		return err
	}
	if !slices.Contains(config.StartersFromFiles(), s.Task) && (s.Model != "" || s.Data != "" || s.Test != "") {
		return cli.Usagef("--model, --data and --test are for the tasks %s; %s generates its problems",
			strings.Join(config.StartersFromFiles(), ", "), s.Task)
	}
	s.MaxPositions = positionsOf(s.Model)
	text, err := config.NewRecipe(s)
	switch {
	case err != nil && slices.Contains(config.StartersFromFiles(), s.Task):
		generated := slices.DeleteFunc(config.StarterTasks(), func(task string) bool {
			return slices.Contains(config.StartersFromFiles(), task)
		})
		return cli.Usagef("%w", err).Advise("--model DIR --data FILE.jsonl; other tasks generate their problems: " +
			strings.Join(generated, ", "))
	case err != nil:
		return cli.Usagef("%w", err).Advise("choose another --algo: " +
			strings.Join(config.StarterAlgos(s.Task), ", "))
	}
	if len(args) == 0 || args[0] == "-" {
		_, err := io.WriteString(a.Stdout, text)
		return err
	}
	if err := writeRecipe(args[0], text); err != nil {
		return err
	}
	a.Note("wrote %s; next: exp run %s", args[0], args[0])
	return nil
}

// positionsOf returns how many tokens a model reads; 0 if its folder is not here or cannot be read, which the plan of
// a run explains.
func positionsOf(folder string) int {
	if !inspect.IsModel(folder) {
		return 0
	}
	f, err := inspect.Find(folder, "", "")
	if err != nil {
		return 0
	}
	r, err := f.Describe(inspect.Options{})
	if err != nil {
		return 0
	}
	return r.Positions
}

// writeRecipe writes a file that is not there yet.
func writeRecipe(path, text string) error {
	if err := checkOutputFolder(path); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return cli.Usagef("%s exists and is not overwritten", path)
	}
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, text)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
