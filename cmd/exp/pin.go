package main

import (
	"context"
	"errors"
	"strings"

	"exp/cmd/exp/cli"
	"exp/experiments/ident"
	"exp/experiments/keep"
	"exp/experiments/store"
)

func pinCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "pin",
		Category:  "Keeping",
		Usage:     "protect a run, or one of its checkpoints, from exp gc",
		ArgsUsage: "RUN",
		Description: "exp gc removes nothing of a pinned run, whatever the budget. --ckpt pins the checkpoint " +
			"of one step instead; it then survives checkpoint.keep as well as exp gc. A pin is a tag (" +
			store.PinTag + ", " + store.CheckpointPin(50) + "), so exp ls tag:" + store.PinTag + " lists the " +
			"pinned runs.",
		UsageText: strings.Join([]string{
			"exp pin @last # keep all of it",
			"exp pin @last --ckpt 50 # keep the checkpoint of step 50",
			"exp pin @last --ckpt 50 --remove # unpin it",
		}, "\n"),
		Flags: []cli.Flag{
			&cli.Int64Flag{Name: "ckpt", Usage: "pin the checkpoint of `STEP`", DefaultText: "none"},
			&cli.BoolFlag{Name: "remove", Aliases: []string{"r"}, Usage: "unpin"},
		},
		BashComplete: a.completesRuns(1, true, func(ctx context.Context, db *store.DB, w cli.Word) []cli.Candidate {
			return a.checkpointCandidates(ctx, db, w)
		}),
		Action: a.changes(1, 1, a.ofRun(a.pin)),
	}
}

// pinned is the schema exp.pin/1.
type pinned struct {
	Run        ident.Digest `json:"run"`
	Checkpoint int64        `json:"checkpoint,omitempty"` // its step
	Pinned     bool         `json:"pinned"`
}

func (a *app) pin(c *cli.Context, db *store.DB, run store.Run) error {
	p := pinned{Run: run.RID, Checkpoint: c.Int64("ckpt"), Pinned: !c.Bool("remove")}
	what := "run " + run.RID.Short()
	if c.IsSet("ckpt") {
		what = "the checkpoint of step " + cli.MachineText(p.Checkpoint) + " of " + what
	}
	if err := setPin(c.Context, db, run, p, c.IsSet("ckpt")); err != nil {
		return pinFailure(err, what)
	}
	state := "is pinned"
	if !p.Pinned {
		state = "is no longer pinned"
	}
	return a.Out.PrintText("exp.pin/1", p, "%s %s\n", what, state)
}

// setPin pins or unpins a run, or one of its checkpoints.
func setPin(ctx context.Context, db *store.DB, run store.Run, p pinned, checkpoint bool) error {
	switch {
	case checkpoint && p.Pinned:
		return keep.PinCheckpoint(ctx, db, run, p.Checkpoint)
	case checkpoint:
		return keep.UnpinCheckpoint(ctx, db, run, p.Checkpoint)
	case p.Pinned:
		return keep.Pin(ctx, db, run)
	}
	return keep.Unpin(ctx, db, run)
}

// pinFailure lists the checkpoints that exist, or says that the target of an unpin is
// not pinned.
func pinFailure(err error, what string) error {
	var none *keep.NoCheckpointError
	if errors.As(err, &none) {
		f := cli.Failf(cli.ExitNotFound, "%w", none)
		f.Help = "the run has none"
		if len(none.There) > 0 {
			var steps []string
			for _, s := range none.There {
				steps = append(steps, cli.MachineText(s))
			}
			f.Help = "the run has checkpoints of steps " + strings.Join(steps, ", ")
		}
		return f
	}
	if errors.Is(err, store.ErrNotFound) {
		return cli.Failf(cli.ExitNotFound, "%s is not pinned", what)
	}
	return err
}

// checkpointCandidates proposes the steps of the checkpoints of the run named before.
func (a *app) checkpointCandidates(ctx context.Context, db *store.DB, w cli.Word) []cli.Candidate {
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
	var out []cli.Candidate
	for _, s := range list {
		out = append(out, cli.Candidate{Text: cli.MachineText(s.Step), Note: s.Stage})
	}
	return out
}
