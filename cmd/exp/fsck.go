package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"exp/cmd/exp/term"
	"exp/experiments/ident"
	"exp/experiments/keep"
	"exp/experiments/store"
	"exp/train/checkpoint"
)

func fsckCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:     "fsck",
		Category: "Keeping",
		Usage:    "check that everything recorded is there, and is what it was",
		Description: "Checks the database and its references, that each blob that a run needs is there with its size, that the chain of each run " +
			"follows from its recorded steps, and that nothing is recorded as running whose process is gone. --deep also reads all blobs and " +
			"checkpoints and compares their digests. Without --repair nothing is changed.\n" +
			"--repair moves corrupt blobs to quarantine/ in the store, so that running their stage again can make them anew, and marks killed " +
			"runs as interrupted. Damage is exit code 4; the runs that depend on it are listed, and exp show says so on their first lines.",
		UsageText: strings.Join([]string{
			"exp fsck # quick: sizes, references, chains",
			"exp fsck --deep # read everything, at the speed of the disk",
			"exp fsck --deep --repair # and move what is corrupt out of the way",
			"exp fsck --json # for programs",
		}, "\n"),
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "deep", Usage: "hash all blobs and checkpoints"},
			&cli.BoolFlag{Name: "repair", Usage: "quarantine corrupt blobs, close what killed processes left open"},
		},
		Action: func(c *cli.Context) error {
			if _, err := positionals(c, 0, 0); err != nil {
				return err
			}
			if c.Bool("repair") {
				return a.withStoreToChange(func(db *store.DB) error { return a.fsck(c, db) })
			}
			return a.withStore(func(db *store.DB) error { return a.fsck(c, db) })
		},
	}
}

// fsckReport is the schema exp.fsck/1.
type fsckReport struct {
	OK          bool          `json:"ok"` // nothing is damaged
	Deep        bool          `json:"deep"`
	Runs        int           `json:"runs"`
	Blobs       int           `json:"blobs"`
	Bytes       int64         `json:"bytes"`
	Steps       int64         `json:"steps"`
	Recomputed  int64         `json:"recomputed"` // steps whose chain was computed again
	Checkpoints int           `json:"checkpoints"`
	WallS       float64       `json:"wall_s"`
	Findings    []fsckFinding `json:"findings"`
}

type fsckFinding struct {
	Fault    keep.Fault     `json:"fault"`
	What     string         `json:"what"`
	Detail   string         `json:"detail"`
	Runs     []ident.Digest `json:"runs"`
	Repaired string         `json:"repaired"`

	names []string // of the runs, for people
}

func (a *app) fsck(c *cli.Context, db *store.DB) error {
	start := time.Now()
	o := keep.CheckOptions{Deep: c.Bool("deep"), Repair: c.Bool("repair"), Now: a.clock.Now(),
		Checkpoint: func(dir string) error {
			_, err := checkpoint.Open(dir)
			return err
		}}
	if o.Deep {
		display := a.progressDisplay()
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
	a.closeProgress()
	if err != nil {
		return err
	}
	out := fsckReport{OK: !r.Damaged(), Deep: o.Deep, Runs: r.Runs, Blobs: r.Blobs, Bytes: r.Bytes, Steps: r.Steps, Recomputed: r.Recomputed,
		Checkpoints: r.Checkpoints, WallS: time.Since(start).Seconds(), Findings: []fsckFinding{}}
	for _, f := range r.Findings {
		shown := fsckFinding{Fault: f.Fault, What: f.What, Detail: f.Detail, Runs: []ident.Digest{}, Repaired: f.Repaired}
		for _, run := range f.Runs {
			shown.Runs = append(shown.Runs, run.RID)
			shown.names = append(shown.names, fmt.Sprintf("%s#%d (%s)", run.Name, run.Seed, run.RID.Short()))
		}
		out.Findings = append(out.Findings, shown)
	}
	err = a.out.printDocument(document{Schema: "exp.fsck/1", Data: out, Human: func(w io.Writer) error {
		p := a.out.newPage(w)
		writeFsck(p, out)
		return p.close()
	}})
	if err != nil || out.OK {
		return err
	}
	f := failf(exitIntegrity, "the store is damaged: %d findings", damage(out.Findings))
	f.Help = fsckHelp(out, o)
	return f
}

func damage(list []fsckFinding) (n int) {
	for _, f := range list {
		if f.Fault != keep.Stale {
			n++
		}
	}
	return n
}

// fsckHelp says what to do about damage.
func fsckHelp(r fsckReport, o keep.CheckOptions) string {
	for _, f := range r.Findings {
		switch {
		case f.Fault == keep.Database:
			return "restore exp.db from a backup; blobs are kept apart and are not affected"
		case f.Fault == keep.Corrupt && !o.Repair:
			return "exp fsck --deep --repair moves corrupt blobs away; running their stages again makes them anew"
		case f.Fault == keep.Chain:
			return "somebody or something changed what was recorded; exp verify re-executes a run and tells what is true"
		}
	}
	return "running the stages again that made what is missing makes it anew"
}

func writeFsck(p *page, r fsckReport) {
	how := "sizes compared"
	if r.Deep {
		how = "hashed"
	}
	for _, f := range r.Findings {
		style := term.Bad
		if f.Fault == keep.Stale {
			style = term.Warn
		}
		what := f.What
		if len(f.names) == 1 && f.Runs[0].String() == f.What {
			what = f.names[0]
		}
		fmt.Fprintf(p.w, "%s %s: %s\n", style.Paint(string(f.Fault)+":", p.layout.Color), term.Clean(shortName(what)), term.CleanLines(f.Detail))
		if len(f.names) > 0 && what == f.What {
			p.line("needed by %s", strings.Join(f.names, ", "))
		}
		if f.Repaired != "" {
			p.line("%s", f.Repaired)
		}
	}
	checked := fmt.Sprintf("checked %d runs, %d steps (%d chains computed again), %d blobs of %s (%s)", r.Runs, r.Steps, r.Recomputed, r.Blobs, term.Bytes(r.Bytes), how)
	if r.Checkpoints > 0 {
		checked += fmt.Sprintf(", %d checkpoints", r.Checkpoints)
	}
	fmt.Fprintf(p.w, "%s in %s\n", checked, term.Duration(time.Duration(r.WallS*float64(time.Second))))
	if len(r.Findings) == 0 {
		fmt.Fprintln(p.w, term.Good.Paint("everything is as it was recorded", p.layout.Color))
	}
}
