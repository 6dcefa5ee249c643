package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
	"exp/experiments/ident"
	"exp/experiments/lineage"
	"exp/experiments/quantity"
	"exp/experiments/recorded"
	"exp/experiments/store"
	"exp/harness/metric"
	harness "exp/harness/run"
	"exp/harness/stage"
)

func showCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "show",
		Category:  "Results",
		Usage:     "show a run: identity, stages, results, files",
		ArgsUsage: "RUN",
		Description: "RUN is @last, an id or its beginning, NAME if it has one seed, or NAME#SEED. Without " +
			"flags the page shows everything but the configuration, the environment and the lineage; each flag " +
			"shows one part. exp help glossary explains xid, digests and chain.",
		UsageText: strings.Join([]string{
			"exp show @last # the newest run",
			"exp show countdown-flowrl#0 --config # its fully resolved configuration",
			"exp show @last --source old-code # the sources that produced it",
			"exp show @last --json # for programs",
		}, "\n"),
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "stages", Usage: "only the stages, with what each read and wrote"},
			&cli.BoolFlag{Name: "config", Usage: "only the resolved configuration"},
			&cli.BoolFlag{Name: "env", Usage: "only the attempts and the machines they ran on"},
			&cli.BoolFlag{Name: "lineage", Usage: "only what the run was made from and used for"},
			&cli.StringFlag{Name: "source", Usage: "write the sources that produced the run to the new folder `DIR`"},
		},
		BashComplete: a.completesRuns(1, true, func(_ context.Context, _ *store.DB, w cli.Word) []cli.Candidate {
			return cli.PathCandidates(w.Text, os.DirEntry.IsDir)
		}),
		Action: a.reads(1, 1, a.ofRun(a.show)),
	}
}

func (a *app) show(c *cli.Context, db *store.DB, run store.Run) error {
	if dir := c.String("source"); dir != "" {
		return a.writeSources(c.Context, db, run, dir)
	}
	s, err := recorded.Read(c.Context, db, run, recorded.Options{
		Parts: recorded.Parts{
			Stages: c.Bool("stages"), Config: c.Bool("config"), Env: c.Bool("env"), Lineage: c.Bool("lineage"),
		},
		Metrics: courseMetrics(), Model: stage.MergedDir,
	})
	if err != nil {
		return err
	}
	for i := range s.Metrics {
		s.Metrics[i].Unit = unitOf(s.Metrics[i].Series)
	}
	from, err := harness.HubSources(c.Context, db, run.ID)
	if err != nil {
		return err
	}
	return a.Out.PrintDocument(cli.Document{Schema: "exp.show/1", Data: s, Human: func(w io.Writer) error {
		p := &showPage{Page: a.Out.NewPage(w), s: s, now: a.Clock.Now(), here: workingDir(), from: from}
		return errors.Join(p.write(), p.Close())
	}})
}

// workingDir is the directory that paths are relative to; empty if unknown.
func workingDir() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	return dir
}

// writeSources writes the sources that trained a run to a folder, and warns if other
// sources executed some stages.
func (a *app) writeSources(ctx context.Context, db *store.DB, run store.Run, dir string) error {
	out, err := recorded.WriteSources(ctx, db, run, dir)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return cli.Failf(cli.ExitNotFound, "the store has no sources of run %s", run.RID.Short()).
			Advise("the first stage that the run executes stores them")
	case errors.Is(err, recorded.ErrOccupied):
		return cli.Usagef("--source %w", err).Advise("name a folder that does not exist or is empty")
	case err != nil:
		return err
	}
	if len(out.Others) > 0 {
		a.Warn("these stages were executed by other sources: %s (exp show %s --stages shows the code of each)",
			strings.Join(out.Others, ", "), run.RID.Short())
	}
	return a.Out.PrintText("exp.sources/1", out, "%s of run %s (code %s, %s) are in %s\n",
		quantity.Plural(out.Files, "file"), run.RID.Short(), run.Code.Short(), out.Go, dir)
}

// mainResults are the results on the narrow page, suite by suite, in this order, with the
// first and the last k of pass@k and the last one of best@k and maj@k, or with all.
func mainResults(list []recorded.Result, allK bool) (out []recorded.Result) {
	for len(list) > 0 {
		n := slices.IndexFunc(list, func(r recorded.Result) bool { return r.Suite != list[0].Suite })
		if n < 0 {
			n = len(list)
		}
		out = append(out, mainResultsOf(list[:n], allK)...)
		list = list[n:]
	}
	return out
}

func mainResultsOf(list []recorded.Result, allK bool) []recorded.Result {
	var passes, best, votes, rest []recorded.Result
	for _, r := range list {
		_, isPass := metric.PassK(r.Metric)
		_, isBest := metric.KOf(metric.BestAt, r.Metric)
		_, isVote := metric.KOf(metric.MajorityAt, r.Metric)
		switch {
		case isPass:
			passes = append(passes, r)
		case isBest:
			best = append(best, r)
		case isVote:
			votes = append(votes, r)
		case shownIn(r.Metric, metric.WideOnly), r.Metric == "not_graded" && zero(r):
		default:
			rest = append(rest, r)
		}
	}
	if len(passes) > 2 && !allK {
		passes = []recorded.Result{passes[0], passes[len(passes)-1]}
	}
	if !allK {
		best, votes = best[max(0, len(best)-1):], votes[max(0, len(votes)-1):]
	}
	return slices.Concat(passes, best, votes, rest)
}

func zero(r recorded.Result) bool {
	return (r.Before == nil || r.Before.Value == 0) && (r.After == nil || r.After.Value == 0)
}

