package main

import (
	"fmt"
	"strconv"
	"strings"

	"exp/cmd/exp/cli"
	"exp/experiments/keep"
	"exp/experiments/quantity"
	"exp/experiments/query"
	"exp/experiments/store"
	"exp/harness/config"
)

func gcCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:     "gc",
		Category: "Keeping",
		Usage:    "show what can be removed from the store; --apply removes it",
		Description: "Without --apply nothing is removed. Garbage is: files that a killed process was writing, " +
			"blobs (stored files) that no run needs, and deleted runs (exp rm) that no other run depends on, " +
			"with the blobs that only they need.\n" +
			"It never removes what a run that is not deleted needs, pinned runs and checkpoints (exp pin), runs " +
			"being executed, or files younger than an hour that are not a deleted run's. A deleted run goes at " +
			"once, and exp restore cannot bring it back then; --older-than spares recent ones. It is safe while " +
			"runs execute.\n" +
			"With --budget the store is brought down to a size, in this order and no further than needed: " +
			"unfinished files, unreferenced blobs, texts of training samples (their rewards stay), all " +
			"checkpoints but the newest of a stage, deleted runs. The database file does not shrink; its free " +
			"pages are reused.",
		UsageText: strings.Join([]string{
			"exp gc # what could be removed, by kind and size",
			"exp gc --list # each item",
			"exp gc --apply # remove it",
			"exp gc --older-than 30d --apply # runs deleted at least a month ago",
			"exp gc --budget 20GiB # what that would remove",
		}, "\n"),
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "apply", Usage: "remove it"},
			&cli.StringFlag{Name: "budget", Usage: "bring the store down to `SIZE`, such as 20GiB"},
			&cli.StringFlag{Name: "older-than", Usage: "keep what was deleted or written less than `DUR` ago, " +
				"such as 7d"},
			&cli.BoolFlag{Name: "list", Usage: "list each item instead of kinds"},
		},
		BashComplete: a.Completes(func(_ *cli.Context, w cli.Word) []cli.Candidate {
			switch w.Flag {
			case "budget":
				return cli.Candidates([]string{"1GiB", "10GiB", "100GiB"})
			case "older-than":
				return cli.Candidates([]string{"1d", "7d", "30d"})
			}
			return nil
		}),
		Action: cli.WithArgs(0, 0, func(c *cli.Context, _ []string) error {
			o, err := a.sweepOptions(c)
			if err != nil {
				return err
			}
			return cli.With(a.opener(c.Bool("apply")), func(db *store.DB) error { return a.gc(c, db, o) })
		}),
	}
}

func (a *app) sweepOptions(c *cli.Context) (keep.Options, error) {
	o := keep.Options{Now: a.Clock.Now(), Budget: -1}
	if text := c.String("budget"); c.IsSet("budget") {
		n, ok := config.ParseSize(text)
		if !ok {
			return o, cli.Usagef("--budget %q: write a size such as 512MiB or 20GiB", text).See("exp gc")
		}
		o.Budget = n
	}
	if text := c.String("older-than"); c.IsSet("older-than") {
		d, ok := query.ParseAge(text)
		if !ok {
			return o, cli.Usagef("--older-than %q: write a duration such as 12h or 30d", text).See("exp gc")
		}
		o.OlderThan = d
	}
	return o, nil
}

func (a *app) gc(c *cli.Context, db *store.DB, o keep.Options) error {
	plan, err := keep.Sweep(c.Context, db, o)
	if err != nil {
		return err
	}
	items, state := plan.Items, "would go"
	if c.Bool("apply") {
		freed, err := keep.Apply(c.Context, db, plan)
		for _, k := range freed.Kept {
			a.Warn("%s %s is kept: %s", k.Item.What, shortName(k.Item.Name), k.Why)
		}
		if err != nil {
			return err
		}
		items, state = freed.Items, "gone"
	}
	if plan.Over > 0 {
		a.Warn("still %s over the budget: %s", quantity.Bytes(plan.Over), keptText(plan, o))
	}
	sum := keep.Bytes(items)
	if a.Out.ForPeople() {
		switch {
		case len(items) == 0:
			a.Note("nothing to remove; the store has %s", quantity.Bytes(plan.Total))
			return nil
		case c.Bool("apply"):
			defer a.Note("%s of %s freed", quantity.Bytes(sum), quantity.Bytes(plan.Total))
		default:
			defer a.Note("%s of %s can be removed; --apply does it", quantity.Bytes(sum), quantity.Bytes(plan.Total))
		}
	}
	if c.Bool("list") {
		return a.Out.PrintTable(itemTable(items, state))
	}
	return a.Out.PrintTable(kindTable(items, state))
}

// keptText says what a plan keeps although the store is over its budget.
func keptText(plan *keep.Plan, o keep.Options) string {
	text := "exp gc removes nothing that runs need"
	if plan.Young > 0 {
		text += fmt.Sprintf(", and keeps %s younger than %s, or than a run that is being executed",
			quantity.Bytes(plan.Young), quantity.Age(max(keep.Grace, o.OlderThan)))
	}
	return text
}

func itemTable(items []keep.Item, state string) cli.Table {
	t := cli.Table{Schema: "exp.gc.items/1", Columns: []cli.Column{{Key: "kind"}, {Key: "what"},
		{Key: "name", ID: true, Rank: 1, Min: 12}, {Key: "bytes", Text: bytesText}, {Key: "time"},
		{Key: "state", Wide: true}}}
	for _, it := range items {
		name := any(it.Name)
		if it.Kind == keep.Unreferenced || it.Kind == keep.Training || it.Kind == keep.DeletedRuns {
			name = cli.HexID(it.Name)
		}
		t.Rows = append(t.Rows, []any{string(it.Kind), it.What, name, it.Bytes, it.Time, state})
	}
	return t
}

// kindTable sums the items of each kind and sort in one row.
func kindTable(items []keep.Item, state string) cli.Table {
	t := cli.Table{Schema: "exp.gc/1", Columns: []cli.Column{{Key: "kind", ID: true}, {Key: "what"}, {Key: "n"},
		{Key: "bytes", Text: bytesText}, {Key: "oldest"}, {Key: "state", Wide: true}}}
	for _, g := range keep.Groups(items) {
		t.Rows = append(t.Rows, []any{string(g.Kind), g.What, g.N, g.Bytes, g.Oldest, state})
	}
	return t
}

func bytesText(v any) string {
	n, _ := v.(int64)
	return quantity.Bytes(n)
}

// shortName shortens a digest for people and keeps paths.
func shortName(name string) string {
	if _, err := strconv.ParseUint(name[:min(8, len(name))], 16, 64); err == nil && len(name) == 64 {
		return name[:8]
	}
	return name
}
