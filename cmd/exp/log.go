package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
	"exp/experiments/quantity"
	"exp/experiments/query"
	"exp/experiments/recorded"
	"exp/experiments/store"
)

// followEvery is how often a followed log is read.
const followEvery = 500 * time.Millisecond

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
			&cli.StringFlag{Name: "level", Usage: "only `LEVEL` and worse: " + strings.Join(cli.Words(logLevels),
				", "), DefaultText: "info; debug with -f"},
			&cli.BoolFlag{Name: "events", Usage: "only events"},
		},
		BashComplete: a.completesRuns(1, true, func(_ context.Context, _ *store.DB, w cli.Word) []cli.Candidate {
			switch w.Flag {
			case "level":
				return cli.Candidates(cli.Words(logLevels))
			case "since":
				return cli.Candidates([]string{"10m", "1h", "1d"})
			}
			return nil
		}),
		Action: a.reads(1, 1, a.showLog),
	}
}

// logLevels lists the levels from mild to severe.
var logLevels = []store.Level{store.LevelDebug, store.LevelInfo, store.LevelWarn, store.LevelError}

// logEntry is the schema exp.log/1.
type logEntry struct {
	time  time.Time
	level store.Level
	kind  string
	text  string
	data  json.RawMessage // of an event

	order int    // among entries of equal time
	key   string // tells entries apart
}

