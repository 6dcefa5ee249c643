package main

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"exp/cmd/exp/cli"
	"exp/experiments/store"
)

func tagCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "tag",
		Category:  "Keeping",
		Usage:     "tag a run, or list its tags",
		ArgsUsage: "RUN [TAG...]",
		Description: "Tags group runs: tag:NAME selects runs wherever a command takes them, and tag = NAME is a " +
			"filter, as in exp compare tag:baseline tag:new. The tag " + store.PinTag + " protects a run from " +
			"exp gc (exp pin).",
		UsageText: strings.Join([]string{
			"exp tag @last baseline paper # add two tags",
			"exp tag @last # list its tags",
			"exp tag @last --remove paper # remove one",
		}, "\n"),
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "remove", Aliases: []string{"r"}, Usage: "remove the tags"},
		},
		BashComplete: a.completesRuns(1, true, nil),
		Action: cli.WithArgs(1, -1, func(c *cli.Context, args []string) error {
			for _, t := range args[1:] {
				if err := checkTag(t); err != nil {
					return err
				}
			}
			if len(args) == 1 && c.Bool("remove") {
				return cli.Usagef("--remove needs the tags to remove").See("exp tag")
			}
			tag := a.ofRun(func(c *cli.Context, db *store.DB, run store.Run) error {
				if err := tagRun(c.Context, db, run, args[1:], c.Bool("remove")); err != nil {
					return err
				}
				return a.printTags(c.Context, db, run)
			})
			return cli.With(a.opener(len(args) > 1), func(db *store.DB) error { return tag(c, db, args) })
		}),
	}
}

// checkTag refuses names that do not work in tag:NAME or in a filter.
func checkTag(tag string) error {
	if tag == "" || strings.ContainsAny(tag, " \t\n\r'\"(),[]") || len(tag) > 64 {
		return cli.Usagef("%q cannot be a tag", tag).
			Advise("a tag has 1 to 64 characters, no spaces, quotes, commas or brackets")
	}
	return nil
}

func tagRun(ctx context.Context, db *store.DB, run store.Run, tags []string, remove bool) error {
	if !remove {
		for _, t := range tags {
			if err := db.AddTag(ctx, run.ID, t); err != nil {
				return err
			}
		}
		return nil
	}
	has, err := db.Tags(ctx, run.ID)
	if err != nil {
		return err
	}
	for _, t := range tags {
		if !slices.Contains(has, t) {
			return cli.Failf(cli.ExitNotFound, "run %s has no tag %q", run.RID.Short(), t).
				Advise("it has " + cmp.Or(strings.Join(has, ", "), "none"))
		}
		if err := db.RemoveTag(ctx, run.ID, t); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) printTags(ctx context.Context, db *store.DB, run store.Run) error {
	tags, err := db.Tags(ctx, run.ID)
	if err != nil {
		return err
	}
	t := cli.Table{Schema: "exp.tag/1", Columns: []cli.Column{{Key: "run"}, {Key: "tag", ID: true}}}
	for _, tag := range tags {
		t.Rows = append(t.Rows, []any{cli.HexID(run.RID.String()), tag})
	}
	if len(tags) == 0 && a.Out.ForPeople() {
		a.Note("run %s has no tags", run.RID.Short())
		return nil
	}
	return a.Out.PrintTable(t)
}

func noteCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "note",
		Category:  "Keeping",
		Usage:     "add a remark to a run, or list its remarks",
		ArgsUsage: "RUN [TEXT...]",
		UsageText: strings.Join([]string{
			"exp note @last 'reward rose, entropy fell: lower the temperature' # add one",
			"exp note @last # list them, with their numbers",
			"exp note @last --remove 3 # remove number 3",
		}, "\n"),
		Description: "exp show prints the remarks with the time they were made. The text may be several words " +
			"without quotes.",
		Flags: []cli.Flag{
			&cli.Int64Flag{Name: "remove", Aliases: []string{"r"}, Usage: "remove remark number `N`",
				DefaultText: "none"},
		},
		BashComplete: a.completesRuns(1, true, nil),
		Action: cli.WithArgs(1, -1, func(c *cli.Context, args []string) error {
			text := strings.TrimSpace(strings.Join(args[1:], " "))
			switch {
			case c.IsSet("remove") && text != "":
				return cli.Usagef("--remove removes a remark; it does not go with a text").See("exp note")
			case len(args) > 1 && text == "":
				return cli.Usagef("the remark is empty").See("exp note")
			}
			note := a.ofRun(func(c *cli.Context, db *store.DB, run store.Run) (err error) {
				switch {
				case text != "":
					err = db.AddNote(c.Context, run.ID, text)
				case c.IsSet("remove"):
					err = removeNote(c.Context, db, run, c.Int64("remove"))
				}
				if err != nil {
					return err
				}
				return a.printNotes(c.Context, db, run)
			})
			return cli.With(a.opener(text != "" || c.IsSet("remove")), func(db *store.DB) error {
				return note(c, db, args)
			})
		}),
	}
}

// removeNote removes a remark by its number in lists, from 1.
func removeNote(ctx context.Context, db *store.DB, run store.Run, n int64) error {
	notes, err := db.Notes(ctx, run.ID)
	if err != nil {
		return err
	}
	if n < 1 || n > int64(len(notes)) {
		return cli.Failf(cli.ExitNotFound, "run %s has no remark %d", run.RID.Short(), n).
			Advise("it has " + strconv.Itoa(len(notes)) + "; exp note " + run.RID.Short() + " lists them")
	}
	return db.RemoveNote(ctx, run.ID, notes[n-1].ID)
}

func (a *app) printNotes(ctx context.Context, db *store.DB, run store.Run) error {
	notes, err := db.Notes(ctx, run.ID)
	if err != nil {
		return err
	}
	t := cli.Table{Schema: "exp.note/1", Columns: []cli.Column{{Key: "n", ID: true}, {Key: "time"},
		{Key: "text", Wrap: true, Rank: 1, Min: 20}}}
	for i, n := range notes {
		t.Rows = append(t.Rows, []any{i + 1, n.Time, n.Text})
	}
	if len(notes) == 0 && a.Out.ForPeople() {
		a.Note("run %s has no remarks", run.RID.Short())
		return nil
	}
	return a.Out.PrintTable(t)
}
