package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
	"exp/experiments/bundle"
	"exp/experiments/ident"
	"exp/experiments/quantity"
	"exp/experiments/store"
	"exp/experiments/trackers"
	"exp/harness/metric"
)

// formatBundle is the format that exp import reads.
const formatBundle = "bundle"

func exportFormats() []string { return append([]string{formatBundle}, trackers.Formats()...) }

// formatOf is the format that a file's name ends in: a bundle, unless it is another's.
func formatOf(path string) string {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".csv":
		return "csv"
	case ".parquet":
		return "parquet"
	case ".db":
		return "mlflow"
	}
	return formatBundle
}

// foreignEnding reports whether a file's name promises another format than a bundle's.
func foreignEnding(path string) bool {
	return slices.Contains([]string{".json", ".jsonl", ".tsv", ".txt", ".xlsx", ".html", ".gz", ".tgz", ".zst", ".zip",
		".sqlite", ".wandb"}, strings.ToLower(filepath.Ext(path)))
}

func exportCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "export",
		Category:  "Share",
		Usage:     "write runs to a file, for another store or other programs",
		ArgsUsage: "SEL... FILE",
		Description: "A bundle holds everything: metrics, completions, results, checkpoints, weights, logs and " +
			"sources, with a digest of each, and the runs that a chosen run continues or reuses stages of. It " +
			"is a tar file; the same runs give the same bytes, and exp import checks all of them.\n" +
			"The other formats hold every point of every metric. tensorboard writes a folder, csv and " +
			"parquet write a row per point, mlflow writes the SQLite database of a tracking server, which MLflow " +
			"upgrades when it first opens it (seconds; tried with 2.22 and 3.17). wandb-offline is missing because " +
			"only wandb's own client writes that log; wandb sync reads TensorBoard files.",
		UsageText: strings.Join([]string{
			"exp export @last run.tar # one run with everything",
			"exp export countdown-flowrl countdown-ppo arms.tar --no-weights # two arms with all seeds, to compare " +
				"elsewhere",
			"exp export 'created < 7d' --format tensorboard events # tensorboard --logdir events",
			"exp export @last --format parquet metrics.parquet # one row per point",
			"exp export tag:paper --format mlflow mlflow.db # mlflow ui --backend-store-uri sqlite:///mlflow.db",
		}, "\n"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "format", Aliases: []string{"to"},
				Usage:       "write `FORMAT`: " + strings.Join(exportFormats(), ", "),
				DefaultText: "by FILE's ending: .csv, .parquet, .db; else " + formatBundle, Value: formatBundle},
			&cli.BoolFlag{Name: "no-weights", Usage: "leave out weights, checkpoints and merged models"},
			&cli.BoolFlag{Name: "no-samples", Usage: "leave out prompts and completions, but keep their scores"},
		},
		BashComplete: a.completesRuns(0, true, func(_ context.Context, _ *store.DB, w cli.Word) []cli.Candidate {
			if w.Flag == "format" {
				return cli.Candidates(exportFormats())
			}
			return cli.PathCandidates(w.Text, func(os.DirEntry) bool { return true })
		}),
		Action: a.reads(2, -1, a.export),
	}
}

// exported is the schema exp.export/1.
type exported struct {
	File    string         `json:"file"`
	Format  string         `json:"format"`
	Runs    []ident.Digest `json:"runs"`
	With    []ident.Digest `json:"with"` // runs that the chosen ones depend on
	LeftOut []string       `json:"left_out"`
	Blobs   int            `json:"blobs"`
	Files   int            `json:"files"`
	Points  int64          `json:"points"`
	Bytes   int64          `json:"bytes"`
}