// logReader gathers the entries of a run.
type logReader struct {
	ctx   context.Context
	db    *store.DB
	run   store.Run
	level int // in logLevels, the least
	since time.Time
	only  bool // events

	step int64 // the last one read
	seen map[string]bool
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
	level, err := cli.OneOf("--level", cmp.Or(c.String("level"), string(usual)), logLevels)
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
	r := &logReader{ctx: c.Context, db: db, run: run, level: slices.Index(logLevels, level), since: since,
		only: c.Bool("events"), seen: map[string]bool{}}
	if follow {
		return a.followLog(r)
	}
	list, err := r.read()
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
func (a *app) followLog(r *logReader) error {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		_, alive := r.db.Alive(r.run.RID) // before reading, so that its last words are read
		list, err := r.read()
		if r.ctx.Err() != nil {
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
		case <-r.ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// printNews prints new entries: lines for people, rows without another header for
// programs.
func (a *app) printNews(list []logEntry) error {
	if len(list) == 0 {
		return nil
	}
	if a.Out.Format != cli.FormatTable && a.Out.Format != cli.FormatWide {
		defer func() { a.Out.Header = false }()
		return a.Out.PrintTable(logTable(list))
	}
	for _, e := range list {
		line := fmt.Sprintf("%s  %s  %s  %s", a.Out.LocalTime(e.time),
			levelStyle(string(e.level)).Paint(term.Pad(string(e.level), 5, false), a.Out.Stream.Color),
			term.Pad(term.Clean(e.kind), 10, false), term.Clean(e.text))
		if _, err := fmt.Fprintln(a.Out.W, line); err != nil {
			return err
		}
	}
	return nil
}

func logTable(list []logEntry) cli.Table {
	t := cli.Table{Schema: "exp.log/1", Columns: []cli.Column{{Key: "time"}, {Key: "level", Style: levelStyle},
		{Key: "kind", ID: true}, {Key: "text", Rank: 1, Min: 20, Wrap: true},
		{Key: "data", Wide: true}}}
	for _, e := range list {
		var data any
		if e.data != nil {
			data = recorded.Decode(e.data)
		}
		t.Rows = append(t.Rows, []any{e.time, string(e.level), e.kind, e.text, data})
	}
	return t
}

var levelStyle = styleOf(map[store.Level]term.Style{
	store.LevelError: term.Bad, store.LevelWarn: term.Warn, store.LevelDebug: term.Faint,
})

// read returns the new entries in order of time.
func (r *logReader) read() (list []logEntry, err error) {
	all := []func() ([]logEntry, error){r.events}
	if !r.only {
		all = append(all, r.attempts, r.stages, r.checkpoints, r.divergences)
		if r.level == 0 {
			all = append(all, r.steps)
		}
	}
	for _, f := range all {
		entries, err := f()
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if r.seen[e.key] || slices.Index(logLevels, e.level) < r.level || e.time.Before(r.since) {
				continue
			}
			if e.kind != "step" { // steps are read once
				r.seen[e.key] = true
			}
			list = append(list, e)
		}
	}
	slices.SortStableFunc(list, func(a, b logEntry) int {
		return cmp.Or(a.time.Compare(b.time), cmp.Compare(a.order, b.order))
	})
	return list, nil
}

// The order of entries within one millisecond.
const (
	orderAttempt = iota
	orderStage
	orderStep
	orderCheckpoint
	orderEvent
	orderStageEnd
	orderAttemptEnd
)

func (r *logReader) events() (list []logEntry, err error) {
	events, err := r.db.Events(r.ctx, r.run.ID, 0)
	for _, e := range events {
		list = append(list, logEntry{e.Time, e.Level, e.Kind, eventText(recorded.Decode(e.Data)), e.Data, orderEvent,
			fmt.Sprint("event ", e.ID)})
	}
	return list, err
}

func (r *logReader) attempts() (list []logEntry, err error) {
	attempts, err := r.db.Attempts(r.ctx, r.run.ID)
	for _, t := range attempts {
		list = append(list, logEntry{t.Started, store.LevelInfo, "attempt",
			fmt.Sprintf("attempt %d (%s) begins on %s, process %d, %s", t.N, t.Kind, t.Host, t.PID, t.Device),
			nil, orderAttempt, fmt.Sprint("attempt ", t.N)})
		if t.Ended.IsZero() {
			continue
		}
		text := fmt.Sprintf("attempt %d is %s after %s", t.N, t.Status, quantity.Duration(t.Ended.Sub(t.Started)))
		if t.ExitCode != 0 {
			text += fmt.Sprintf(", exit code %d", t.ExitCode)
		}
		list = append(list, logEntry{t.Ended, endLevel(t.Status), "attempt", text, nil, orderAttemptEnd,
			fmt.Sprint("end of attempt ", t.N)})
	}
	return list, err
}

func endLevel(s store.Status) store.Level {
	switch s {
	case store.Failed, store.Diverged:
		return store.LevelError
	case store.Interrupted:
		return store.LevelWarn
	}
	return store.LevelInfo
}

func (r *logReader) stages() (list []logEntry, err error) {
	stages, err := r.db.Stages(r.ctx, r.run.ID)
	for _, s := range stages {
		name := s.Name()
		if s.Status == store.Cached {
			list = append(list, logEntry{s.Started, store.LevelInfo, "stage",
				fmt.Sprintf("%s cached (%s, produced by run %s)", name, s.SID.Short(), s.ReusedRun.Short()),
				nil, orderStage, fmt.Sprint("stage ", s.ID)})
			continue
		}
		list = append(list, logEntry{s.Started, store.LevelInfo, "stage", name + " begins", nil, orderStage,
			fmt.Sprint("stage ", s.ID)})
		if s.Ended.IsZero() {
			continue
		}
		text := fmt.Sprintf("%s %s", name, s.Status)
		if s.WallS > 0 {
			text += " in " + quantity.Duration(quantity.Seconds(s.WallS))
		}
		if s.Error != "" {
			text += ": " + s.Error
		}
		list = append(list, logEntry{s.Ended, endLevel(s.Status), "stage", text, nil, orderStageEnd,
			fmt.Sprint("end of stage ", s.ID)})
	}
	return list, err
}

func (r *logReader) checkpoints() (list []logEntry, err error) {
	saved, err := r.db.Checkpoints(r.ctx, r.run.ID)
	for _, s := range saved {
		list = append(list, logEntry{s.Time, store.LevelInfo, "checkpoint",
			fmt.Sprintf("step %d, %s, chain %s", s.Step, quantity.Bytes(s.Bytes), s.Chain.Short()),
			nil, orderCheckpoint, fmt.Sprint("checkpoint ", s.Step)})
	}
	return list, err
}

func (r *logReader) divergences() (list []logEntry, err error) {
	found, err := r.db.Divergences(r.ctx, r.run.ID)
	for _, d := range found {
		list = append(list, logEntry{d.Time, store.LevelError, "divergence", d.What.Text(), nil, orderEvent,
			fmt.Sprint("divergence ", d.ID)})
	}
	return list, err
}

func (r *logReader) steps() (list []logEntry, err error) {
	steps, err := r.db.Steps(r.ctx, r.run.ID, r.step+1, store.AllSteps)
	for _, s := range steps {
		list = append(list, logEntry{s.Time, store.LevelDebug, "step",
			fmt.Sprintf("step %d of %d, %s tokens, chain %s", s.Det.Step, r.run.StepsTotal, quantity.Count(s.Tokens),
				s.Chain.Short()),
			nil, orderStep, fmt.Sprint("step ", s.Det.Step)})
		r.step = s.Det.Step
	}
	return list, err
}
