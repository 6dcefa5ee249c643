package main

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"exp/experiments/ident"
	"exp/experiments/keep"
	"exp/experiments/store"
)

func pinCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "pin",
		Category:  "Keeping",
		Usage:     "keep a run, or one of its checkpoints, from being collected",
		ArgsUsage: "RUN",
		Description: "Of a pinned run exp gc takes nothing, whatever the budget. --ckpt pins the checkpoint of one step instead, which " +
			"then outlives checkpoint.keep of the configuration as well as exp gc. A pin is a tag (" + store.PinTag + ", " +
			store.CheckpointPin(50) + "), so exp ls tag:" + store.PinTag + " lists what is pinned.",
		UsageText: strings.Join([]string{
			"exp pin @last # keep all of it",
			"exp pin @last --ckpt 50 # keep the checkpoint of step 50",
			"exp pin @last --ckpt 50 --remove # let it go again",
		}, "\n"),
		Flags: []cli.Flag{
			&cli.Int64Flag{Name: "ckpt", Usage: "pin the checkpoint of `STEP`"},
			&cli.BoolFlag{Name: "remove", Aliases: []string{"r"}, Usage: "unpin"},
		},
		BashComplete: a.completesRuns(1, true, func(ctx context.Context, db *store.DB, w word) []candidate {
			return a.checkpointCandidates(ctx, db, w)
		}),
		Action: func(c *cli.Context) error {
			args, err := positionals(c, 1, 1)
			if err != nil {
				return err
			}
			return a.withStoreToChange(func(db *store.DB) error { return a.pin(c, db, args[0]) })
		},
	}
}

// pinned is the schema exp.pin/1.
type pinned struct {
	Run        ident.Digest `json:"run"`
	Checkpoint int64        `json:"checkpoint,omitempty"` // its step
	Pinned     bool         `json:"pinned"`
}

func (a *app) pin(c *cli.Context, db *store.DB, ref string) error {
	run, err := a.oneRun(c.Context, db, ref)
	if err != nil {
		return err
	}
	p := pinned{Run: run.RID, Checkpoint: c.Int64("ckpt"), Pinned: !c.Bool("remove")}
	tag, what := store.PinTag, "run "+run.RID.Short()
	if c.IsSet("ckpt") {
		tag, what = store.CheckpointPin(p.Checkpoint), "the checkpoint of step "+machineText(p.Checkpoint)+" of run "+run.RID.Short()
	}
	switch {
	case !p.Pinned:
		err = db.RemoveTag(c.Context, run.ID, tag)
		if errors.Is(err, store.ErrNotFound) {
			return failf(exitNotFound, "%s is not pinned", what)
		}
	default:
		if c.IsSet("ckpt") {
			err = hasCheckpoint(db, run, p.Checkpoint)
		}
		if err == nil {
			err = db.AddTag(c.Context, run.ID, tag)
		}
	}
	if err != nil {
		return err
	}
	return a.out.printDocument(document{Schema: "exp.pin/1", Data: p, Human: func(w io.Writer) error {
		state := " is pinned"
		if !p.Pinned {
			state = " is not pinned any more"
		}
		_, err := io.WriteString(w, what+state+"\n")
		return err
	}})
}

// hasCheckpoint refuses a step of which no checkpoint is there.
func hasCheckpoint(db *store.DB, run store.Run, step int64) error {
	list, err := keep.Saved(db, run.RID)
	if err != nil {
		return err
	}
	var there []string
	for _, s := range list {
		if s.Step == step {
			return nil
		}
		if text := machineText(s.Step); !slices.Contains(there, text) {
			there = append(there, text)
		}
	}
	f := failf(exitNotFound, "run %s has no checkpoint of step %d", run.RID.Short(), step)
	f.Help = "there are none"
	if len(there) > 0 {
		f.Help = "there are those of steps " + strings.Join(there, ", ")
	}
	return f
}

// checkpointCandidates proposes the steps whose checkpoints the run that stands
// before has.
func (a *app) checkpointCandidates(ctx context.Context, db *store.DB, w word) []candidate {
	if w.Flag != "ckpt" || len(w.Args) == 0 {
		return nil
	}
	run, err := a.finder(db).One(ctx, w.Args[0])
	if err != nil {
		return nil
	}
	list, err := keep.Saved(db, run.RID)
	if err != nil {
		return nil
	}
	var out []candidate
	for _, s := range list {
		out = append(out, candidate{machineText(s.Step), s.Stage})
	}
	return out
}
