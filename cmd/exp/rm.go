package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"exp/cmd/exp/cli"
	"exp/experiments/keep"
	"exp/experiments/quantity"
	"exp/experiments/query"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/metric"
)

func notDry(c *cli.Context) bool { return !c.Bool("dry-run") }

// confirm asks at a terminal, and otherwise requires --yes.
func (a *app) confirm(c *cli.Context, question string) error {
	if c.Bool("yes") {
		return nil
	}
	in, ok := a.Stdin.(*os.File)
	if !ok || !a.Stream(in).TTY || !a.Stream(a.Stderr).TTY {
		return cli.Usagef("%s needs --yes when it cannot ask", a.Command()).Advise("--dry-run shows what it would do")
	}
	fmt.Fprintf(a.Stderr, "%s [y/N] ", question)
	answer, err := bufio.NewReader(a.Stdin).ReadString('\n')
	if err != nil && err != io.EOF {
		return err
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		a.Note("nothing was done")
		return cli.Said(cli.ExitFailure)
	}
	return nil
}

func rmCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "rm",
		Category:  "Keeping",
		Usage:     "delete runs; exp restore undoes it",
		ArgsUsage: "SEL...",
		Description: "A deleted run is hidden from lists and references, but nothing is removed until exp gc " +
			"--apply. Runs that continue it or reuse its stages are listed and stay complete. A run that is " +
			"being executed, or is pinned, cannot be deleted. exp ls --deleted lists deleted runs.",
		UsageText: strings.Join([]string{
			"exp rm @last # asks first",
			"exp rm 'status = failed and created < 7d' --dry-run # shows which",
			"exp rm tag:scratch --yes # in a script",
		}, "\n"),
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "dry-run", Aliases: []string{"n"},
				Usage: "show what would be deleted, and delete nothing"},
			&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask"},
		},
		BashComplete: a.completesRuns(0, false, nil),
		Action:       a.changesIf(notDry, 1, -1, a.remove),
	}
}

func restoreCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "restore",
		Category:  "Keeping",
		Usage:     "restore deleted runs",
		ArgsUsage: "SEL...",
		Description: "Undoes exp rm, as long as exp gc --apply has not removed the run. exp ls --deleted lists " +
			"the runs that can be restored.",
		UsageText: strings.Join([]string{
			"exp restore 5e8d10b4 # by its id",
			"exp restore old --dry-run # only show them",
		}, "\n"),
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "dry-run", Aliases: []string{"n"},
				Usage: "show what would be restored, and change nothing"},
		},
		BashComplete: a.Completes(func(c *cli.Context, w cli.Word) []cli.Candidate {
			return a.deletedCandidates(c.Context, w)
		}),
		Action: a.changesIf(notDry, 1, -1, a.restore),
	}
}

// deletedCandidates proposes the deleted runs.
func (a *app) deletedCandidates(ctx context.Context, w cli.Word) (list []cli.Candidate) {
	db, err := a.OpenStore()
	if err != nil || w.Flag != "" {
		return nil
	}
	defer db.Close()
	runs, err := db.Runs(ctx, store.RunQuery{Deleted: true, Limit: recentRuns})
	if err != nil {
		return nil
	}
	for _, r := range runs {
		about := fmt.Sprintf("%s#%d, deleted %s ago", r.Name, r.Seed, quantity.Ago(a.Clock.Now(), r.Deleted))
		list = append(list, cli.Candidate{Text: r.RID.Short(), Note: about})
	}
	return list
}

func (a *app) remove(c *cli.Context, db *store.DB, selections []string) error {
	runs, err := a.selectRuns(c.Context, db, a.finder(db), selections)
	if err != nil {
		return err
	}
	for _, r := range runs {
		if h, alive := db.Alive(r.RID); alive {
			return &store.LockedError{RID: r.RID, Path: db.RunDir(r.RID), Holder: h}
		}
		tags, err := db.Tags(c.Context, r.ID)
		if err := cmp.Or(err, refuseOtherName(r, tags, selections), refusePinned(r, tags)); err != nil {
			return err
		}
	}
	needed := make([][]string, len(runs))
	for i, r := range runs {
		others, err := keep.NeededBy(c.Context, db, r)
		if err != nil {
			return err
		}
		for _, other := range others {
			needed[i] = append(needed[i], other.RID.Short())
		}
	}
	if len(runs) == 0 {
		a.noteEmpty(c, db, 0)
	}
	if !c.Bool("dry-run") && len(runs) > 0 {
		for i, r := range runs {
			if len(needed[i]) > 0 {
				stay := "which stay complete"
				if len(needed[i]) == 1 {
					stay = "which stays complete"
				}
				a.Warn("run %s is needed by %s, %s", r.RID.Short(), usedByText(needed[i]), stay)
			}
		}
		if err := a.confirm(c, fmt.Sprintf("delete %s?", runsText(runs))); err != nil {
			return err
		}
		for _, r := range runs {
			if err := db.DeleteRun(c.Context, r.ID); err != nil {
				return err
			}
		}
	}
	return a.printMarked("exp.rm/1", runs, "needed_by", needed)
}

