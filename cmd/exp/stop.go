package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"exp/cmd/exp/cli"
	"exp/experiments/holder"
	"exp/experiments/ident"
	"exp/experiments/store"
)

func stopCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "stop",
		Category:  "Experiments",
		Usage:     "ask a running run to save a checkpoint and stop",
		ArgsUsage: "RUN",
		Description: "Sends the process that executes the run the same signal as Ctrl-C or a batch system, and " +
			"waits until it releases the run: it finishes the current training step and saves it. The process " +
			"is the one that holds the run's lock, on this machine; no other process is ever signalled. Ctrl-C " +
			"ends the waiting, not the request. Running the same configuration again continues the run.",
		UsageText: strings.Join([]string{
			"exp stop @running # the running one",
			"exp stop countdown-ppo#1 --no-wait # ask, and return at once",
			"exp stop @running --now # do not finish the step; recorded steps are kept",
		}, "\n"),
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "now", Usage: "do not wait for the step to end"},
			&cli.BoolFlag{Name: "no-wait", Usage: "return without waiting for the process"},
		},
		BashComplete: a.Completes(func(c *cli.Context, w cli.Word) []cli.Candidate {
			return a.runningCandidates(c.Context, w)
		}),
		Action: a.reads(1, 1, a.ofRun(a.stop)),
	}
}

// runningCandidates proposes the running runs.
func (a *app) runningCandidates(ctx context.Context, w cli.Word) (list []cli.Candidate) {
	db, err := a.OpenStore()
	if err != nil || w.Flag != "" || len(w.Args) > 0 {
		return nil
	}
	defer db.Close()
	runs, err := db.Runs(ctx, store.RunQuery{Status: store.Running})
	if err != nil {
		return nil
	}
	for i := range runs {
		r := &runs[i]
		if db.StatusNow(r) == store.Running {
			list = append(list, cli.Candidate{Text: r.Name + "#" + cli.MachineText(r.Seed), Note: statusText(r)},
				cli.Candidate{Text: r.RID.Short(), Note: r.Name})
		}
	}
	return list
}

// stopped is the schema exp.stop/1.
type stopped struct {
	Run    ident.Digest `json:"run"`
	PID    int          `json:"pid"`
	Now    bool         `json:"now"`
	Ended  bool         `json:"ended"` // the process has released the run
	Status store.Status `json:"status"`
	Steps  int64        `json:"steps"`
	WaitS  float64      `json:"wait_s"`
}

func (a *app) stop(c *cli.Context, db *store.DB, run store.Run) error {
	pid, err := holder.Stop(c.Context, db, run, c.Bool("now"))
	if err != nil {
		return stopFailure(err)
	}
	start := time.Now()
	out := stopped{Run: run.RID, PID: pid, Now: c.Bool("now")}
	if !c.Bool("no-wait") {
		a.Note("asked process %d to stop; waiting until it has saved (Ctrl-C only ends the waiting)", pid)
		out.Ended = holder.WaitReleased(c.Context, db, run)
	}
	out.WaitS = time.Since(start).Seconds()
	if run, err = db.RunByID(context.WithoutCancel(c.Context), run.ID); err != nil {
		return err
	}
	out.Status, out.Steps = db.StatusNow(&run), run.Steps
	if !out.Ended && !c.Bool("no-wait") {
		return cli.Stoppedf(c.Context, "asked process %d to stop; it has not stopped yet", pid)
	}
	if !out.Ended {
		return a.Out.PrintText("exp.stop/1", out, "asked process %d to stop run %s\n", pid, run.RID.Short())
	}
	return a.Out.PrintText("exp.stop/1", out, "run %s is %s after %d of %d steps\n", run.RID.Short(), out.Status,
		out.Steps, run.StepsTotal)
}

// stopFailure says why no process was asked to stop.
func stopFailure(err error) error {
	var refused *holder.Refusal
	if !errors.As(err, &refused) {
		return err
	}
	f := cli.Failf(cli.ExitResource, "%w", refused)
	switch refused.Why {
	case holder.NotExecuted:
		f.Code, f.Help = cli.ExitNotFound, "exp ls @running lists running runs"
	case holder.OnOtherHost:
		f.Help = "run exp stop there"
	case holder.NotPermitted:
		f.Help = "it belongs to another user; ask them"
	}
	return f
}