func (a *app) export(c *cli.Context, db *store.DB, args []string) error {
	selections, path := args[:len(args)-1], args[len(args)-1]
	form, err := cli.OneOf("--format", c.String("format"), exportFormats())
	if !c.IsSet("format") {
		if form = formatOf(path); form == formatBundle && foreignEnding(path) {
			return a.Usagef("%s: exp export writes no %s files", path, filepath.Ext(path)).
				Advise("name a .tar for a bundle, a .csv, .parquet or .db for metrics, or give --format")
		}
	}
	if c.String("format") == "wandb-offline" {
		return cli.Usagef("--format wandb-offline cannot be written: the log of an offline run is undocumented, and " +
			"only wandb's own client writes it").
			Advise("--format tensorboard DIR, then wandb sync DIR")
	}
	if err != nil {
		return err
	}
	if form != formatBundle && (c.Bool("no-weights") || c.Bool("no-samples")) {
		return a.Usagef("--no-weights and --no-samples need --format bundle; %s has only metrics", form)
	}
	if _, err := os.Lstat(path); err == nil {
		return cli.Usagef("%s already exists", path).Advise("name a new file; exp export never overwrites")
	}
	runs, err := a.selectRuns(c.Context, db, a.finder(db), selections)
	if err != nil {
		return err
	}
	if len(runs) == 0 {
		return cli.Failf(cli.ExitNotFound, "no run matches")
	}
	out := &exported{File: path, Format: form, Runs: []ident.Digest{}, With: []ident.Digest{}, LeftOut: []string{}}
	for _, r := range runs {
		out.Runs = append(out.Runs, r.RID)
	}
	if form == formatBundle {
		err = a.exportBundle(c, db, runs, out)
	} else {
		var w *trackers.Written
		if w, err = trackers.Write(c.Context, db, runs, form, path, metricText); err == nil {
			out.Files, out.Points = w.Files, w.Points
		}
	}
	if err != nil {
		return err
	}
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		out.Bytes = info.Size()
	}
	return a.Out.PrintText("exp.export/1", out, "%s\n", out.text())
}

func (a *app) exportBundle(c *cli.Context, db *store.DB, runs []store.Run, out *exported) error {
	o := bundle.Options{NoWeights: c.Bool("no-weights"), NoTexts: c.Bool("no-samples"),
		Progress: a.byteProgress("export", out.File)}
	m, err := bundle.Write(c.Context, db, out.File, runs, o)
	a.CloseProgress()
	if err != nil {
		return err
	}
	out.LeftOut, out.Blobs, out.Files = m.LeftOut, len(m.Blobs), len(m.Files)
	for _, r := range m.Runs {
		if !r.Chosen {
			out.With = append(out.With, r.RID)
		}
	}
	for _, t := range m.Tables {
		if t.Name == "metrics" {
			out.Points = t.Rows
		}
	}
	return nil
}

// metricText describes a metric in Markdown; "" where the catalogue does not know it.
func metricText(name string) string {
	m, ok := metric.Find(name)
	if !ok {
		return ""
	}
	text := "**" + m.Title + "**"
	if unit := m.Counts(); unit != "" {
		text += " (" + unit + ")"
	}
	return text + ": " + m.Definition
}

// text describes the result for people.
func (e *exported) text() string {
	what := []string{quantity.Plural(len(e.Runs), "run")}
	if len(e.With) > 0 {
		what[0] += fmt.Sprintf(" and %d more that they depend on", len(e.With))
	}
	what = append(what, quantity.Count(e.Points)+" points")
	if e.Format == formatBundle {
		what = append(what, quantity.Plural(e.Blobs, "blob"), quantity.Plural(e.Files, "file"))
		if len(e.LeftOut) > 0 {
			what = append(what, "without "+strings.Join(e.LeftOut, " and "))
		}
	}
	if e.Bytes > 0 {
		what = append(what, quantity.Bytes(e.Bytes))
	}
	return e.File + ": " + strings.Join(what, ", ")
}

// shownBytes is the smallest copy worth a progress display.
const shownBytes = 256 << 20

// byteProgress shows the progress of a copy on stderr.
func (a *app) byteProgress(kind, label string) func(done, of int64) {
	var p term.Progress
	last := time.Time{}
	return func(done, of int64) {
		if of < shownBytes {
			return
		}
		if p == nil {
			p = a.Progress()
			p.StageStart(term.Stage{Kind: kind, Label: label, Total: int(of >> 20), Unit: "MiB"})
		}
		if now := a.Clock.Now(); now.Sub(last) > 100*time.Millisecond {
			last = now
			p.StageProgress(term.Step{Step: int(done >> 20)})
		}
	}
}
