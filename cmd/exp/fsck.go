package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
	"exp/experiments/keep"
	"exp/experiments/quantity"
	"exp/experiments/store"
	harness "exp/harness/run"
)

func fsckCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:     "fsck",
		Category: "Keeping",
		Usage:    "check that the store is complete and undamaged",
		Description: "Checks the database and its references, that every blob (stored file) a run needs is " +
			"there with its size, that configurations, stages and lists of source files are as recorded, that each " +
			"run's chain (the digest of its steps) and what lists print of it follow from the recorded rows, and " +
			"that no dead process is recorded as running. --deep also reads all blobs and checkpoints and compares " +
			"their digests. Without --repair it changes nothing.\n" +
			"--repair moves corrupt blobs to quarantine/ in the store, so that rerunning their stages can " +
			"replace them, and marks killed runs as interrupted. Damage is exit code 4; fsck lists the runs " +
			"that depend on it, and exp show warns on their first lines.",
		UsageText: strings.Join([]string{
			"exp fsck # quick: sizes, references, chains",
			"exp fsck --deep # read everything, at the speed of the disk",
			"exp fsck --deep --repair # and quarantine corrupt blobs",
			"exp fsck --json # for programs",
		}, "\n"),
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "deep", Usage: "hash all blobs and checkpoints"},
			&cli.BoolFlag{Name: "repair", Usage: "quarantine corrupt blobs, and mark killed runs as interrupted"},
		},
		Action: a.changesIf(func(c *cli.Context) bool { return c.Bool("repair") }, 0, 0, a.fsck),
	}
}

// fsck prints a keep.Report, the schema exp.fsck/1.
func (a *app) fsck(c *cli.Context, db *store.DB, _ []string) error {
	start := time.Now()
	o := keep.CheckOptions{Deep: c.Bool("deep"), Repair: c.Bool("repair"), Now: a.Clock.Now(),
		Checkpoint: harness.CheckCheckpoint, Config: harness.ConfigChanged, Stage: harness.StageChanged}
	if o.Deep {
		display := a.Progress()
		begun := false
		o.Progress = func(done, total int64) {
			if !begun {
				display.StageStart(term.Stage{Kind: "fsck", Total: int(total), Unit: "byte"})
				begun = true
			}
			display.StageProgress(term.Step{Step: int(done)})
			if done == total {
				display.StageDone(term.Result{Status: term.Done, Wall: time.Since(start)})
			}
		}
	}
	r, err := keep.Check(c.Context, db, o)
	a.CloseProgress()
	if err != nil {
		return err
	}
	err = a.Out.PrintDocument(cli.Document{Schema: "exp.fsck/1", Data: r, Human: func(w io.Writer) error {
		p := a.Out.NewPage(w)
		writeFsck(p, r)
		return p.Close()
	}})
	if err != nil || r.OK {
		return err
	}
	return cli.Failf(cli.ExitIntegrity, "the store is damaged: %d findings", r.Damage()).Advise(fsckHelp(r, o))
}

// fsckHelp says how to repair damage.
func fsckHelp(r *keep.Report, o keep.CheckOptions) string {
	for _, f := range r.Findings {
		switch {
		case f.Fault == keep.Database:
			return "restore exp.db from a backup; blobs are separate files and not affected"
		case f.Fault == keep.Corrupt && !o.Repair:
			return "exp fsck --deep --repair quarantines corrupt blobs; then rerun the stages that produced them"
		case f.Fault == keep.Config:
			return "restore exp.db from a backup: what lists and comparisons read of these runs is not what " +
				"they computed with"
		case f.Fault == keep.Stage:
			return "restore exp.db from a backup: exp why explains by these records, and other runs find stages by " +
				"their ids"
		case f.Fault == keep.Sources:
			return "restore exp.db from a backup: exp why and exp diff --code read these lists"
		case f.Fault == keep.Summary:
			return "what lists print of a run was changed; the rows that it sums up still hold the true values"
		case f.Fault == keep.Chain:
			return "the recorded steps were changed; exp verify re-executes a run and shows which of " +
				"them are true"
		}
	}
	return "rerun the stages that produced the missing files"
}

func writeFsck(p *cli.Page, r *keep.Report) {
	how := "sizes compared"
	if r.Deep {
		how = "hashed"
	}
	for _, f := range r.Findings {
		style := term.Bad
		if f.Fault == keep.Stale {
			style = term.Warn
		}
		var names []string
		for _, run := range f.Runs {
			names = append(names, runName(run.Run))
		}
		what := f.What
		if len(names) == 1 && f.Runs[0].RID.String() == f.What {
			what = names[0]
		}
		fmt.Fprintf(p, "%s %s: %s\n", style.Paint(string(f.Fault)+":", p.Layout.Color), term.Clean(shortName(what)),
			term.CleanLines(f.Detail))
		if len(names) > 0 && what == f.What {
			p.Line("needed by %s", strings.Join(names, ", "))
		}
		if f.Repaired != "" {
			p.Line("%s", f.Repaired)
		}
	}
	checked := fmt.Sprintf("checked %s, %s (%s recomputed), %s of %s (%s)", quantity.Plural(r.Runs, "run"),
		quantity.Plural(int(r.Steps), "step"), quantity.Plural(int(r.Recomputed), "chain"),
		quantity.Plural(r.Blobs, "blob"), quantity.Bytes(r.Bytes), how)
	if r.Checkpoints > 0 {
		checked += ", " + quantity.Plural(r.Checkpoints, "checkpoint")
	}
	fmt.Fprintf(p, "%s in %s\n", checked, quantity.Duration(quantity.Seconds(r.WallS)))
	switch left := r.Steps - r.Recomputed; {
	case len(r.Findings) > 0:
	case left > 0:
		fmt.Fprintf(p, "%s, but the chain of %d of %s was not recomputed, so they may have been changed: the "+
			"database does not keep the bits of a NaN\n", term.Warn.Paint("no damage found", p.Layout.Color), left,
			quantity.Plural(int(r.Steps), "step"))
	default:
		fmt.Fprintln(p, term.Good.Paint("everything is as recorded", p.Layout.Color))
	}
}
