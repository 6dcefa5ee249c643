package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"exp/experiments/ident"
	"exp/experiments/store"
)

func stopCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "stop",
		Category:  "Experiments",
		Usage:     "ask a run that is being executed to save a checkpoint and stop",
		ArgsUsage: "RUN",
		Description: "Sends the process that executes the run the signal that Ctrl-C or a batch system would, and waits until it has let go of the run: " +
			"it finishes the training step at hand and saves it. The process is the one that holds the run's lock, on this machine; no other is " +
			"ever signalled. Ctrl-C stops the waiting and not the request. Running the same configuration again goes on.",
		UsageText: strings.Join([]string{
			"exp stop @running # the one that runs",
			"exp stop countdown-ppo#1 --no-wait # ask, and go on at once",
			"exp stop @running --now # do not finish the step: what was recorded is kept",
		}, "\n"),
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "now", Usage: "do not wait for the step to end"},
			&cli.BoolFlag{Name: "no-wait", Usage: "return once the process is asked"},
		},
		BashComplete: a.completes(func(c *cli.Context, w word) []candidate { return a.runningCandidates(c.Context, w) }),
		Action: func(c *cli.Context) error {
			args, err := positionals(c, 1, 1)
			if err != nil {
				return err
			}
			return a.withStore(func(db *store.DB) error { return a.stop(c, db, args[0]) })
		},
	}
}

// runningCandidates proposes what is being executed.
func (a *app) runningCandidates(ctx context.Context, w word) (list []candidate) {
	db, err := a.openStore()
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
		if statusNow(db, r) == store.Running {
			list = append(list, candidate{r.Name + "#" + machineText(r.Seed), statusText(r)}, candidate{r.RID.Short(), r.Name})
		}
	}
	return list
}

// stopped is the schema exp.stop/1.
type stopped struct {
	Run    ident.Digest `json:"run"`
	PID    int          `json:"pid"`
	Now    bool         `json:"now"`
	Ended  bool         `json:"ended"` // the process has let go of the run
	Status store.Status `json:"status"`
	Steps  int64        `json:"steps"`
	WaitS  float64      `json:"wait_s"`
}

func (a *app) stop(c *cli.Context, db *store.DB, ref string) error {
	run, err := a.oneRun(c.Context, db, ref)
	if err != nil {
		return err
	}
	pid, err := signalHolder(c.Context, db, run, c.Bool("now"))
	if err != nil {
		return err
	}
	start := time.Now()
	out := stopped{Run: run.RID, PID: pid, Now: c.Bool("now")}
	if !c.Bool("no-wait") {
		a.note("process %d is asked to stop; waiting until it has saved (Ctrl-C stops the waiting only)", pid)
		if out.Ended, err = waitReleased(c.Context, db, run); err != nil {
			return err
		}
	}
	out.WaitS = time.Since(start).Seconds()
	if run, err = db.RunByID(context.WithoutCancel(c.Context), run.ID); err != nil {
		return err
	}
	out.Status, out.Steps = statusNow(db, &run), run.Steps
	if !out.Ended && !c.Bool("no-wait") {
		return stoppedf(c.Context, "process %d is asked to stop and has not yet", pid)
	}
	return a.out.printDocument(document{Schema: "exp.stop/1", Data: out, Human: func(w io.Writer) error {
		text := "process " + strconv.Itoa(pid) + " is asked to stop run " + run.RID.Short()
		if out.Ended {
			text = "run " + run.RID.Short() + " is " + string(out.Status) + " after " + machineText(out.Steps) + " of " + machineText(run.StepsTotal) + " steps"
		}
		_, err := io.WriteString(w, text+"\n")
		return err
	}})
}

// signalHolder signals the process that holds a run's lock and returns its id. The
// process is taken hold of first and looked at after, so that the signal cannot go
// to another one that was given the same number.
func signalHolder(ctx context.Context, db *store.DB, run store.Run, now bool) (int, error) {
	h, alive := db.Alive(run.RID)
	if !alive {
		f := failf(exitNotFound, "run %s is not being executed: it is %s", run.RID.Short(), run.Status)
		f.Help = "exp ls @running lists what is"
		return 0, f
	}
	host, err := os.Hostname()
	if err != nil {
		return 0, err
	}
	executes, err := isAttempt(ctx, db, run, h.PID)
	if err != nil {
		return 0, err
	}
	if h.Host != host {
		f := failf(exitResource, "run %s is executed on %s, and this is %s", run.RID.Short(), or(h.Host, "an unknown host"), host)
		f.Help = "run exp stop there"
		return 0, f
	}
	if !executes {
		return 0, failf(exitResource, "process %d holds run %s and does not execute it, which takes a moment; nothing was signalled", h.PID, run.RID.Short())
	}
	p, err := os.FindProcess(h.PID)
	if err != nil {
		return 0, err
	}
	defer p.Release()
	if again, alive := db.Alive(run.RID); !alive || again.PID != h.PID || !opens(h.PID, filepath.Join(db.RunDir(run.RID), "lock")) {
		return 0, failf(exitResource, "run %s has changed hands or ended meanwhile; nothing was signalled", run.RID.Short())
	}
	signals := []os.Signal{syscall.SIGTERM}
	if now { // two different ones: two of a kind may arrive as one
		signals = []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	}
	for _, s := range signals {
		if err := p.Signal(s); errors.Is(err, os.ErrProcessDone) {
			return h.PID, nil
		} else if err != nil {
			f := failf(exitResource, "process %d cannot be signalled: %w", h.PID, err)
			f.Help = "it belongs to somebody else; ask them"
			return 0, f
		}
	}
	return h.PID, nil
}

// isAttempt reports whether a process is recorded as executing the run: gc and fsck
// hold it for a moment too.
func isAttempt(ctx context.Context, db *store.DB, run store.Run, pid int) (bool, error) {
	list, err := db.Attempts(ctx, run.ID)
	return slices.ContainsFunc(list, func(a store.Attempt) bool { return a.Status == store.Running && a.PID == pid }), err
}

// opens reports whether a process has a file open. Where the system does not tell,
// the lock's signature is believed.
func opens(pid int, path string) bool {
	dir := filepath.Join("/proc", strconv.Itoa(pid), "fd")
	entries, err := os.ReadDir(dir)
	if err != nil {
		_, other := os.Stat("/proc/self/fd")
		return other != nil || errors.Is(err, os.ErrPermission)
	}
	want, err := os.Stat(path)
	if err != nil {
		return false
	}
	for _, e := range entries {
		if got, err := os.Stat(filepath.Join(dir, e.Name())); err == nil && os.SameFile(got, want) {
			return true
		}
	}
	return false
}

// waitReleased waits until nobody holds the run's lock; false if ctx ended first.
func waitReleased(ctx context.Context, db *store.DB, run store.Run) (bool, error) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, alive := db.Alive(run.RID); !alive {
			return true, nil
		}
		select {
		case <-ctx.Done():
			return false, nil
		case <-tick.C:
		}
	}
}
