package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"exp/cmd/exp/cli"
	"exp/eval/answers"
	"exp/eval/grade/peer"
	"exp/eval/task"
	"exp/experiments/aside"
	"exp/experiments/quantity"
	"exp/experiments/store"
	"exp/harness/vocab"
)

func gradeCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:     "grade",
		Category: "Results",
		Usage:    "grade answers in a file, without a model",
		Description: "Reads rows of JSON, parquet or a table (.csv, .tsv), also compressed, with id, gold, and " +
			"prediction (an answer) or response (a whole output, which counts if a row has both; also prediction " +
			"with kind \"response\"), and writes a row of JSON for each: id, correct, sure, extracted, reason, and " +
			"by graders of shares, such as anls, a score from 0 to 1. " +
			"If rows have expected and tags, it prints how often the grader agrees, by tag. The graders are " +
			strings.Join(peer.Names(), ", ") + "; exp is our own, the others reproduce other programs, " +
			"including their mistakes. Without --out the rows go to stdout and the agreement to stderr. " +
			"--audit RUN reads the verdicts that gave a run's rewards and lists, by form and over steps, right " +
			"answers that rest on a convention, on words taken for a unit or on a step that is not sure, answers " +
			"where the run's graders (and --grader) disagree, and verdicts that the same grader does not give " +
			"today: rewards that a policy may learn to earn without being right.",
		UsageText: strings.Join([]string{
			"exp grade --in answers.jsonl --out verdicts.jsonl # with our own grader",
			"exp grade --grader math_dapo --in answers.jsonl > verdicts.jsonl # as verl would",
			"exp grade --in labelled.jsonl --out /dev/null --json # agreement only, for programs: exp.grade/1",
			"exp grade --audit @last # which right answers of a run deserve a look",
			"exp grade --audit @last --grader prime -o json # with another grader's disagreements",
		}, "\n"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "grader", Value: "exp", Usage: "grade with `NAME`"},
			&cli.StringFlag{Name: "audit", Usage: "audit the recorded completions of `RUN`"},
			&cli.StringFlag{Name: "in", Usage: "read rows from `FILE`, - for stdin"},
			&cli.StringFlag{Name: "out", Usage: "write verdicts to `FILE`", DefaultText: "stdout"},
			&cli.StringFlag{Name: "tokenizer", Usage: "end answers at special tokens of the tokenizer in `FOLDER`"},
			&cli.BoolFlag{Name: "strict", Usage: "count unsure verdicts as wrong"},
		},
		BashComplete: a.Completes(func(_ *cli.Context, w cli.Word) []cli.Candidate {
			if w.Flag != "grader" {
				return nil
			}
			var list []cli.Candidate
			for _, g := range peer.All() {
				list = append(list, cli.Candidate{Text: g.Name, Note: g.About})
			}
			return list
		}),
		Action: cli.WithArgs(0, 0, func(c *cli.Context, _ []string) error {
			if c.IsSet("audit") {
				return cli.With(a.opener(false), func(db *store.DB) error { return a.auditRun(c, db) })
			}
			return a.grade(c)
		}),
	}
}

func (a *app) grade(c *cli.Context) error {
	g, err := peer.ByName(c.String("grader"))
	if err != nil {
		return a.Usagef("--grader: %w", err)
	}
	if c.String("in") == "" {
		return a.Usagef("--in FILE is missing: which rows to grade?")
	}
	if g, err = a.endTurns(g, c.String("tokenizer")); err != nil {
		return err
	}
	in, err := a.openRows(c.String("in"))
	if err != nil {
		return err
	}
	defer in.Close()

	var t answers.Tally
	write := func(w io.Writer) error {
		lines, err := answers.Grade(c.Context, in, w, &t, func(r *answers.Row) answers.Verdict {
			return r.Judge(g, c.Bool("strict"))
		})
		if err != nil && err == c.Context.Err() {
			return cli.Stoppedf(c.Context, "grading stopped after %s", quantity.Plural(lines, "row"))
		}
		return err
	}
	o := a.Out
	if path := c.String("out"); path != "" {
		err = replaceFile(path, write)
	} else {
		err = write(a.Stdout)
		o.W, o.Stream = a.Stderr, a.Stream(a.Stderr)
	}
	if err != nil {
		var line *answers.RowError
		if errors.As(err, &line) {
			f := cli.Failf(cli.ExitUsage, "%s: %w", c.String("in"), err)
			f.Help = `a row is {"id": …, "gold": …, "prediction" or "response": …}`
			return f
		}
		return err
	}
	counts := t.Counts()
	if len(counts) == 0 {
		a.Warn("%s has no rows", c.String("in"))
	}
	if len(t.Golds) > 0 && task.OwnGrader(g.Name) {
		a.Warn("our grader does not understand %s, compared as texts",
			quantity.Plural(t.Unread, "gold answer"))
		for _, r := range t.Golds {
			a.Warn("  row %s: gold %q: %v", r.ID, r.Gold, r.Err)
		}
	}
	return o.PrintTable(gradeTable(counts))
}

// endTurns returns our grader with texts cut at the special tokens of the tokenizer in dir.
func (a *app) endTurns(g peer.Grader, dir string) (peer.Grader, error) {
	switch {
	case dir == "":
		return g, nil
	case !task.OwnGrader(g.Name):
		return g, a.Usagef("--tokenizer: %s reads whole texts, as its source does", g.Name)
	}
	special, err := vocab.SpecialTexts(dir)
	if err != nil {
		return g, cli.Failf(cli.ExitNotFound, "--tokenizer: %w", err)
	}
	return answers.EndTurns(g, special), nil
}

func (a *app) openRows(path string) (io.ReadCloser, error) {
	if path == "-" {
		return io.NopCloser(a.Stdin), nil
	}
	in, err := answers.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, cli.Failf(cli.ExitNotFound, "--in: %w", err)
	}
	return in, err
}

// replaceFile writes to a temporary name and renames, so that a failure leaves the old
// file. Anything but a plain file, such as /dev/null, is written directly.
func replaceFile(path string, write func(io.Writer) error) error {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	}
	f, err := aside.File(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write %s: no such folder %s", path, filepath.Dir(path))
	}
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if err := errors.Join(write(f), f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// gradeTable has a row for each tag. Agreement counts rows with expected; a grader of shares gives a mean score, too.
func gradeTable(counts []*answers.Count) cli.Table {
	out := cli.Table{Schema: "exp.grade/1", Columns: []cli.Column{
		{Key: "tag", ID: true}, {Key: "rows"}, {Key: "correct"}, {Key: "unsure"}, {Key: "labelled"}, {Key: "agree"},
		{Key: "agreement", Digits: 4}, {Key: "false_positives", Title: "false +"},
		{Key: "false_negatives", Title: "false -"},
	}}
	scored := slices.ContainsFunc(counts, func(n *answers.Count) bool { _, ok := n.Score(); return ok })
	if scored {
		out.Columns = append(out.Columns, cli.Column{Key: "score", Digits: 3})
	}
	for _, n := range counts {
		var agreement any
		if share, ok := n.Agreement(); ok {
			agreement = share
		}
		row := []any{n.Tag, n.Rows, n.Correct, n.Unsure, n.Labelled, n.Agree, agreement, n.FalsePositive,
			n.FalseNegative}
		if mean, ok := n.Score(); ok {
			row = append(row, mean)
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}