// refuseOtherName refuses to delete a run by a name that it was only repeated under.
func refuseOtherName(r store.Run, tags, selections []string) error {
	for _, s := range selections {
		name, _, _ := strings.Cut(s, "#")
		if name != r.Name && slices.Contains(tags, store.NameTag(name)) {
			return cli.Failf(cli.ExitUsage, "%s is another name of run %s (%s#%d); nothing was deleted", name,
				r.RID.Short(), r.Name, r.Seed).
				Advise("name it by its id or as " + r.Name)
		}
	}
	return nil
}

// refusePinned refuses to delete a run that is pinned, or has a pinned checkpoint.
func refusePinned(r store.Run, tags []string) error {
	for _, tag := range tags {
		name, step, checkpoint := strings.Cut(tag, "@")
		if name != store.PinTag {
			continue
		}
		unpin := "exp pin " + r.RID.Short() + " --remove"
		what := "it"
		if checkpoint {
			unpin += " --ckpt " + step
			what = "its checkpoint of step " + step
		}
		return cli.Failf(cli.ExitUsage, "run %s (%s#%d) stays: %s is pinned; nothing was deleted", r.RID.Short(),
			r.Name, r.Seed, what).
			Advise("to unpin it: " + unpin)
	}
	return nil
}

func (a *app) restore(c *cli.Context, db *store.DB, selections []string) error {
	f := query.Finder{DB: db, Now: a.Clock.Now(), Deleted: true, Lower: metric.Lower, Schema: config.Fields()}
	runs, err := a.selectRuns(c.Context, db, f, selections)
	var none *query.NotFoundError
	if errors.As(err, &none) {
		none.Hint = "exp ls --deleted lists deleted runs"
		if kept, e := a.finder(db).All(c.Context, none.Ref); e == nil && len(kept) > 0 {
			return cli.Failf(cli.ExitNotFound, "run %s (%s#%d) is not deleted", kept[0].RID.Short(), kept[0].Name,
				kept[0].Seed).Advise(none.Hint)
		}
	}
	if err != nil {
		return err
	}
	if len(runs) == 0 {
		a.Note("no deleted run matches")
	}
	lost := make([][]string, len(runs))
	for i, r := range runs {
		blobs, err := keep.Lost(c.Context, db, r)
		if err != nil {
			return err
		}
		for _, b := range blobs {
			lost[i] = append(lost[i], b.Short())
		}
		if len(lost[i]) > 0 {
			a.Warn("run %s is restored damaged: %d of its blobs are gone", r.RID.Short(), len(lost[i]))
		}
		if !c.Bool("dry-run") {
			if err := db.RestoreRun(c.Context, r.ID); err != nil {
				return err
			}
		}
	}
	return a.printMarked("exp.restore/1", runs, "lost", lost)
}

// printMarked prints runs that were deleted or restored, with a list about each.
func (a *app) printMarked(schema string, runs []store.Run, key string, lists [][]string) error {
	t := cli.Table{Schema: schema, Columns: []cli.Column{{Key: "run", ID: true}, {Key: "name", Rank: 1, Min: 8},
		{Key: "seed"}, {Key: "status", Style: statusStyle}, {Key: "created"}, {Key: key, Rank: 2, Min: 8}}}
	for i, r := range runs {
		list := lists[i]
		if list == nil {
			list = []string{}
		}
		t.Rows = append(t.Rows, []any{cli.HexID(r.RID.String()), r.Name, r.Seed, string(r.Status), r.Created, list})
	}
	return a.Out.PrintTable(t)
}

// runName names a run for people: name, seed and short id.
func runName(r *store.Run) string { return fmt.Sprintf("%s#%d (%s)", r.Name, r.Seed, r.RID.Short()) }

// runsText names up to three runs.
func runsText(runs []store.Run) string {
	var list []string
	for _, r := range runs {
		list = append(list, runName(&r))
	}
	if len(list) == 1 {
		return "run " + list[0]
	}
	return fmt.Sprintf("%d runs: %s", len(list), usedByText(list))
}
