package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
	"exp/experiments/quantity"
	"exp/harness/fault"
	"exp/harness/rescore"
)

// gradeWatcher shows how many programs have been graded.
type gradeWatcher struct {
	app   *app
	began time.Time
}

// GradeStart implements rescore.Watcher.
func (w *gradeWatcher) GradeStart(samples int) {
	w.began = w.app.Clock.Now()
	w.app.Progress().StageStart(term.Stage{Kind: "grade", Total: samples, Unit: "response"})
}

// GradeProgress implements rescore.Watcher.
func (w *gradeWatcher) GradeProgress(done int) {
	w.app.Progress().StageProgress(term.Step{Step: done})
}

// GradeDone implements rescore.Watcher.
func (w *gradeWatcher) GradeDone(failed bool) {
	status := term.Done
	if failed {
		status = term.Failed
	}
	w.app.Progress().StageDone(term.Result{Status: status, Wall: w.app.Clock.Now().Sub(w.began)})
	w.app.CloseProgress()
}

// SandboxBroke implements rescore.Watcher.
func (w *gradeWatcher) SandboxBroke(times int64, last error) {
	w.app.Warn("the sandbox failed %s, most recently: %v; programs that could not be rerun are not graded",
		quantity.Plural(int(times), "time"), last)
}

// writeResponses writes FORM=FILE.
func writeResponses(e *rescore.Evaluation, to string) error {
	form, path, ok := strings.Cut(to, "=")
	if !ok || path == "" {
		return cli.Usagef("--write %s: want FORM=FILE", to)
	}
	if err := rescore.CheckForm(form); err != nil {
		return badInput(err)
	}
	err := replaceFile(path, func(w io.Writer) error { return e.Write(w, form) })
	if fault.IsBadFile(err) {
		return cli.Failf(cli.ExitUsage, "--write %s: %w", form, err)
	}
	return err
}

// writeEvaluation prints the scores, then how the graders differ.
func (a *app) writeEvaluation(w io.Writer, d *rescore.Report) error {
	from := "gold answers of the file"
	if d.Suite != nil {
		from = strings.TrimSpace("suite " + d.Suite.Name + " " + d.Suite.Version)
	}
	per := fmt.Sprint(d.Most)
	if d.Least != d.Most {
		per = fmt.Sprintf("%d to %d", d.Least, d.Most)
	}
	fmt.Fprintf(w, "%s  %s  %s\n%s, %s, %s each; problems %s\n", d.File, d.Format, from,
		quantity.Plural(d.Problems-d.Missing, "problem"), quantity.Plural(d.Samples, "response"), per, d.Digest[:8])
	if d.Missing > 0 {
		fmt.Fprintf(w, "partial: %d of %d problems have no response and are not counted\n", d.Missing, d.Problems)
	}
	if p := d.Protocol; p != nil {
		fmt.Fprintf(w, "protocol %s: %s; %s\n", p.Name, p.Settings(), p.Prompt)
	}
	fmt.Fprintln(w)
	if err := a.Out.PrintAligned(scoreTable(d)); err != nil {
		return err
	}
	if len(d.Ends) > 0 {
		fmt.Fprintf(w, "\nHow the programs ended; the graders disagree on %d of %d.\n", d.Disagreements, d.Samples)
		return a.Out.PrintAligned(endsTable(d))
	}
	if len(d.Forms) == 0 {
		if len(d.Graders) > 1 {
			fmt.Fprintf(w, "\nThe graders disagree on %d of %d.\n", d.Disagreements, d.Samples)
		}
		return a.publishedScores(w, d)
	}
	fmt.Fprintf(w, "\nForms of answers, and the share of each that a grader accepts; graders disagree "+
		"on %d of %d.\n", d.Disagreements, d.Samples)
	if err := a.Out.PrintAligned(formTable(d)); err != nil {
		return err
	}
	return a.publishedScores(w, d)
}

// publishedScores prints scores of other programs, if there are any.
func (a *app) publishedScores(w io.Writer, d *rescore.Report) error {
	if len(d.Published) == 0 {
		return nil
	}
	fmt.Fprintln(w, "\nPublished:")
	t := cli.Table{Columns: []cli.Column{{Key: "task"}, {Key: "metric"}, {Key: "value", Digits: 4},
		{Key: "stderr", Digits: 4}}}
	for _, r := range d.Published {
		var se any
		if r.StdErr != nil {
			se = *r.StdErr
		}
		t.Rows = append(t.Rows, []any{r.Task, r.Metric, r.Value, se})
	}
	return a.Out.PrintAligned(t)
}

// scoreTable has a row per grader: avg@n with its interval, then the other metrics.
func scoreTable(d *rescore.Report) cli.Table {
	t := cli.Table{Columns: []cli.Column{{Key: "grader"}}}
	at := map[string]int{} // column by metric: not every grader has each
	for _, g := range d.Graders {
		for _, m := range g.Metrics {
			if at[m.Name] > 0 {
				continue
			}
			at[m.Name] = len(t.Columns)
			name := m.Name
			if name == "pass@1" && d.Most > 1 {
				name = fmt.Sprintf("avg@%d", d.Most)
			}
			t.Columns = append(t.Columns, cli.Column{Key: name})
		}
	}
	for _, g := range d.Graders {
		row := make([]any, len(t.Columns))
		row[0] = g.Name
		for _, m := range g.Metrics {
			row[at[m.Name]] = withInterval(m)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// withInterval formats a value as "0.641 [0.600, 0.682]".
func withInterval(m rescore.Metric) string {
	s := fmt.Sprintf("%.3f", m.Value)
	if m.Lo != nil {
		s += fmt.Sprintf(" [%.3f, %.3f]", *m.Lo, *m.Hi)
	}
	return s
}

func formTable(d *rescore.Report) cli.Table {
	t := cli.Table{Columns: []cli.Column{{Key: "form"}, {Key: "responses"}, {Key: "share", Digits: 3}}}
	for _, g := range d.Graders {
		t.Columns = append(t.Columns, cli.Column{Key: g.Name, Title: g.Name, Digits: 3})
	}
	for _, f := range d.Forms {
		row := []any{f.Form, f.Samples, f.Share}
		for _, g := range d.Graders {
			row = append(row, f.Rate[g.Name])
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func endsTable(d *rescore.Report) cli.Table {
	t := cli.Table{Columns: []cli.Column{{Key: "program"}}}
	var names []string
	for _, g := range d.Graders {
		if _, ok := d.Ends[0].Samples[g.Name]; ok {
			names = append(names, g.Name)
			t.Columns = append(t.Columns, cli.Column{Key: g.Name})
		}
	}
	for _, end := range d.Ends {
		row := []any{string(end.Verdict)}
		for _, name := range names {
			row = append(row, end.Samples[name])
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