// lineage shows what each stage read and wrote, and which runs made and used it.
func (p *showPage) lineage() error {
	p.Heading("lineage")
	if !p.s.Parent.IsZero() {
		p.Line("continues run %s", p.s.Parent.Short())
	}
	var rows [][]any
	last := ""
	for _, e := range p.s.Lineage {
		name := e.Stage
		if name == last {
			name = ""
		}
		last = e.Stage
		made := e.MadeBy.String()
		switch {
		case made == "":
			made = "outside"
		case e.Way == lineage.Out && e.MadeBy.Run == p.s.Run:
			made = ""
		}
		var used []string
		for _, id := range e.UsedBy {
			used = append(used, id.String())
		}
		rows = append(rows, []any{name, string(e.Way), e.Role, e.Digest.Short(), made, usedByText(used)})
	}
	return p.Table([]cli.Column{{Title: "stage"}, {Title: "dir"}, {Title: "role"}, {Title: "digest"},
		{Title: "made by"}, {Title: "used by runs", Rank: 1}}, rows)
}

// usedByText names up to three runs and counts the others.
func usedByText(list []string) string {
	const most = 3
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return strings.Join(list[:most], ", ") + " and " + cli.MachineText(int64(len(list)-most)) + " more"
}

// stages prints one row per stage: its cost and its outputs.
func (p *showPage) stages() error {
	if len(p.s.Stages) == 0 {
		return nil
	}
	p.Heading("stages")
	columns := []cli.Column{{Title: "stage"}, {Title: "status", Style: stageStyle}, {Title: "time"},
		{Title: "outputs", Rank: 1, Min: 20}}
	var rows [][]any
	for i := range p.s.Stages {
		st := &p.s.Stages[i]
		var wall any
		if st.Status == store.Done || st.WallS > 0 {
			wall = quantity.Seconds(st.WallS)
		}
		rows = append(rows, []any{st.Name(), p.stageStatus(st), wall, outputsText(st)})
	}
	if err := p.Table(columns, rows); err != nil {
		return err
	}
	for i := range p.s.Stages {
		st := &p.s.Stages[i]
		if st.Error != "" {
			p.Text("  ", "error in "+st.Name()+": "+st.Error)
		}
	}
	return nil
}

func (p *showPage) stageStatus(st *recorded.Stage) string {
	if st.Status == store.Cached && st.From != p.s.Run {
		return "cached from " + st.From.Short()
	}
	return string(st.Status)
}

func stageStyle(v any) term.Style {
	text, _ := v.(string)
	switch {
	case strings.HasPrefix(text, "cached"), text == string(store.Repeated):
		return term.Faint
	}
	return statusStyle(v)
}

// outputsText lists the outputs of a stage; for a folder, their number.
func outputsText(st *recorded.Stage) string {
	const most = 4
	if len(st.Outputs) > most {
		var bytes int64
		absent := ""
		n := 0
		for _, o := range st.Outputs {
			bytes += o.Size
			if leftOut(o) {
				n++
				absent = fmt.Sprintf(" (%d not here)", n)
			}
		}
		return fmt.Sprintf("%d files%s, %s", len(st.Outputs), absent, quantity.Bytes(bytes))
	}
	var parts []string
	for _, o := range st.Outputs {
		name, size := o.Role, sizeText(o)
		if split, ok := strings.CutPrefix(o.Role, "problems/"); ok {
			name = split
			if rows := rowsText(st, split); rows != "" {
				size = rows + " (" + size + ")"
			}
		}
		parts = append(parts, name+" "+size)
	}
	return strings.Join(parts, ", ")
}

// leftOut reports whether the bundle that an output came with was without it.
func leftOut(o store.IO) bool { return o.Size == 0 && o.Digest != ident.Sum(nil) }

func sizeText(o store.IO) string {
	if leftOut(o) {
		return "not here"
	}
	return quantity.Bytes(o.Size)
}

// rowsText says how many problems a split has of the rows of its file, where they differ.
func rowsText(st *recorded.Stage, split string) string {
	counts, _ := st.Result.(map[string]any)
	problems, _ := counts[split].(float64)
	rows, _ := counts[split+"_rows"].(float64)
	if rows == 0 || rows == problems {
		return ""
	}
	return quantity.Count(int64(problems)) + " of " + quantity.Count(int64(rows)) + " rows"
}

// stagesWide prints everything known about the stages.
func (p *showPage) stagesWide() error {
	for i := range p.s.Stages {
		st := &p.s.Stages[i]
		p.Heading(st.Name())
		p.Facts(
			cli.Fact{Name: "status", Text: p.stageStatus(st)},
			cli.Fact{Name: "sid", Text: st.SID.Short() + "  code " + st.Code.Short()},
			cli.Fact{Name: "started", Text: p.Out.LocalTime(st.Started)},
			cli.Fact{Name: "cost", Text: costText(st)},
			cli.Fact{Name: "error", Text: st.Error},
		)
		columns := []cli.Column{{Title: "dir"}, {Title: "role"}, {Title: "digest"}, {Title: "size"}}
		var rows [][]any
		for _, o := range st.Inputs {
			rows = append(rows, []any{"in", o.Role, o.Digest.Short(), nil})
		}
		for _, o := range st.Outputs {
			rows = append(rows, []any{"out", o.Role, o.Digest.Short(), sizeText(o)})
		}
		if len(rows) == 0 {
			continue
		}
		if err := p.Table(columns, rows); err != nil {
			return err
		}
	}
	return nil
}

func costText(st *recorded.Stage) string {
	if st.WallS == 0 {
		return ""
	}
	text := quantity.Duration(quantity.Seconds(st.WallS))
	if st.CPUS > 0 {
		text += ", " + quantity.Duration(quantity.Seconds(st.CPUS)) + " of CPU"
	}
	if st.PeakMem > 0 {
		text += ", at most " + quantity.Bytes(st.PeakMem) + " of memory"
	}
	return text
}
