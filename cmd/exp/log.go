package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
	"exp/experiments/query"
	"exp/experiments/recorded"
	"exp/experiments/store"
	"exp/harness/metric"
)

// followEvery is how often a followed log is read.
const followEvery = 500 * time.Millisecond

// stepMetricsInLog is how many metrics the line of a step has, the first of a progress line: the
// reward, the accuracy.
const stepMetricsInLog = 2

func logCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "log",
		Category:  "Results",
		Usage:     "show what happened in a run, in order of time",
		ArgsUsage: "RUN",
		Description: "The log is read from the record: attempts, stages, checkpoints, events such as skipped " +
			"updates, divergences, and, at level debug, every training step. With -f it follows the run until " +
			"it ends, steps included.",
		UsageText: strings.Join([]string{
			"exp log @last # what happened",
			"exp log @running -f # watch it",
			"exp log @last --level warn # only what went wrong",
			"exp log @last --events --since 2h -o jsonl # for programs",
		}, "\n"),
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "follow the run until it ends"},
			&cli.StringFlag{Name: "since", Usage: "only entries younger than `AGE` (10m, 2d) or later than a time"},
			&cli.StringFlag{Name: "level", Usage: "only `LEVEL` and worse: " +
				strings.Join(cli.Words(recorded.Levels()), ", "), DefaultText: "info; debug with -f"},
			&cli.BoolFlag{Name: "events", Usage: "only events"},
		},
		BashComplete: a.completesRuns(1, true, func(_ context.Context, _ *store.DB, w cli.Word) []cli.Candidate {
			switch w.Flag {
			case "level":
				return cli.Candidates(cli.Words(recorded.Levels()))
			case "since":
				return cli.Candidates([]string{"10m", "1h", "1d"})
			}
			return nil
		}),
		Action: a.reads(1, 1, a.showLog),
	}
}

func (a *app) showLog(c *cli.Context, db *store.DB, args []string) error {
	follow := c.Bool("follow")
	if follow && a.Out.HasEnvelope() {
		return cli.Usagef("-f cannot follow in -o %s; use -o jsonl", a.Out.Format).See("exp log")
	}
	usual := store.LevelInfo
	if follow {
		usual = store.LevelDebug
	}
	level, err := cli.OneOf("--level", cmp.Or(c.String("level"), string(usual)), recorded.Levels())
	if err != nil {
		return err
	}
	since, err := sinceOf(c.String("since"), a.Clock.Now())
	if err != nil {
		return err
	}
	run, err := a.oneRun(c.Context, db, args[0])
	if err != nil {
		return err
	}
	r := &recorded.Log{DB: db, Run: run, Level: level, Since: since, Events: c.Bool("events")}
	for _, m := range metric.ShownIn(metric.OnProgress)[:stepMetricsInLog] {
		r.Metrics = append(r.Metrics, recorded.Heading{Name: m.Name, Heading: m.Heading})
	}
	if follow {
		return a.followLog(c.Context, r)
	}
	list, err := r.Read(c.Context)
	if err != nil {
		return err
	}
	if len(list) == 0 && a.Out.ForPeople() {
		a.Note("nothing in the log matches")
		return nil
	}
	return a.Out.PrintTable(logTable(list))
}

// sinceOf reads an age or a time; the zero time for none.
func sinceOf(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if age, ok := query.ParseAge(text); ok {
		return now.Add(-age), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateTime, time.DateOnly} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, cli.Usagef("--since %q: write an age such as 10m or 2d, or a time such as 2026-01-02 or "+
		"2026-01-02T15:04:05Z", text).See("exp log")
}

// followLog prints new entries until the run ends or the user stops it.
func (a *app) followLog(ctx context.Context, r *recorded.Log) error {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		_, alive := r.DB.Alive(r.Run.RID) // asked before reading, so the last lines are not missed
		list, err := r.Read(ctx)
		if ctx.Err() != nil {
			return nil // the normal end of following
		}
		if err != nil {
			return err
		}
		if err := a.printNews(list); err != nil {
			return err
		}
		if !alive {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// printNews prints new entries: lines for people, rows without another header for
// programs.
func (a *app) printNews(list []recorded.Entry) error {
	if len(list) == 0 {
		return nil
	}
	if a.Out.Format != cli.FormatTable && a.Out.Format != cli.FormatWide {
		defer func() { a.Out.Header = false }()
		return a.Out.PrintTable(logTable(list))
	}
	for _, e := range list {
		line := fmt.Sprintf("%s  %s  %s  %s", a.Out.LocalTime(e.Time),
			levelStyle(string(e.Level)).Paint(term.Pad(string(e.Level), 5, false), a.Out.Stream.Color),
			term.Pad(term.Clean(e.Kind), 10, false), term.Clean(e.Text))
		if _, err := fmt.Fprintln(a.Out.W, line); err != nil {
			return err
		}
	}
	return nil
}

func logTable(list []recorded.Entry) cli.Table {
	t := cli.Table{Schema: "exp.log/1", Columns: []cli.Column{{Key: "time"}, {Key: "level", Style: levelStyle},
		{Key: "kind", ID: true}, {Key: "text", Rank: 1, Min: 20, Wrap: true},
		{Key: "data", Wide: true}}}
	for _, e := range list {
		var data any
		if e.Data != nil {
			data = recorded.Decode(e.Data)
		}
		t.Rows = append(t.Rows, []any{e.Time, string(e.Level), e.Kind, e.Text, data})
	}
	return t
}

var levelStyle = styleOf(map[store.Level]term.Style{
	store.LevelError: term.Bad, store.LevelWarn: term.Warn, store.LevelDebug: term.Faint,
})
